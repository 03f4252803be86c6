#include "calibrate/fit/step_model.h"

#include <doctest/doctest.h>

#include <cmath>

#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/presets.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

using hardware::Device;

// Every kind that has a model, by a device that ships.
std::vector<Device> DevicesOfEachKind() {
  const auto& catalog = hardware::DeviceCatalog::Shipped();
  return {hardware::HostCpu(),
          catalog.Find("v100_sxm2_16gb"),
          catalog.Find("trainium1"),
          catalog.Find("tpu_v3")};
}

// The operation that docs/models/calibration.md works by hand: 12 MB of
// parameters.
KernelObservation Stream(const Device& device) {
  KernelObservation stream;
  stream.label = "stream";
  stream.device = device.name;
  stream.workload.architecture = model::FindArchitecture("bert-tiny");
  stream.workload.batch = 1;
  stream.workload.sequence_length = 16;
  stream.operation = "update";
  stream.phase = model::Phase::kOptimizer;
  model::Kernel kernel;
  kernel.kind = model::KernelKind::kOptimizer;
  kernel.bytes_read = 8'000'000;
  kernel.bytes_written = 4'000'000;
  kernel.parameter_bytes = 12'000'000;
  kernel.parameter_bytes_written = 4'000'000;
  stream.kernels = {kernel};
  return stream;
}

// Slopes of a step beside numeric ones.
void CheckGradient(const Device& device, const model::Workload& workload) {
  const auto infos = hardware::ParametersOf(device.kind);
  const StepModel model(device, workload);
  std::vector<double> positions;
  for (const auto& info : infos) {
    // Off the prior, so that nothing sits exactly on a kink.
    positions.push_back(ToFitScale(info, info.prior) + 0.05 * info.prior_sigma);
  }
  const LogTimes exact = model.Evaluate(positions);
  const LogTimes plain = model.EvaluateValues(positions);
  // A kernel by itself is none of a step's quantities.
  CHECK(std::isinf(exact[Quantity::kKernel]));
  for (size_t q = 0; q < static_cast<size_t>(Quantity::kKernel); ++q) {
    CAPTURE(q);
    CHECK(exact.log_time[q] == Near(plain.log_time[q], 1e-12));
    for (size_t i = 0; i < infos.size(); ++i) {
      CAPTURE(infos[i].name);
      constexpr double kStep = 1e-6;
      std::vector<double> moved = positions;
      moved[i] += kStep;
      const double above = model.EvaluateValues(moved).log_time[q];
      moved[i] -= 2.0 * kStep;
      const double below = model.EvaluateValues(moved).log_time[q];
      const double numeric = (above - below) / (2.0 * kStep);
      CHECK(std::abs(exact.gradient[q][i] - numeric) < 1e-6);
    }
  }
}

TEST_CASE("a kernel by itself has a fixed cost of its own") {
  Device device = hardware::HostCpu();
  device.memory_bandwidth = model::GBPerSecond(30);
  std::vector<double> positions;
  for (const auto& info : hardware::ParametersOf(device.kind)) {
    positions.push_back(ToFitScale(info, info.prior));
  }
  const size_t parameters = positions.size();
  positions[hardware::models::kCpuBandwidthEfficiency] = std::log(2.5);
  positions[hardware::models::kCpuKernelOverhead] = std::log(8e-6);
  positions.push_back(std::log(4e-6));
  const KernelModel model(device, Stream(device));
  REQUIRE(model.positions() == positions.size());
  const LogTimes times = model.Evaluate(positions);
  CHECK(std::exp(times[Quantity::kKernel]) == Near(164e-6));
  CHECK(model.EvaluateValues(positions)[Quantity::kKernel] ==
        Near(times[Quantity::kKernel], 1e-12));
  const auto gradient = times.GradientOf(Quantity::kKernel);
  CHECK(gradient[parameters] == Near(4.0 / 164.0));
  CHECK(gradient[hardware::models::kCpuKernelOverhead] == 0.0);
  CHECK(gradient[hardware::models::kCpuBandwidthEfficiency] ==
        Near(-160.0 / 164.0));
  CHECK(std::isinf(times[Quantity::kStep]));
  // On a GPU it may have waited for the host.
  const Device& gpu = hardware::DeviceCatalog::Shipped().Find("v100_sxm2_16gb");
  const auto of_gpu = hardware::ParametersOf(gpu.kind);
  CHECK(KernelModel(gpu, Stream(gpu)).positions() == of_gpu.size() + 1);
  const hardware::ParameterInfo& overhead =
      of_gpu[hardware::models::kGpuKernelOverhead];
  CHECK(overhead.prior == Near(5.5e-6, 1e-5));
  CHECK(overhead.Alone().prior == Near(15e-6, 1e-5));
  CHECK_THROWS_AS(KernelModel(hardware::DeviceCatalog::Shipped().Find("tpu_v3"),
                              Stream(gpu)),
                  model::InputError);
}

