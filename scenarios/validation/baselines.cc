#include "scenarios/validation/baselines.h"

#include <fmt/format.h>

#include <algorithm>

#include "hardware/models/time_at_peak.h"
#include "model/error.h"
#include "model/kernels.h"

namespace trainfare::scenarios {
namespace {

using hardware::Device;
using model::Flops;
using model::FlopsPerSecond;
using model::Kernel;
using model::Seconds;
using model::Workload;

FlopsPerSecond<> PeakOf(const Device& device, model::Precision precision) {
  const auto peak = device.MatrixPeak(precision);
  if (!peak) {
    throw model::InputError(fmt::format("precision: {} has no peak in {}",
                                        device.name,
                                        model::ToText(precision)));
  }
  return *peak;
}

Seconds<> RooflineTimeOf(const Device& device,
                         const Kernel& kernel,
                         model::Precision precision) {
  const FlopsPerSecond<> peak =
      PeakOf(device, kernel.eight_bits ? model::Precision::kFp8 : precision);
  const Seconds<> products =
      Flops<>(static_cast<double>(kernel.matrix_flops)) / peak;
  const Seconds<> memory = model::Bytes<>(static_cast<double>(kernel.bytes())) /
                           device.memory_bandwidth;
  return std::max(products, memory) * static_cast<double>(kernel.launches);
}

}  // namespace

Baselines BaselinesOf(const Device& device, const Workload& workload) {
  const model::KernelList list = model::ExpandKernels(workload);
  Baselines baselines;
  for (const model::Segment& segment : list.segments) {
    const auto times = static_cast<double>(
        segment.repeat * model::PassesInStep(workload, segment.phase));
    for (const model::Kernel& kernel : list.Of(segment)) {
      baselines.roofline +=
          RooflineTimeOf(device, kernel, workload.precision) * times;
    }
  }
  const auto at_peak = hardware::TimeAtPeak(device, workload);
  ENSURE(at_peak.has_value(), "the roofline refused the precision");
  baselines.at_peak = *at_peak;
  return baselines;
}

}  // namespace trainfare::scenarios
