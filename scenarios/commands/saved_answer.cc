#include "scenarios/commands/saved_answer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "hardware/files/foreign_text.h"
#include "hardware/files/json_object.h"
#include "hardware/files/json_text.h"
#include "hardware/files/text_file.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "scenarios/report/column_unit.h"

namespace trainfare::scenarios {
namespace {

using hardware::JsonObject;

// "" where it is absent.
std::string Shown(const JsonObject& object, std::string_view key) {
  return hardware::OneLine(object.Text(key, ""));
}

// Everything below `value` that is no object, by its path.
void Flatten(const std::string& path,
             const nlohmann::json& value,
             std::map<std::string, std::string>& leaves) {
  if (!value.is_object()) {
    leaves[hardware::OneLine(path)] =
        value.is_string() ? hardware::OneLine(value.get<std::string>())
                          : hardware::ShownJson(value);
    return;
  }
  for (const auto& item : value.items()) {
    Flatten(path.empty() ? item.key() : fmt::format("{}.{}", path, item.key()),
            item.value(),
            leaves);
  }
}

std::map<std::string, std::string> SettingsOf(const JsonObject& answer,
                                              std::string_view rows) {
  nlohmann::json beside = answer.value();
  // The answer itself, and what is said of it.
  for (const char* key : {"schema",
                          "timestamp",
                          "arguments",
                          "chosen",
                          "next_calibration",
                          "notes",
                          "warnings",
                          "baseline"}) {
    beside.erase(key);
  }
  beside.erase(std::string(rows));
  std::map<std::string, std::string> settings;
  Flatten("", beside, settings);
  return settings;
}

// Figures of `estimate` that stand there; what `row` says itself goes first.
void ReadFigures(const JsonObject& row,
                 const JsonObject* estimate,
                 SavedRow& saved) {
  for (size_t i = 0; i < kFigures.size(); ++i) {
    const std::string key = kFigures[i].Key();
    for (const JsonObject* from : {&row, estimate}) {
      if (saved.figures[i] || from == nullptr || !from->Has(key)) continue;
      saved.figures[i] = from->Number(key);
    }
  }
}

// Parts that are not known yet.
void AddParts(const JsonObject& from, SavedRow& saved) {
  for (size_t i = 0; i < kParts.size(); ++i) {
    if (!saved.parts[i].empty()) continue;
    const Part& part = kParts[i];
    // A candidate of recommend, whose figures are a level further in.
    if (part.is_choice && from.Has("estimate")) continue;
    if (!from.Has(part.key)) continue;
    saved.parts[i] = part.is_count ? fmt::format("{}", from.Count(part.key, 0))
                                   : Shown(from, part.key);
  }
}

SavedRow RowOf(const JsonObject& row) {
  SavedRow saved;
  AddParts(row, saved);
  if (row.Has("estimate")) {
    const JsonObject estimate = row.Object("estimate");
    ReadFigures(row, &estimate, saved);
  } else {
    ReadFigures(row, nullptr, saved);
  }
  saved.chosen = row.Flag("chosen", false);
  saved.reason = Shown(row, "reason");
  return saved;
}

}  // namespace

std::string Figure::Key() const { return fmt::format("{}_{}", stem, unit); }

std::string Figure::Key(std::string_view middle) const {
  return middle == "percent" ? fmt::format("{}_percent", stem)
                             : fmt::format("{}_{}_{}", stem, middle, unit);
}

std::string Figure::Text(double base_value) const {
  if (unit == "s") return hardware::FormatTime(model::Seconds<>(base_value));
  if (unit == "usd") return hardware::FormatMoney(model::Usd<>(base_value));
  if (unit == "j") {
    // As predict has it.
    const ColumnUnit in = EnergyUnit({base_value});
    return fmt::format("{} {}", in.Text(base_value), in.name);
  }
  ENSURE(unit == "bytes", "a figure has a unit");
  return hardware::FormatBytes(model::Bytes<>(base_value));
}

SavedAnswer LoadAnswer(const std::string& path) {
  return ParseAnswer(hardware::ReadTextFile(path, "a JSON answer"), path);
}

SavedAnswer ParseAnswer(const std::string& text, const std::string& path) {
  const nlohmann::json value = hardware::ParseJson(text, path);
  const JsonObject answer(value, path, 0);
  SavedAnswer saved;
  saved.file = path;
  saved.schema = Shown(answer, "schema");
  saved.recommends = saved.schema == "trainfare.recommendation/1";
  if (!saved.recommends && saved.schema != "trainfare.prediction/1") {
    answer.FailWith(
        "schema",
        fmt::format(
            "expected trainfare.prediction/1 or trainfare.recommendation/1, as "
            "predict and recommend --format json write it, got {}",
            saved.schema.empty() ? "nothing"
                                 : hardware::ShownJson(saved.schema)));
  }
  const JsonObject scenario = answer.Object("scenario");
  saved.title = Shown(scenario, "title");
  const char* list = saved.recommends ? "candidates" : "predictions";
  for (const JsonObject& row : answer.Objects(list)) {
    saved.rows.push_back(RowOf(row));
    if (saved.recommends) continue;
    // What all predictions have alike is said once.
    AddParts(answer, saved.rows.back());
    AddParts(scenario, saved.rows.back());
  }
  if (saved.rows.empty()) {
    answer.Expected(list, "at least one answer", nlohmann::json::array());
  }
  saved.settings = SettingsOf(answer, list);
  return saved;
}

}  // namespace trainfare::scenarios
