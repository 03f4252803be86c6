#pragma once

// trainfare validate: predictions beside what was measured.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/output.h"

namespace trainfare::scenarios {

// What the predictions may have seen of the rows.
enum class Protocol {
  kAsShipped,       // nothing: the fits at hand, else datasheets
  kInSample,        // a device's model is fitted to all of its rows
  kLeaveOneOut,     // to all but those of the same workload
  kLeaveDeviceOut,  // to the rows of other devices of its kind
  kRunsPerDevice,   // to a few workloads, drawn by seed; the rest predicted
};

enum class GroupBy { kDevice, kPrecision, kModel, kFramework, kSource };

// A limit such as "mape>5%": passed when the result is beyond it.
struct FailIf {
  std::string text;
  std::string metric;  // mape, median, p90, max, bias, coverage
  bool above = true;   // beyond: > or >=; below: < or <=
  bool inclusive = false;
  double limit = 0;  // percent
};

struct ValidateOptions {
  std::vector<std::string> files;
  Protocol protocol = Protocol::kAsShipped;
  int64_t runs_per_device = 1;  // of kRunsPerDevice
  uint64_t seed = 1;
  GroupBy group_by = GroupBy::kDevice;
  std::vector<FailIf> fail_if;
};

// Throw UsageError.
void SetProtocol(std::string_view text, ValidateOptions& options);
GroupBy GroupByFromText(std::string_view text);
FailIf FailIfFromText(std::string_view text);

// Errors in percent of the measured time; bias is the mean of signed errors.
struct ErrorSummary {
  int64_t count = 0;
  double mape = 0;  // mean absolute percentage error
  double median = 0;
  double p90 = 0;
  double max = 0;
  double bias = 0;
  double coverage = 0;  // percent of rows inside their 80 % interval
};

struct RowError {
  double error = 0;  // percent, signed
  bool covered = false;
};
ErrorSummary Summarise(const std::vector<RowError>& rows);

// Exit code 4 when a limit is passed, 1 when no row could be predicted.
Report Validate(const ValidateOptions& options);

}  // namespace trainfare::scenarios
