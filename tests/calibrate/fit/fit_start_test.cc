#include "calibrate/fit/fit_start.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/step_model.h"
#include "hardware/catalog/device.h"
#include "hardware/models/device_models.h"
#include "hardware/models/gpu/parameters.h"
#include "model/presets.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

using hardware::models::kGpuLaunchCost;
using hardware::models::kGpuLibraryLaunchShare;

// Steps of BERT-base by LightSeq on a V100 whose host takes so long to launch a
// kernel in an eager framework, measured exactly.
std::vector<Observation> Launched(const hardware::Device& device,
                                  double launch_s,
                                  const std::vector<int64_t>& batches) {
  std::vector<double> truth;
  for (const auto& info : hardware::ParametersOf(device)) {
    truth.push_back(info.prior);
  }
  truth[kGpuLaunchCost] = launch_s;
  std::vector<Observation> observations;
  for (const int64_t batch : batches) {
    Observation observation;
    observation.label = "batch " + std::to_string(batch);
    observation.device = device.reported_name;
    observation.workload.architecture =
        model::FindArchitecture("bert-base-uncased");
    observation.workload.batch = batch;
    observation.workload.sequence_length = 128;
    observation.workload.precision = model::Precision::kFp16;
    observation.workload.stack.fusion = model::Fusion::kLightSeq;
    observation.quantity = Quantity::kStep;
    observation.measured =
        StepModel(device, observation.workload).Time(truth).total();
    observations.push_back(std::move(observation));
  }
  return observations;
}

// What a launch by LightSeq takes then.
double FittedLaunch(const std::vector<int64_t>& batches, double launch_s) {
  const auto& device =
      hardware::DeviceCatalog::Shipped().Find("v100_sxm2_16gb");
  FitOptions options;
  options.leave_one_out = false;
  const Fit fit =
      FitDevice(device, Launched(device, launch_s, batches), options);
  return fit.parameters[kGpuLaunchCost].value *
         fit.parameters[kGpuLibraryLaunchShare].value;
}

// At the priors, 0.6 of 20 us, the device is what takes time: no slope leads to
// launches of 0.6 of 120 us.
TEST_CASE("launches that kernels hide are found where runs speak of them") {
  CHECK(FittedLaunch({8, 12, 16, 24}, 120e-6) == Near(72e-6, 0.1));
}

TEST_CASE("few runs do not tell slow launches from disturbed steps") {
  CHECK(FittedLaunch({8, 12}, 120e-6) == Near(12e-6, 1e-5));
}

TEST_CASE("what nothing hides starts where the priors lead") {
  CHECK(FittedLaunch({8, 12, 16, 24}, 20e-6) == Near(12e-6, 1e-5));
}

}  // namespace
}  // namespace trainfare::calibrate
