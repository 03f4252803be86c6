// Adan: one update under a profiler, and its kernels by grid.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include "hardware/models/device_models.h"
#include "model/architecture.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/launch_queue.h"
#include "model/multi_tensor.h"
#include "model/optimizer_kernels.h"
#include "scenarios/published/least_squares.h"
#include "scenarios/published/published_systems.h"

namespace trainfare::scenarios {

using hardware::Device;
using hardware::DeviceKind;
using model::InputError;
using model::Seconds;

namespace {

// Whether the update visits one tensor after another.
bool TensorByTensor(const Described& d) {
  return d.run->optimizer->single_tensor ||
         d.workload.optimizer.implementation ==
             model::OptimizerImplementation::kForLoop;
}

std::vector<model::Kernel> UpdateKernels(const Described& d) {
  if (TensorByTensor(d)) return model::UpdateTensorByTensor(d.workload);
  std::vector<model::Kernel> kernels;
  AppendOptimizerKernels(d.workload, kernels);
  return kernels;
}

struct Update {
  Seconds<> active;
  Seconds<> total;
};

// What an update is fitted with.
enum UpdateParameter : size_t {
  kBandwidth,          // share of the bandwidth
  kKernelOverhead,     // fixed cost of a kernel on the device
  kLaunch,             // host cost of a launch
  kTensor,             // host cost of a tensor, where they are visited singly
  kExposedArithmetic,  // share of the arithmetic that no transfer hides
};

// The kernels through the launch queue. A form that visits one tensor after
// another costs the host a fixed time a tensor besides its launches.
Update UpdateTime(const Described& d, const std::vector<double>& p) {
  const Device& device = FindDevice(*d.run->device);
  std::vector<double> values;
  for (const auto& info : hardware::ParametersOf(DeviceKind::kGpu)) {
    values.push_back(info.prior);
  }
  values[hardware::models::kGpuBandwidthEfficiency] = p[kBandwidth];
  values[hardware::models::kGpuKernelOverhead] = p[kKernelOverhead];
  const std::span<const double> span(values);
  const auto rates = hardware::models::RatesOf(device, d.workload.precision);
  model::LaunchQueue<double> queue;
  Update update;
  for (const model::Kernel& kernel : UpdateKernels(d)) {
    auto exposed =
        hardware::models::GpuKernelTime<double>(device, rates, kernel, span);
    exposed.compute =
        std::max(exposed.compute,
                 hardware::models::GpuVectorTime<double>(device, kernel, span) *
                     std::min(p[kExposedArithmetic], 1.0));
    const Seconds<> once = exposed.total();
    update.active += once * static_cast<double>(kernel.launches);
    queue.Apply(model::OneLaunch<double>(Seconds<>(p[kLaunch]), once)
                    .Repeated(kernel.launches));
  }
  update.total = std::max(queue.ready, queue.host);
  if (TensorByTensor(d)) {
    update.total += Seconds<>(p[kTensor]) *
                    static_cast<double>(
                        model::ParameterTensorCount(d.workload.architecture));
  }
  return update;
}

// Elements of one block: one a thread, or a chunk of the packed kernel.
int64_t ElementsOf(const PublishedRun& run) {
  const bool packed = run.setting == "kernel C";
  return *run.grid * (packed ? model::kElementsPerChunk : *run.block);
}

double BandwidthShare(const PublishedRun& run, const std::vector<double>& p) {
  const Device& device = FindDevice(*run.device);
  std::vector<double> values;
  for (const auto& info : hardware::ParametersOf(DeviceKind::kGpu)) {
    values.push_back(info.prior);
  }
  values[hardware::models::kGpuBandwidthEfficiency] = p[0];
  values[hardware::models::kGpuKernelOverhead] = p[1];
  values[hardware::models::kGpuMemoryLatency] = p[2];
  const auto operations = model::OperationsOf(model::OptimizerKind::kAdan);
  model::Kernel kernel;
  kernel.kind = model::KernelKind::kOptimizer;
  kernel.work_items = ElementsOf(run);
  kernel.bytes_read = 4 * operations.fused_tensors_read * kernel.work_items;
  kernel.bytes_written =
      4 * operations.fused_tensors_written * kernel.work_items;
  kernel.parameter_bytes = kernel.bytes();
  kernel.parameter_bytes_written = kernel.bytes_written;
  const Seconds<> time =
      hardware::models::GpuKernelTime<double>(
          device,
          hardware::models::RatesOf(device, model::Precision::kFp32),
          kernel,
          std::span<const double>(values))
          .total();
  return model::Byte(static_cast<double>(kernel.bytes())) / time /
         device.memory_bandwidth;
}

}  // namespace

const std::vector<double>& AdanSteps::Parameters(const std::string& target,
                                                 size_t& figures) {
  const std::string key = runs_.Without(target);
  std::vector<std::pair<Described, const PublishedRow*>> seen;
  for (const std::string_view quantity : {"optimizer_time", "active_time"}) {
    for (const PublishedRow* row : runs_.RowsToFit(quantity, target)) {
      if (!IsOneStep(row->run)) continue;
      seen.emplace_back(runs_.Describe(runs_.RunOf(*row)), row);
    }
  }
  figures = seen.size();
  const auto found = fitted_.find(key);
  if (found != fitted_.end()) return found->second;
  // The model's priors; operations launched from Python cost the host more
  // than those of the framework's own engine. Of the arithmetic anything
  // between all hidden and none may show.
  const auto& tensor = hardware::ParametersOf(
      DeviceKind::kGpu)[hardware::models::kGpuTensorOverhead];
  const std::vector<FreeParameter> priors = {{0.8, 0.12},
                                             {2e-6, 0.4},
                                             {20e-6, 1.0},
                                             {tensor.prior, tensor.prior_sigma},
                                             {0.5, 1.0}};
  auto values = FitToPriors(priors, [&](const auto& p) {
    std::vector<double> residuals;
    for (const auto& [d, row] : seen) {
      const Update update = UpdateTime(d, p);
      const Seconds<> modelled =
          row->quantity == "active_time" ? update.active : update.total;
      residuals.push_back(std::log(ToSeconds(modelled) / row->value.low) /
                          kTimeSigma);
    }
    return residuals;
  });
  return fitted_.emplace(key, std::move(values)).first->second;
}

PublishedPrediction AdanSteps::Predict(const PublishedRow& row) {
  const Described d = runs_.Describe(runs_.RunOf(row));
  PublishedPrediction p;
  const std::string part = row.part.value_or("");
  if (row.quantity == "launches") {
    int64_t update = 0;
    for (const model::Kernel& kernel : UpdateKernels(d)) {
      update += kernel.launches;
    }
    const int64_t fills = model::FirstStepLaunches(d.workload);
    p.value = static_cast<double>(part == "preparation"   ? fills
                                  : part == "computation" ? update
                                                          : fills + update);
    p.how = "kernels of the expansion";
    return p;
  }
  if (row.quantity == "energy") {
    throw InputError(
        "energy of one step under a profiler: idle between launches at a "
        "power that no run time of ours determines");
  }
  size_t figures = 0;
  const std::vector<double>& values = Parameters(row.run, figures);
  const Update update = UpdateTime(d, values);
  p.how = fmt::format(
      "launch queue, {:.1f} us a launch and {:.1f} a tensor, {:.0f} % of the "
      "bandwidth from {} figures of the other forms",
      values[kLaunch] * 1e6,
      values[kTensor] * 1e6,
      values[kBandwidth] * 100.0,
      figures);
  // Fills of the first step, each made and zeroed from Python.
  const Seconds<> fills =
      Seconds<>(values[kLaunch]) *
      static_cast<double>(model::FirstStepLaunches(d.workload));
  if (row.quantity == "active_time") {
    p.value = ToSeconds(update.active);
  } else if (row.quantity == "active_ratio") {
    p.value = update.active / update.total;
  } else if (part == "preparation") {
    p.value = ToSeconds(fills);
  } else if (part == "first step") {
    p.value = ToSeconds(update.total + fills);
  } else {
    p.value = ToSeconds(update.total);
  }
  return p;
}

PublishedPrediction KernelByGrid(const PublishedRuns& runs,
                                 const PublishedRow& row) {
  const PublishedRun& run = runs.RunOf(row);
  std::vector<const PublishedRow*> bandwidths;
  for (const PublishedRow* other :
       runs.RowsToFit("utilisation.bandwidth", row.run)) {
    if (runs.RunOf(*other).setting != run.setting) continue;
    bandwidths.push_back(other);
  }
  // Times under the profiler hold clocks down: fixed costs are wide.
  const std::vector<FreeParameter> priors = {
      {0.8, 0.12}, {10e-6, 1.0}, {600e-9, 0.3}};
  const auto values = FitToPriors(priors, [&](const auto& p) {
    std::vector<double> residuals;
    for (const PublishedRow* other : bandwidths) {
      residuals.push_back(
          (BandwidthShare(runs.RunOf(*other), p) - other->value.low) /
          kShareSigma);
    }
    return residuals;
  });
  PublishedPrediction p;
  p.how = fmt::format(
      "{:.0f} % of the bandwidth and {:.0f} us a kernel from "
      "{} other grids",
      values[0] * 100.0,
      values[1] * 1e6,
      bandwidths.size());
  p.value = BandwidthShare(run, values);
  if (row.quantity == "utilisation.sm") {
    // Issue slots follow the bytes: their ratio, from grids that fill it.
    double sm = 0;
    double bandwidth = 0;
    for (const PublishedRow* other : bandwidths) {
      sm += runs.Value(other->run + "/utilisation.sm");
      bandwidth += other->value.low;
    }
    p.value = *p.value * sm / bandwidth;
  }
  return p;
}

}  // namespace trainfare::scenarios
