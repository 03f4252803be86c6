#pragma once

// Why a candidate is out, whatever the others offer.

#include <optional>
#include <string>

#include "scenarios/commands/candidates.h"
#include "scenarios/commands/recommend_options.h"
#include "scenarios/job/cluster.h"
#include "scenarios/job/pricing.h"

namespace trainfare::scenarios {

// What a place offers, whatever batch and precision is taken there.
struct Offer {
  const Candidate& bare;
  const std::optional<Tariff>& tariff;
  Cluster cluster;
};

// Whether its hosts are taken to have the network that others have.
bool GuessesNetwork(const Cluster& cluster);

// By how much an estimated candidate with a price misses a limit, and which;
// of none the kind is kNone.
Objection MissedLimit(const Candidate& c, const RecommendOptions& options);

// Of a candidate that was estimated; without words, which are for the one of
// its place that is shown.
Objection ObjectionTo(const Candidate& c,
                      const Offer& offer,
                      const RecommendOptions& options);

// The words of that.
std::string WordsOf(const Candidate& c, const RecommendOptions& options);

}  // namespace trainfare::scenarios
