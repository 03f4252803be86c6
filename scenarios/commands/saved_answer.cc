#include "scenarios/commands/saved_answer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "hardware/files/foreign_text.h"
#include "hardware/files/json_text.h"
#include "hardware/files/text_file.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"

namespace trainfare::scenarios {
namespace {

// An object of the file and where it stands in it.
class Object {
 public:
  Object(const std::string& file, std::string path, const nlohmann::json& value)
      : file_(file), path_(std::move(path)), value_(value) {
    if (!value.is_object()) Fail("", "an object", value);
  }

  // nullptr: absent or null.
  const nlohmann::json* Find(std::string_view key) const {
    const auto found = value_.find(std::string(key));
    return found == value_.end() || found->is_null() ? nullptr : &*found;
  }
  const nlohmann::json& At(std::string_view key,
                           const std::string& expected) const {
    const nlohmann::json* found = Find(key);
    if (found == nullptr) Fail(key, expected, nlohmann::json());
    return *found;
  }
  Object Inner(std::string_view key) const {
    return {file_, PathOf(key), At(key, "an object")};
  }
  std::vector<Object> List(std::string_view key) const {
    const nlohmann::json& list = At(key, "a list");
    if (!list.is_array()) Fail(key, "a list", list);
    std::vector<Object> objects;
    for (const nlohmann::json& item : list) {
      objects.emplace_back(
          file_, fmt::format("{}[{}]", PathOf(key), objects.size()), item);
    }
    return objects;
  }
  // "" where it is absent.
  std::string Text(std::string_view key) const {
    const nlohmann::json* found = Find(key);
    if (found == nullptr) return "";
    if (!found->is_string()) Fail(key, "a text", *found);
    return hardware::OneLine(found->get<std::string>());
  }
  std::string Count(std::string_view key) const {
    const nlohmann::json* found = Find(key);
    if (found == nullptr) return "";
    if (!found->is_number_integer()) Fail(key, "a whole number", *found);
    return found->dump();
  }
  std::optional<double> Number(std::string_view key) const {
    const nlohmann::json* found = Find(key);
    if (found == nullptr) return std::nullopt;
    if (!found->is_number()) Fail(key, "a number", *found);
    return found->get<double>();
  }
  bool Flag(std::string_view key) const {
    const nlohmann::json* found = Find(key);
    if (found == nullptr) return false;
    if (!found->is_boolean()) Fail(key, "true or false", *found);
    return found->get<bool>();
  }
  const nlohmann::json& value() const { return value_; }

  [[noreturn]] void Fail(std::string_view key,
                         const std::string& expected,
                         const nlohmann::json& got) const {
    const std::string path = PathOf(key);
    throw model::InputError(
        fmt::format("{}: {}expected {}, got {}",
                    file_,
                    path.empty() ? "" : path + ": ",
                    expected,
                    got.is_null() ? "nothing" : hardware::ShownJson(got)));
  }

 private:
  std::string PathOf(std::string_view key) const {
    if (path_.empty()) return std::string(key);
    return key.empty() ? path_ : fmt::format("{}.{}", path_, key);
  }

  const std::string& file_;
  std::string path_;
  const nlohmann::json& value_;
};

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

std::map<std::string, std::string> SettingsOf(const Object& answer,
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
void ReadFigures(const Object& row, const Object* estimate, SavedRow& saved) {
  for (size_t i = 0; i < kFigures.size(); ++i) {
    const std::string key = kFigures[i].Key();
    saved.figures[i] = row.Number(key);
    if (!saved.figures[i] && estimate != nullptr) {
      saved.figures[i] = estimate->Number(key);
    }
  }
}

// Parts that are not known yet.
void AddParts(const Object& from, SavedRow& saved) {
  for (size_t i = 0; i < kParts.size(); ++i) {
    if (!saved.parts[i].empty()) continue;
    const Part& part = kParts[i];
    // A candidate of recommend, whose figures are a level further in.
    if (part.is_choice && from.Find("estimate") != nullptr) continue;
    saved.parts[i] = part.is_count ? from.Count(part.key) : from.Text(part.key);
  }
}

SavedRow RowOf(const Object& row) {
  SavedRow saved;
  AddParts(row, saved);
  if (row.Find("estimate") != nullptr) {
    const Object estimate = row.Inner("estimate");
    ReadFigures(row, &estimate, saved);
  } else {
    ReadFigures(row, nullptr, saved);
  }
  saved.chosen = row.Flag("chosen");
  saved.reason = row.Text("reason");
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
  if (unit == "j") return hardware::FormatEnergy(model::Joules<>(base_value));
  ENSURE(unit == "bytes", "a figure has a unit");
  return hardware::FormatBytes(model::Bytes<>(base_value));
}

SavedAnswer LoadAnswer(const std::string& path) {
  return ParseAnswer(hardware::ReadTextFile(path, "a JSON answer"), path);
}

SavedAnswer ParseAnswer(const std::string& text, const std::string& path) {
  const nlohmann::json value = hardware::ParseJson(text, path);
  const Object answer(path, "", value);
  SavedAnswer saved;
  saved.file = path;
  saved.schema = answer.Text("schema");
  saved.recommends = saved.schema == "trainfare.recommendation/1";
  if (!saved.recommends && saved.schema != "trainfare.prediction/1") {
    answer.Fail(
        "schema",
        "trainfare.prediction/1 or trainfare.recommendation/1, as "
        "predict and recommend --format json write it",
        saved.schema.empty() ? nlohmann::json() : nlohmann::json(saved.schema));
  }
  const Object scenario = answer.Inner("scenario");
  saved.title = scenario.Text("title");
  const char* list = saved.recommends ? "candidates" : "predictions";
  for (const Object& row : answer.List(list)) {
    saved.rows.push_back(RowOf(row));
    if (saved.recommends) continue;
    // What all predictions have alike is said once.
    AddParts(answer, saved.rows.back());
    AddParts(scenario, saved.rows.back());
  }
  if (saved.rows.empty()) {
    answer.Fail(list, "at least one answer", nlohmann::json::array());
  }
  saved.settings = SettingsOf(answer, list);
  return saved;
}

}  // namespace trainfare::scenarios
