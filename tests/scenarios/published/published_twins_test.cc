// A configuration that is printed twice is one run: left out together, and seen
// by a fit where either of the two is.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "tests/scenarios/published/shipped.h"

namespace trainfare::scenarios {
namespace {

using calibrate::PublishedRow;
using calibrate::PublishedRun;
using calibrate::PublishedUse;

// What a step computes and on what; two runs of one configuration would
// predict each other unless they are linked.
std::string ConfigurationOf(const PublishedRun& run) {
  const auto number = [](const auto& value) {
    return value ? std::to_string(*value) : std::string("-");
  };
  std::string words =
      fmt::format("{} {} x {} b{} a{} l{} {} {}",
                  run.architecture ? run.architecture->name : "-",
                  run.device.value_or("-"),
                  run.device_count,
                  number(run.batch),
                  run.accumulation,
                  number(run.sequence_length),
                  run.stack.value_or("-"),
                  run.lengths.value_or("-"));
  if (run.precision) words += model::ToText(*run.precision);
  if (run.optimizer) {
    words += model::ToText(run.optimizer->kind);
    if (run.optimizer->implementation) {
      words += model::ToText(*run.optimizer->implementation);
    }
    if (run.optimizer->single_tensor) words += " single";
  }
  return words + fmt::format(" {} {} {} {} {}",
                             run.layer_decay,
                             run.gradient_checkpointing,
                             run.stochastic_rounding,
                             run.compiler_level,
                             run.against.value_or("-"));
}

// Runs with a figure that a fit may be made of, or that is answered; an outcome
// ("does not fit") says no figure of its configuration.
bool IsComparedOrFitted(const PublishedRow& row,
                        const PublishedPrediction& prediction) {
  return row.use == PublishedUse::kFit ||
         (prediction.answer.value && !prediction.checks_data);
}

}  // namespace

TEST_CASE("runs of one configuration in one document are linked") {
  const auto& predictions =
      PublishedPredictionsBy(PublishedProtocol::kAsShipped).rows;
  // Run by document and configuration.
  std::map<std::pair<std::string, std::string>, std::string> first;
  for (size_t i = 0; i < predictions.size(); ++i) {
    const PublishedRow& row = AllPublished().rows[i];
    if (!IsComparedOrFitted(row, predictions[i])) continue;
    const PublishedRun& run = AllPublished().RunOf(row);
    const std::string& other =
        first.emplace(std::pair(run.document, ConfigurationOf(run)), row.run)
            .first->second;
    CAPTURE(other);
    CAPTURE(row.id);
    CHECK(AllPublished().Same(other, row.run));
  }
  CHECK(first.size() > 50);
}

TEST_CASE("a figure for fitting is one that is answered") {
  for (const PublishedProtocol protocol :
       {PublishedProtocol::kAsShipped, PublishedProtocol::kLeaveOneOut}) {
    const auto& predictions = PublishedPredictionsBy(protocol).rows;
    for (size_t i = 0; i < predictions.size(); ++i) {
      const PublishedRow& row = AllPublished().rows[i];
      if (row.use != PublishedUse::kFit) continue;
      CAPTURE(row.id);
      CHECK(predictions[i].predicted());
    }
  }
}

}  // namespace trainfare::scenarios
