#include "hardware/files/internal/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "hardware/files/foreign_text.h"
#include "model/error.h"

namespace trainfare::hardware::internal {
namespace {

using model::InputError;

// Builds the tree from the events of one document.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, YamlDocument& document)
      : text_(text), document_(document) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (started_) RefuseMore(mark);
    started_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    RefuseAnchor(mark, anchor);
    Add(mark, YamlNode::Kind::kNull);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    Fail(mark, "expected a value, got an alias (*); write the value out");
  }
  void OnScalar(const YAML::Mark& mark,
                const std::string& tag,
                YAML::anchor_t anchor,
                const std::string& value) override {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    RefuseOpenQuote(mark);
    if (!open_.empty() && open_.back()->kind == YamlNode::Kind::kMap &&
        !key_pending_) {
      open_.back()->entries.push_back(
          {value, mark.line + 1, mark.column + 1, nullptr});
      key_pending_ = true;
      return;
    }
    YamlNode& node = Add(mark, YamlNode::Kind::kScalar);
    node.text = value;
    node.quoted = tag == "!";
  }
  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    open_.push_back(&Add(mark, YamlNode::Kind::kList));
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark,
                  const std::string& tag,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    open_.push_back(&Add(mark, YamlNode::Kind::kMap));
  }
  void OnMapEnd() override {
    RefuseDuplicates(*open_.back());
    open_.pop_back();
  }

 private:
  [[noreturn]] void Fail(const YAML::Mark& mark,
                         const std::string& message) const {
    throw InputError(document_.file, mark.line + 1, mark.column + 1, message);
  }

  // yaml-cpp begins a document of its own at what it cannot take for more of
  // the one before, such as the commas of ",".
  [[noreturn]] void RefuseMore(const YAML::Mark& mark) const {
    const std::string_view rest =
        text_.substr(std::min(static_cast<size_t>(mark.pos), text_.size()));
    if (rest.starts_with("---")) {
      Fail(mark, "expected one document, got a second; remove \"---\"");
    }
    Fail(
        mark,
        fmt::format("expected one value, got \"{}\" behind it; put a text with "
                    "such signs in quotes",
                    rest.substr(0, rest.find_first_of(" \r\n"))));
  }

  void RefuseAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != YAML::NullAnchor) {
      Fail(mark, "expected a value, got an anchor (&); write the value out");
    }
  }
  void RefuseTag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!") {
      Fail(mark, fmt::format("expected a value, got the tag \"{}\"", tag));
    }
  }

  // yaml-cpp takes the end of the file for the end of a text in quotes.
  void RefuseOpenQuote(const YAML::Mark& mark) const {
    std::string_view rest =
        text_.substr(std::min(static_cast<size_t>(mark.pos), text_.size()));
    if (rest.empty() || (rest.front() != '"' && rest.front() != '\'')) return;
    const char quote = rest.front();
    for (size_t i = 1; i < rest.size(); ++i) {
      const bool escaped =
          quote == '"' ? rest[i] == '\\' : rest.substr(i).starts_with("''");
      if (escaped) {
        ++i;
      } else if (rest[i] == quote) {
        return;
      }
    }
    Fail(mark,
         "expected a text in quotes, got no quote behind it; is the file cut "
         "off?");
  }

  void RefuseDuplicates(const YamlNode& map) const {
    std::vector<const YamlNode::Entry*> entries;
    entries.reserve(map.entries.size());
    for (const YamlNode::Entry& entry : map.entries) entries.push_back(&entry);
    std::stable_sort(entries.begin(),
                     entries.end(),
                     [](const YamlNode::Entry* a, const YamlNode::Entry* b) {
                       return a->key < b->key;
                     });
    for (size_t i = 1; i < entries.size(); ++i) {
      const YamlNode::Entry& first = *entries[i - 1];
      const YamlNode::Entry& second = *entries[i];
      if (first.key != second.key) continue;
      const std::string path = PathOf(map);
      throw InputError(document_.file,
                       second.line,
                       second.column,
                       fmt::format("{}{}duplicate key \"{}\"; first at {}:{}",
                                   path,
                                   path.empty() ? "" : ": ",
                                   second.key,
                                   first.line,
                                   first.column));
    }
  }

  YamlNode& Add(const YAML::Mark& mark, YamlNode::Kind kind) {
    if (!open_.empty() && open_.back()->kind == YamlNode::Kind::kMap &&
        !key_pending_) {
      Fail(mark, "expected a key, got a map, a list or nothing");
    }
    YamlNode& node = document_.nodes.emplace_back();
    node.kind = kind;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    if (open_.empty()) return node;
    YamlNode& parent = *open_.back();
    node.parent = &parent;
    if (parent.kind == YamlNode::Kind::kMap) {
      YamlNode::Entry& entry = parent.entries.back();
      entry.value = &node;
      node.key = entry.key;
      // An absent value has no place of its own.
      if (kind == YamlNode::Kind::kNull) {
        node.line = entry.line;
        node.column = entry.column;
      }
      key_pending_ = false;
    } else {
      node.index = parent.items.size();
      parent.items.push_back(&node);
    }
    return node;
  }

  std::string_view text_;  // without a byte order mark, as marks count
  YamlDocument& document_;
  std::vector<YamlNode*> open_;
  bool key_pending_ = false;
  bool started_ = false;
};

