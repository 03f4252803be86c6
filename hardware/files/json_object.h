#pragma once

// Reading one JSON object, ours or other people's, with messages that name the
// key: "file:line:col: path.to.key: expected X, got Y". What is a struct with a
// list of fields is read by model/json_fields.h. For .cc files only: the JSON
// library's header is large.

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hardware/files/json_text.h"
#include "model/error.h"
#include "model/limits.h"

namespace trainfare::hardware {

// Knows where its object stands; line 0: in a file that is one value, of which
// `text`, where it is given and lives as long, says where a key stands, or else
// what it is missing from. What is null is absent. Keys that nobody asks for
// are ignored.
class JsonObject {
 public:
  JsonObject(const nlohmann::json& value,
             std::string file,
             int line,
             std::string path = "",
             std::string_view text = "")
      : value_(value),
        file_(std::move(file)),
        line_(line),
        path_(std::move(path)),
        text_(text) {
    if (!value.is_object()) Expected("", "an object", value);
  }

  bool Has(std::string_view key) const {
    const auto found = value_.find(key);
    return found != value_.end() && !found->is_null();
  }
  const nlohmann::json& At(std::string_view key) const {
    const auto found = value_.find(key);
    if (found == value_.end() || found->is_null()) {
      FailWith(key, "missing");
    }
    return *found;
  }

  JsonObject Object(std::string_view key) const {
    return {At(key), file_, line_, Path(key), text_};
  }
  std::vector<JsonObject> Objects(std::string_view key) const {
    const nlohmann::json& list = At(key);
    if (!list.is_array()) Expected(key, "a list", list);
    std::vector<JsonObject> objects;
    for (const nlohmann::json& item : list) {
      objects.emplace_back(item,
                           file_,
                           line_,
                           fmt::format("{}[{}]", Path(key), objects.size()),
                           text_);
    }
    return objects;
  }
  std::string Text(std::string_view key) const {
    const nlohmann::json& found = At(key);
    if (!found.is_string()) Expected(key, "a text", found);
    return found.get<std::string>();
  }
  std::string Text(std::string_view key, std::string_view fallback) const {
    return Has(key) ? Text(key) : std::string(fallback);
  }
  bool Flag(std::string_view key, bool fallback) const {
    if (!Has(key)) return fallback;
    const nlohmann::json& found = At(key);
    if (!found.is_boolean()) Expected(key, "true or false", found);
    return found.get<bool>();
  }
  int64_t Count(std::string_view key,
                int64_t least,
                int64_t most = model::kLargestCount) const {
    return Counted(key, At(key), least, most);
  }
  std::vector<int64_t> Counts(std::string_view key,
                              int64_t least,
                              int64_t most) const {
    const nlohmann::json& list = At(key);
    if (!list.is_array()) Expected(key, "a list of integers", list);
    std::vector<int64_t> counts;
    for (const nlohmann::json& one : list) {
      counts.push_back(Counted(key, one, least, most));
    }
    return counts;
  }
  double Number(std::string_view key) const {
    const nlohmann::json& found = At(key);
    if (!found.is_number()) Expected(key, "a number", found);
    return found.get<double>();
  }
  // Greater than 0, and not as small or large as nothing that is measured is
  // (model/limits.h): sums and quotients of such stay finite.
  double PositiveNumber(std::string_view key, const char* expected) const {
    const nlohmann::json& found = At(key);
    if (!found.is_number() ||
        !model::IsPlausible(model::Second(found.get<double>()))) {
      Expected(key,
               fmt::format("{}, from {} to {}",
                           expected,
                           model::kShortestTime,
                           model::kLongestTime),
               found);
    }
    return found.get<double>();
  }
  const nlohmann::json& value() const { return value_; }

  [[noreturn]] void FailWith(std::string_view key,
                             const std::string& message) const {
    const std::string path = Path(key);
    const JsonPlace place = PlaceOf(path);
    throw model::InputError(
        file_,
        place.line,
        place.column,
        path.empty() ? message : fmt::format("{}: {}", path, message));
  }

  [[noreturn]] void Expected(std::string_view key,
                             const std::string& expected,
                             const nlohmann::json& got) const {
    FailWith(key, fmt::format("expected {}, got {}", expected, ShownJson(got)));
  }

 private:
  std::string Path(std::string_view key) const {
    if (path_.empty()) return std::string(key);
    return key.empty() ? path_ : fmt::format("{}.{}", path_, key);
  }
  // Of the nearest that stands there, from the value at `path` outwards.
  JsonPlace PlaceOf(std::string_view path) const {
    if (text_.empty()) return {line_, 0};
    while (true) {
      const auto place = FindInJson(text_, path);
      if (place || path.empty()) return place.value_or(JsonPlace());
      const size_t last = path.find_last_of(".[");
      path = path.substr(0, last == std::string_view::npos ? 0 : last);
    }
  }
  int64_t Counted(std::string_view key,
                  const nlohmann::json& found,
                  int64_t least,
                  int64_t most) const {
    if (!found.is_number_integer() || found.get<int64_t>() < least ||
        found.get<int64_t>() > most) {
      Expected(
          key, fmt::format("an integer from {} to {}", least, most), found);
    }
    return found.get<int64_t>();
  }

  const nlohmann::json& value_;
  std::string file_;
  int line_;
  std::string path_;
  std::string_view text_;
};

}  // namespace trainfare::hardware
