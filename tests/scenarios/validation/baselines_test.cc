#include "scenarios/validation/baselines.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>

#include "hardware/catalog/device.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/presets.h"
#include "tests/model/step_kernels.h"
#include "tests/near.h"

namespace trainfare::scenarios {
namespace {

hardware::Device V100() {
  return hardware::DeviceCatalog::Shipped().Find("v100_pcie_16gb");
}

model::Workload Step() {
  model::Workload workload;
  workload.architecture = model::FindArchitecture("bert-base-uncased");
  workload.batch = 4;
  workload.sequence_length = 64;
  workload.accumulation = 3;
  workload.precision = model::Precision::kFp16;
  return workload;
}

// Three micro-batches and one update of what one phase has.
double OfStep(const model::KernelList& list,
              int64_t model::PhaseCounts::*forward_or_backward) {
  double sum = 0;
  for (const auto& [phase, times] :
       {std::pair{model::Phase::kForward, 3.0},
        std::pair{model::Phase::kBackward, 3.0},
        std::pair{model::Phase::kOptimizer, 1.0}}) {
    sum += times * static_cast<double>(list.Counts(phase).*forward_or_backward);
  }
  return sum;
}

}  // namespace

TEST_CASE("a roofline is the slower of products and memory, kernel by kernel") {
  const model::Workload workload = Step();
  const model::KernelList list = model::ExpandKernels(workload);
  const hardware::Device device = V100();
  const double flops = OfStep(list, &model::PhaseCounts::matrix_flops);
  // The first micro-batch adds its gradients to none.
  const auto added = static_cast<double>(
      model::SumsOf(workload, "gradient add", model::Phase::kBackward).bytes);
  const double bytes = OfStep(list, &model::PhaseCounts::bytes_read) +
                       OfStep(list, &model::PhaseCounts::bytes_written) - added;
  const double peak = device.MatrixPeak(workload.precision)->base();

  hardware::Device endless = device;
  endless.memory_bandwidth = model::BytesPerSecond<>(1e30);
  CHECK(model::ToSeconds(BaselinesOf(endless, workload).roofline) ==
        Near(flops / peak));
  hardware::Device slow = device;
  slow.memory_bandwidth = model::BytesPerSecond<>(1.0);
  CHECK(model::ToSeconds(BaselinesOf(slow, workload).roofline) == Near(bytes));

  const Baselines baselines = BaselinesOf(device, workload);
  CHECK(model::ToSeconds(baselines.roofline) > flops / peak);
  CHECK(model::ToSeconds(baselines.roofline) <
        flops / peak + bytes / device.memory_bandwidth.base());
  CHECK(
      model::ToSeconds(baselines.at_peak) ==
      Near(static_cast<double>(model::StepModelFlops(workload)) / peak, 1e-12));
}

TEST_CASE("in fp8 the layers' products alone are at that peak") {
  const hardware::Device& h100 =
      hardware::DeviceCatalog::Shipped().Find("h100_sxm");
  model::Workload workload = Step();
  workload.precision = model::Precision::kFp8;
  const model::KernelList list = model::ExpandKernels(workload);
  double narrow = 0;
  double others = 0;
  for (const model::Segment& segment : list.segments) {
    // The update multiplies no matrices.
    const double times = 3.0 * static_cast<double>(segment.repeat);
    for (int64_t i = segment.begin; i < segment.end; ++i) {
      const model::Kernel& kernel = list.kernels[static_cast<size_t>(i)];
      (kernel.narrow_operands ? narrow : others) +=
          times * static_cast<double>(kernel.matrix_flops * kernel.launches);
    }
  }
  REQUIRE(narrow > 0);
  REQUIRE(others > 0);
  hardware::Device endless = h100;
  endless.memory_bandwidth = model::BytesPerSecond<>(1e30);
  const double expected =
      narrow / h100.MatrixPeak(model::Precision::kFp8)->base() +
      others / h100.MatrixPeak(model::Precision::kBf16)->base();
  CHECK(model::ToSeconds(BaselinesOf(endless, workload).roofline) ==
        Near(expected));
}

TEST_CASE("a baseline needs the precision's peak") {
  model::Workload workload = Step();
  workload.precision = model::Precision::kBf16;
  CHECK_THROWS_AS(BaselinesOf(V100(), workload), model::InputError);
}

}  // namespace trainfare::scenarios
