#include "calibrate/fit/fit_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "calibrate/fit/engine_figures.h"
#include "calibrate/fit/joined_devices.h"
#include "calibrate/records/statistics.h"
#include "hardware/catalog/kind_facts.h"
#include "hardware/models/device_models.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

using hardware::ParameterInfo;
using model::InputError;

// A formula that misses by more than this times the error assumed is not told
// from outliers any more: without the limit nothing would count as determined,
// and back at the priors it would miss by more still.
constexpr double kLargestModelSigma = 2.0;
// The same of steps over several devices: what a network and a host do there
// that no formula has must not move the device's own parameters.
constexpr double kLargestJoinedSigma = 5.0;
// The deviation of the logarithm of a kernel's time by itself. One that misses
// by more says little, but is no outlier.
constexpr double kLargestKernelSigma = 0.5;

LogTimes WithSlopes(const TimeModel& model, std::span<const double> positions) {
  return std::visit(
      [&](const auto& of_kind) {
        return of_kind.Evaluate(positions.first(of_kind.positions()));
      },
      model);
}

// log(model / measured) / sigma of the figures of one workload or operation,
// which is evaluated once for all of them.
class TimeResiduals : public ResidualBlock {
 public:
  TimeResiduals(const FitData& data, size_t model, std::vector<size_t> figures)
      : data_(data), model_(data.models[model]), figures_(std::move(figures)) {}

  size_t size() const override { return figures_.size(); }
  bool Evaluate(std::span<const double> positions,
                std::span<double> residuals,
                std::span<double> slopes) const override {
    const LogTimes times = slopes.empty() ? EvaluateValues(model_, positions)
                                          : WithSlopes(model_, positions);
    bool finite = true;
    for (size_t i = 0; i < figures_.size(); ++i) {
      const Datum& datum = data_.data[figures_[i]];
      residuals[i] = (times[datum.quantity] - datum.log_measured) / datum.sigma;
      finite &= std::isfinite(residuals[i]);
      if (slopes.empty()) continue;
      const auto gradient = times.GradientOf(datum.quantity);
      for (size_t j = 0; j < positions.size(); ++j) {
        slopes[i * positions.size() + j] = gradient[j] / datum.sigma;
      }
    }
    return finite;
  }

 private:
  const FitData& data_;
  const TimeModel& model_;
  std::vector<size_t> figures_;  // indices of the data
};

// Figures of a fit, one by one.
class Collector {
 public:
  Collector(const hardware::Device& device, const FitOptions& options)
      : device_(device), options_(options) {}

  FitData Collect(const OwnFigures& own) {
    SetParameters(own.steps, !own.kernels.empty());
    for (const Step& step : own.steps) AddStep(step);
    for (const KernelObservation& o : own.kernels) {
      const std::string words = Describe(o);
      Datum datum{.quantity = Quantity::kKernel,
                  .measured = o.measured,
                  .noise = o.relative_noise};
      Add(o.label, words, words, datum, [&] {
        return KernelModel(device_, o);
      });
    }
    for (const EngineProfile& profile : own.profiles) AddProfile(profile);
    return std::move(data_);
  }

 private:
  void SetParameters(const std::vector<Step>& steps, bool has_kernels) {
    data_.infos = hardware::ParametersOf(device_);
    data_.of_device = data_.infos.size();
    const auto own = hardware::KindOf(device_).parameter_alone;
    if (own && has_kernels) data_.infos.push_back(data_.infos[*own].Alone());
    data_.of_joined = data_.infos.size();
    // A network that somebody named is as sure as a link.
    double network_sigma = hardware::FactsOfLinks().ring_share_sigma;
    bool any = false;
    for (const Step& step : steps) {
      if (!step.joined) continue;
      any = true;
      if (!step.joined->network) continue;
      network_sigma = std::max(network_sigma, step.joined->network->sigma);
    }
    if (any) {
      const auto joined = JoinedParameters(device_.kind, network_sigma);
      data_.infos.insert(data_.infos.end(), joined.begin(), joined.end());
    }
    for (const ParameterInfo& info : data_.infos) {
      data_.prior.push_back(ToFitScale(info, info.prior));
    }
  }

  void AddStep(const Step& step) {
    const Observation& o = step.observation;
    const std::string words = Describe(o.workload);
    Datum datum{.devices = o.run_devices,
                .assumed = o.assumed,
                .quantity = o.quantity,
                .measured = o.measured,
                .noise = o.relative_noise};
    if (!step.joined) {
      Add(o.label, words, words, datum, [&] {
        return StepModel(device_, o.workload);
      });
      return;
    }
    datum.devices = datum.ranks = o.device_count;
    datum.hosts = o.hosts;
    const double network =
        step.joined->network ? step.joined->network->wire.bandwidth.base() : 0;
    Add(o.label,
        fmt::format(
            "{} over {} on {} by {}", words, o.device_count, o.hosts, network),
        words,
        datum,
        [&] {
          return JoinedModel(
              device_, o.workload, *step.joined, data_.of_joined);
        });
  }

  // Its time is a step's like any other.
  void AddProfile(const EngineProfile& profile) {
    if (!profile.step && EngineFigureCount(profile) == 0) {
      throw InputError(
          fmt::format("{}: expected a figure of the profile", profile.label));
    }
    const std::string words = Describe(profile.workload);
    if (profile.step) {
      const Datum datum{.devices = profile.devices,
                        .assumed = profile.assumed,
                        .measured = *profile.step};
      Add(profile.label, words, words, datum, [&] {
        return StepModel(device_, profile.workload);
      });
    }
    data_.engines.push_back({profile, RunOf(profile.label)});
  }

