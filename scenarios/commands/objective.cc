#include "scenarios/commands/objective.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "model/error.h"
#include "scenarios/report/output.h"

namespace trainfare::scenarios {
namespace {

struct ObjectiveRow {
  Objective objective;
  std::string_view name;
  std::string_view superlative;
  std::optional<Weights> weights;
};

using Goal = Objective;
constexpr std::array<ObjectiveRow, 10> kObjectives = {{
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

const ObjectiveRow& RowOf(Objective objective) {
  for (const ObjectiveRow& row : kObjectives) {
    if (row.objective == objective) return row;
  }
  ENSURE(false, "an objective without words");
}

}  // namespace

std::string_view ToText(Objective objective) { return RowOf(objective).name; }

std::string_view Superlative(Objective objective) {
  return RowOf(objective).superlative;
}

std::optional<Weights> WeightsOf(Objective objective) {
  return RowOf(objective).weights;
}

bool NeedsEnergy(Objective objective) {
  return objective == Objective::kEnergy || WeightsOf(objective).has_value();
}

std::vector<std::string_view> ObjectiveWords() {
  std::vector<std::string_view> words;
  for (const ObjectiveRow& row : kObjectives) words.push_back(row.name);
  return words;
}

Objective ObjectiveFromText(std::string_view text) {
  for (const ObjectiveRow& row : kObjectives) {
    if (row.name == text) return row.objective;
  }
  throw UsageError(fmt::format("--objective: expected {}, got \"{}\"",
                               fmt::join(ObjectiveWords(), ", "),
                               text));
}

}  // namespace trainfare::scenarios
