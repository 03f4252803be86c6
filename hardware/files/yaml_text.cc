#include "hardware/files/yaml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "hardware/files/foreign_text.h"
#include "hardware/files/json_text.h"
#include "hardware/files/terminal.h"

namespace trainfare::hardware {
namespace {

using Json = nlohmann::ordered_json;

// Words that some reader of YAML takes for a value of another type.
constexpr std::array<std::string_view, 7> kTypedWords = {
    "true", "false", "null", "yes", "no", "on", "off"};

// A word that YAML reads as that word.
bool IsPlain(std::string_view text) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyz0123456789_-";
  return !text.empty() && text.front() >= 'a' && text.front() <= 'z' &&
         text.find_first_not_of(kLetters) == std::string_view::npos &&
         std::find(kTypedWords.begin(), kTypedWords.end(), text) ==
             kTypedWords.end();
}

// Appends `{ name: adamw, by: [a, b] }` to the last of `pieces`, a new piece
// behind every comma: JSON is YAML, but harder to read.
void AddFlow(const Json& value, std::vector<std::string>& pieces) {
  if (!value.is_structured()) {
    const bool plain = value.is_string() && IsPlain(value.get<std::string>());
    pieces.back() += plain ? value.get<std::string>() : WriteJson(value);
    return;
  }
  pieces.back() += value.is_object() ? "{ " : "[";
  bool first = true;
  for (const auto& item : value.items()) {
    if (!first) {
      pieces.back() += ',';
      pieces.emplace_back();
    }
    first = false;
    if (value.is_object()) pieces.back() += item.key() + ": ";
    AddFlow(item.value(), pieces);
  }
  pieces.back() += value.is_object() ? " }" : "]";
}

}  // namespace

std::string Quoted(std::string_view text) {
  // A JSON string is a YAML scalar. DEL is allowed in neither YAML nor here.
  std::string quoted = nlohmann::json(text).dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (size_t at = quoted.find('\x7f'); at != std::string::npos;
       at = quoted.find('\x7f', at)) {
    quoted.replace(at, 1, "\\x7f");
  }
  return quoted;
}

std::string PlainOrQuoted(std::string_view text) {
  return IsPlain(text) ? std::string(text) : Quoted(text);
}

void YamlLines::Add(std::string_view key, const Json& value) {
  AddKey("", key, value);
}

void YamlLines::AddMap(std::string_view key, const Json& map) {
  if (map.empty()) return;
  text_ += fmt::format("{}:\n", key);
  for (const auto& item : map.items()) AddKey("  ", item.key(), item.value());
}

void YamlLines::AddAll(const Json& keys) {
  for (const auto& item : keys.items()) Add(item.key(), item.value());
}

void YamlLines::Comment(const std::string& text) {
  for (const std::string& line : LinesOf("# " + text, width_, "# ")) {
    text_ += line + "\n";
  }
}

void YamlLines::AddKey(std::string_view indent,
                       std::string_view key,
                       const Json& value) {
  std::vector<std::string> pieces = {fmt::format("{}{}: ", indent, key)};
  AddFlow(value, pieces);
  std::string line = pieces.front();
  for (size_t i = 1; i < pieces.size(); ++i) {
    if (DisplayWidth(line) + 1 + DisplayWidth(pieces[i]) > width_) {
      text_ += line + "\n";
      line = fmt::format("{}    {}", indent, pieces[i]);
    } else {
      line += ' ' + pieces[i];
    }
  }
  text_ += line + "\n";
}

}  // namespace trainfare::hardware
