#include "calibrate/step_model.h"

#include <doctest/doctest.h>

#include <cmath>

#include "hardware/device_models.h"
#include "model/error.h"

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

TEST_CASE("the gradient is that of numeric differences, on every kind") {
  for (const Device& device : DevicesOfEachKind()) {
    CAPTURE(device.name);
    const auto infos = hardware::ParametersOf(device.kind);
    model::Workload workload;
    workload.architecture = model::FindArchitecture("bert-base-uncased");
    workload.batch = 8;
    workload.sequence_length = 128;
    workload.precision =
        device.peak.fp32 ? model::Precision::kFp32 : model::Precision::kBf16;
    const StepModel model(device, workload);
    std::vector<double> positions;
    for (const auto& info : infos) {
      // Off the prior, so that nothing sits exactly on a kink.
      positions.push_back(ToFitScale(info, info.prior) +
                          0.05 * info.prior_sigma);
    }
    const LogTimes exact = model.Evaluate(positions);
    const LogTimes plain = model.EvaluateValues(positions);
    for (size_t q = 0; q < kQuantities; ++q) {
      CAPTURE(q);
      CHECK(exact.log_time[q] ==
            doctest::Approx(plain.log_time[q]).epsilon(1e-12));
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
                                  Quantity::kOptimizer}) {
    CHECK(QuantityFromText(ToText(quantity)) == quantity);
  }
  CHECK_THROWS_WITH_AS(
      QuantityFromText("stp"),
      "expected step, forward, backward, optimizer, got \"stp\"",
      model::InputError);
}

}  // namespace
}  // namespace trainfare::calibrate
