#include "scenarios/validation/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/nearest.h"
#include "scenarios/report/output.h"

namespace trainfare::scenarios {

namespace {

constexpr std::array kProtocols = {
    std::pair{std::string_view("as-shipped"), Protocol::kAsShipped},
    std::pair{std::string_view("in-sample"), Protocol::kInSample},
    std::pair{std::string_view("leave-one-out"), Protocol::kLeaveOneOut},
    std::pair{std::string_view("leave-source-out"), Protocol::kLeaveSourceOut},
    std::pair{std::string_view("leave-hosts-out"), Protocol::kLeaveHostsOut},
    std::pair{std::string_view("leave-model-out"), Protocol::kModelRuns},
    std::pair{std::string_view("leave-device-out"), Protocol::kLeaveDeviceOut},
    std::pair{std::string_view("one-run-per-device"),
              Protocol::kRunsPerDevice}};

constexpr std::array kCounted = {
    std::pair{std::string_view("model-runs="), Protocol::kModelRuns},
    std::pair{std::string_view("k-runs="), Protocol::kRunsPerDevice},
    std::pair{std::string_view("added-runs="), Protocol::kAddedRuns}};

}  // namespace

std::vector<std::string> ProtocolWords() {
  std::vector<std::string> words;
  for (const auto& [word, protocol] : kProtocols) words.emplace_back(word);
  for (const auto& [word, protocol] : kCounted) {
    words.emplace_back(fmt::format("{}N", word));
  }
  return words;
}

void SetProtocol(std::string_view text, ValidateOptions& options) {
  for (const auto& [word, protocol] : kProtocols) {
    if (word != text) continue;
    options.protocol = protocol;
    options.drawn_runs = protocol == Protocol::kModelRuns ? 0 : 1;
    return;
  }
  const auto counted =
      std::find_if(kCounted.begin(), kCounted.end(), [&](const auto& one) {
        return text.starts_with(one.first);
      });
  if (counted == kCounted.end()) {
    throw UsageError(
        fmt::format("--protocol: unknown \"{}\"{}",
                    text,
                    model::OfKnown(text, model::NameViews(ProtocolWords()))));
  }
  const auto runs = hardware::ParseInteger(text.substr(counted->first.size()));
  if (!runs || *runs < 1) {
    throw UsageError(fmt::format(
        "--protocol: expected a count of runs of at least 1, got \"{}\"",
        text));
  }
  options.protocol = counted->second;
  options.drawn_runs = *runs;
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
