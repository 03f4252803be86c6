#include "hardware/files/internal/parsed_yaml.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "hardware/files/text_file.h"
#include "hardware/files/yaml_reader.h"
#include "model/error.h"

namespace trainfare::hardware::internal {
namespace {

YamlDocument Parsed(const std::string& text) {
  YamlDocument document;
  ParseYaml(text, document);
  return document;
}

void CheckSame(const YamlNode& a, const YamlNode& b) {
  CAPTURE(PathOf(a));
  CHECK(PathOf(a) == PathOf(b));
  CHECK(a.kind == b.kind);
  CHECK(a.line == b.line);
  CHECK(a.column == b.column);
  CHECK(a.text == b.text);
  CHECK(a.quoted == b.quoted);
  REQUIRE(a.entries.size() == b.entries.size());
  for (size_t i = 0; i < a.entries.size(); ++i) {
    CHECK(a.entries[i].key == b.entries[i].key);
    CHECK(a.entries[i].line == b.entries[i].line);
    CHECK(a.entries[i].column == b.entries[i].column);
    CheckSame(*a.entries[i].value, *b.entries[i].value);
  }
  REQUIRE(a.items.size() == b.items.size());
  for (size_t i = 0; i < a.items.size(); ++i) {
    CheckSame(*a.items[i], *b.items[i]);
  }
}

constexpr std::string_view kText =
    "name: \"a \\\"b\\\"\"\nempty:\nlist: [1, two, { three: 3 }]\n"
    "map:\n  - - x\n  - y: é\n";

}  // namespace

// The build parsed them, so that none is parsed when somebody asks.
TEST_CASE("every YAML file that ships has its tree, as YAML gives it") {
  const std::filesystem::path root(TRAINFARE_ROOT);
  size_t files = 0;
  for (const char* folder : {"hardware", "calibrate/fits", "scenarios"}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".yaml") continue;
      CAPTURE(entry.path().string());
      const std::string text =
          ReadTextFile(entry.path().string(), "a YAML file");
      const auto found = FindParsed(text);
      REQUIRE(found.has_value());
      const YamlDocument parsed = Parsed(text);
      CHECK(found->nodes.size() == parsed.nodes.size());
      CheckSame(found->nodes.front(), parsed.nodes.front());
      ++files;
    }
  }
  CHECK(files > 150);
}

TEST_CASE("a tree is of one text, whole, or it is none") {
  const std::string text(kText);
  const std::string bytes = WriteParsed(text, Parsed(text));
  const auto whole = ReadParsed(bytes, text);
  REQUIRE(whole.has_value());
  CheckSame(whole->nodes.front(), Parsed(text).nodes.front());
  CHECK_FALSE(ReadParsed(bytes, text + "\n").has_value());
  CHECK_FALSE(ReadParsed(bytes + "\n", text).has_value());
  for (size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(ReadParsed(bytes.substr(0, size), text).has_value());
  }
  CHECK_FALSE(FindParsed(text).has_value());
}

// Whatever the bytes are, nothing is read outside of them.
TEST_CASE("bytes of a tree that were changed give another tree or none") {
  const std::string text(kText);
  const std::string bytes = WriteParsed(text, Parsed(text));
  size_t trees = 0;
  for (size_t at = text.size() + 4; at < bytes.size(); ++at) {
    for (const int change : {1, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ change);
      const auto read = ReadParsed(changed, text);
      if (read) ++trees;
    }
  }
  CHECK(trees > 0);  // a letter of a value is a letter
}

TEST_CASE("names of trees differ with their texts") {
  CHECK(ParsedName("a: 1\n") != ParsedName("a: 2\n"));
  CHECK(ParsedName("a: 1\n") == ParsedName("a: 1\n"));
  CHECK(ParsedName("").size() == 16);
}

}  // namespace trainfare::hardware::internal
