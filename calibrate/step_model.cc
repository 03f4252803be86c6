#include "calibrate/step_model.h"

#include <ceres/jet.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "hardware/device_models.h"
#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::calibrate {
namespace {

using hardware::ParameterInfo;
using hardware::Transform;
// One size for every kind of device: a second one would double the code that
// the compiler makes of the models, for less than it saves.
using Jet = ceres::Jet<double, static_cast<int>(kMaxParameters)>;

constexpr std::array kAllQuantities = {Quantity::kStep,
                                       Quantity::kForward,
                                       Quantity::kBackward,
                                       Quantity::kOptimizer};
static_assert(kAllQuantities.size() == kQuantities);

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
  const auto infos = hardware::ParametersOf(device.kind);
  ENSURE(infos.size() == positions.size() && infos.size() <= kMaxParameters,
         "one position a parameter");
  std::array<Jet, kMaxParameters> values;
  for (size_t i = 0; i < infos.size(); ++i) {
    const Jet position(positions[i], static_cast<int>(i));
    values[i] =
        infos[i].transform == Transform::kLog ? exp(position) : position;
  }
  const hardware::StepTime<Jet> step = hardware::EstimateStep<Jet>(
      device,
      workload,
      kernels,
      std::span<const Jet>(values.data(), infos.size()));
  LogTimes result;
  for (const Quantity quantity : kAllQuantities) {
    const auto at = static_cast<size_t>(quantity);
    const Jet time = PartOf(step, quantity).base();
    if (time.a <= 0.0) {
      result.log_time[at] = -std::numeric_limits<double>::infinity();
      continue;
    }
    result.log_time[at] = std::log(time.a);
    for (size_t i = 0; i < infos.size(); ++i) {
      result.gradient[at][i] = time.v[static_cast<Eigen::Index>(i)] / time.a;
    }
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

hardware::StepTime<double> StepModel::Time(
    std::span<const double> values) const {
  return hardware::EstimateStep<double>(*device_, workload_, kernels_, values);
}

LogTimes StepModel::EvaluateValues(std::span<const double> positions) const {
  const auto infos = hardware::ParametersOf(device_->kind);
  ENSURE(infos.size() == positions.size() && infos.size() <= kMaxParameters,
         "one position a parameter");
  std::array<double, kMaxParameters> values{};
  for (size_t i = 0; i < infos.size(); ++i) {
    values[i] = FromFitScale(infos[i], positions[i]);
  }
  const hardware::StepTime<double> step =
      Time(std::span<const double>(values.data(), infos.size()));
  LogTimes result;
  for (const Quantity quantity : kAllQuantities) {
    result.log_time[static_cast<size_t>(quantity)] =
        std::log(PartOf(step, quantity).base());
  }
  return result;
}

std::string Describe(const model::Workload& workload) {
  const model::Architecture& a = workload.architecture;
  std::string text = fmt::format(
      "{} {} {}x{}x{}x{}x{} b{} s{} {} {}-{} {}-{}",
      a.name.empty() ? model::ToText(a.family) : std::string_view(a.name),
      model::ToText(a.head),
      a.layers + a.decoder_layers,
      a.hidden,
      a.heads,
      a.intermediate,
      a.vocabulary,
      workload.batch,
      workload.sequence_length,
      model::ToText(workload.precision),
      model::ToText(workload.optimizer.kind),
      model::ToText(workload.optimizer.implementation),
      model::ToText(workload.stack.fusion),
      model::ToText(workload.stack.attention));
  if (workload.accumulation > 1) {
    text += fmt::format(" x{}", workload.accumulation);
  }
  if (workload.target_length > 0) {
    text += fmt::format(" t{}", workload.target_length);
  }
  if (workload.work != model::Work::kTraining) {
    text += fmt::format(" {}", model::ToText(workload.work));
  }
  if (workload.predictions_per_sequence > 0) {
    text += fmt::format(" p{}", workload.predictions_per_sequence);
  }
  const model::Trainable& trainable = workload.trainable;
  if (trainable.frozen_layers > 0) {
    text += fmt::format(" frozen{}", trainable.frozen_layers);
  }
  if (trainable.lora_rank > 0) {
    text += fmt::format(" lora{}", trainable.lora_rank);
  }
  if (workload.gradient_checkpointing) text += " checkpointed";
  if (a.dropout != model::Architecture{}.dropout) {
    text += fmt::format(" dropout {}", a.dropout);
  }
  if (a.labels != model::Architecture{}.labels) {
    text += fmt::format(" labels {}", a.labels);
  }
  return text;
}

std::string_view ToText(Quantity quantity) {
  switch (quantity) {
    case Quantity::kStep:
      return "step";
    case Quantity::kForward:
      return "forward";
    case Quantity::kBackward:
      return "backward";
    case Quantity::kOptimizer:
      return "optimizer";
  }
  ENSURE(false, "every quantity has a name");
}

Quantity QuantityFromText(std::string_view text) {
  std::vector<std::string_view> known;
  for (const Quantity quantity : kAllQuantities) {
    if (ToText(quantity) == text) return quantity;
    known.push_back(ToText(quantity));
  }
  throw model::InputError(
      fmt::format("expected {}, got \"{}\"", model::JoinNames(known), text));
}

}  // namespace trainfare::calibrate
