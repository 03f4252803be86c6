// Energy of runs: power at rest, at products and at other work.

#include <fmt/format.h>

#include <cmath>

#include "model/energy.h"
#include "scenarios/internal/least_squares.h"
#include "scenarios/internal/published_systems.h"

namespace trainfare::scenarios {

using hardware::Device;
using model::Seconds;

namespace {

// Shares of a step.
struct Busy {
  double matrix = 0;
  double all = 0;
};

}  // namespace

PublishedPrediction RunEnergy(PublishedSteps& steps, const PublishedRow& row) {
  const PublishedRuns& runs = steps.runs();
  const PublishedRun& run = runs.RunOf(row);
  PublishedPrediction p;
  PublishedRow whole = row;
  whole.quantity = "run_time";
  whole.part.reset();
  const PublishedPrediction time = steps.RunTime(whole);
  const auto busy = [&](const PublishedRun& of, std::string& how) {
    const ParallelStep step =
        steps.StepOf(steps.Describe(of, row.run), row.run, how);
    return Busy{MatrixShare(step.time, step.total),
                BusyShare(step.time, step.total)};
  };
  struct Seen {
    double power;
    Busy busy;
  };
  std::vector<Seen> seen;
  for (const PublishedRow* other : runs.RowsToFit("energy", row.run)) {
    const PublishedRun& of = runs.RunOf(*other);
    std::string how;
    seen.push_back({other->value.low / runs.Value(of.name + "/run_time") /
                        static_cast<double>(of.device_count),
                    busy(of, how)});
  }
  const Device& device = FindDevice(*run.device);
  // A board's limit bounds its busy power; idle is a wide guess.
  const double limit = device.max_power ? ToWatts(*device.max_power) : 250.0;
  const std::vector<FreeParameter> priors = {
      {limit / 6, 0.5}, {limit * 0.9, 0.3}, {limit * 0.7, 0.3}};
  // Idle, at products, at all other work: MeanPower of a mixture.
  const auto mean_power = [](const std::vector<double>& v, const Busy& b) {
    const double others = b.all - b.matrix;
    const double mixed =
        b.all > 0 ? (v[1] * b.matrix + v[2] * others) / b.all : v[0];
    return model::MeanPower(model::Watt(v[0]), model::Watt(mixed), b.all);
  };
  const auto values = FitToPriors(priors, [&](const auto& v) {
    std::vector<double> residuals;
    for (const Seen& s : seen) {
      const double power = ToWatts(mean_power(v, s.busy));
      residuals.push_back(std::log(power / s.power) / kTimeSigma);
    }
    return residuals;
  });
  std::string how;
  const Busy share = busy(run, how);
  p.value = ToJoules(mean_power(values, share) * Seconds<>(*time.value)) *
            static_cast<double>(run.device_count);
  p.how = fmt::format(
      "{:.0f} W idle, {:.0f} W at products, {:.0f} W at other work from {} "
      "other runs; {:.0f} and {:.0f} % of the predicted time",
      values[0],
      values[1],
      values[2],
      seen.size(),
      share.matrix * 100.0,
      (share.all - share.matrix) * 100.0);
  return p;
}

}  // namespace trainfare::scenarios
