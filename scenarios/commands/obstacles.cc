#include "scenarios/commands/obstacles.h"

#include <fmt/format.h>

#include <algorithm>

#include "hardware/files/unit_text.h"
#include "model/error.h"

namespace trainfare::scenarios {
namespace {

using hardware::FormatMoney;
using hardware::FormatTime;

std::string WhyNoPrice(const Candidate& c, const RecommendOptions& options) {
  if (c.here) return "not for rent";
  if (c.instance == nullptr) return "by itself: no instance, so no price";
  return fmt::format("no {}price{}",
                     options.spot ? "spot " : "",
                     options.prices.regions.empty() ? "" : " in these regions");
}

std::string OverBudget(const Candidate& c, const RecommendOptions& options) {
  return fmt::format("over the budget by {}",
                     FormatMoney(c.cost->usual - *options.budget));
}

}  // namespace

bool GuessesNetwork(const Cluster& cluster) {
  return cluster.network && !cluster.network->named;
}

Objection MissedLimit(const Candidate& c, const RecommendOptions& options) {
  const double late =
      options.deadline ? c.job->run.total() / *options.deadline - 1.0 : 0.0;
  const double dear =
      options.budget ? c.cost->usual / *options.budget - 1.0 : 0.0;
  // What misses both is as far from them as from the one that it misses by
  // more.
  if (late > 0) return {Obstacle::kMissesDeadline, "", std::max(late, dear)};
  if (dear > 0) return {Obstacle::kOverBudget, "", dear};
  return {};
}

Objection ObjectionTo(const Candidate& c,
                      const Offer& offer,
                      const RecommendOptions& options) {
  const JobEstimate& job = *c.job;
  if (!job.fits()) return {Obstacle::kDoesNotFit, ""};
  if (!offer.tariff) return {Obstacle::kNoPrice, ""};
  if (GuessesNetwork(offer.cluster)) return {Obstacle::kNetworkUnknown, ""};
  Objection missed = MissedLimit(c, options);
  if (missed.kind != Obstacle::kNone) return missed;
  if (NeedsEnergy(options.objective) && !job.energy) {
    return {Obstacle::kPowerUnknown, ""};
  }
  return {};
}

std::string WordsOf(const Candidate& c, const RecommendOptions& options) {
  switch (c.objection.kind) {
    case Obstacle::kDoesNotFit:
      return c.job->Obstacle();
    case Obstacle::kNoPrice:
      return WhyNoPrice(c, options);
    case Obstacle::kNetworkUnknown:
      return "network not known; --network 100Gbit/s";
    case Obstacle::kMissesDeadline:
      return fmt::format("misses the deadline by {}{}",
                         FormatTime(c.job->run.total() - *options.deadline),
                         options.budget && c.cost->usual > *options.budget
                             ? ", " + OverBudget(c, options)
                             : "");
    case Obstacle::kOverBudget:
      return OverBudget(c, options);
    case Obstacle::kPowerUnknown:
      return "its power is not known";
    case Obstacle::kNone:
    case Obstacle::kCannotRun:  // said by what refused it
      return c.objection.words;
  }
  ENSURE(false, "an obstacle without words");
}

}  // namespace trainfare::scenarios
