#include "calibrate/fit/step_model.h"

#include <ceres/jet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <type_traits>
#include <utility>

#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/fields.h"
#include "model/nearest.h"

namespace trainfare::calibrate {
namespace {

using hardware::ParameterInfo;
using hardware::Transform;
// One size for every kind of device: a second one would double the code that
// the compiler makes of the models, for less than it saves.
using Jet = ceres::Jet<double, static_cast<int>(kMaxParameters)>;

// All but the last.
constexpr std::span kStepQuantities(kAllQuantities.data(), kQuantities - 1);

// One position a parameter, as the formulas take them; with an autodiff scalar
// each is a variable of its own.
template <class T>
std::array<T, kMaxParameters> ValuesAt(const hardware::Device& device,
                                       std::span<const double> positions) {
  const auto infos = hardware::ParametersOf(device.kind);
  ENSURE(infos.size() == positions.size() && infos.size() <= kMaxParameters,
         "one position a parameter");
  std::array<T, kMaxParameters> values{};
  for (size_t i = 0; i < infos.size(); ++i) {
    if constexpr (std::is_same_v<T, double>) {
      values[i] = FromFitScale(infos[i], positions[i]);
    } else {
      const T position(positions[i], static_cast<int>(i));
      values[i] =
          infos[i].transform == Transform::kLog ? exp(position) : position;
    }
  }
  return values;
}

void Set(const Jet& time, Quantity quantity, size_t parameters, LogTimes& all) {
  if (time.a <= 0.0) return;
  const auto at = static_cast<size_t>(quantity);
  all.log_time[at] = std::log(time.a);
  for (size_t i = 0; i < parameters; ++i) {
    all.gradient[at][i] = time.v[static_cast<Eigen::Index>(i)] / time.a;
  }
}

// The kernels of an operation, one after another.
template <class T>
model::Seconds<T> TimeOf(const hardware::Device& device,
                         const model::Workload& workload,
                         model::Phase phase,
                         std::span<const model::Kernel> kernels,
                         std::span<const T> values) {
  model::Seconds<T> sum;
  for (const model::Kernel& kernel : kernels) {
    sum += hardware::EstimateKernel<T>(device, workload, phase, kernel, values);
  }
  return sum;
}

}  // namespace

double ToFitScale(const ParameterInfo& info, double value) {
  return info.transform == Transform::kLog ? std::log(value) : value;
}

double FromFitScale(const ParameterInfo& info, double position) {
  return info.transform == Transform::kLog ? std::exp(position) : position;
}

LogTimes EvaluateLogTimes(const hardware::Device& device,
                          const model::Workload& workload,
                          const model::KernelList& kernels,
                          std::span<const double> positions) {
  const auto values = ValuesAt<Jet>(device, positions);
  const hardware::StepTime<Jet> step = hardware::EstimateStep<Jet>(
      device,
      workload,
      kernels,
      std::span<const Jet>(values.data(), positions.size()));
  LogTimes result;
  for (const Quantity quantity : kStepQuantities) {
    Set(PartOf(step, quantity).base(), quantity, positions.size(), result);
  }
  return result;
}

StepModel::StepModel(const hardware::Device& device,
                     const model::Workload& workload)
    : device_(&device), workload_(workload) {
  model::Validate(workload);
  hardware::RequirePrecision(device, workload.precision);
  kernels_ = model::ExpandKernels(workload);
}

size_t StepModel::positions() const {
  return hardware::ParametersOf(device_->kind).size();
}

hardware::StepTime<double> StepModel::Time(
    std::span<const double> values) const {
  return hardware::EstimateStep<double>(*device_, workload_, kernels_, values);
}

LogTimes StepModel::EvaluateValues(std::span<const double> positions) const {
  const auto values = ValuesAt<double>(*device_, positions);
  const hardware::StepTime<double> step =
      Time(std::span<const double>(values.data(), positions.size()));
  LogTimes result;
  for (const Quantity quantity : kStepQuantities) {
    result.log_time[static_cast<size_t>(quantity)] =
        std::log(PartOf(step, quantity).base());
  }
  return result;
}

KernelModel::KernelModel(const hardware::Device& device,
                         const KernelObservation& observed)
    : device_(&device),
      own_(hardware::KindOf(device).parameter_alone),
      workload_(observed.workload),
      phase_(observed.phase),
      kernels_(observed.kernels) {
  hardware::RequirePrecision(device, workload_.precision);
  // Refuses a device without kernels before anything is fitted.
  std::vector<double> priors;
  for (const ParameterInfo& info : hardware::ParametersOf(device)) {
    priors.push_back(info.prior);
  }
  Time(priors);
}

model::Seconds<> KernelModel::Time(std::span<const double> values) const {
  return TimeOf<double>(*device_, workload_, phase_, kernels_, values);
}

size_t KernelModel::positions() const {
  return hardware::ParametersOf(device_->kind).size() + (own_ ? 1 : 0);
}

std::vector<double> KernelModel::Alone(
    std::span<const double> positions) const {
  ENSURE(positions.size() == this->positions() &&
             positions.size() <= kMaxParameters,
         "one position a parameter, and its own");
  std::vector<double> alone(positions.begin(), positions.end());
  if (own_) {
    alone[*own_] = alone.back();
    alone.pop_back();
  }
  return alone;
}

LogTimes KernelModel::Evaluate(std::span<const double> positions) const {
  const std::vector<double> alone = Alone(positions);
  const auto values = ValuesAt<Jet>(*device_, alone);
  LogTimes result;
  Set(TimeOf<Jet>(*device_,
                  workload_,
                  phase_,
                  kernels_,
                  std::span<const Jet>(values.data(), alone.size()))
          .base(),
      Quantity::kKernel,
      alone.size(),
      result);
  if (own_) {
    auto& gradient = result.gradient[static_cast<size_t>(Quantity::kKernel)];
    gradient[alone.size()] = std::exchange(gradient[*own_], 0.0);
  }
  return result;
}

LogTimes KernelModel::EvaluateValues(std::span<const double> positions) const {
  const std::vector<double> alone = Alone(positions);
  const auto values = ValuesAt<double>(*device_, alone);
  LogTimes result;
  result.log_time[static_cast<size_t>(Quantity::kKernel)] = std::log(
      Time(std::span<const double>(values.data(), alone.size())).base());
  return result;
}

}  // namespace trainfare::calibrate
