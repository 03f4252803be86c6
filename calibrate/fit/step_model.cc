#include "calibrate/fit/step_model.h"

#include <ceres/jet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <type_traits>
#include <utility>

#include "calibrate/fit/exact_jet.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/fields.h"
#include "model/nearest.h"
#include "model/stack_rules.h"
#include "model/validate.h"

namespace trainfare::calibrate {
namespace {

using hardware::ParameterInfo;
using hardware::Transform;
// As many derivatives as the model of one kind has parameters, and one more
// where that makes them even, so that they are taken two at a time.
template <class OfKind>
using KindJet =
    ceres::Jet<double,
               static_cast<int>((OfKind::kRow.parameters.size() + 1) / 2 * 2)>;
// The same of a step that few of them matter to: less work.
constexpr int kFewSlopes = 10;
using FewSlopesJet = ceres::Jet<double, kFewSlopes>;
// With slopes over what joins several devices, too: over few numbers of a step.
using WideJet = ceres::Jet<double, static_cast<int>(kMaxPositions)>;

// All but the last.
constexpr std::span kStepQuantities(kAllQuantities.data(), kQuantities - 1);

// Parameters, one position each, as the formulas take them.
std::array<double, kMaxParameters> ValuesAt(const hardware::Device& device,
                                            std::span<const double> positions) {
  const auto infos = hardware::ParametersOf(device.kind);
  ENSURE(infos.size() == positions.size() && infos.size() <= kMaxParameters,
         "one position a parameter");
  std::array<double, kMaxParameters> values{};
  for (size_t i = 0; i < infos.size(); ++i) {
    values[i] = FromFitScale(infos[i], positions[i]);
  }
  return values;
}

// Parameters that a formula has slopes over, in the order of its derivatives.
class Slopes {
 public:
  // Over all.
  explicit Slopes(hardware::DeviceKind kind)
      : Slopes(kind, hardware::ParameterSet().set()) {}
  // Over those that a step of `workload` can hang on.
  Slopes(const hardware::Device& device, const model::Workload& workload)
      : Slopes(device.kind, SetOf(device, workload)) {}

  std::span<const size_t> parameters() const {
    return {parameters_.data(), n_};
  }

 private:
  Slopes(hardware::DeviceKind kind, const hardware::ParameterSet& set) {
    const size_t all = hardware::ParametersOf(kind).size();
    ENSURE(all <= kMaxParameters, "room for each parameter");
    for (size_t i = 0; i < all; ++i) {
      if (set.test(i)) parameters_[n_++] = i;
    }
  }
  static hardware::ParameterSet SetOf(const hardware::Device& device,
                                      const model::Workload& workload) {
    const auto of_step = hardware::KindOf(device).parameters_of_step;
    return of_step != nullptr ? of_step(device, workload)
                              : hardware::ParameterSet().set();
  }

