#pragma once

// The formula of a device for one workload, or for an operation of it,
// evaluated at any parameters: time, and the gradient of its logarithm for fit,
// interval and plan alike.

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "calibrate/fit/joined_devices.h"
#include "calibrate/fit/rank_pass.h"
#include "calibrate/fit/split_step.h"
#include "calibrate/records/observation.h"
#include "hardware/catalog/device.h"
#include "hardware/catalog/parameter.h"
#include "hardware/models/step_time.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// No kind of device has more free parameters.
inline constexpr size_t kMaxParameters = 16;
// Nor a fit of one more positions: the device's parameters, a value of its own
// of kernels by themselves, and what joins several.
inline constexpr size_t kMaxPositions = 22;

// The scale in which a parameter is fitted: its log, or the value itself.
double ToFitScale(const hardware::ParameterInfo& info, double value);
template <class T>
T FromFitScale(const hardware::ParameterInfo& info, const T& position) {
  using std::exp;
  return info.transform == hardware::Transform::kLog ? exp(position) : position;
}

// The part of a step that a quantity names.
template <class T>
model::Seconds<T> PartOf(const hardware::StepTime<T>& step, Quantity quantity) {
  switch (quantity) {
    case Quantity::kForward:
      return step.forward.total();
    case Quantity::kBackward:
      return step.backward.total();
    case Quantity::kOptimizer:
      return step.optimizer.total();
    case Quantity::kStep:
      return step.total();
    case Quantity::kKernel:
      break;
  }
  ENSURE(false, "a kernel by itself is no part of a step");
}

// log(time) of every quantity and its gradient with regard to the parameters
// in the scale of the fit. What takes no time, or is not modelled (a kernel of
// a step, a step of a kernel), has log_time -infinity.
struct LogTimes {
  LogTimes() { log_time.fill(-std::numeric_limits<double>::infinity()); }
  std::array<double, kQuantities> log_time{};
  std::array<std::array<double, kMaxPositions>, kQuantities> gradient{};

  double operator[](Quantity quantity) const {
    return log_time[static_cast<size_t>(quantity)];
  }
  std::span<const double, kMaxPositions> GradientOf(Quantity quantity) const {
    return gradient[static_cast<size_t>(quantity)];
  }
};

// A step's time, and its logarithms with their slopes.
struct StepAndSlopes {
  hardware::StepTime<double> time;
  LogTimes log_times;
};
// At parameters as they are, with slopes in the scale of the fit: one evaluation
// by Jets, whose values are those of hardware::EstimateStep to the last bit.
// `kernels` must be ExpandKernels(workload).
StepAndSlopes EvaluateStep(const hardware::Device& device,
                           const model::Workload& workload,
                           const model::KernelList& kernels,
                           std::span<const double> values);

// Kernels are expanded once. `device` must outlive the model.
class StepModel {
 public:
  // Throws InputError when the workload is not valid or the device does not
  // run its precision.
  StepModel(const hardware::Device& device, const model::Workload& workload);

  const model::Workload& workload() const { return workload_; }
  size_t positions() const;  // that Evaluate takes: one a parameter

  // At parameters as they are.
  hardware::StepTime<double> Time(std::span<const double> values) const;
  const model::KernelList& kernels() const { return kernels_; }
  // At parameters in the scale of the fit, with the gradient.
  LogTimes Evaluate(std::span<const double> positions) const;
  // log(time) alone; gradients stay 0.
  LogTimes EvaluateValues(std::span<const double> positions) const;

 private:
  const hardware::Device* device_;
  model::Workload workload_;
  model::KernelList kernels_;
};

// The step of one of several devices over links that nobody timed, whole:
// Quantity::kStep alone. Beside one position a parameter of the device there is
// one for each of JoinedParameters(), from `first` on; between are positions of
// others. `device` must outlive the model.
class JoinedModel {
 public:
  // Throws as StepModel.
  JoinedModel(const hardware::Device& device,
              const model::Workload& workload,
              JoinedDevices joined,
              size_t first);

  const model::Workload& workload() const { return *workload_; }
  size_t positions() const;  // that Evaluate takes

  LogTimes Evaluate(std::span<const double> positions) const;
  // log(time) alone; gradients stay 0.
  LogTimes EvaluateValues(std::span<const double> positions) const;

 private:
  // By the times of one of each stage alone, and the positions of what joins
  // them.
  template <class T>
  model::Seconds<T> Time(std::span<const hardware::StepTime<T>> alone,
                         std::span<const T> of_joined) const;

  const hardware::Device* device_;
  std::unique_ptr<const model::Workload> workload_;  // as one of them sees it
  std::unique_ptr<const ModelStages> stages_;  // one where all have a model
  std::vector<StepModel> ones_;                // of each
  JoinedDevices joined_;
  JoinedRanks ranks_;
  std::optional<model::HostPath<double>> host_;
  std::vector<hardware::ParameterInfo> infos_;
  size_t first_;
};

// The formula for an operation by itself, Quantity::kKernel alone: its kernels
// one after another. Where a parameter has another value in a step
// (hardware::Kind::parameter_alone), the value alone is one position more,
// behind the device's. `device` must outlive the model.
class KernelModel {
 public:
  // Throws InputError when the device does not run the precision, or has no
  // times of kernels by themselves.
  KernelModel(const hardware::Device& device,
              const KernelObservation& observed);

  size_t positions() const;  // that Evaluate takes

  // At parameters as they are, those of the device.
  model::Seconds<> Time(std::span<const double> values) const;
  // At parameters in the scale of the fit, with the gradient.
  LogTimes Evaluate(std::span<const double> positions) const;
  // log(time) alone; gradients stay 0.
  LogTimes EvaluateValues(std::span<const double> positions) const;

 private:
  // The device's positions as they are for a kernel by itself.
  std::vector<double> Alone(std::span<const double> positions) const;

  const hardware::Device* device_;
  std::optional<size_t> own_;  // the parameter with a value of its own
  model::Workload workload_;
  model::Phase phase_;
  std::vector<model::Kernel> kernels_;
};

}  // namespace trainfare::calibrate
