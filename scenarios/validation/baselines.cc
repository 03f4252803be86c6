#include "scenarios/validation/baselines.h"

#include <fmt/format.h>

#include <algorithm>

#include "hardware/models/step_time.h"
#include "hardware/models/time_at_peak.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/muon.h"
#include "model/parallel.h"

namespace trainfare::scenarios {
namespace {

using hardware::Device;
using model::Flops;
using model::Kernel;
using model::Seconds;
using model::Workload;

// In eight bits the layers' products alone are at that precision's peak, those
// of Muon at that of bf16.
void RequirePeaks(const Device& device, const Workload& workload) {
  const model::Precision step = workload.precision;
  for (const model::Precision one :
       {step,
        model::OutsideBlockProducts(step),
        model::MuonNarrows(workload) ? model::Precision::kBf16 : step}) {
    if (device.MatrixPeak(one)) continue;
    throw model::InputError(fmt::format(
        "precision: {} has no peak in {}", device.name, model::ToText(one)));
  }
}

Seconds<> RooflineTimeOf(const Device& device,
                         const Workload& workload,
                         const Kernel& kernel) {
  const Seconds<> products = Flops<>(static_cast<double>(kernel.matrix_flops)) /
                             hardware::MatrixPeakOf(device, workload, kernel);
  const Seconds<> memory = model::Bytes<>(static_cast<double>(kernel.bytes())) /
                           device.memory_bandwidth;
  return std::max(products, memory) * static_cast<double>(kernel.launches);
}

}  // namespace

Baselines BaselinesOf(const Device& device, const Workload& workload) {
  RequirePeaks(device, workload);
  const model::KernelList list = model::ExpandKernels(workload);
  Baselines baselines;
  for (const model::Segment& segment : list.segments) {
    const auto times = static_cast<double>(
        segment.repeat * model::PassesInStep(workload, segment));
    for (const Kernel& kernel : list.Of(segment)) {
      baselines.roofline += RooflineTimeOf(device, workload, kernel) * times;
    }
  }
  baselines.roofline = model::OfEachRank(baselines.roofline, workload.parallel);
  const auto at_peak = hardware::TimeAtPeak(device, workload);
  ENSURE(at_peak.has_value(), "a precision without a peak is refused before");
  baselines.at_peak = *at_peak;
  return baselines;
}

}  // namespace trainfare::scenarios
