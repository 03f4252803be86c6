#include "scenarios/commands/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "hardware/files/unit_text.h"
#include "hardware/models/device_models.h"
#include "model/cost.h"
#include "model/error.h"
#include "model/nearest.h"
#include "scenarios/job/energy.h"
#include "scenarios/job/fits.h"

namespace trainfare::scenarios {
namespace {

using hardware::FormatMoney;
using hardware::FormatTime;
using hardware::Instance;

// Why a candidate that was estimated is out, whatever the others offer.
Objection ObjectionTo(const Candidate& c, const RecommendOptions& options) {
  const JobEstimate& job = *c.job;
  if (!job.fits()) return {Obstacle::kDoesNotFit, job.Obstacle()};
  if (c.here) return {Obstacle::kNoPrice, "not for rent"};
  if (c.instance == nullptr) {
    return {Obstacle::kNoPrice, "by itself: no instance, so no price"};
  }
  if (!c.tariff) {
    return {
        Obstacle::kNoPrice,
        fmt::format("no {}price{}",
                    options.spot ? "spot " : "",
                    options.prices.regions.empty() ? "" : " in these regions")};
  }
  const model::Seconds<> time = job.run.total();
  if (options.deadline && time > *options.deadline) {
    return {Obstacle::kMissesDeadline,
            fmt::format("misses the deadline by {}",
                        FormatTime(time - *options.deadline)),
            time / *options.deadline - 1.0};
  }
  if (options.budget && *c.cost > *options.budget) {
    return {Obstacle::kOverBudget,
            fmt::format("over the budget by {}",
                        FormatMoney(*c.cost - *options.budget)),
            *c.cost / *options.budget - 1.0};
  }
  if (NeedsEnergy(options.objective) && !job.energy) {
    return {Obstacle::kPowerUnknown, "its power is not known"};
  }
  return {};
}

// The estimates of all candidates; predictors are made once a device.
class Estimator {
 public:
  Estimator(const Scenario& scenario, const RecommendOptions& options)
      : scenario_(scenario), pricing_(options.prices) {}

  Candidate Estimate(const Instance& instance,
                     int64_t devices,
                     int64_t hosts,
                     const RecommendOptions& options) {
    Candidate c;
    c.instance = &instance;
    c.device = instance.device;
    c.devices = devices * hosts;
    c.hosts = hosts;
    c.tariff = pricing_.Of(instance, options.spot, hosts);
    try {
      const calibrate::Predictor& predictor = PredictorOf(instance.device);
      c.job = EstimateJob(scenario_,
                          predictor,
                          OverHosts(ClusterOf(instance, devices, predictor),
                                    hosts,
                                    predictor.device(),
                                    &instance,
                                    std::nullopt));
    } catch (const model::InputError& error) {
      c.objection = {Obstacle::kCannotRun, error.what()};
      return c;
    }
    if (c.job->fits() && c.tariff) {
      const auto cost_of = [&](model::Seconds<> time) {
        return model::RentalCost(time, c.tariff->price, c.tariff->billing);
      };
      c.cost = cost_of(c.job->run.total());
      c.cost_low = cost_of(c.job->run_low);
      c.cost_high = cost_of(c.job->run_high);
    }
    c.objection = ObjectionTo(c, options);
    return c;
  }

  Candidate EstimateAlone(const std::string& device,
                          const RecommendOptions& options,
                          bool here = false) {
    Candidate c;
    c.here = here;
    c.device = hardware::DeviceCatalog::Shipped().Find(device).name;
    try {
      c.job = EstimateJob(scenario_, PredictorOf(c.device), Cluster());
      c.objection = ObjectionTo(c, options);
    } catch (const model::InputError& error) {
      c.objection = {Obstacle::kCannotRun, error.what()};
    }
    return c;
  }

  // nullopt where nobody calibrated it.
  std::optional<Candidate> EstimateHere(const RecommendOptions& options) {
    const hardware::Device& host =
        hardware::DeviceCatalog::Shipped().Find("cpu");
    if (fits_.Of(host) == nullptr) return std::nullopt;
    return EstimateAlone(host.name, options, /*here=*/true);
  }

  // Files of fits that could not be read, a line each.
  const std::vector<std::string>& left_out_fits() const {
    return fits_.left_out();
  }

