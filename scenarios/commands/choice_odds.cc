#include "scenarios/commands/choice_odds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "calibrate/fit/fit_options.h"
#include "calibrate/records/statistics.h"
#include "calibrate/session/command.h"
#include "hardware/catalog/device.h"
#include "hardware/files/unit_text.h"
#include "hardware/models/kind.h"
#include "model/cost.h"

namespace trainfare::scenarios {
namespace {

// Who is the best less often does not decide anything.
constexpr double kContender = 0.01;
// The odds of the right choice rise by less than one would rent anything for.
constexpr double kNoticeable = 0.05;

// What could be the choice if its figures were others.
bool IsOpen(const Candidate& c, const RecommendOptions& options) {
  if (!c.timed() || !c.cost) return false;
  if (NeedsEnergy(options.objective) && !c.job->energy) return false;
  if (WeightsOf(options.objective) && !c.weighted) return false;
  return c.viable() || c.objection.kind == Obstacle::kMissesDeadline ||
         c.objection.kind == Obstacle::kOverBudget;
}

Contestant ContestantOf(const Candidate& c, const RecommendOptions& options) {
  const auto& device = hardware::DeviceCatalog::Shipped().Find(c.device);
  Contestant one{c.device,
                 std::string(hardware::ToText(device.kind)),
                 c.Score(options.objective),
                 {}};
  if (options.deadline) {
    one.limits.emplace_back(c.Score(Objective::kTime),
                            ToSeconds(*options.deadline));
  }
  if (options.budget) {
    one.limits.emplace_back(c.Score(Objective::kCost),
                            ToDollars(*options.budget));
  }
  return one;
}

// The standard deviation of a logarithm, by both sides of an 80 % interval.
double LogSigma(double high_over_low) {
  return 0.5 * std::log(high_over_low) / calibrate::kNormalQuantile90;
}

double CorrelationOf(const JobEstimate& job) {
  const double steps = job.run.stepping() / job.run.total();
  const double now = LogSigma(job.step.high_factor / job.step.low_factor);
  const double then = calibrate::FitOptions().model_sigma;
  const double of_run = LogSigma(job.run_high / job.run_low);
  if (now <= then || of_run <= 0) return 0;
  return std::min(1.0, steps * std::sqrt(now * now - then * then) / of_run);
}

// Whether a calibration there would be of this very candidate, by the trainer.
bool CanBeMeasured(const Candidate& c) {
  if (c.instance == nullptr || c.hosts != 1) return false;
  const auto& device = hardware::DeviceCatalog::Shipped().Find(c.device);
  return c.devices == c.instance->count &&
         !hardware::KindOf(device).trainer_device.empty();
}

// The cheapest instance for each device and number of them that comes into
// question, by its index.
std::vector<size_t> PlacesToMeasure(const OpenChoice& open) {
  std::map<std::string, double> odds;
  for (const Candidate* c : open.candidates) {
    double& best = odds[c->device];
    best = std::max(best, c->best_probability.value_or(0.0));
  }
  std::map<std::pair<std::string, int64_t>, size_t> cheapest;
  for (size_t i = 0; i < open.candidates.size(); ++i) {
    const Candidate& c = *open.candidates[i];
    if (!CanBeMeasured(c) || odds[c.device] < kContender) continue;
    size_t& place =
        cheapest.emplace(std::pair(c.device, c.devices), i).first->second;
    if (c.tariff->price < open.candidates[place]->tariff->price) place = i;
  }
  std::vector<size_t> places;
  places.reserve(cheapest.size());
  for (const auto& [key, place] : cheapest) places.push_back(place);
  return places;
}

// The candidates that it tells of.
std::vector<size_t> MeasuredOn(const Candidate& place, const OpenChoice& open) {
  std::vector<size_t> measured;
  for (size_t i = 0; i < open.candidates.size(); ++i) {
    const Candidate& c = *open.candidates[i];
    if (c.device == place.device && c.hosts == 1 &&
        c.devices <= place.devices) {
      measured.push_back(i);
    }
  }
  return measured;
}

// What it is worth; more is better.
std::pair<model::Usd<>, double> WorthOf(const NextCalibration& next,
                                        const Candidate& choice) {
  const model::Usd<> net = next.saved.value_or(model::Usd<>()) - next.cost;
  const double raised = next.RaisedFrom(choice);
  return {std::max(model::Usd<>(), net),
          raised >= kNoticeable ? raised / ToDollars(next.cost) : 0.0};
}

}  // namespace

OpenChoice SetOdds(const RecommendOptions& options,
                   std::vector<Candidate>& candidates) {
  std::vector<Candidate*> open;
  std::vector<Contestant> contestants;
  for (Candidate& c : candidates) {
    if (!IsOpen(c, options)) continue;
    open.push_back(&c);
    contestants.push_back(ContestantOf(c, options));
  }
  OpenChoice choice{std::move(open), Contest(contestants)};
  const std::vector<Odds> odds = choice.contest.odds();
  for (size_t i = 0; i < odds.size(); ++i) {
    choice.candidates[i]->best_probability = odds[i].best;
    choice.candidates[i]->limits_probability = odds[i].within;
  }
  return choice;
}

std::optional<NextCalibration> NextCalibrationOf(
    const RecommendOptions& options, const OpenChoice& open) {
  if (open.candidates.empty() || !open.candidates.front()->chosen) {
    return std::nullopt;
  }
  const Candidate& choice = *open.candidates.front();
  std::optional<NextCalibration> best;
  for (const size_t place : PlacesToMeasure(open)) {
    const Candidate& on = *open.candidates[place];
    const Informed informed =
        open.contest.Measuring(0, MeasuredOn(on, open), CorrelationOf(*on.job));
    NextCalibration next;
    next.on = on.instance;
    next.time = on.job->run.start_up + calibrate::CalibrateOptions().budget;
    next.cost =
        model::RentalCost(next.time, on.tariff->price, on.tariff->billing);
    next.best_probability = informed.right;
    if (options.objective == Objective::kCost) {
      next.saved = model::Usd<>(informed.saved);
    }
    const auto least =
        best ? WorthOf(*best, choice) : std::pair(model::Usd<>(), 0.0);
    if (WorthOf(next, choice) > least) best = next;
  }
  return best;
}

double NextCalibration::RaisedFrom(const Candidate& choice) const {
  return best_probability - choice.best_probability.value_or(0.0);
}

std::string Words(const NextCalibration& next, const Candidate& choice) {
  const std::string calibration =
      fmt::format("one calibration on {} ({}, {}) would",
                  next.on->FullName(),
                  hardware::FormatMoney(next.cost),
                  hardware::FormatTime(next.time));
  const double before = 100.0 * choice.best_probability.value_or(0.0);
  const double after = 100.0 * next.best_probability;
  // What costs least on average need not be the cheapest most often.
  if (next.saved && next.RaisedFrom(choice) <= 0) {
    return fmt::format(
        "{} save {} of the expected cost, though the odds of the right choice "
        "go from {:.0f} to {:.0f} %",
        calibration,
        hardware::FormatMoney(*next.saved),
        before,
        after);
  }
  std::string saving;
  if (next.saved && next.saved->base() > 0) {
    saving =
        fmt::format(" and save {} of the expected cost{}",
                    hardware::FormatMoney(*next.saved),
                    *next.saved > next.cost ? "" : ", less than its price");
  }
  return fmt::format(
      "{} raise the odds of the right choice from {:.0f} to {:.0f} %{}",
      calibration,
      before,
      after,
      saving);
}

}  // namespace trainfare::scenarios
