#pragma once

// What makes one candidate better than another.

#include <optional>
#include <string_view>
#include <vector>

namespace trainfare::scenarios {

enum class Objective {
  kCost,
  kTime,
  kEnergy,
  // Weightings of the three, by what counts most (WeightsOf).
  kBalance,
  kTimeCostEnergy,
  kTimeEnergyCost,
  kCostTimeEnergy,
  kCostEnergyTime,
  kEnergyTimeCost,
  kEnergyCostTime,
};
Objective ObjectiveFromText(std::string_view text);  // throws UsageError
std::vector<std::string_view> ObjectiveWords();

std::string_view ToText(Objective objective);       // "cost"
std::string_view Superlative(Objective objective);  // "cheapest"

//   score = w_t time + w_c cost + w_e energy
//
// each divided by the largest of the candidates that are in. These are the
// weightings of a published comparison (scenarios/published/score.yaml), whose
// fourth part, less 0.1 of the occupancy, nothing here predicts.
struct Weights {
  double time = 0;
  double cost = 0;
  double energy = 0;
};
std::optional<Weights> WeightsOf(Objective objective);
// Whether a candidate without one has no score.
bool NeedsEnergy(Objective objective);

}  // namespace trainfare::scenarios
