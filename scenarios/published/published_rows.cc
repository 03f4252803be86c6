#include "scenarios/published/published_rows.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/records/import/published_quantity.h"
#include "model/error.h"
#include "scenarios/published/quantities.h"

namespace trainfare::scenarios {
namespace {

using calibrate::PublishedRow;
using calibrate::PublishedRun;

std::string ErrorText(const PublishedError& error) {
  switch (error.measure) {
    case PublishedMeasure::kPercent:
      return fmt::format("{:+.1f} %", error.error);
    case PublishedMeasure::kPoints:
      return fmt::format("{:+.1f} points", error.error);
    case PublishedMeasure::kExact:
    case PublishedMeasure::kOutcome:
    case PublishedMeasure::kBound:
      return error.right ? "right" : "wrong";
  }
  ENSURE(false, "a measure without words");
}

// What an answer rests on, and that it is none that `predict` prints.
std::string GroundText(const PublishedRow& row,
                       const PublishedPrediction& prediction) {
  const std::string_view derived = AnswerOf(row.quantity).derived;
  if (derived.empty()) return prediction.how;
  return fmt::format("{}; derived: {}", prediction.how, derived);
}

Json AnswerJson(const PublishedPrediction& prediction,
                const std::optional<PublishedError>& error) {
  Json json;
  json["predicted"] = OrNull(prediction.answer.value);
  json["predicted_low"] = OrNull(prediction.answer.low);
  json["predicted_high"] = OrNull(prediction.answer.high);
  json["fits"] = OrNull(prediction.answer.fits);
  if (error) {
    json["measure"] = ToText(error->measure);
    json["error"] = error->error;
    json["right"] = error->right;
    json["covered"] = OrNull(error->covered);
  }
  json["refused"] = prediction.refused;
  json["seen_by_fit"] = prediction.seen;
  json["how"] = prediction.how;
  json["reason"] =
      prediction.reason.empty() ? Json(nullptr) : Json(prediction.reason);
  return json;
}

}  // namespace

std::string PublishedAnswerText(const PublishedRow& row,
                                const PublishedAnswer& answer) {
  if (answer.fits) return *answer.fits ? "fits" : "does not fit";
  if (!answer.value) return "-";
  std::string text = FigureText(row, *answer.value);
  if (answer.low) {
    text += fmt::format(" ({} .. {})",
                        FigureText(row, *answer.low),
                        FigureText(row, *answer.high));
  }
  return text;
}

Table RowTable(const PublishedResult& result) {
  Table table;
  table.columns = {{"row", "label", Align::kLeft},
                   {"group", "group", Align::kLeft, 4},
                   {"device", "device", Align::kLeft, 1},
                   {"quantity", "quantity", Align::kLeft},
                   {"printed", "printed_base", Align::kRight},
                   {"as shipped", "as_shipped", Align::kRight},
                   {"error", "as_shipped_error", Align::kDecimal},
                   {"left out", "left_out", Align::kRight},
                   {"error", "left_out_error", Align::kDecimal},
                   {"inferred", "inferred", Align::kLeft, 5},
                   {"seen by fit", "seen", Align::kLeft, 2},
                   {"from", "how", Align::kLeft, 3}};
  const Cell none("-", std::string());
  for (const size_t i : result.rows) {
    const PublishedRow& row = result.published.rows[i];
    const PublishedRun& run = result.published.RunOf(row);
    const PublishedPrediction& shipped =
        result.answers.front().predictions.rows[i];
    if (shipped.checks_data) continue;
    std::vector<Cell> cells = {row.id,
                               row.group,
                               run.device ? Cell(*run.device) : none,
                               row.quantity,
                               Cell(row.value.text, row.value.low)};
    for (const JudgedAnswers& answers : result.answers) {
      const PublishedPrediction& p = answers.predictions.rows[i];
      const auto& error = answers.errors[i];
      cells.push_back(p.predicted() ? Cell(PublishedAnswerText(row, p.answer),
                                           p.answer.value.value_or(0))
                                    : none);
      cells.push_back(error ? Cell(ErrorText(*error), error->error) : none);
    }
    cells.push_back(IsInferred(run) ? "yes" : "no");
    cells.push_back(shipped.seen ? "yes" : "no");
    cells.push_back(shipped.reason.empty() ? Cell(GroundText(row, shipped))
                                           : Cell(shipped.reason));
    table.Add(std::move(cells));
  }
  return table;
}

Json RowJson(const PublishedResult& result, size_t i) {
  const PublishedRow& row = result.published.rows[i];
  const PublishedRun& run = result.published.RunOf(row);
  Json json;
  json["label"] = row.id;
  json["group"] = row.group;
  json["device"] = OrNull(run.device);
  json["devices"] = run.device_count;
  json["quantity"] = row.quantity;
  json["unit"] = row.measure->unit;
  const std::string_view derived = AnswerOf(row.quantity).derived;
  json["derived"] = derived.empty() ? Json(nullptr) : Json(derived);
  json["printed"] = row.value.text;
  json["measured"] = row.value.low;
  json["use"] = calibrate::ToText(row.use);
  json["inferred"] = IsInferred(run);
  json["assumed"] = Json::object();
  for (const auto& [key, why] : run.assumed) json["assumed"][key] = why;
  for (const JudgedAnswers& answers : result.answers) {
    json[std::string(ToText(answers.protocol))] =
        AnswerJson(answers.predictions.rows[i], answers.errors[i]);
  }
  json["source"] = row.records;
  return json;
}

}  // namespace trainfare::scenarios