 private:
  const calibrate::Predictor& PredictorOf(const std::string& name) {
    auto found = predictors_.find(name);
    if (found == predictors_.end()) {
      const hardware::Device& device =
          hardware::DeviceCatalog::Shipped().Find(name);
      // Also where no fit is needed: a device cannot run what it cannot run.
      hardware::RequirePrecision(device, scenario_.workload.precision);
      const calibrate::Fit* fit = fits_.Of(device);
      found = predictors_
                  .emplace(name,
                           fit != nullptr ? calibrate::Predictor(device, *fit)
                                          : calibrate::Predictor(device))
                  .first;
    }
    return found->second;
  }

  const Scenario& scenario_;
  Pricing pricing_;
  Fits fits_;
  std::map<std::string, calibrate::Predictor> predictors_;
};

// Hosts besides one: as asked, else as many as have the ranks of the scenario.
int64_t HostsOf(const Scenario& scenario,
                const Instance& instance,
                const RecommendOptions& options) {
  if (options.hosts) return *options.hosts;
  const int64_t ranks = scenario.workload.parallel.data;
  return ranks > instance.count && ranks % instance.count == 0
             ? ranks / instance.count
             : 1;
}

void RequireKnownClouds(const std::vector<std::string>& asked) {
  std::set<std::string> clouds;
  for (const Instance& instance :
       hardware::InstanceCatalog::Shipped().instances()) {
    clouds.insert(instance.cloud);
  }
  for (const std::string& cloud : asked) {
    if (clouds.contains(cloud)) continue;
    const auto known = model::NameViews(clouds);
    throw model::InputError(fmt::format("--cloud: unknown cloud \"{}\"{}",
                                        cloud,
                                        model::OfKnown(cloud, known)));
  }
}

std::string Worse(double ratio, Objective objective) {
  const double percent = 100.0 * (ratio - 1.0);
  const std::string more =
      percent < 1000 ? fmt::format("{:.{}f} %", percent, percent < 10 ? 1 : 0)
                     : fmt::format("{:.1f} times", ratio);
  switch (objective) {
    case Objective::kCost:
      return more + " dearer";
    case Objective::kTime:
      return more + " slower";
    case Objective::kEnergy:
      return more + " more energy";
    default:
      return more + " worse";
  }
}

// Places a candidate: what is in before what is out, limits missed by least
// before everything that no limit would let in.
std::tuple<int, double, double, std::string> PlaceOf(const Candidate& c,
                                                     Objective objective) {
  if (c.viable()) {
    return {0, c.Score(objective).value, ToDollars(*c.cost), c.Name()};
  }
  const bool missed = c.objection.kind == Obstacle::kMissesDeadline ||
                      c.objection.kind == Obstacle::kOverBudget;
  if (missed) return {1, c.objection.miss, 0, c.Name()};
  // The order that they came in, which is that of their names.
  return {2, 0, 0, ""};
}

}  // namespace

ScoreRange Candidate::Score(Objective objective) const {
  switch (objective) {
    case Objective::kCost:
      return {ToDollars(*cost), ToDollars(*cost_low), ToDollars(*cost_high)};
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

std::vector<Candidate> EstimateCandidates(
    const Scenario& scenario,
    const RecommendOptions& options,
    std::vector<std::string>& left_out_fits) {
  RequireKnownClouds(options.clouds);
  Estimator estimator(scenario, options);
  std::vector<Candidate> candidates;
  for (const Instance& instance :
       hardware::InstanceCatalog::Shipped().instances()) {
    if (!options.clouds.empty() &&
        std::find(options.clouds.begin(),
                  options.clouds.end(),
                  instance.cloud) == options.clouds.end()) {
      continue;
    }
    const int64_t hosts = HostsOf(scenario, instance, options);
    if (hosts > 1) {
      candidates.push_back(
          estimator.Estimate(instance, instance.count, hosts, options));
    }
    if (instance.count > 1) {
      candidates.push_back(
          estimator.Estimate(instance, instance.count, 1, options));
    }
    candidates.push_back(estimator.Estimate(instance, 1, 1, options));
  }
  for (const std::string& device : options.also) {
    candidates.push_back(estimator.EstimateAlone(device, options));
  }
  if (auto here = estimator.EstimateHere(options)) {
    candidates.push_back(std::move(*here));
  }
  left_out_fits = estimator.left_out_fits();
  return candidates;
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

}  // namespace

void Rank(std::vector<Candidate>& candidates, Objective objective) {
  if (const auto weights = WeightsOf(objective)) Weigh(candidates, *weights);
  std::stable_sort(candidates.begin(),
                   candidates.end(),
                   [&](const Candidate& a, const Candidate& b) {
                     return PlaceOf(a, objective) < PlaceOf(b, objective);
                   });
  if (candidates.empty() || !candidates.front().viable()) return;
  Candidate& best = candidates.front();
  best.chosen = true;
  const ScoreRange least = best.Score(objective);
  for (const Candidate* one : ParetoFront(candidates)) {
    candidates[static_cast<size_t>(one - candidates.data())].on_front = true;
  }
  for (Candidate& candidate : candidates) {
    if (candidate.chosen || !candidate.viable()) continue;
    const double score = candidate.Score(objective).value;
    candidate.worse = Worse(score / least.value, objective);
    candidate.tied = score <= least.high;
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
          return std::pair(c->job->run.total().base(), c->cost->base());
        };
        return place(a) < place(b);
      });
  std::vector<const Candidate*> front;
  for (const Candidate* c : viable) {
    if (front.empty() || *c->cost < *front.back()->cost) front.push_back(c);
  }
  return front;
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
      std::pair{Obstacle::kPowerUnknown, "have no known power"},
      std::pair{Obstacle::kCannotRun, "cannot run it"},
  };
  std::vector<std::string> parts;
  for (const auto& [obstacle, words] : kWords) {
    const Obstacle kind = obstacle;  // a lambda cannot hold a binding
    const auto count = std::count_if(
        candidates.begin(), candidates.end(), [&](const Candidate& c) {
          return c.objection.kind == kind;
        });
    if (count > 0) parts.push_back(fmt::format("{} {}", count, words));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

namespace {

struct ObjectiveWords {
  Objective objective;
  std::string_view name;
  std::string_view superlative;
  std::optional<Weights> weights;
};

const ObjectiveWords& WordsOf(Objective objective) {
  using Goal = Objective;
  static constexpr std::array<ObjectiveWords, 10> kKnown = {{
      {Goal::kCost, "cost", "cheapest", {}},
      {Goal::kTime, "time", "fastest", {}},
      {Goal::kEnergy, "energy", "least energy", {}},
      {Goal::kBalance, "balance", "best in balance", Weights{0.3, 0.3, 0.3}},
      {Goal::kTimeCostEnergy,
       "time_cost_energy",
       "best by time before cost before energy",
       Weights{0.5, 0.3, 0.1}},
      {Goal::kTimeEnergyCost,
       "time_energy_cost",
       "best by time before energy before cost",
       Weights{0.5, 0.1, 0.3}},
      {Goal::kCostTimeEnergy,
       "cost_time_energy",
       "best by cost before time before energy",
       Weights{0.3, 0.5, 0.1}},
      {Goal::kCostEnergyTime,
       "cost_energy_time",
       "best by cost before energy before time",
       Weights{0.1, 0.5, 0.3}},
      {Goal::kEnergyTimeCost,
       "energy_time_cost",
       "best by energy before time before cost",
       Weights{0.3, 0.1, 0.5}},
      {Goal::kEnergyCostTime,
       "energy_cost_time",
       "best by energy before cost before time",
       Weights{0.1, 0.3, 0.5}},
  }};
  for (const ObjectiveWords& words : kKnown) {
    if (words.objective == objective) return words;
  }
  ENSURE(false, "an objective without words");
}

}  // namespace

std::string_view ToText(Objective objective) { return WordsOf(objective).name; }

std::string_view Superlative(Objective objective) {
  return WordsOf(objective).superlative;
}

std::optional<Weights> WeightsOf(Objective objective) {
  return WordsOf(objective).weights;
}

bool NeedsEnergy(Objective objective) {
  return objective == Objective::kEnergy || WeightsOf(objective).has_value();
}

}  // namespace trainfare::scenarios
