#include "calibrate/fit/power.h"

#include <ceres/ceres.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/records/observation.h"
#include "hardware/models/kind.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

using hardware::Device;
using model::InputError;
using model::Watts;

// How far a board may be off the energies of its generation, as the standard
// deviation of a logarithm: of a FLOP of products, and of the share of the
// limit that other work draws, which was read off one board. Assumptions.
constexpr double kProductsSigma = 0.1;
constexpr double kOthersSigma = 0.15;
// The same of measured over predicted power of a run that nobody measured;
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
                                           model::Precision precision,
                                           double products,
                                           double others) {
  const hardware::Kind& kind = hardware::KindOf(device);
  if (kind.power == nullptr || !device.max_power) return std::nullopt;
  std::optional<model::PowerLevels> levels = kind.power(device, precision);
  if (!levels) return std::nullopt;
  levels->products =
      std::clamp(levels->products * products, levels->idle, *device.max_power);
  levels->others =
      std::clamp(levels->others * others, levels->idle, *device.max_power);
  return levels;
}

class PowerResiduals {
 public:
  PowerResiduals(const Device& device, const std::vector<Run>& runs)
      : device_(device), runs_(runs) {}

  bool operator()(double const* const* logs, double* residuals) const {
    const double products = logs[0][0];
    const double others = logs[0][1];
    *residuals++ = products / kProductsSigma;
    *residuals++ = others / kOthersSigma;
    for (const Run& run : runs_) {
      const auto levels = LevelsOf(device_,
                                   run.measured->workload.precision,
                                   std::exp(products),
                                   std::exp(others));
      const Watts<> modelled =
          model::MeanPower(*levels, run.products, run.others);
      *residuals++ = std::log(modelled / run.measured->measured) / run.sigma;
    }
    return true;
  }
  int size() const { return static_cast<int>(runs_.size()) + 2; }

 private:
  const Device& device_;
  const std::vector<Run>& runs_;
};

using PowerCost =
    ceres::DynamicNumericDiffCostFunction<PowerResiduals, ceres::CENTRAL>;

// Inverse of J^T J at `logs`.
void FillErrors(const PowerCost& cost,
                const PowerResiduals& residuals,
                const double* logs,
                FittedPower& power) {
  const auto rows = static_cast<size_t>(residuals.size());
  std::vector<double> values(rows);
  std::vector<double> slopes(rows * 2);
  double* jacobian[] = {slopes.data()};
  const double* const at[] = {logs};
  cost.Evaluate(at, values.data(), jacobian);
  double products = 0;
  double others = 0;
  double both = 0;
  for (size_t row = 0; row < rows; ++row) {
    products += slopes[2 * row] * slopes[2 * row];
    others += slopes[2 * row + 1] * slopes[2 * row + 1];
    both += slopes[2 * row] * slopes[2 * row + 1];
  }
  const double determinant = products * others - both * both;
  power.products_error = std::sqrt(others / determinant);
  power.others_error = std::sqrt(products / determinant);
  power.correlation = -both / std::sqrt(products * others);
}

// Shares of the step's time, by the fit of its time.
std::optional<Run> RunOf(const PowerObservation& observation,
                         const Predictor& predictor) {
  try {
    const hardware::StepTime<double> step =
        predictor.Time(observation.workload);
    const model::Seconds<> busy = WorkingTime(step.forward) +
                                  WorkingTime(step.backward) +
                                  WorkingTime(step.optimizer);
    const model::Seconds<> products =
        step.forward.matrix + step.backward.matrix + step.optimizer.matrix;
    Run run;
    run.measured = &observation;
    run.products = products / step.total();
    run.others = (busy - products) / step.total();
    run.sigma =
        std::hypot(observation.relative_noise, FitOptions().model_sigma);
    return run;
  } catch (const InputError&) {
    return std::nullopt;  // A precision that the device does not have.
  }
}

void Solve(const PowerResiduals& residuals, FittedPower& power) {
  PowerResiduals own = residuals;
  PowerCost cost(&own, ceres::DO_NOT_TAKE_OWNERSHIP);
  cost.AddParameterBlock(2);
  cost.SetNumResiduals(residuals.size());
  ceres::Problem::Options unowned;
  unowned.cost_function_ownership = ceres::DO_NOT_TAKE_OWNERSHIP;
  ceres::Problem problem(unowned);
  std::array<double, 2> logs = {0.0, 0.0};
  problem.AddResidualBlock(&cost, nullptr, logs.data());
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.logging_type = ceres::SILENT;
  options.function_tolerance = 1e-12;
  options.parameter_tolerance = 1e-10;
  options.max_num_iterations = 1000;  // a level at the limit is a bend
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  if (summary.termination_type != ceres::CONVERGENCE) {
    throw InputError("the power of the device does not converge: " +
                     summary.message);
  }
  power.products = std::exp(logs[0]);
  power.others = std::exp(logs[1]);
  FillErrors(cost, residuals, logs.data(), power);
}

}  // namespace

bool FittedPower::products_determined() const {
  return products_error < kDeterminedBelow * kProductsSigma;
}

bool FittedPower::others_determined() const {
  return others_error < kDeterminedBelow * kOthersSigma;
}

model::Seconds<> WorkingTime(const hardware::PhaseTime<double>& phase) {
  return phase.total() - phase.overhead;
}

std::optional<PowerAnswer> MeanPowerOf(const Device& device,
                                       model::Precision precision,
                                       double products,
                                       double others,
                                       const FittedPower* fitted) {
  if (!device.max_power || !device.idle_power) return std::nullopt;
  const auto levels = LevelsOf(device,
                               precision,
                               fitted != nullptr ? fitted->products : 1.0,
                               fitted != nullptr ? fitted->others : 1.0);
  if (!levels) {
    return PowerAnswer{
        model::MeanPower(
            *device.idle_power, *device.max_power, products + others),
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
  if (hardware::KindOf(device).power == nullptr || !device.max_power ||
      !device.idle_power) {
    return std::nullopt;
  }
  const Predictor predictor(device, fit);
  std::vector<Run> runs;
  for (const PowerObservation& observation : all) {
    if (!IsDevice(device, observation.device)) continue;
    if (!LevelsOf(device, observation.workload.precision, 1.0, 1.0)) continue;
    if (const auto run = RunOf(observation, predictor)) runs.push_back(*run);
  }
  if (runs.empty()) return std::nullopt;
  FittedPower power;
  Solve(PowerResiduals(device, runs), power);
  double squares = 0;
  for (const Run& run : runs) {
    const auto levels = LevelsOf(
        device, run.measured->workload.precision, power.products, power.others);
    const Watts<> modelled =
        model::MeanPower(*levels, run.products, run.others);
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
