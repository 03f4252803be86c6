#pragma once

// What `trainfare validate` is asked for.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.h"
#include "model/workload.h"
#include "scenarios/report/origin.h"

namespace trainfare::hardware {
class ProgressLine;
}  // namespace trainfare::hardware

namespace trainfare::scenarios {

// What the predictions may have seen of the rows.
enum class Protocol {
  kAsShipped,       // nothing: the fits at hand, else datasheets
  kInSample,        // a device's model is fitted to all of its rows
  kLeaveOneOut,     // to all but those of the same workload
  kLeaveSourceOut,  // to those that others measured on that device
  kLeaveHostsOut,   // to those over other numbers of hosts
  kLeaveDeviceOut,  // to the rows of other devices of its kind
  kModelRuns,       // to those of other models, and a few of its own
  kRunsPerDevice,   // to a few workloads, drawn by seed; the rest predicted
  kAddedRuns,       // the fits at hand, and a few of each device and stack
};

// What several measurements of one point are.
enum class RepeatRule {
  kEach,    // rows of their own
  kMedian,  // one row, their median; how far they are apart is reported
};

enum class GroupBy { kDevice, kPrecision, kModel, kFramework, kSource };

// What an observation of a device is grouped under.
template <class Observation>
std::string GroupOf(const Observation& o,
                    const std::string& device,
                    GroupBy group_by) {
  switch (group_by) {
    case GroupBy::kDevice:
      return device;
    case GroupBy::kPrecision:
      return std::string(model::ToText(o.workload.precision));
    case GroupBy::kModel:
      return o.workload.architecture.name;
    case GroupBy::kFramework:
      return o.framework.empty() ? "not said" : o.framework;
    case GroupBy::kSource:
      return o.group.empty() ? "not said" : o.group;
  }
  ENSURE(false, "a grouping without groups");
}

struct ValidateOptions {
  std::vector<std::string> files;
  Protocol protocol = Protocol::kAsShipped;
  int64_t drawn_runs = 1;  // of kModelRuns, kRunsPerDevice, kAddedRuns
  uint64_t seed = 1;       // up to model::kLargestSeed
  RepeatRule repeats = RepeatRule::kEach;
  GroupBy group_by = GroupBy::kDevice;
  Origin origin;
  hardware::ProgressLine* progress = nullptr;  // of the fits; may be none
};

// Throw UsageError.
void SetProtocol(std::string_view text, ValidateOptions& options);
std::vector<std::string> ProtocolWords();
GroupBy GroupByFromText(std::string_view text);
RepeatRule RepeatRuleFromText(std::string_view text);

}  // namespace trainfare::scenarios
