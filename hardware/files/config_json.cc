#include "hardware/files/config_json.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "hardware/files/json_object.h"
#include "hardware/files/json_text.h"
#include "model/limits.h"

namespace trainfare::hardware {

using nlohmann::json;

struct ConfigJson::Parsed {
  std::string text;
  json value;
  JsonObject object;

  Parsed(std::string of, const std::string& path, const std::string& within)
      : text(std::move(of)),
        value(ParseJson(text, path)),
        object(within.empty() ? value : value.at(within),
               path,
               /*line=*/0,
               within,
               text) {}
  explicit Parsed(JsonObject of) : object(std::move(of)) {}
};

ConfigJson::ConfigJson(std::string text,
                       const std::string& path,
                       std::string otherwise,
                       const std::string& within)
    : path_(path),
      otherwise_(std::move(otherwise)),
      parsed_(std::make_unique<const Parsed>(std::move(text), path, within)) {}

ConfigJson::ConfigJson(const ConfigJson& whole, const char* key)
    : path_(whole.path_),
      otherwise_(whole.otherwise_),
      parsed_(
          std::make_unique<const Parsed>(whole.parsed_->object.Object(key))) {}

ConfigJson::~ConfigJson() = default;

ConfigJson ConfigJson::Within(const char* key) const {
  asked_.emplace(key);
  return {*this, key};
}

void ConfigJson::Fail(std::string_view key, const std::string& message) const {
  parsed_->object.FailWith(key, message);
}

void ConfigJson::Fail(std::string_view message) const {
  constexpr std::string_view kEndOfKey = ": ";
  const size_t end = message.find(kEndOfKey);
  if (end == std::string_view::npos) Fail("", std::string(message));
  Fail(message.substr(0, end),
       std::string(message.substr(end + kEndOfKey.size())));
}

void ConfigJson::Expected(std::string_view key,
                          const std::string& expected,
                          const json& got) const {
  parsed_->object.Expected(key, expected, got);
}

bool ConfigJson::Has(const char* key) const {
  asked_.emplace(key);
  return parsed_->object.Has(key);
}

bool ConfigJson::IsNull(const char* key) const {
  asked_.emplace(key);
  const json& object = parsed_->object.value();
  const auto at = object.find(key);
  return at != object.end() && at->is_null();
}

const json& ConfigJson::At(const char* key) const {
  asked_.emplace(key);
  return parsed_->object.At(key);
}

int64_t ConfigJson::Count(const char* key) const {
  asked_.emplace(key);
  return parsed_->object.Count(key, 0, model::kLargestDimension);
}

int64_t ConfigJson::Count(const char* key, int64_t fallback) const {
  return Has(key) ? Count(key) : fallback;
}

int64_t ConfigJson::PositiveCount(const char* key) const {
  asked_.emplace(key);
  return parsed_->object.Count(key, 1, model::kLargestDimension);
}

int64_t ConfigJson::PositiveCount(const char* key, int64_t fallback) const {
  return Has(key) ? PositiveCount(key) : fallback;
}

bool ConfigJson::Flag(const char* key, bool fallback) const {
  if (IsNull(key)) return false;
  return parsed_->object.Flag(key, fallback);
}

double ConfigJson::Positive(const char* key, double fallback) const {
  return Has(key) ? PositiveNumber(key, At(key)) : fallback;
}

double ConfigJson::PositiveNumber(const std::string& key,
                                  const json& value) const {
  const double number = value.is_number() ? value.get<double>() : -1.0;
  if (!(number > 0.0 && number <= 1e12)) {
    Expected(key, "a number above 0", value);
  }
  return number;
}

double ConfigJson::Share(const char* key, double fallback) const {
  if (!Has(key)) return fallback;
  const json& value = At(key);
  const double share = value.is_number() ? value.get<double>() : -1.0;
  if (!(share >= 0.0 && share < 1.0)) {
    Expected(key, "a number from 0 to below 1", value);
  }
  return share;
}

double ConfigJson::Part(const char* key, double fallback) const {
  if (!Has(key)) return fallback;
  const json& value = At(key);
  const double part = value.is_number() ? value.get<double>() : -1.0;
  if (!(part >= 0.0 && part <= 1.0)) {
    Expected(key, "a number from 0 to 1", value);
  }
  return part;
}

std::string ConfigJson::Text(const char* key,
                             const std::string& fallback) const {
  return Has(key) ? parsed_->object.Text(key) : fallback;
}

void ConfigJson::Expect(const char* key, const json& wanted) const {
  if (!Has(key) || At(key) == wanted) return;
  Fail(key,
       fmt::format("expected {}, got {}; {}",
                   ShownJson(wanted),
                   ShownJson(At(key)),
                   otherwise_));
}

const json& ConfigJson::List(const char* key,
                             int64_t size,
                             std::string_view items) const {
  const json& list = At(key);
  if (!list.is_array() || std::ssize(list) != size) {
    Fail(key,
         fmt::format("expected a list of {} {}, one a block, got {}",
                     size,
                     items,
                     list.is_array() ? fmt::format("a list of {}", list.size())
                                     : ShownJson(list)));
  }
  return list;
}

std::vector<std::string> ConfigJson::Unasked() const {
  std::vector<std::string> keys;
  for (const auto& item : parsed_->object.value().items()) {
    if (!item.value().is_null() && !asked_.contains(item.key())) {
      keys.push_back(item.key());
    }
  }
  return keys;
}

std::vector<std::string_view> ConfigJson::Asked() const {
  return {asked_.begin(), asked_.end()};
}

}  // namespace trainfare::hardware
