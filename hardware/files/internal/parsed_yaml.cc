#include "hardware/files/internal/parsed_yaml.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <utility>

#include "hardware/files/data_directory.h"

namespace trainfare::hardware::internal {
namespace {

// The number of the layout of the bytes; another one makes other names.
constexpr uint64_t kLayout = 1;

// No file that ships is nested as deep.
constexpr int kDeepest = 64;

class Writer {
 public:
  void Count(size_t count) {
    const auto value = static_cast<uint32_t>(count);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Place(int line, int column) {
    Count(static_cast<size_t>(line));
    Count(static_cast<size_t>(column));
  }
  void Text(std::string_view text) {
    Count(text.size());
    bytes_ += text;
  }
  void Node(const YamlNode& node) {
    Count(static_cast<size_t>(node.kind));
    Count(node.quoted ? 1 : 0);
    Place(node.line, node.column);
    Text(node.text);
    Count(node.entries.size());
    for (const YamlNode::Entry& entry : node.entries) {
      Text(entry.key);
      Place(entry.line, entry.column);
      Node(*entry.value);
    }
    Count(node.items.size());
    for (const YamlNode* item : node.items) Node(*item);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// What is read behind the end is 0 and "", and ok() is false from then on.
class Parser {
 public:
  Parser(std::string_view bytes, YamlDocument& document)
      : bytes_(bytes), document_(document) {}

  bool ok() const { return ok_; }
  bool at_end() const { return bytes_.empty(); }

  uint32_t Count() {
    uint32_t value = 0;
    const std::string_view taken = Take(sizeof value);
    if (ok_) std::memcpy(&value, taken.data(), sizeof value);
    return value;
  }
  std::string_view Text() { return Take(Count()); }

  YamlNode& Node(const YamlNode* parent, int depth = 0) {
    YamlNode& node = document_.nodes.emplace_back();
    node.parent = parent;
    node.kind = static_cast<YamlNode::Kind>(Count());
    ok_ = ok_ && node.kind <= YamlNode::Kind::kList && depth < kDeepest;
    node.quoted = Count() != 0;
    Place(node.line, node.column);
    node.text = Text();
    const uint32_t entries = Size();
    node.entries.reserve(entries);
    for (uint32_t i = 0; ok_ && i < entries; ++i) {
      YamlNode::Entry& entry = node.entries.emplace_back();
      entry.key = Text();
      Place(entry.line, entry.column);
      entry.value = &Node(&node, depth + 1);
      entry.value->key = entry.key;
    }
    const uint32_t items = Size();
    node.items.reserve(items);
    for (uint32_t i = 0; ok_ && i < items; ++i) {
      node.items.push_back(&Node(&node, depth + 1));
      node.items.back()->index = i;
    }
    return node;
  }

 private:
  std::string_view Take(size_t size) {
    ok_ = ok_ && size <= bytes_.size();
    if (!ok_) return {};
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  // A list's size: no more than there are bytes left.
  uint32_t Size() {
    const uint32_t size = Count();
    ok_ = ok_ && size <= bytes_.size();
    return ok_ ? size : 0;
  }
  void Place(int& line, int& column) {
    line = static_cast<int>(Count());
    column = static_cast<int>(Count());
  }

  std::string_view bytes_;
  YamlDocument& document_;
  bool ok_ = true;
};

}  // namespace

std::string ParsedName(std::string_view text) {
  // FNV-1a. Two texts of one name do no harm: the text is compared, too.
  uint64_t hash = 0xcbf29ce484222325ULL ^ kLayout;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ULL;
  }
  return fmt::format("{:016x}", hash);
}

std::string WriteParsed(std::string_view text, const YamlDocument& document) {
  Writer writer;
  writer.Text(text);
  writer.Node(document.nodes.front());
  return writer.Take();
}

std::optional<YamlDocument> ReadParsed(std::string_view bytes,
                                       std::string_view text) {
  std::optional<YamlDocument> document(std::in_place);
  Parser parser(bytes, *document);
  if (parser.Text() != text) return std::nullopt;
  parser.Node(nullptr);
  if (!parser.ok() || !parser.at_end()) return std::nullopt;
  return document;
}

std::optional<YamlDocument> FindParsed(std::string_view text) {
  static const std::optional<std::string> folder =
      FindShippedDirectory(kParsedYaml);
  if (!folder) return std::nullopt;
  std::ifstream file(*folder + "/" + ParsedName(text),
                     std::ios::binary | std::ios::ate);
  if (!file) return std::nullopt;
  std::string bytes(static_cast<size_t>(file.tellg()), '\0');
  file.seekg(0);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return ReadParsed(bytes, text);
}

}  // namespace trainfare::hardware::internal
