#pragma once

// What a recommendation is asked for.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/units.h"
#include "scenarios/commands/asked_job.h"
#include "scenarios/commands/objective.h"
#include "scenarios/job/pricing.h"
#include "scenarios/report/origin.h"

namespace trainfare::hardware {
class ProgressLine;
}  // namespace trainfare::hardware

namespace trainfare::scenarios {

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
  // "400Gbit/s", of each host whose network the catalog does not have; absent:
  // no several of them are the choice.
  std::optional<std::string> network;
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

  // Whether a candidate has a choice of batch, of precision.
  bool ChoosesBatch() const {
    return global_batch || overrides.batches.size() > 1;
  }
  bool ChoosesPrecision() const { return overrides.precisions.size() > 1; }
};

}  // namespace trainfare::scenarios
