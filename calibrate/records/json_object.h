#pragma once

// Reading one JSON object with messages that name the key. For .cc files only:
// the JSON library's header is large.

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "hardware/files/json_text.h"
#include "model/error.h"
#include "model/limits.h"

namespace trainfare::calibrate::internal {

// Knows where its object stands. Keys that nobody asks for are ignored.
class JsonObject {
 public:
  JsonObject(const nlohmann::json& value,
             std::string file,
             int line,
             std::string path = "")
      : value_(value),
        file_(std::move(file)),
        line_(line),
        path_(std::move(path)) {
    if (!value.is_object()) Fail("", "an object", value);
  }

  bool Has(const char* key) const {
    const auto found = value_.find(key);
    return found != value_.end() && !found->is_null();
  }
  const nlohmann::json& At(const char* key) const {
    const auto found = value_.find(key);
    if (found == value_.end() || found->is_null()) {
      FailWith(key, "missing");
    }
    return *found;
  }

  JsonObject Object(const char* key) const {
    return {At(key), file_, line_, Path(key)};
  }
  std::string Text(const char* key) const {
    const nlohmann::json& found = At(key);
    if (!found.is_string()) Fail(key, "a text", found);
    return found.get<std::string>();
  }
  std::string Text(const char* key, const char* fallback) const {
    return Has(key) ? Text(key) : std::string(fallback);
  }
  bool Flag(const char* key, bool fallback) const {
    if (!Has(key)) return fallback;
    const nlohmann::json& found = At(key);
    if (!found.is_boolean()) Fail(key, "true or false", found);
    return found.get<bool>();
  }
  int64_t Count(const char* key, int64_t least) const {
    const nlohmann::json& found = At(key);
    if (!found.is_number_integer() || found.get<int64_t>() < least ||
        found.get<int64_t>() > model::kLargestCount) {
      Fail(key,
           fmt::format("an integer from {} to {}", least, model::kLargestCount),
           found);
    }
    return found.get<int64_t>();
  }
  // A count of FLOPs or bytes: 0 or more, beyond what Count() takes.
  int64_t LargeCount(const char* key) const {
    const nlohmann::json& found = At(key);
    if (!found.is_number_unsigned() ||
        found.get<uint64_t>() > kLargestLargeCount) {
      Fail(key, "a count of 0 or more", found);
    }
    return found.get<int64_t>();
  }
  int64_t Count(const char* key, int64_t least, int64_t fallback) const {
    return Has(key) ? Count(key, least) : fallback;
  }
  // Greater than 0, and not as small or large as nothing that is measured is
  // (model/limits.h): sums and quotients of such stay finite.
  double PositiveNumber(const char* key, const char* expected) const {
    const nlohmann::json& found = At(key);
    if (!found.is_number() ||
        !model::IsPlausible(model::Second(found.get<double>()))) {
      Fail(key,
           fmt::format("{}, from {} to {}",
                       expected,
                       model::kShortestTime,
                       model::kLongestTime),
           found);
    }
    return found.get<double>();
  }
  // Through a function that throws InputError without a position.
  template <class Parse>
  auto Word(const char* key, Parse parse) const {
    const std::string text = Text(key);
    try {
      return parse(text);
    } catch (const model::InputError& error) {
      FailWith(key, error.what());
    }
  }

  [[noreturn]] void FailWith(const std::string& key,
                             const std::string& message) const {
    const std::string path = Path(key);
    throw model::InputError(
        file_,
        line_,
        0,
        path.empty() ? message : fmt::format("{}: {}", path, message));
  }

 private:
  static constexpr uint64_t kLargestLargeCount = 1'000'000'000'000'000'000;

  std::string Path(const std::string& key) const {
    if (path_.empty()) return key;
    return key.empty() ? path_ : path_ + "." + key;
  }
  [[noreturn]] void Fail(const std::string& key,
                         const std::string& expected,
                         const nlohmann::json& got) const {
    FailWith(
        key,
        fmt::format("expected {}, got {}", expected, hardware::ShownJson(got)));
  }

  const nlohmann::json& value_;
  std::string file_;
  int line_;
  std::string path_;
};

}  // namespace trainfare::calibrate::internal
