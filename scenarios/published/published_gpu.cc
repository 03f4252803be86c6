// One GPU: kernels of a training step, utilisation by batch.

#include <fmt/format.h>

#include <map>
#include <span>
#include <string_view>

#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/kernels.h"
#include "scenarios/published/least_squares.h"
#include "scenarios/published/published_systems.h"

namespace trainfare::scenarios {

using hardware::Device;
using hardware::DeviceKind;
using model::InputError;
using model::Seconds;

PublishedPrediction KernelOfStep(PublishedSteps& steps,
                                 const PublishedRow& row) {
  const PublishedRuns& runs = steps.runs();
  const Described d = steps.Describe(runs.RunOf(row), row.run);
  const Device& device = FindDevice(*d.run->device);
  const calibrate::Predictor& predictor = steps.PredictorOf(device, row.run);
  PublishedPrediction p;
  p.how = steps.FittedTo(device, row.run) + d.assumed;
  const std::vector<double> values = predictor.fit().Values();
  const std::span<const double> span(values);
  const auto rates = hardware::models::RatesOf(device, d.workload.precision);
  const model::KernelList list = ExpandKernels(d.workload);
  if (row.quantity == "gemm_share") {
    Seconds<> gemms;
    Seconds<> all;
    for (const model::Segment& segment : list.segments) {
      if (segment.phase == model::Phase::kOptimizer) continue;
      for (int64_t i = segment.begin; i < segment.end; ++i) {
        const model::Kernel& kernel = list.kernels[static_cast<size_t>(i)];
        const Seconds<> time =
            hardware::models::GpuKernelTime<double>(device, rates, kernel, span)
                .total() *
            static_cast<double>(kernel.launches * segment.repeat);
        all += time;
        if (kernel.matrix_flops > 0) gemms += time;
      }
    }
    p.value = gemms / all;
    return p;
  }
  static const std::map<std::string, std::string_view> names = {
      {"softmax_warp_forward", "softmax"},
      {"softmax_warp_backward", "softmax gradient"},
      {"vectorized_layer_norm_kernel", "layer norm"}};
  const auto name = names.find(row.part.value_or(""));
  if (name == names.end()) {
    throw InputError(
        "a mean over products of several shapes that are not told apart");
  }
  for (const model::Kernel& kernel : list.kernels) {
    if (kernel.name != name->second) continue;
    p.value = ToSeconds(
        hardware::models::GpuKernelTime<double>(device, rates, kernel, span)
            .total());
    return p;
  }
  throw InputError(fmt::format("no kernel is called {}", name->second));
}

PublishedPrediction SmUtilisation(const PublishedRuns& runs,
                                  const PublishedRow& row) {
  const auto busy = [&](const PublishedRun& run, double launch) {
    const Described d = runs.Describe(run);
    const Device& device = FindDevice(*run.device);
    std::vector<double> values;
    for (const auto& info : hardware::ParametersOf(DeviceKind::kGpu)) {
      values.push_back(info.prior);
    }
    values[hardware::models::kGpuLaunchCost] = launch;
    const auto time =
        hardware::EstimateStep<double>(device,
                                       d.workload,
                                       ExpandKernels(d.workload),
                                       std::span<const double>(values));
    return BusyShare(time, time.total());
  };
  std::vector<const PublishedRow*> others;
  for (const PublishedRow* other : runs.RowsToFit("utilisation.sm", row.run)) {
    if (other->group == row.group) others.push_back(other);
  }
  // The counter's level when the device is never idle is not said.
  const std::vector<FreeParameter> priors = {{0.5, 0.3}, {7e-6, 1.0}};
  const auto values = FitToPriors(priors, [&](const auto& p) {
    std::vector<double> residuals;
    for (const PublishedRow* other : others) {
      residuals.push_back(
          (p[0] * busy(runs.RunOf(*other), p[1]) - other->value.low) /
          kShareSigma);
    }
    return residuals;
  });
  PublishedPrediction p;
  p.value = values[0] * busy(runs.RunOf(row), values[1]);
  p.how = fmt::format(
      "busy share, {:.1f} us a launch and {:.0f} % when busy "
      "from {} other batches",
      values[1] * 1e6,
      values[0] * 100.0,
      others.size());
  return p;
}

}  // namespace trainfare::scenarios
