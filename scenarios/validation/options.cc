#include "scenarios/validation/options.h"

#include <fmt/format.h>

#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/nearest.h"
#include "scenarios/report/output.h"

namespace trainfare::scenarios {

void SetProtocol(std::string_view text, ValidateOptions& options) {
  constexpr std::string_view kRuns = "k-runs=";
  options.runs_per_device = 1;
  if (text == "as-shipped") {
    options.protocol = Protocol::kAsShipped;
  } else if (text == "in-sample") {
    options.protocol = Protocol::kInSample;
  } else if (text == "leave-one-out") {
    options.protocol = Protocol::kLeaveOneOut;
  } else if (text == "leave-source-out") {
    options.protocol = Protocol::kLeaveSourceOut;
  } else if (text == "leave-device-out") {
    options.protocol = Protocol::kLeaveDeviceOut;
  } else if (text == "one-run-per-device") {
    options.protocol = Protocol::kRunsPerDevice;
  } else if (text.starts_with(kRuns)) {
    const auto runs = hardware::ParseInteger(text.substr(kRuns.size()));
    if (!runs || *runs < 1) {
      throw UsageError(fmt::format(
          "--protocol: expected a count of runs of at least 1, got \"{}\"",
          text));
    }
    options.protocol = Protocol::kRunsPerDevice;
    options.runs_per_device = *runs;
  } else {
    const std::vector<std::string_view> known = {"as-shipped",
                                                 "in-sample",
                                                 "leave-one-out",
                                                 "leave-source-out",
                                                 "leave-device-out",
                                                 "one-run-per-device",
                                                 "k-runs=N"};
    throw UsageError(fmt::format(
        "--protocol: unknown \"{}\"{}", text, model::OfKnown(text, known)));
  }
}

GroupBy GroupByFromText(std::string_view text) {
  if (text == "device") return GroupBy::kDevice;
  if (text == "precision") return GroupBy::kPrecision;
  if (text == "model") return GroupBy::kModel;
  if (text == "framework") return GroupBy::kFramework;
  if (text == "source") return GroupBy::kSource;
  throw UsageError(
      fmt::format("--group-by: expected device, precision, model, framework or "
                  "source, got \"{}\"",
                  text));
}

RepeatRule RepeatRuleFromText(std::string_view text) {
  if (text == "each") return RepeatRule::kEach;
  if (text == "median") return RepeatRule::kMedian;
  throw UsageError(
      fmt::format("--repeats: expected each or median, got \"{}\"", text));
}

}  // namespace trainfare::scenarios
