#pragma once

// The fields of model/fields.h as a JSON object; a quantity is its number in
// base units, and its name says so ("step_s"). Templates on the library's
// type (nlohmann's json or ordered_json), whose header model/ does not need; a
// field of that type stands there as it is. An absent optional, an empty list
// and null are left out, but for a list that must be there.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/error.h"
#include "model/fields.h"
#include "model/nearest.h"

namespace trainfare::model {

template <class Json>
class JsonFieldWriter {
 public:
  explicit JsonFieldWriter(Json& object) : object_(object) {}

  template <class T>
  void operator()(const Field& field, const T& value) {
    if constexpr (std::is_same_v<T, Json>) {
      if (value.is_null()) return;
    } else if constexpr (kIsOptional<T>) {
      if (value) (*this)(field, *value);
      return;
    } else if constexpr (kIsList<T>) {
      if (value.empty() && !field.required) return;
    }
    if constexpr (!kIsOptional<T>) {
      Write(object_[NameInJson(field)], value);
    }
  }

 private:
  template <class T>
  static void Write(Json& at, const T& value) {
    if constexpr (std::is_same_v<T, Json> || std::is_arithmetic_v<T> ||
                  std::is_same_v<T, std::string>) {
      at = value;
    } else if constexpr (kIsList<T>) {
      at = Json::array();
      for (const auto& one : value) Write(at.emplace_back(), one);
    } else if constexpr (IsQuantity<T>) {
      at = value.base();
    } else if constexpr (std::is_enum_v<T>) {
      at = std::string(ToText(value));
    } else if constexpr (HasWords<T>) {
      at = ToWords(value);
    } else {
      at = Json::object();
      JsonFieldWriter inner(at);
      VisitFields(inner, value);
    }
  }

  Json& object_;
};

enum class UnknownKeys { kIgnored, kRefused };

// Throws InputError "path.to.key: expected X, got Y", without a position.
template <class Json>
class JsonFieldReader {
 public:
  using Reads = void;

  // `path`: of the object within its file; may be empty.
  JsonFieldReader(const Json& object, std::string path, UnknownKeys unknown)
      : object_(object), path_(std::move(path)), unknown_(unknown) {
    if (!object.is_object()) {
      Fail("", fmt::format("expected an object, got {}", Shown(object)));
    }
  }

  template <class T>
  void operator()(const Field& field, T& value) {
    known_.emplace_back(NameInJson(field));
    const auto found = object_.find(known_.back());
    if (found == object_.end() || found->is_null()) {
      if (field.required) Fail(NameInJson(field), "missing");
      return;
    }
    if constexpr (kIsOptional<T>) {
      Read(field, *found, value.emplace());
    } else {
      Read(field, *found, value);
    }
  }

  // Refuses keys that are neither fields nor among `others`.
  void Finish(const std::vector<std::string>& others = {}) {
    if (unknown_ == UnknownKeys::kIgnored) return;
    known_.insert(known_.end(), others.begin(), others.end());
    for (const auto& item : object_.items()) {
      if (std::find(known_.begin(), known_.end(), item.key()) == known_.end()) {
        Fail(item.key(),
             fmt::format("unknown key{}; known: {}",
                         DidYouMean(item.key(), NameViews(known_)),
                         fmt::join(known_, ", ")));
      }
    }
  }

 private:
  template <class T>
  void Read(const Field& field, const Json& json, T& value) {
    if constexpr (std::is_same_v<T, Json>) {
      value = json;
    } else if constexpr (std::is_enum_v<T> || HasWords<T>) {
      ReadWords(field, json, value);
    } else if constexpr (std::is_same_v<T, std::vector<Seconds<>>>) {
      ReadTimes(field, json, value);
    } else if constexpr (kIsList<T>) {
      ReadList(field, json, value);
    } else if constexpr (std::is_same_v<T, Seconds<>>) {
      ReadQuantity(field, json, "a time", "in seconds", value);
    } else if constexpr (std::is_same_v<T, Watts<>>) {
      ReadQuantity(field, json, "a power", "in watts", value);
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) Expected(field, "true or false", json);
      value = json.template get<bool>();
    } else if constexpr (std::is_same_v<T, int64_t>) {
      if (!json.is_number_integer() ||
          json.template get<int64_t>() < field.least ||
          json.template get<int64_t>() > field.most) {
        Expected(
            field,
            fmt::format("an integer from {} to {}", field.least, field.most),
            json);
      }
      value = json.template get<int64_t>();
    } else if constexpr (std::is_same_v<T, double>) {
      const double number =
          json.is_number() ? json.template get<double>() : std::nan("");
      if (!(number >= field.low && number <= field.high)) {
        Expected(field,
                 fmt::format("a number from {} to {}", field.low, field.high),
                 json);
      }
      value = number;
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = Text(field, json);
    } else {
      JsonFieldReader inner(json, Path(field.name), unknown_);
      VisitFields(inner, value);
      inner.Finish();
    }
  }

