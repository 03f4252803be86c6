#include "scenarios/commands/keys.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/catalog/device_fields.h"
#include "hardware/files/field_keys.h"
#include "hardware/files/unit_text.h"
#include "scenarios/job/scenario_fields.h"

namespace trainfare::scenarios {
namespace {

using hardware::FieldKey;
using hardware::FieldKeyLister;

// The range of a number without the ends that nobody comes near: "1..3".
std::string RangeText(const FieldKey& key) {
  constexpr int64_t kFar = 1'000'000;
  if (hardware::ParseInteger(key.most).value_or(0) < kFar) {
    return fmt::format("{}..{}", key.least, key.most);
  }
  return key.least == "0" || key.least == "1" ? "" : key.least + " or more";
}

// What a value may be, where its default does not show it.
std::string AllowedText(const FieldKey& key) {
  if (key.type == "list") return "a list";
  if (key.type == "count" || key.type == "number") return RangeText(key);
  return key.words + key.unit;
}

Cell NumberCell(const std::string& number) { return {"", number}; }

void AddRow(std::string_view of, const FieldKey& key, Table& table) {
  const std::string allowed = AllowedText(key);
  const std::string what =
      allowed.empty() ? key.about : fmt::format("{} ({})", key.about, allowed);
  table.Add({key.path,
             std::string(of),
             key.type,
             key.words,
             NumberCell(key.least),
             NumberCell(key.most),
             key.unit,
             key.required ? "true" : "false",
             Cell(key.required ? "required" : key.value, key.value),
             Cell(what, key.about)});
}

}  // namespace

Table Keys() {
  constexpr Audience kMachines = Audience::kMachines;
  Table table;
  table.columns = {{.title = "key", .key = "key"},
                   {.title = "of", .key = "of", .drop = 1},
                   {.title = "type", .key = "type", .audience = kMachines},
                   {.title = "words", .key = "words", .audience = kMachines},
                   {.title = "least",
                    .key = "least",
                    .align = Align::kRight,
                    .audience = kMachines},
                   {.title = "most",
                    .key = "most",
                    .align = Align::kRight,
                    .audience = kMachines},
                   {.title = "unit", .key = "unit", .audience = kMachines},
                   {.title = "required",
                    .key = "required",
                    .align = Align::kRight,
                    .audience = kMachines},
                   {.title = "default", .key = "default", .drop = 2},
                   {.title = "what it is", .key = "about"}};
  const auto add = [&](std::string_view of, const std::vector<FieldKey>& keys) {
    for (const FieldKey& key : keys) AddRow(of, key, table);
  };
  std::vector<FieldKey> scenario;
  FieldKeyLister of_scenario(scenario);
  const Scenario any_scenario;
  VisitFields(of_scenario, any_scenario);
  add("scenario", scenario);
  std::vector<FieldKey> model;
  FieldKeyLister of_model(model, "model.");
  const model::Architecture any_model;
  std::string of;
  VisitModel(of_model, of, any_model);
  add("model", model);
  std::vector<FieldKey> device;
  FieldKeyLister of_device(device);
  const hardware::Device any_device;
  VisitFields(of_device, any_device);
  hardware::VisitFileFields(of_device);
  add("device", device);
  return table;
}

}  // namespace trainfare::scenarios
