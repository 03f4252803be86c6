#include "hardware/files/config_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "hardware/files/json_text.h"
#include "hardware/files/text_file.h"
#include "model/error.h"
#include "model/limits.h"

namespace trainfare::hardware {

using nlohmann::json;

ConfigJson::ConfigJson(const std::string& path, std::string otherwise)
    : path_(path),
      otherwise_(std::move(otherwise)),
      value_(std::make_unique<const json>(
          ParseJson(ReadTextFile(path, "a config.json"), path))) {
  if (!value_->is_object()) Fail("expected an object");
}

ConfigJson::~ConfigJson() = default;

void ConfigJson::Fail(const std::string& message) const {
  throw model::InputError(fmt::format("{}: {}", path_, message));
}

void ConfigJson::FailAt(const std::string& key,
                        const std::string& expected,
                        const json& got) const {
  Fail(fmt::format("{}: expected {}, got {}", key, expected, ShownJson(got)));
}

bool ConfigJson::Has(const char* key) const {
  asked_.emplace(key);
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

const json& ConfigJson::At(const char* key) const {
  if (!Has(key)) Fail(fmt::format("{}: missing", key));
  return value_->at(key);
}

int64_t ConfigJson::Count(const char* key) const {
  const json& value = At(key);
  if (!value.is_number_integer()) FailAt(key, "a count", value);
  if (value.get<int64_t>() < 0 ||
      value.get<int64_t>() > model::kLargestDimension) {
    FailAt(key,
           fmt::format("a count from 0 to {}", model::kLargestDimension),
           value);
  }
  return value.get<int64_t>();
}

int64_t ConfigJson::Count(const char* key, int64_t fallback) const {
  return Has(key) ? Count(key) : fallback;
}

bool ConfigJson::Flag(const char* key, bool fallback) const {
  if (!Has(key)) return fallback;
  const json& value = At(key);
  if (!value.is_boolean()) FailAt(key, "true or false", value);
  return value.get<bool>();
}

double ConfigJson::Number(const char* key, double fallback) const {
  if (!Has(key)) return fallback;
  const json& value = At(key);
  if (!value.is_number()) FailAt(key, "a number", value);
  return value.get<double>();
}

double ConfigJson::Positive(const char* key, double fallback) const {
  return Has(key) ? PositiveNumber(key, At(key)) : fallback;
}

double ConfigJson::PositiveNumber(const std::string& key,
                                  const json& value) const {
  const double number = value.is_number() ? value.get<double>() : -1.0;
  if (!(number > 0.0 && number <= 1e12)) {
    FailAt(key, "a number above 0", value);
  }
  return number;
}

double ConfigJson::Share(const char* key, double fallback) const {
  if (!Has(key)) return fallback;
  const json& value = At(key);
  const double share = value.is_number() ? value.get<double>() : -1.0;
  if (!(share >= 0.0 && share < 1.0)) {
    FailAt(key, "a number from 0 to below 1", value);
  }
  return share;
}

std::string ConfigJson::Text(const char* key,
                             const std::string& fallback) const {
  if (!Has(key)) return fallback;
  const json& value = At(key);
  if (!value.is_string()) FailAt(key, "a text", value);
  return value.get<std::string>();
}

void ConfigJson::Expect(const char* key, const json& wanted) const {
  if (!Has(key) || At(key) == wanted) return;
  Fail(fmt::format("{}: expected {}, got {}; {}",
                   key,
                   ShownJson(wanted),
                   ShownJson(At(key)),
                   otherwise_));
}

std::vector<std::string> ConfigJson::Unasked() const {
  std::vector<std::string> keys;
  for (const auto& item : value_->items()) {
    if (!item.value().is_null() && !asked_.contains(item.key())) {
      keys.push_back(item.key());
    }
  }
  return keys;
}

}  // namespace trainfare::hardware
