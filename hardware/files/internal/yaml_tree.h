#pragma once

// The tree behind Reader: what a YAML file says, with the position of each key
// and value. Own nodes instead of YAML::Node, which forgets duplicate keys,
// keeps no position of a key, and is slower to build.

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace trainfare::hardware::internal {

struct YamlNode {
  enum class Kind { kNull, kScalar, kMap, kList };
  struct Entry {
    std::string key;
    int line = 0;
    int column = 0;
    YamlNode* value = nullptr;
  };

  Kind kind = Kind::kNull;
  int line = 0;  // from 1, as column
  int column = 0;
  std::string text;     // of a scalar
  bool quoted = false;  // of a scalar: never a number or a flag
  std::vector<Entry> entries;
  std::vector<YamlNode*> items;
  // Keys that were asked for, present or not.
  std::vector<std::string> asked;
  // Where it hangs: the key or the index in the parent.
  const YamlNode* parent = nullptr;
  std::string key;
  size_t index = 0;
  // Who set it from outside of the file, "--set"; empty: it stands there.
  std::string origin;
};

struct YamlDocument {
  std::string file;
  bool ends_in_line = false;   // no newline behind the last one
  std::deque<YamlNode> nodes;  // stable addresses; the first is the root
};

// Throws InputError.
void ParseYaml(const std::string& text, YamlDocument& document);

// The value of a setting, YAML of one line; `origin` and `path` stand for the
// file in messages. Throws InputError.
YamlDocument ParseSetting(std::string_view path,
                          const std::string& text,
                          const std::string& origin);

// Puts the value that `text` is, YAML of one line, where `path`
// ("dataset.train") leads in a parsed document, in place of what stands there; a
// single value on the way becomes a map that has it under `single_key`, which
// may be empty. Throws InputError that begins with `origin`.
void SetYaml(std::string_view path,
             const std::string& text,
             const std::string& origin,
             const std::string& single_key,
             YamlDocument& document);

// Makes a scalar the list of what stands between its commas.
void SplitAtCommas(YamlNode& node, YamlDocument& document);

// "memory.bandwidth", "instances[3].price"; empty for the root.
std::string PathOf(const YamlNode& node);

}  // namespace trainfare::hardware::internal
