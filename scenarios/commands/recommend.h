#pragma once

// trainfare recommend: the cheapest (or fastest, or least hungry) instance that
// fits a scenario and meets its limits, and why not the others.

#include <optional>
#include <string>
#include <vector>

#include "model/units.h"
#include "scenarios/commands/predict.h"
#include "scenarios/job/pricing.h"
#include "scenarios/report/output.h"

namespace trainfare::hardware {
class ProgressLine;
}  // namespace trainfare::hardware

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

struct RecommendOptions {
  std::string scenario;  // path or name; empty: overrides.model says it
  std::optional<model::Seconds<>> deadline;
  std::optional<model::Usd<>> budget;
  Objective objective = Objective::kCost;
  bool spot = false;
  PriceOptions prices;
  std::optional<int64_t> top;  // candidates to keep; none: all
  bool all = false;            // show people every candidate, not the best few
  std::vector<std::string> clouds;     // empty: all
  std::vector<std::string> devices;    // of these only; empty: of any
  std::vector<std::string> instances;  // these only; empty: any
  std::optional<int64_t> hosts;        // also on so many of each instance
  // Sequences of an optimizer step over all devices; none: as many a device as
  // the scenario has, however many devices there are.
  std::optional<int64_t> global_batch;
  // Devices that are answered for alone, whether anybody rents them out or not.
  std::vector<std::string> also;
  Overrides overrides;  // at most one length; batches, precisions to choose of
  bool charts = false;  // for a page
  bool trace = false;   // of a step
  // Whether the report is read as JSON, which takes longer to write than the
  // ranking.
  bool json = true;
  Origin origin;
  hardware::ProgressLine* progress = nullptr;  // of the devices; may be none
};

// Every instance twice where it has several devices: with all of them, data
// parallel at the scenario's batch a device, and with one; of a global batch
// also with numbers in between, and on several hosts, each with the batch a
// device and the accumulation that are best for it. The whole instance is paid
// for in all cases. A device named in `also` is a candidate without a
// price, and so never the choice.
Report Recommend(const RecommendOptions& options);

// "4h", "20usd" of the command line. Throw UsageError that names `flag`.
model::Seconds<> TimeFlag(std::string_view flag, std::string_view text);
model::Usd<> MoneyFlag(std::string_view flag, std::string_view text);

}  // namespace trainfare::scenarios