  template <class T>
  void ReadQuantity(const Field& field,
                    const Json& json,
                    std::string_view what,
                    std::string_view unit,
                    T& value) {
    const double base =
        json.is_number() ? json.template get<double>() : std::nan("");
    const bool least_is_met =
        base >= field.least_base && (base > 0.0 || field.may_be_zero);
    if (!least_is_met || !(base <= field.most_base)) {
      Expected(field,
               fmt::format("{} {} {}, from {} to {}",
                           what,
                           field.may_be_zero ? "of 0 or more" : "above 0",
                           unit,
                           field.least_base,
                           field.most_base),
               json);
    }
    value = T(base);
  }

  // Items are read as a field each, "samples[1]".
  template <class T>
  void ReadList(const Field& field, const Json& json, std::vector<T>& values) {
    if (!json.is_array()) Expected(field, "a list", json);
    values.clear();
    for (const Json& one : json) {
      const std::string name = fmt::format("{}[{}]", field.name, values.size());
      Field item = field;
      item.name = name;
      Read(item, one, values.emplace_back());
    }
  }

  void ReadTimes(const Field& field,
                 const Json& json,
                 std::vector<Seconds<>>& times) {
    if (!json.is_array() ||
        !std::all_of(json.begin(), json.end(), [&](const Json& one) {
          return one.is_number() && one.template get<double>() >= 0.0 &&
                 one.template get<double>() <= field.most_base;
        })) {
      Expected(field, "a list of times in seconds", json);
    }
    times.clear();
    for (const Json& one : json) times.emplace_back(one.template get<double>());
  }

  template <class T>
  void ReadWords(const Field& field, const Json& json, T& value) {
    try {
      if constexpr (std::is_enum_v<T>) {
        value = FromText<T>(Text(field, json));
      } else {
        if (!json.is_array()) Expected(field, "a list of words", json);
        std::vector<std::string> words;
        for (const Json& word : json) words.push_back(Text(field, word));
        FromWords(words, value);
      }
    } catch (const InputError& error) {
      const std::string message = error.what();
      // Text() and Expected() have said where already.
      if (message.starts_with(Path(NameInJson(field)) + ":")) throw;
      Fail(NameInJson(field), message);
    }
  }

  std::string Text(const Field& field, const Json& json) const {
    if (!json.is_string()) Expected(field, "a text", json);
    return json.template get<std::string>();
  }

  std::string Path(std::string_view key) const {
    if (path_.empty()) return std::string(key);
    return key.empty() ? path_ : fmt::format("{}.{}", path_, key);
  }
  static std::string Shown(const Json& json) {
    std::string shown =
        json.dump(-1, ' ', false, Json::error_handler_t::replace);
    constexpr size_t kMostShown = 60;
    if (shown.size() > kMostShown) shown = shown.substr(0, kMostShown) + "...";
    return shown;
  }
  [[noreturn]] void Expected(const Field& field,
                             const std::string& expected,
                             const Json& got) const {
    Fail(NameInJson(field),
         fmt::format("expected {}, got {}", expected, Shown(got)));
  }
  [[noreturn]] void Fail(std::string_view key,
                         const std::string& message) const {
    const std::string path = Path(key);
    throw InputError(path.empty() ? message
                                  : fmt::format("{}: {}", path, message));
  }

  const Json& object_;
  std::string path_;
  UnknownKeys unknown_;
  std::vector<std::string> known_;
};

}  // namespace trainfare::model