// yaml-cpp takes some control characters for the end of the file, and passes
// on bytes that no terminal or JSON reader accepts.
void RefuseStrangeBytes(std::string_view text, const std::string& file) {
  int line = 1;
  int column = 1;
  while (!text.empty()) {
    const char letter = text.front();
    const auto code = static_cast<unsigned char>(letter);
    const bool control =
        code < 0x20 && letter != '\t' && letter != '\n' && letter != '\r';
    const size_t size = CharacterSize(text);
    if (control || size == 0) {
      throw InputError(
          file,
          line,
          column,
          fmt::format("expected text, got the byte 0x{:02x}; is this {}?",
                      code,
                      control ? "YAML" : "UTF-8"));
    }
    ++column;
    if (letter == '\n') {
      ++line;
      column = 1;
    }
    text.remove_prefix(size);
  }
}

// The value of `key` in `map`, nothing at first where the key is new.
YamlNode& ValueOf(YamlNode& map,
                  std::string_view key,
                  const std::string& origin,
                  YamlDocument& document) {
  for (YamlNode::Entry& entry : map.entries) {
    if (entry.key == key) return *entry.value;
  }
  YamlNode& value = document.nodes.emplace_back();
  value.parent = &map;
  value.key = key;
  value.origin = origin;
  YamlNode::Entry& entry = map.entries.emplace_back();
  entry.key = key;
  entry.value = &value;
  return value;
}

// Nobody asks for what hung below `node` any more.
void Clear(YamlNode& node) {
  for (const YamlNode::Entry& entry : node.entries) Clear(*entry.value);
  for (YamlNode* item : node.items) Clear(*item);
  node.entries.clear();
  node.items.clear();
}

// Makes a single value the map that has it under `key`.
void KeepUnder(const std::string& key, YamlNode& node, YamlDocument& document) {
  YamlNode& kept = ValueOf(node, key, node.origin, document);
  kept.kind = YamlNode::Kind::kScalar;
  kept.line = node.line;
  kept.column = node.column;
  kept.text = std::move(node.text);
  kept.quoted = node.quoted;
  node.kind = YamlNode::Kind::kMap;
  node.text.clear();
}

