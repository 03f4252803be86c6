#pragma once

// A model's config.json of Hugging Face, key by key. Every failure is an
// InputError "file:line:col: key: expected X, got Y"; where the key is not
// there, at what it is missing from.

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace trainfare::hardware {

class ConfigJson {
 public:
  // `path`: of the text, in messages; `otherwise` ends what Expect() says: why
  // no other value is taken. `within`: the key whose value is read alone.
  ConfigJson(std::string text,
             const std::string& path,
             std::string otherwise,
             const std::string& within = "");
  ~ConfigJson();
  ConfigJson(const ConfigJson&) = delete;
  ConfigJson& operator=(const ConfigJson&) = delete;

  // A map of the file that is read alone; no longer than the file itself is.
  ConfigJson Within(const char* key) const;

  const std::string& path() const { return path_; }
  // `key` may be a path: "layer_types[3]".
  [[noreturn]] void Fail(std::string_view key,
                         const std::string& message) const;
  // The same of a message that begins with the key and ": ".
  [[noreturn]] void Fail(std::string_view message) const;
  [[noreturn]] void Expected(std::string_view key,
                             const std::string& expected,
                             const nlohmann::json& got) const;

  // Not null either. What is asked for here or below is known to Unasked().
  bool Has(const char* key) const;
  // There, and null.
  bool IsNull(const char* key) const;
  const nlohmann::json& At(const char* key) const;  // throws without it
  // Without a fallback the key must be there.
  int64_t Count(const char* key) const;
  int64_t Count(const char* key, int64_t fallback) const;
  int64_t PositiveCount(const char* key) const;
  int64_t PositiveCount(const char* key, int64_t fallback) const;
  bool Flag(const char* key, bool fallback) const;  // null is no, as in Python
  double Positive(const char* key, double fallback) const;
  double Share(const char* key, double fallback = 0.0) const;  // below 1
  double Part(const char* key, double fallback) const;         // 1 is all
  std::string Text(const char* key, const std::string& fallback) const;
  // Where the key is there, the one value that is taken.
  void Expect(const char* key, const nlohmann::json& wanted) const;
  // A number above 0 of a map or list within, whose path is `key`.
  double PositiveNumber(const std::string& key,
                        const nlohmann::json& value) const;

  // A list of so many `items` ("words"), one a block; throws without it.
  const nlohmann::json& List(const char* key,
                             int64_t size,
                             std::string_view items) const;

  // Keys with a value that nobody asked for; those that somebody did.
  std::vector<std::string> Unasked() const;
  std::vector<std::string_view> Asked() const;

 private:
  struct Parsed;
  ConfigJson(const ConfigJson& whole, const char* key);

  std::string path_;
  std::string otherwise_;
  std::unique_ptr<const Parsed> parsed_;
  mutable std::set<std::string, std::less<>> asked_;
};

}  // namespace trainfare::hardware
