#include "scenarios/validation/options.h"

#include <fmt/format.h>

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
    std::pair{std::string_view("leave-device-out"), Protocol::kLeaveDeviceOut},
    std::pair{std::string_view("one-run-per-device"),
              Protocol::kRunsPerDevice}};

}  // namespace

std::vector<std::string_view> ProtocolWords() {
  std::vector<std::string_view> words;
  for (const auto& [word, protocol] : kProtocols) words.push_back(word);
  words.emplace_back("k-runs=N");
  return words;
}

void SetProtocol(std::string_view text, ValidateOptions& options) {
  options.runs_per_device = 1;
  for (const auto& [word, protocol] : kProtocols) {
    if (word != text) continue;
    options.protocol = protocol;
    return;
  }
  constexpr std::string_view kRuns = "k-runs=";
  if (!text.starts_with(kRuns)) {
    throw UsageError(fmt::format("--protocol: unknown \"{}\"{}",
                                 text,
                                 model::OfKnown(text, ProtocolWords())));
  }
  const auto runs = hardware::ParseInteger(text.substr(kRuns.size()));
  if (!runs || *runs < 1) {
    throw UsageError(fmt::format(
        "--protocol: expected a count of runs of at least 1, got \"{}\"",
        text));
  }
  options.protocol = Protocol::kRunsPerDevice;
  options.runs_per_device = *runs;
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
