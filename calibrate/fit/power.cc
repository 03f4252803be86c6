#include "calibrate/fit/power.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "calibrate/fit/fit_options.h"
#include "calibrate/fit/posterior.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/problem.h"
#include "calibrate/records/observation.h"
#include "hardware/models/kind.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

using hardware::Device;
using model::InputError;
using model::Watts;

// The deviation of the logarithm of measured over predicted power of a run that
// nobody measured, an assumption;
// counts as kScatterPriorWeight runs where some were.
constexpr double kPowerSigma = 0.1;

struct Run {
  const PowerObservation* measured = nullptr;
  double products = 0;
  double others = 0;
  double sigma = 0;
};

// The levels with the fit's factors; nullopt where the kind has none.
std::optional<model::PowerLevels> LevelsOf(const Device& device,
                                           const model::Workload& workload,
                                           double products,
                                           double others) {
  const hardware::Kind& kind = hardware::KindOf(device);
  if (kind.power == nullptr || !device.max_power) return std::nullopt;
  std::optional<model::PowerLevels> levels = kind.power(device, workload);
  if (!levels) return std::nullopt;
  const Watts<> limit = *hardware::PowerLimitOf(device, workload);
  const auto within = [&](Watts<> level) {
    return std::clamp(level, levels->idle, std::max(levels->idle, limit));
  };
  levels->products = within(levels->products * products);
  levels->others = within(levels->others * others);
  return levels;
}

Watts<> Modelled(const Device& device,
                 const Run& run,
                 double products,
                 double others) {
  const auto levels =
      LevelsOf(device, run.measured->workload, products, others);
  return model::MeanPower(*levels, run.products, run.others);
}

// Shares of the step's time, by the fit of its time.
std::optional<Run> RunOf(const PowerObservation& observation,
                         const Predictor& predictor) {
  try {
    const auto shares =
        hardware::BusySharesOf(predictor.Time(observation.workload));
    Run run;
    run.measured = &observation;
    run.products = shares.products;
    run.others = shares.others;
    run.sigma =
        std::hypot(observation.relative_noise, FitOptions().model_sigma);
    return run;
  } catch (const InputError&) {
    return std::nullopt;  // A precision that the device does not have.
  }
}

// Least squares over the logarithms of both factors.
void FitFactors(const Device& device,
                const std::vector<Run>& runs,
                FittedPower& power) {
  // As far as a fit file takes a factor.
  const double farthest = std::log(10.0);
  const auto factor = [&](double sigma) {
    return BoundedParameter{.prior = 0.0,
                            .prior_sigma = sigma,
                            .lower = -farthest,
                            .upper = farthest};
  };
  FitProblem problem({factor(kProductsSigma), factor(kOthersSigma)},
                     /*robust_scale=*/0.0);
  problem.Add(ByDifferences(
      runs.size(),
      2,
      [&](std::span<const double> logs, std::span<double> residuals) {
        for (size_t i = 0; i < runs.size(); ++i) {
          residuals[i] =
              std::log(
                  Modelled(
                      device, runs[i], std::exp(logs[0]), std::exp(logs[1])) /
                  runs[i].measured->measured) /
              runs[i].sigma;
        }
      }));
  std::string message;
  const std::optional<Solution> solution =
      Solve(problem, PriorPositions(problem), {}, &message);
  if (!solution) {
    throw InputError("the power of the device does not converge: " + message);
  }
  const Eigen::MatrixXd covariance =
      PosteriorCovariance(problem, solution->positions);
  power.products = std::exp(solution->positions[0]);
  power.others = std::exp(solution->positions[1]);
  power.products_error = std::sqrt(covariance(0, 0));
  power.others_error = std::sqrt(covariance(1, 1));
  power.correlation =
      covariance(0, 1) / (power.products_error * power.others_error);
}

}  // namespace

std::optional<PowerAnswer> MeanPowerOf(const Device& device,
                                       const model::Workload& workload,
                                       double products,
                                       double others,
                                       const FittedPower* fitted) {
  if (!device.max_power || !device.idle_power) return std::nullopt;
  const auto levels = LevelsOf(device,
                               workload,
                               fitted != nullptr ? fitted->products : 1.0,
                               fitted != nullptr ? fitted->others : 1.0);
  if (!levels) {
    return PowerAnswer{
        model::MeanPower(*device.idle_power,
                         *hardware::PowerLimitOf(device, workload),
                         products + others),
        kPowerSigma};
  }
  PowerAnswer answer{model::MeanPower(*levels, products, others), kPowerSigma};
  if (fitted != nullptr) {
    // To first order in the logarithms of the factors.
    const double of_products =
        levels->products / answer.mean * products * fitted->products_error;
    const double of_others =
        levels->others / answer.mean * others * fitted->others_error;
    const double variance = of_products * of_products + of_others * of_others +
                            2 * fitted->correlation * of_products * of_others;
    answer.log_sigma =
        std::hypot(std::sqrt(std::max(variance, 0.0)), fitted->scatter);
  }
  return answer;
}

std::optional<FittedPower> FitPower(const Device& device,
                                    const Fit& fit,
                                    const std::vector<PowerObservation>& all) {
  if (all.empty() || hardware::KindOf(device).power == nullptr ||
      !device.max_power || !device.idle_power) {
    return std::nullopt;
  }
  const Predictor predictor(device, fit);
  std::vector<Run> runs;
  for (const PowerObservation& observation : all) {
    if (observation.device_count != 1 ||
        !IsDevice(device, observation.device)) {
      continue;
    }
    if (!LevelsOf(device, observation.workload, 1.0, 1.0)) continue;
    if (const auto run = RunOf(observation, predictor)) runs.push_back(*run);
  }
  if (runs.empty()) return std::nullopt;
  FittedPower power;
  FitFactors(device, runs, power);
  double squares = 0;
  for (const Run& run : runs) {
    const Watts<> modelled =
        Modelled(device, run, power.products, power.others);
    squares += std::pow(std::log(modelled / run.measured->measured), 2.0);
    power.runs.push_back({run.measured->label,
                          Describe(run.measured->workload),
                          run.measured->measured,
                          modelled});
  }
  const double freedom =
      std::max(0.0,
               static_cast<double>(runs.size()) -
                   (power.products_determined() ? 1.0 : 0.0) -
                   (power.others_determined() ? 1.0 : 0.0));
  power.scatter = ScatterWithPrior(squares, freedom, kPowerSigma);
  return power;
}

}  // namespace trainfare::calibrate
