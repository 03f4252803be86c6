#include "scenarios/commands/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>

#include "model/error.h"
#include "scenarios/job/energy.h"

namespace trainfare::scenarios {
namespace {

// By how much a score is above another: "8.1 %", "43 %", "12.3 times".
std::string MoreBy(double ratio) {
  const double percent = 100.0 * (ratio - 1.0);
  return percent < 1000
             ? fmt::format("{:.{}f} %", percent, percent < 10 ? 1 : 0)
             : fmt::format("{:.1f} times", ratio);
}

struct Comparatives {
  std::string_view less;
  std::string_view more;
};

Comparatives ComparativesOf(Objective objective) {
  switch (objective) {
    case Objective::kCost:
      return {"cheaper", "dearer"};
    case Objective::kTime:
      return {"faster", "slower"};
    case Objective::kEnergy:
      return {"less energy", "more energy"};
    default:
      return {"better", "worse"};
  }
}

// Beside the choice: "43 % dearer"; of what was passed over for a choice that
// is measured "not measured, 8.1 % cheaper".
std::string BesideChoice(double score, double of_choice, Objective objective) {
  const Comparatives words = ComparativesOf(objective);
  if (score < of_choice) {
    return fmt::format(
        "not measured, {} {}", MoreBy(of_choice / score), words.less);
  }
  return fmt::format("{} {}", MoreBy(score / of_choice), words.more);
}

// Places a candidate: what is in before what is out, limits missed by least
// before everything that no limit would let in, and of this what has no known
// network, the fastest first, before what does not fit, the nearest to it first,
// before what is out for another reason.
std::tuple<int, double, double> PlaceOf(const Candidate& c,
                                        Objective objective) {
  if (c.viable()) {
    return {0, c.Score(objective).value, ToDollars(c.cost->usual)};
  }
  const bool missed = c.objection.kind == Obstacle::kMissesDeadline ||
                      c.objection.kind == Obstacle::kOverBudget;
  if (missed) return {1, c.objection.miss, 0};
  if (c.objection.kind == Obstacle::kNetworkUnknown) {
    return {2, ToSeconds(c.job->run.total()), 0};
  }
  if (c.objection.kind == Obstacle::kDoesNotFit) return {3, c.job->Excess(), 0};
  return {4, 0, 0};
}

// Equals in the order of their names, which is the one that they came in.
bool StandsBefore(const Candidate& a, const Candidate& b, Objective objective) {
  const auto of_a = PlaceOf(a, objective);
  const auto of_b = PlaceOf(b, objective);
  if (of_a != of_b) return of_a < of_b;
  return std::get<0>(of_a) < 3 && a.Name() < b.Name();
}

}  // namespace

ScoreRange Candidate::Score(Objective objective) const {
  switch (objective) {
    case Objective::kCost:
      return {
          ToDollars(cost->usual), ToDollars(cost->low), ToDollars(cost->high)};
    case Objective::kTime:
      return {ToSeconds(job->run.total()),
              ToSeconds(job->run_low),
              ToSeconds(job->run_high)};
    case Objective::kEnergy: {
      const double energy = ToJoules(*job->energy);
      if (const auto range = EnergyRangeOf(*job)) {
        return {energy, ToJoules(range->low), ToJoules(range->high)};
      }
      // A bound: a step that takes longer may draw it for longer.
      return {energy,
              energy * (job->run_low / job->run.total()),
              energy * (job->run_high / job->run.total())};
    }
    default:
      ENSURE(weighted.has_value(), "a candidate ranked by weights");
      return *weighted;
  }
}

namespace {

// The weighted score of everything that has time, cost and energy.
void Weigh(std::vector<Candidate>& candidates, const Weights& weights) {
  constexpr std::array kParts = {
      Objective::kTime, Objective::kCost, Objective::kEnergy};
  const std::array of_part = {weights.time, weights.cost, weights.energy};
  std::array<double, kParts.size()> largest{};
  for (const Candidate& c : candidates) {
    if (!c.viable()) continue;
    for (size_t i = 0; i < kParts.size(); ++i) {
      largest[i] = std::max(largest[i], c.Score(kParts[i]).value);
    }
  }
  for (Candidate& c : candidates) {
    if (largest[0] <= 0 || !c.timed() || !c.cost || !c.job->energy) continue;
    ScoreRange sum;
    for (size_t i = 0; i < kParts.size(); ++i) {
      const ScoreRange part = c.Score(kParts[i]);
      const double weight = of_part[i] / largest[i];
      sum.value += weight * part.value;
      sum.low += weight * part.low;
      sum.high += weight * part.high;
    }
    c.weighted = sum;
  }
}

bool IsMeasured(const Candidate& c) {
  return c.timed() && c.job->step.grade == calibrate::Grade::kMeasured;
}

// Where the best is not measured, the best one that is and that it is in a tie
// with: not dearer by more than its own step is unsure, within the interval of
// the best. What start-up leaves open is open for both.
std::vector<Candidate>::iterator ChoiceOf(std::vector<Candidate>& candidates,
                                          Objective objective) {
  const auto best = candidates.begin();
  if (IsMeasured(*best)) return best;
  const ScoreRange of_best = best->Score(objective);
  const auto measured =
      std::find_if(best, candidates.end(), [&](const Candidate& c) {
        if (!c.viable() || !IsMeasured(c)) return false;
        const double score = c.Score(objective).value;
        return score <= of_best.high &&
               score * c.job->step.low_factor <= of_best.value;
      });
  return measured == candidates.end() ? best : measured;
}

// Whether one lies within the interval of the best. What errs alike for both
// (one device's steps) does not part them: then it has to be better somewhere
// between the bounds, where both are at the same one (Contest has it so, too).
bool MayBeBetter(const ScoreRange& one, const ScoreRange& best, bool alike) {
  if (!alike) return one.value <= best.high;
  return one.value <= best.value || one.low <= best.low ||
         one.high <= best.high;
}

}  // namespace

void Rank(std::vector<Candidate>& candidates, Objective objective) {
  if (const auto weights = WeightsOf(objective)) Weigh(candidates, *weights);
  std::stable_sort(candidates.begin(),
                   candidates.end(),
                   [&](const Candidate& a, const Candidate& b) {
                     return StandsBefore(a, b, objective);
                   });
  if (candidates.empty() || !candidates.front().viable()) return;
  const ScoreRange of_best = candidates.front().Score(objective);
  const std::string device_of_best = candidates.front().device;
  const auto choice = ChoiceOf(candidates, objective);
  const bool by_measurement = choice != candidates.begin();
  std::rotate(candidates.begin(), choice, choice + 1);
  Candidate& best = candidates.front();
  best.chosen = true;
  best.by_measurement = by_measurement;
  const double of_choice = best.Score(objective).value;
  for (const Candidate* one : ParetoFront(candidates)) {
    candidates[static_cast<size_t>(one - candidates.data())].on_front = true;
  }
  for (Candidate& candidate : candidates) {
    if (candidate.chosen || !candidate.viable()) continue;
    const double score = candidate.Score(objective).value;
    candidate.worse = BesideChoice(score, of_choice, objective);
    candidate.tied = MayBeBetter(candidate.Score(objective),
                                 of_best,
                                 candidate.device == device_of_best);
  }
}

std::vector<const Candidate*> ParetoFront(
    const std::vector<Candidate>& candidates) {
  std::vector<const Candidate*> viable;
  for (const Candidate& c : candidates) {
    if (c.viable() && c.cost) viable.push_back(&c);
  }
  std::stable_sort(
      viable.begin(), viable.end(), [](const Candidate* a, const Candidate* b) {
        const auto place = [](const Candidate* c) {
          return std::pair(c->job->run.total().base(), c->cost->usual.base());
        };
        return place(a) < place(b);
      });
  std::vector<const Candidate*> front;
  for (const Candidate* c : viable) {
    if (front.empty() || c->cost->usual < front.back()->cost->usual)
      front.push_back(c);
  }
  return front;
}

int64_t CountOf(Obstacle kind, const std::vector<Candidate>& candidates) {
  return std::count_if(
      candidates.begin(), candidates.end(), [&](const Candidate& c) {
        return c.objection.kind == kind;
      });
}

size_t CountTies(const std::vector<Candidate>& candidates) {
  return static_cast<size_t>(std::count_if(
      candidates.begin(), candidates.end(), [](const Candidate& c) {
        return c.tied;
      }));
}

std::string CountObstacles(const std::vector<Candidate>& candidates) {
  constexpr std::array kWords = {
      std::pair{Obstacle::kMissesDeadline, "miss the deadline"},
      std::pair{Obstacle::kOverBudget, "are over the budget"},
      std::pair{Obstacle::kDoesNotFit, "do not fit memory"},
      std::pair{Obstacle::kNoPrice, "have no price"},
      std::pair{Obstacle::kNetworkUnknown, "have no known network"},
      std::pair{Obstacle::kPowerUnknown, "have no known power"},
      std::pair{Obstacle::kCannotRun, "cannot run it"},
  };
  std::vector<std::string> parts;
  for (const auto& [obstacle, words] : kWords) {
    const int64_t count = CountOf(obstacle, candidates);
    if (count > 0) parts.push_back(fmt::format("{} {}", count, words));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace trainfare::scenarios
