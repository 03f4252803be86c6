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

constexpr std::array kAllQuantities = {Quantity::kStep,
                                       Quantity::kForward,
                                       Quantity::kBackward,
                                       Quantity::kOptimizer,
                                       Quantity::kKernel};
static_assert(kAllQuantities.size() == kQuantities);
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

std::string Describe(const KernelObservation& observed) {
  std::string text =
      fmt::format("{} {}", model::ToText(observed.phase), observed.operation);
  for (const model::Kernel& kernel : observed.kernels) {
    const model::GemmExtents& g = kernel.gemm;
    text += g.batch > 0
                ? fmt::format(", {} x {} x {} x {}", g.batch, g.m, g.n, g.k)
                : fmt::format(", {}", kernel.work_items);
  }
  return text + " of " + Describe(observed.workload);
}

namespace {

// Dimensions that the name does not tell: where they are not those of the
// preset of that name, or, without a name, not the usual ones. Tables have
// names of their own for models that are no presets.
std::string UnusualDimensions(const model::Architecture& a) {
  std::string text;
  if (a.decoder_layers > 0 && a.decoder_layers != a.layers) {
    text += fmt::format(" decoder {}", a.decoder_layers);
  }
  model::Architecture usual;
  if (const auto preset = model::TryFindArchitecture(a.name)) {
    usual = *preset;
  } else if (a.name.empty() || a.name == "custom") {
    usual.family = a.family;
    SetFamilyDefaults(usual);
  } else {
    return text;
  }
  usual.name = a.name;  // "bert-base" is one of its preset's names
  usual.head = a.head;
  usual.labels = a.labels;
  usual.dropout = a.dropout;
  if (a == usual) return text;
  const auto add = [&](std::string_view name, auto value, auto known) {
    if (value != known) text += fmt::format(" {} {}", name, value);
  };
  if (a.family != usual.family) {
    text += fmt::format(" {}", model::ToText(a.family));
  }
  add("positions", a.positions, usual.positions);
  add("position offset", a.position_offset, usual.position_offset);
  add("token types", a.token_types, usual.token_types);
  add("embedding norm", a.embedding_layer_norm, usual.embedding_layer_norm);
  add("pooler", a.pooler, usual.pooler);
  add("separate projections",
      a.separate_projections,
      usual.separate_projections);
  add("classifier dense", a.classifier_dense, usual.classifier_dense);
  const auto usual_block = model::BlockTexts(usual);
  for (const auto& [name, value] : model::BlockTexts(a)) {
    if (value != usual_block.at(name)) {
      text += fmt::format(" {} {}", name, value);
    }
  }
  return text;
}

// What few workloads have; nothing for the others.
std::string RestOf(const model::Workload& w) {
  const model::Workload usual;
  std::string text = UnusualDimensions(w.architecture);
  if (w.trainable.lora_rank > 0) {
    const std::vector<std::string> words = ToWords(w.trainable.lora);
    text += fmt::format(" of {}", fmt::join(words, "+"));
    if (w.trainable.base_bits > 0) {
      text += fmt::format(" over {} bits", w.trainable.base_bits);
    }
  }
  if (model::UpdatesNarrow(w)) text += " narrow state";
  if (w.optimizer.by_layer) text += " by layer";
  if (w.stack.compiler_level != usual.stack.compiler_level) {
    text += fmt::format(" O{}", w.stack.compiler_level);
  }
  if (w.stack.stochastic_rounding) text += " stochastic rounding";
  if (w.compression.kind != usual.compression.kind) {
    text += fmt::format(
        " {} {}", model::ToText(w.compression.kind), w.compression.rank);
  }
  return text;
}

}  // namespace

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
  if (model::MastersInUpdate(workload)) text += " narrow weights";
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
  return text + RestOf(workload);
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
    case Quantity::kKernel:
      return "kernel";
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