// Makes `node` what `value` is, with all that hangs below that.
void Graft(const YamlNode& value,
           const std::string& origin,
           YamlNode& node,
           YamlDocument& document) {
  node.kind = value.kind;
  node.text = value.text;
  node.quoted = value.quoted;
  node.origin = origin;
  node.line = 0;
  node.column = 0;
  Clear(node);
  for (const YamlNode::Entry& entry : value.entries) {
    Graft(*entry.value,
          origin,
          ValueOf(node, entry.key, origin, document),
          document);
  }
  for (const YamlNode* item : value.items) {
    YamlNode& copy = document.nodes.emplace_back();
    copy.parent = &node;
    copy.index = node.items.size();
    node.items.push_back(&copy);
    Graft(*item, origin, copy, document);
  }
}

}  // namespace

std::string PathOf(const YamlNode& node) {
  if (node.parent == nullptr) return "";
  const std::string parent = PathOf(*node.parent);
  if (node.parent->kind == YamlNode::Kind::kList) {
    return fmt::format("{}[{}]", parent, node.index);
  }
  return parent.empty() ? node.key : parent + "." + node.key;
}

void ParseYaml(const std::string& text, YamlDocument& document) {
  RefuseStrangeBytes(text, document.file);
  std::istringstream stream(text);
  std::string_view marked = text;
  if (marked.starts_with("\xef\xbb\xbf")) marked.remove_prefix(3);
  TreeBuilder builder(marked, document);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    std::string reason = error.msg;
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    throw InputError(document.file,
                     error.mark.line + 1,
                     error.mark.column + 1,
                     fmt::format("not valid YAML: {}", reason));
  }
  if (document.nodes.empty() ||
      document.nodes.front().kind == YamlNode::Kind::kNull) {
    throw InputError(
        document.file, 0, 0, "expected a map of keys, got an empty file");
  }
}

YamlDocument ParseSetting(std::string_view path,
                          const std::string& text,
                          const std::string& origin) {
  YamlDocument value;
  value.file = fmt::format("{} {}", origin, path);
  if (text.find_first_not_of(' ') == std::string::npos) {
    throw InputError(value.file, 0, 0, "expected a value, got nothing");
  }
  ParseYaml(text, value);
  return value;
}

void SetYaml(std::string_view path,
             const std::string& text,
             const std::string& origin,
             const std::string& single_key,
             YamlDocument& document) {
  const YamlDocument value = ParseSetting(path, text, origin);
  YamlNode* node = &document.nodes.front();
  for (std::string_view rest = path;;) {
    const size_t dot = rest.find('.');
    const std::string_view key = rest.substr(0, dot);
    if (key.empty()) {
      throw InputError(fmt::format(
          "{}: expected KEY=VALUE such as dataset.train=1000, got the key "
          "\"{}\"",
          origin,
          path));
    }
    if (node->kind == YamlNode::Kind::kNull) node->kind = YamlNode::Kind::kMap;
    if (node->kind == YamlNode::Kind::kScalar && !single_key.empty()) {
      KeepUnder(single_key, *node, document);
    }
    if (node->kind != YamlNode::Kind::kMap) {
      const std::string at = PathOf(*node);
      throw InputError(fmt::format(
          "{} {}: expected a map at {}, which is a single value; set it whole: "
          "{}={{...}}",
          origin,
          path,
          at,
          at));
    }
    node = &ValueOf(*node, key, origin, document);
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  Graft(value.nodes.front(), origin, *node, document);
}

void SplitAtCommas(YamlNode& node, YamlDocument& document) {
  std::string_view rest = node.text;
  while (true) {
    const size_t comma = rest.find(',');
    std::string_view part = rest.substr(0, comma);
    const size_t start = std::min(part.find_first_not_of(' '), part.size());
    part.remove_prefix(start);
    part = part.substr(0, part.find_last_not_of(' ') + 1);
    YamlNode& item = document.nodes.emplace_back();
    item.kind = YamlNode::Kind::kScalar;
    item.text = part;
    item.origin = node.origin;
    item.parent = &node;
    item.index = node.items.size();
    node.items.push_back(&item);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  node.kind = YamlNode::Kind::kList;
  node.text.clear();
}

}  // namespace trainfare::hardware::internal
