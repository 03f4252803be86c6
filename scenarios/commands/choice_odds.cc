#include "scenarios/commands/choice_odds.h"

#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <random>
#include <string>

#include "calibrate/records/statistics.h"

namespace trainfare::scenarios {
namespace {

constexpr int kDraws = 2000;  // a share of them is off by 1 % or less

// A figure whose logarithm is off by as much as its interval says.
class Uncertain {
 public:
  Uncertain() = default;
  explicit Uncertain(const ScoreRange& range)
      : value_(range.value),
        below_(std::log(range.value / range.low) /
               calibrate::kNormalQuantile90),
        above_(std::log(range.high / range.value) /
               calibrate::kNormalQuantile90) {}

  double At(double z) const {
    return value_ * std::exp(z * (z < 0 ? below_ : above_));
  }

 private:
  double value_ = 0;
  double below_ = 0;
  double above_ = 0;
};

struct Entry {
  Candidate* candidate = nullptr;
  size_t device = 0;
  Uncertain score;
  Uncertain time;
  Uncertain cost;
  int best = 0;
  int within = 0;
};

// What could be the choice if its figures were others.
bool IsOpen(const Candidate& c) {
  return c.timed() && c.cost &&
         (c.viable() || c.objection.kind == Obstacle::kMissesDeadline ||
          c.objection.kind == Obstacle::kOverBudget);
}

// The same numbers everywhere: what the library's own distribution draws is
// each library's own choice.
class Normals {
 public:
  double Next() {
    const double radius = std::sqrt(-2.0 * std::log(Uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * Uniform());
  }

 private:
  // Above 0 and at most 1, by the upper 53 bits.
  double Uniform() {
    return (static_cast<double>(random_() >> 11U) + 1.0) * 0x1p-53;
  }

  std::mt19937_64 random_{kOddsSeed};
};

void Draw(const RecommendOptions& options,
          const std::vector<double>& errors,
          std::vector<Entry>& entries) {
  Entry* best = nullptr;
  double least = 0;
  for (Entry& entry : entries) {
    const double z = errors[entry.device];
    if (options.deadline && entry.time.At(z) > ToSeconds(*options.deadline)) {
      continue;
    }
    if (options.budget && entry.cost.At(z) > ToDollars(*options.budget)) {
      continue;
    }
    ++entry.within;
    const double score = entry.score.At(z);
    if (best == nullptr || score < least) {
      best = &entry;
      least = score;
    }
  }
  if (best != nullptr) ++best->best;
}

}  // namespace

void SetOdds(const RecommendOptions& options,
             std::vector<Candidate>& candidates) {
  std::map<std::string, size_t> devices;
  std::vector<Entry> entries;
  for (Candidate& c : candidates) {
    if (!IsOpen(c)) continue;
    if (NeedsEnergy(options.objective) && !c.job->energy) continue;
    if (WeightsOf(options.objective) && !c.weighted) continue;
    const size_t device =
        devices.emplace(c.device, devices.size()).first->second;
    entries.push_back({&c,
                       device,
                       Uncertain(c.Score(options.objective)),
                       Uncertain(c.Score(Objective::kTime)),
                       Uncertain(c.Score(Objective::kCost))});
  }
  Normals normals;
  std::vector<double> errors(devices.size());
  for (int draw = 0; draw < kDraws; ++draw) {
    for (double& error : errors) error = normals.Next();
    Draw(options, errors, entries);
  }
  for (const Entry& entry : entries) {
    entry.candidate->best_probability = entry.best / double{kDraws};
    entry.candidate->limits_probability = entry.within / double{kDraws};
  }
}

}  // namespace trainfare::scenarios