  // The run of that label, a new one where there is none.
  size_t RunOf(const std::string& label) {
    const auto [run, is_new] = run_of_.emplace(label, data_.runs.size());
    if (is_new) data_.runs.push_back(label);
    return run->second;
  }

  // `key` tells its model from others, `words` stand in the fit.
  template <class MakeModel>
  void Add(const std::string& label,
           const std::string& key,
           const std::string& words,
           Datum datum,
           const MakeModel& make_model) {
    const double measured = model::ToSeconds(datum.measured);
    if (!std::isfinite(measured) || measured <= 0.0) {
      throw InputError(fmt::format(
          "{}: expected a time above 0, got {} s", label, measured));
    }
    const auto [model, new_model] = model_of_.emplace(key, data_.models.size());
    if (new_model) {
      try {
        data_.models.push_back(make_model());
      } catch (const InputError& error) {
        throw InputError(fmt::format("{}: {}", label, error.what()));
      }
      data_.words.push_back(words);
    }
    datum.model = model->second;
    datum.run = RunOf(label);
    datum.log_measured = std::log(measured);
    datum.sigma = Sigma(datum, AssumedErrors(options_));
    const LogTimes at_prior =
        EvaluateValues(data_.models[datum.model], data_.prior);
    if (!std::isfinite(at_prior[datum.quantity])) {
      throw InputError(
          fmt::format("{}: measured the {} of a step that has none",
                      label,
                      ToText(datum.quantity)));
    }
    data_.data.push_back(datum);
  }

  const hardware::Device& device_;
  const FitOptions& options_;
  FitData data_;
  std::map<std::string, size_t> model_of_;
  std::map<std::string, size_t> run_of_;
};

}  // namespace

const model::Workload* WorkloadOf(const TimeModel& model) {
  if (const auto* one = std::get_if<StepModel>(&model)) return &one->workload();
  const auto* joined = std::get_if<JoinedModel>(&model);
  return joined != nullptr ? &joined->workload() : nullptr;
}

LogTimes EvaluateValues(const TimeModel& model,
                        std::span<const double> positions) {
  return std::visit(
      [&](const auto& of_kind) {
        return of_kind.EvaluateValues(positions.first(of_kind.positions()));
      },
      model);
}

ModelErrors AssumedErrors(const FitOptions& options) {
  return {options.model_sigma, options.model_sigma, options.kernel_sigma};
}

double Sigma(const Datum& datum, const ModelErrors& errors) {
  if (datum.kernel()) return std::hypot(datum.noise, errors.kernel);
  return std::hypot(datum.noise, datum.ranks > 1 ? errors.joined : errors.step);
}

ModelErrors ErrorsAt(const FitData& data,
                     const std::vector<double>& positions,
                     const FitOptions& options) {
  std::vector<LogTimes> times;
  times.reserve(data.models.size());
  for (const TimeModel& model : data.models) {
    times.push_back(EvaluateValues(model, positions));
  }
  std::vector<double> steps;
  std::vector<double> joined;
  std::vector<double> kernels;
  for (const Datum& datum : data.data) {
    std::vector<double>& of_kind = datum.kernel()    ? kernels
                                   : datum.ranks > 1 ? joined
                                                     : steps;
    of_kind.push_back(times[datum.model][datum.quantity] - datum.log_measured);
  }
  return {std::clamp(RobustDeviation(steps, 0.0),
                     options.model_sigma,
                     kLargestModelSigma * options.model_sigma),
          std::clamp(RobustDeviation(joined, 0.0),
                     options.model_sigma,
                     kLargestJoinedSigma * options.model_sigma),
          std::clamp(RobustDeviation(kernels, 0.0),
                     std::min(options.model_sigma, options.kernel_sigma),
                     std::max(kLargestKernelSigma, options.kernel_sigma))};
}

FitData FitDataOf(const hardware::Device& device,
                  const OwnFigures& own,
                  const FitOptions& options) {
  return Collector(device, options).Collect(own);
}

std::vector<size_t> OrderOfResiduals(const FitData& data) {
  std::vector<size_t> order(data.data.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return data.data[a].model < data.data[b].model;
  });
  return order;
}

FitProblem ProblemOf(const hardware::Device& device,
                     const FitData& data,
                     double robust_scale) {
  std::vector<BoundedParameter> parameters;
  for (const ParameterInfo& info : data.infos) {
    parameters.push_back(Bounded(info));
  }
  FitProblem problem(std::move(parameters), robust_scale);
  std::vector<std::vector<size_t>> figures(data.models.size());
  for (const size_t i : OrderOfResiduals(data)) {
    figures[data.data[i].model].push_back(i);
  }
  for (size_t model = 0; model < figures.size(); ++model) {
    std::vector<size_t> runs;
    for (const size_t figure : figures[model]) {
      runs.push_back(data.data[figure].run);
    }
    problem.Add(
        std::make_unique<TimeResiduals>(data, model, std::move(figures[model])),
        runs);
  }
  for (const SeenEngines& seen : data.engines) {
    std::unique_ptr<ResidualBlock> block =
        EngineResiduals(device, seen.profile);
    const std::vector<size_t> runs(block->size(), seen.run);
    if (!runs.empty()) problem.Add(std::move(block), runs);
  }
  return problem;
}

}  // namespace trainfare::calibrate
