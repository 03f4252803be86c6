#pragma once

// Scalars and documents of the YAML files that are written here.

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace trainfare::hardware {

// A double-quoted YAML scalar. Bytes that are no UTF-8, as the name of a file
// may have them, become U+FFFD: no reader takes them.
std::string Quoted(std::string_view text);

// The same as a value or a key, without quotes where YAML reads it as that
// word.
std::string PlainOrQuoted(std::string_view text);

// A document for people, a key after another: text that needs no quotes has
// none, maps and lists within a key stand on its line, which goes beyond
// `width` columns only with one word or text.
class YamlLines {
 public:
  explicit YamlLines(size_t width) : width_(width) {}

  void Add(std::string_view key, const nlohmann::ordered_json& value);
  // A key a line below its own; none for a `map` without keys.
  void AddMap(std::string_view key, const nlohmann::ordered_json& map);
  // The keys of a map as the document's own.
  void AddAll(const nlohmann::ordered_json& keys);
  void Comment(const std::string& text);

  const std::string& text() const { return text_; }

 private:
  void AddKey(std::string_view indent,
              std::string_view key,
              const nlohmann::ordered_json& value);

  size_t width_;
  std::string text_;
};

}  // namespace trainfare::hardware