TEST_CASE("the gradient is that of numeric differences, on every kind") {
  for (const Device& device : DevicesOfEachKind()) {
    CAPTURE(device.name);
    model::Workload workload;
    workload.architecture = model::FindArchitecture("bert-base-uncased");
    workload.batch = 8;
    workload.sequence_length = 128;
    workload.precision =
        device.peak.fp32 ? model::Precision::kFp32 : model::Precision::kBf16;
    CheckGradient(device, workload);
  }
}

// A step hangs on some parameters alone (Kind::parameters_of_step).
TEST_CASE("the same of a GPU in every precision and stack") {
  const Device device = hardware::DeviceCatalog::Shipped().Find("h100_sxm");
  for (const model::Precision precision : {model::Precision::kFp32,
                                           model::Precision::kTf32,
                                           model::Precision::kBf16,
                                           model::Precision::kFp8}) {
    for (const auto& stack : model::kWords<model::Fusion>.words) {
      CAPTURE(stack.text);
      model::Workload workload;
      workload.architecture = model::FindArchitecture("llama-3.2-1b");
      workload.batch = 1;
      workload.sequence_length = 512;
      workload.precision = precision;
      workload.stack.fusion = stack.value;
      CheckGradient(device, workload);
    }
  }
}

TEST_CASE("no kind has more parameters than there is room for") {
  for (const auto kind : {hardware::DeviceKind::kCpu,
                          hardware::DeviceKind::kGpu,
                          hardware::DeviceKind::kNeuron,
                          hardware::DeviceKind::kSystolic,
                          hardware::DeviceKind::kDataflow}) {
    CHECK(hardware::ParametersOf(kind).size() <= kMaxParameters);
    CHECK(!hardware::ParametersOf(kind).empty());
  }
}

TEST_CASE("the words of a workload tell workloads apart") {
  model::Workload workload;
  workload.architecture = model::FindArchitecture("bert-tiny");
  workload.batch = 4;
  workload.sequence_length = 32;
  CHECK(Describe(workload) ==
        "bert-tiny sequence-classification 2x128x2x512x30522 b4 s32 fp32 "
        "adamw-multi_tensor eager-materialised");
  model::Workload other = workload;
  other.accumulation = 2;
  CHECK(Describe(other) == Describe(workload) + " x2");
  other.work = model::Work::kForward;
  CHECK(Describe(other) == Describe(workload) + " x2 forward");
}

TEST_CASE("quantities have names both ways") {
  for (const Quantity quantity : {Quantity::kStep,
                                  Quantity::kForward,
                                  Quantity::kBackward,
                                  Quantity::kOptimizer,
                                  Quantity::kKernel}) {
    CHECK(QuantityFromText(ToText(quantity)) == quantity);
  }
  CHECK_THROWS_WITH_AS(
      QuantityFromText("stp"),
      "expected step, forward, backward, optimizer, kernel, got \"stp\"",
      model::InputError);
}

}  // namespace
}  // namespace trainfare::calibrate
