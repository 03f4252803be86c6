#pragma once

// What `trainfare validate` is asked for.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/validation/error_summary.h"

namespace trainfare::scenarios {

// What the predictions may have seen of the rows.
enum class Protocol {
  kAsShipped,       // nothing: the fits at hand, else datasheets
  kInSample,        // a device's model is fitted to all of its rows
  kLeaveOneOut,     // to all but those of the same workload
  kLeaveDeviceOut,  // to the rows of other devices of its kind
  kRunsPerDevice,   // to a few workloads, drawn by seed; the rest predicted
};

// What several measurements of one point are.
enum class RepeatRule {
  kEach,    // rows of their own
  kMedian,  // one row, their median; how far they are apart is reported
};

enum class GroupBy { kDevice, kPrecision, kModel, kFramework, kSource };

struct ValidateOptions {
  std::vector<std::string> files;
  Protocol protocol = Protocol::kAsShipped;
  int64_t runs_per_device = 1;  // of kRunsPerDevice
  uint64_t seed = 1;
  RepeatRule repeats = RepeatRule::kEach;
  GroupBy group_by = GroupBy::kDevice;
  std::vector<FailIf> fail_if;
};

// Throw UsageError.
void SetProtocol(std::string_view text, ValidateOptions& options);
GroupBy GroupByFromText(std::string_view text);
RepeatRule RepeatRuleFromText(std::string_view text);

}  // namespace trainfare::scenarios