  std::array<size_t, kMaxParameters> parameters_{};
  size_t n_ = 0;
};

// Parameters, those of `slopes` variables in the scale of the fit.
template <class T>
std::array<T, kMaxParameters> Variables(const hardware::Device& device,
                                        std::span<const double> values,
                                        const Slopes& slopes) {
  const auto infos = hardware::ParametersOf(device.kind);
  ENSURE(infos.size() == values.size() && infos.size() <= kMaxParameters,
         "one value a parameter");
  std::array<T, kMaxParameters> variables{};
  for (size_t i = 0; i < infos.size(); ++i) variables[i] = T(values[i]);
  Eigen::Index derivative = 0;
  for (const size_t i : slopes.parameters()) {
    variables[i].v[derivative++] =
        infos[i].transform == Transform::kLog ? values[i] : 1.0;
  }
  return variables;
}

// A step over these variables.
template <class T, class OfKind>
hardware::StepTime<T> StepOf(OfKind kind,
                             const hardware::Device& device,
                             const model::Workload& workload,
                             const model::KernelList& kernels,
                             std::span<const double> values,
                             const Slopes& slopes) {
  const auto variables = Variables<T>(device, values, slopes);
  return kind.template Step<T>(
      device,
      workload,
      kernels,
      std::span<const T>(variables.data(), values.size()));
}

template <class T>
void Set(const T& time,
         Quantity quantity,
         const Slopes& slopes,
         LogTimes& all) {
  if (time.a <= 0.0) return;
  const auto at = static_cast<size_t>(quantity);
  all.log_time[at] = std::log(time.a);
  Eigen::Index derivative = 0;
  for (const size_t i : slopes.parameters()) {
    all.gradient[at][i] = time.v[derivative++] / time.a;
  }
}

// The kernels of an operation, one after another.
template <class T, class OfKind>
model::Seconds<T> TimeOf(OfKind kind,
                         const hardware::Device& device,
                         const model::Workload& workload,
                         model::Phase phase,
                         std::span<const model::Kernel> kernels,
                         std::span<const T> values) {
  model::Seconds<T> sum;
  for (const model::Kernel& kernel : kernels) {
    sum += hardware::EstimateKernelOf<T>(
        kind, device, workload, phase, kernel, values);
  }
  return sum;
}

template <class T>
model::Seconds<WideJet> Widened(const model::Seconds<T>& time) {
  WideJet wide(time.base().a);
  wide.v.template head<T::DIMENSION>() = time.base().v;
  return model::Seconds<WideJet>(wide);
}

template <class T>
hardware::PassUnits<WideJet> Widened(const hardware::PassUnits<T>& units) {
  return {Widened(units.embeddings),
          Widened(units.layer),
          Widened(units.decoder_layer),
          Widened(units.head)};
}

// The sums of its phases; of their terms nobody asks.
template <class T>
hardware::StepTime<WideJet> Widened(const hardware::StepTime<T>& step) {
  hardware::StepTime<WideJet> wide;
  wide.forward.overhead = Widened(step.forward.total());
  wide.backward.overhead = Widened(step.backward.total());
  wide.optimizer.overhead = Widened(step.optimizer.total());
  wide.other = Widened(step.other);
  wide.forward_units = Widened(step.forward_units);
  wide.backward_units = Widened(step.backward_units);
  return wide;
}

}  // namespace

double ToFitScale(const ParameterInfo& info, double value) {
  return info.transform == Transform::kLog ? std::log(value) : value;
}

StepAndSlopes EvaluateStep(const hardware::Device& device,
                           const model::Workload& workload,
                           const model::KernelList& kernels,
                           std::span<const double> values) {
  StepAndSlopes result;
  const Slopes slopes(device, workload);
  const auto keep = [&](const auto& step) {
    for (const Quantity quantity : kStepQuantities) {
      Set(PartOf(step, quantity).base(), quantity, slopes, result.log_times);
    }
    result.time = hardware::Mapped<double>(
        step, [](const auto& time) { return model::Seconds<>(time.base().a); });
  };
  hardware::WithKind(device.kind, [&](auto kind) {
    using AllSlopesJet = KindJet<decltype(kind)>;
    if constexpr (AllSlopesJet::DIMENSION > kFewSlopes) {
      if (slopes.parameters().size() <= kFewSlopes) {
        keep(StepOf<FewSlopesJet>(
            kind, device, workload, kernels, values, slopes));
        return;
      }
    }
    keep(StepOf<AllSlopesJet>(kind, device, workload, kernels, values, slopes));
  });
  return result;
}

StepModel::StepModel(const hardware::Device& device,
                     const model::Workload& workload)
    : device_(&device), workload_(workload) {
  model::Validate(workload);
  hardware::RequirePrecisions(device, workload);
  kernels_ = model::ExpandKernels(workload);
}

size_t StepModel::positions() const {
  return hardware::ParametersOf(device_->kind).size();
}

hardware::StepTime<double> StepModel::Time(
    std::span<const double> values) const {
  return hardware::EstimateStep<double>(*device_, workload_, kernels_, values);
}

LogTimes StepModel::Evaluate(std::span<const double> positions) const {
  const auto values = ValuesAt(*device_, positions);
  return EvaluateStep(*device_,
                      workload_,
                      kernels_,
                      std::span<const double>(values.data(), positions.size()))
      .log_times;
}

LogTimes StepModel::EvaluateValues(std::span<const double> positions) const {
  const auto values = ValuesAt(*device_, positions);
  const hardware::StepTime<double> step =
      Time(std::span<const double>(values.data(), positions.size()));
  LogTimes result;
  for (const Quantity quantity : kStepQuantities) {
    result.log_time[static_cast<size_t>(quantity)] =
        std::log(PartOf(step, quantity).base());
  }
  return result;
}

namespace {

std::vector<StepModel> ModelsOf(const hardware::Device& device,
                                const ModelStages& stages) {
  std::vector<StepModel> models;
  models.reserve(stages.distinct().size());
  for (const ModelStage& stage : stages.distinct()) {
    models.emplace_back(device, stage.workload);
  }
  return models;
}

}  // namespace

JoinedModel::JoinedModel(const hardware::Device& device,
                         const model::Workload& workload,
                         JoinedDevices joined,
                         size_t first)
    : device_(&device),
      workload_(std::make_unique<const model::Workload>(
          OnDevices(workload, joined.devices))),
      stages_(std::make_unique<const ModelStages>(*workload_)),
      ones_(ModelsOf(device, *stages_)),
      joined_(std::move(joined)),
      ranks_(*stages_, PlacementOf(workload_->parallel, joined_)),
      host_(HostPathOf(workload_->parallel, joined_, device)),
      // Widths are the fit's, and no part of the formula.
      infos_(JoinedParameters(device.kind, 1.0)),
      first_(first) {
  ENSURE(positions() <= kMaxPositions, "a position for each parameter");
}

size_t JoinedModel::positions() const { return first_ + infos_.size(); }

template <class T>
model::Seconds<T> JoinedModel::Time(
    std::span<const hardware::StepTime<T>> alone,
    std::span<const T> of_joined) const {
  if (!SendsBetween(joined_, *workload_)) return alone.front().total();
  using std::exp;
  // One alone has its host beside it, and no ranks.
  const bool several = joined_.devices > 1;
  const auto position = [&](JoinedPlace place) {
    return of_joined[static_cast<size_t>(place)];
  };
  const RankSurroundings<T> around{
      DatasheetNetwork<T>(joined_,
                          exp(position(JoinedPlace::kRingShare)),
                          exp(position(JoinedPlace::kNetworkShare))),
      joined_.chips(),
      host_,
      {model::Seconds<T>(exp(position(JoinedPlace::kSmallUnit))),
       model::Seconds<T>(exp(position(JoinedPlace::kExpertMatrix)))},
      several ? exp(-position(JoinedPlace::kRankShare)) : T(1.0)};
  const StepBesideOthers<T, T> step = ranks_.Step<T, T>(alone, around);
  model::Seconds<T> time = step.alone.total() * around.slower + step.added.all;
  if (host_) {
    time +=
        model::Seconds<T>(T(model::HostUpdateTime(*workload_, *host_).base()));
  }
  const bool has_host =
      of_joined.size() > static_cast<size_t>(JoinedPlace::kRankHost);
  if (several && has_host &&
      model::RulesOf(*workload_).launches != model::Launches::kOnce) {
    time += model::Seconds<T>(exp(position(JoinedPlace::kRankHost)));
  }
  return time;
}

LogTimes JoinedModel::Evaluate(std::span<const double> positions) const {
  const std::span<const double> of_device =
      positions.first(ones_.front().positions());
  const auto values = ValuesAt(*device_, of_device);
  std::vector<hardware::StepTime<WideJet>> alone;
  alone.reserve(ones_.size());
  for (const StepModel& one : ones_) {
    alone.push_back(hardware::WithKind(device_->kind, [&](auto kind) {
      return Widened(StepOf<KindJet<decltype(kind)>>(
          kind,
          *device_,
          one.workload(),
          one.kernels(),
          std::span<const double>(values.data(), of_device.size()),
          Slopes(device_->kind)));
    }));
  }
  std::vector<WideJet> of_joined;
  for (size_t i = first_; i < positions.size(); ++i) {
    of_joined.emplace_back(positions[i], static_cast<int>(i));
  }
  const WideJet time =
      Time<WideJet>(alone, std::span<const WideJet>(of_joined)).base();
  LogTimes result;
  const auto at = static_cast<size_t>(Quantity::kStep);
  result.log_time[at] = std::log(time.a);
  for (size_t i = 0; i < positions.size(); ++i) {
    result.gradient[at][i] = time.v[static_cast<Eigen::Index>(i)] / time.a;
  }
  return result;
}

LogTimes JoinedModel::EvaluateValues(std::span<const double> positions) const {
  const std::span<const double> of_device =
      positions.first(ones_.front().positions());
  const auto values = ValuesAt(*device_, of_device);
  std::vector<hardware::StepTime<double>> alone;
  alone.reserve(ones_.size());
  for (const StepModel& one : ones_) {
    alone.push_back(
        one.Time(std::span<const double>(values.data(), of_device.size())));
  }
  LogTimes result;
  result.log_time[static_cast<size_t>(Quantity::kStep)] =
      std::log(Time<double>(alone, positions.subspan(first_)).base());
  return result;
}

KernelModel::KernelModel(const hardware::Device& device,
                         const KernelObservation& observed)
    : device_(&device),
      own_(hardware::KindOf(device).parameter_alone),
      workload_(observed.workload),
      phase_(observed.phase),
      kernels_(observed.kernels) {
  hardware::RequirePrecisions(device, workload_);
  // Refuses a device without kernels before anything is fitted.
  std::vector<double> priors;
  for (const ParameterInfo& info : hardware::ParametersOf(device)) {
    priors.push_back(info.prior);
  }
  Time(priors);
}

model::Seconds<> KernelModel::Time(std::span<const double> values) const {
  return hardware::WithKind(device_->kind, [&](auto kind) {
    return TimeOf<double>(kind, *device_, workload_, phase_, kernels_, values);
  });
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
  const auto values = ValuesAt(*device_, alone);
  LogTimes result;
  hardware::WithKind(device_->kind, [&](auto kind) {
    using T = KindJet<decltype(kind)>;
    const Slopes slopes(device_->kind);
    const auto variables = Variables<T>(
        *device_, std::span<const double>(values.data(), alone.size()), slopes);
    const auto time =
        TimeOf<T>(kind,
                  *device_,
                  workload_,
                  phase_,
                  kernels_,
                  std::span<const T>(variables.data(), alone.size()));
    Set(time.base(), Quantity::kKernel, slopes, result);
  });
  if (own_) {
    auto& gradient = result.gradient[static_cast<size_t>(Quantity::kKernel)];
    gradient[alone.size()] = std::exchange(gradient[*own_], 0.0);
  }
  return result;
}

LogTimes KernelModel::EvaluateValues(std::span<const double> positions) const {
  const std::vector<double> alone = Alone(positions);
  const auto values = ValuesAt(*device_, alone);
  LogTimes result;
  result.log_time[static_cast<size_t>(Quantity::kKernel)] = std::log(
      Time(std::span<const double>(values.data(), alone.size())).base());
  return result;
}

}  // namespace trainfare::calibrate
