#include "hardware/files/yaml_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "hardware/files/foreign_keys.h"
#include "hardware/files/foreign_text.h"
#include "hardware/files/internal/parsed_yaml.h"
#include "hardware/files/internal/yaml_tree.h"
#include "hardware/files/text_file.h"
#include "model/nearest.h"

namespace trainfare::hardware {
namespace {

using internal::YamlNode;
using model::InputError;

// So many keys are named that are known; a scenario has 41 at its top.
constexpr size_t kMostKeysSaid = 60;

// `text` short enough for a message.
std::string Shown(std::string_view text) { return OneLine(text, 60); }

// What stands at `node`, as messages say it after "got".
std::string Got(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kMap:
      return "a map";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kScalar:
      break;
  }
  if (node.quoted) return fmt::format("the text \"{}\"", Shown(node.text));
  const bool plain = ParseNumber(node.text).has_value() ||
                     node.text == "true" || node.text == "false";
  return plain ? node.text : fmt::format("\"{}\"", Shown(node.text));
}

// "; hint: 4" where what stands at `node` is another program's; else empty.
std::string ValueHint(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::kScalar) return "";
  const std::string path = internal::PathOf(node);
  const std::string_view instead = InsteadOfValue(
      std::string_view(path).substr(path.rfind('.') + 1), node.text);
  return instead.empty() ? "" : fmt::format("; hint: {}", instead);
}

std::string IntegerRange(int64_t min, int64_t max) {
  if (max == Reader::kNoLimit) {
    return fmt::format("an integer of at least {}", min);
  }
  return fmt::format("an integer from {} to {}", min, max);
}

std::string NumberRange(double min, double max) {
  const bool below = min > -Reader::kNoBound;
  const bool above = max < Reader::kNoBound;
  if (below && above) return fmt::format("a number from {} to {}", min, max);
  if (below) return fmt::format("a number of at least {}", min);
  if (above) return fmt::format("a number of at most {}", max);
  return "a finite number";
}

}  // namespace

std::vector<std::string> TextsOf(const YamlSetting& setting) {
  const internal::YamlDocument value =
      internal::ParseSetting(setting.path, setting.value, setting.origin);
  std::vector<std::string> texts;
  for (const YamlNode& node : value.nodes) {
    if (node.kind == YamlNode::Kind::kScalar) texts.push_back(node.text);
  }
  return texts;
}

Reader::Reader(std::shared_ptr<internal::YamlDocument> document, Node* node)
    : document_(std::move(document)), node_(node) {}

Reader Reader::FromFile(const std::string& path,
                        const std::vector<YamlSetting>& settings) {
  const std::string text = ReadTextFile(path, "a YAML file");
  std::optional<internal::YamlDocument> parsed = internal::FindParsed(text);
  if (!parsed) return FromText(text, path, settings);
  parsed->file = path;
  return FromDocument(*std::move(parsed), settings);
}

Reader Reader::FromText(std::string_view text,
                        const std::string& name,
                        const std::vector<YamlSetting>& settings) {
  internal::YamlDocument document;
  document.file = name;
  document.ends_in_line = !text.empty() && text.back() != '\n';
  internal::ParseYaml(std::string(text), document);
  return FromDocument(std::move(document), settings);
}

Reader Reader::FromDocument(internal::YamlDocument&& parsed,
                            const std::vector<YamlSetting>& settings) {
  auto document = std::make_shared<internal::YamlDocument>(std::move(parsed));
  Node& root = document->nodes.front();
  Reader reader(document, &root);
  if (root.kind != Node::Kind::kMap) {
    reader.FailAt(root,
                  fmt::format("expected a map of keys, got {}", Got(root)));
  }
  for (const YamlSetting& setting : settings) {
    internal::SetYaml(setting.path,
                      setting.value,
                      setting.origin,
                      setting.single_key,
                      *document);
  }
  return reader;
}

void Reader::Finish() const {
  for (const Node& node : document_->nodes) {
    for (size_t i = 0; i < node.entries.size(); ++i) {
      if (std::find(node.asked.begin(),
                    node.asked.end(),
                    node.entries[i].key) != node.asked.end()) {
        continue;
      }
      // What lies below a value that nobody opened is reported as that value.
      RefuseKey(node, i, model::NameViews(node.asked));
    }
  }
}

void Reader::RefuseKey(const Node& node,
                       size_t entry,
                       std::vector<std::string_view> known) const {
  const Node::Entry& refused = node.entries[entry];
  std::sort(known.begin(), known.end());
  const std::string_view instead = InsteadOfKey(refused.key, known);
  const std::string near = instead.empty()
                               ? model::DidYouMean(refused.key, known)
                               : fmt::format("; hint: {};", instead);
  const std::string path = internal::PathOf(node);
  const bool is_set = !refused.value->origin.empty();
  throw InputError(
      is_set ? refused.value->origin : file(),
      refused.line,
      refused.column,
      fmt::format(
          "{}{}unknown key \"{}\"{}{}{}",
          path,
          path.empty() ? "" : ": ",
          Shown(refused.key),
          near,
          near.empty() ? "; known: " : " known: ",
          known.empty() ? "none" : model::JoinNames(known, kMostKeysSaid)));
}

void Reader::ExpectKeys(const std::vector<std::string_view>& required,
                        const std::vector<std::string_view>& known) const {
  const auto missing =
      std::find_if(required.begin(), required.end(), [&](std::string_view key) {
        return Find(key) == nullptr;
      });
  if (missing == required.end()) return;
  for (size_t i = 0; i < node_->entries.size(); ++i) {
    const std::string_view key = node_->entries[i].key;
    const bool is_known =
        std::find(known.begin(), known.end(), key) != known.end();
    if (is_known || !model::Nearest(*missing, {key}, 1).empty()) continue;
    RefuseKey(*node_, i, known);
  }
}

Reader::Node* Reader::Find(std::string_view key) const {
  const bool asked = std::find(node_->asked.begin(), node_->asked.end(), key) !=
                     node_->asked.end();
  if (!asked) node_->asked.emplace_back(key);
  for (const Node::Entry& entry : node_->entries) {
    if (entry.key == key) return entry.value;
  }
  return nullptr;
}

Reader::Node& Reader::Require(std::string_view key,
                              std::string_view expected) const {
  Node* found = Find(key);
  if (found != nullptr) return *found;
  // A mistyped key stands there under another name, or that of another program.
  std::vector<std::string_view> others;
  for (const Node::Entry& entry : node_->entries) {
    if (std::find(node_->asked.begin(), node_->asked.end(), entry.key) ==
        node_->asked.end()) {
      others.emplace_back(entry.key);
    }
  }
  std::vector<std::string> nearest = model::Nearest(key, others, 1);
  for (const std::string_view other : others) {
    if (InsteadOfKey(other, std::span(&key, 1)).empty()) continue;
    nearest = {std::string(other)};
    break;
  }
  std::string hint;
  for (const Node::Entry& entry : node_->entries) {
    if (!nearest.empty() && entry.key == nearest.front()) {
      hint = fmt::format("; is \"{}\" at {}:{} meant?",
                         Shown(entry.key),
                         entry.line,
                         entry.column);
    }
  }
  Fail(fmt::format("missing key \"{}\", {}{}", key, expected, hint));
}

const Reader::Node& Reader::Scalar(std::string_view key,
                                   std::string_view expected) const {
  const Node& node = Require(key, expected);
  if (node.kind != Node::Kind::kScalar) {
    FailAt(node, fmt::format("expected {}, got {}", expected, Got(node)));
  }
  return node;
}

const Reader::Node& Reader::List(std::string_view key,
                                 std::string_view expected) const {
  const Node& node = Require(key, expected);
  if (node.kind != Node::Kind::kList) {
    FailAt(node, fmt::format("expected {}, got {}", expected, Got(node)));
  }
  return node;
}

const Reader::Node& Reader::ListOfScalars(std::string_view key,
                                          std::string_view expected) const {
  Node& node = Require(key, expected);
  if (node.kind == Node::Kind::kScalar && !node.quoted &&
      !node.origin.empty()) {
    internal::SplitAtCommas(node, *document_);
  }
  return List(key, expected);
}

bool Reader::EndsInLine() const { return document_->ends_in_line; }

bool Reader::Has(std::string_view key) const { return Find(key) != nullptr; }

bool Reader::IsMap(std::string_view key) const {
  const Node* node = Find(key);
  return node != nullptr && node->kind == Node::Kind::kMap;
}

bool Reader::IsList(std::string_view key) const {
  const Node* node = Find(key);
  return node != nullptr && node->kind == Node::Kind::kList;
}

bool Reader::IsText(std::string_view key) const {
  const Node* node = Find(key);
  return node != nullptr && node->kind == Node::Kind::kScalar;
}

std::vector<std::string> Reader::Keys() const {
  std::vector<std::string> keys;
  keys.reserve(node_->entries.size());
  for (const Node::Entry& entry : node_->entries) keys.push_back(entry.key);
  node_->asked = keys;
  return keys;
}

std::string Reader::TextOf(const Node& node, std::string_view expected) const {
  if (node.kind != Node::Kind::kScalar || node.text.empty()) {
    const std::string got =
        node.kind == Node::Kind::kScalar ? "an empty text" : Got(node);
    FailAt(node, fmt::format("expected {}, got {}", expected, got));
  }
  return node.text;
}

std::string Reader::Text(std::string_view key) const {
  return TextOf(Require(key, "a text"), "a text");
}

std::string Reader::Date(std::string_view key) const {
  constexpr std::string_view kExpected = R"(a date such as "2026-05-20")";
  const Node& node = Scalar(key, kExpected);
  if (!IsDate(node.text)) {
    FailAt(node, fmt::format("expected {}, got {}", kExpected, Got(node)));
  }
  return node.text;
}

bool Reader::Flag(std::string_view key) const {
  constexpr std::string_view kExpected = "true or false";
  const Node& node = Scalar(key, kExpected);
  if (!node.quoted && node.text == "true") return true;
  if (!node.quoted && node.text == "false") return false;
  FailAt(node,
         fmt::format(
             "expected {}, got {}{}", kExpected, Got(node), ValueHint(node)));
}

int64_t Reader::IntegerOf(const Node& node, int64_t min, int64_t max) const {
  const std::optional<int64_t> value =
      node.kind == Node::Kind::kScalar && !node.quoted ? ParseInteger(node.text)
                                                       : std::nullopt;
  if (!value || *value < min || *value > max) {
    FailAt(node,
           fmt::format("expected {}, got {}{}",
                       IntegerRange(min, max),
                       Got(node),
                       ValueHint(node)));
  }
  return *value;
}

double Reader::NumberOf(const Node& node, double min, double max) const {
  const std::optional<double> value =
      node.kind == Node::Kind::kScalar && !node.quoted ? ParseNumber(node.text)
                                                       : std::nullopt;
  if (!value || *value < min || *value > max) {
    FailAt(
        node,
        fmt::format("expected {}, got {}", NumberRange(min, max), Got(node)));
  }
  return *value;
}

int64_t Reader::Integer(std::string_view key, int64_t min, int64_t max) const {
  return IntegerOf(Require(key, IntegerRange(min, max)), min, max);
}

double Reader::Number(std::string_view key, double min, double max) const {
  return NumberOf(Require(key, NumberRange(min, max)), min, max);
}

template <class Q>
Q Reader::Quantity(std::string_view key, Sign sign) const {
  constexpr Dimension kDimension = DimensionOf<Q>();
  const std::string_view expected = Description(kDimension);
  const Node& node = Scalar(key, expected);
  const std::optional<double> base = ParseBase(kDimension, node.text);
  if (!base) {
    FailAt(node,
           fmt::format("expected {}, got {}{}",
                       expected,
                       Got(node),
                       UnitHint(kDimension, node.text)));
  }
  const bool in_range = sign == Sign::kPositive ? *base > 0.0 : *base >= 0.0;
  if (!in_range) {
    FailAt(node,
           fmt::format("expected {}, got {}; it must be {}",
                       expected,
                       Got(node),
                       sign == Sign::kPositive ? "above 0" : "0 or more"));
  }
  return Q(*base);
}

// Every type that has a text form.
template model::Bytes<> Reader::Quantity(std::string_view, Sign) const;
template model::BytesPerSecond<> Reader::Quantity(std::string_view, Sign) const;
template model::FlopsPerSecond<> Reader::Quantity(std::string_view, Sign) const;
template model::Seconds<> Reader::Quantity(std::string_view, Sign) const;
template model::Hertz<> Reader::Quantity(std::string_view, Sign) const;
template model::Watts<> Reader::Quantity(std::string_view, Sign) const;
template model::Joules<> Reader::Quantity(std::string_view, Sign) const;
template model::Usd<> Reader::Quantity(std::string_view, Sign) const;
template model::UsdPerSecond<> Reader::Quantity(std::string_view, Sign) const;

model::Bytes<> Reader::Bytes(std::string_view key, Sign sign) const {
  return Quantity<model::Bytes<>>(key, sign);
}
model::BytesPerSecond<> Reader::Bandwidth(std::string_view key,
                                          Sign sign) const {
  return Quantity<model::BytesPerSecond<>>(key, sign);
}
model::Seconds<> Reader::Time(std::string_view key, Sign sign) const {
  return Quantity<model::Seconds<>>(key, sign);
}
model::Hertz<> Reader::Frequency(std::string_view key, Sign sign) const {
  return Quantity<model::Hertz<>>(key, sign);
}
model::Watts<> Reader::Power(std::string_view key, Sign sign) const {
  return Quantity<model::Watts<>>(key, sign);
}
model::Joules<> Reader::Energy(std::string_view key, Sign sign) const {
  return Quantity<model::Joules<>>(key, sign);
}
model::Usd<> Reader::Money(std::string_view key, Sign sign) const {
  return Quantity<model::Usd<>>(key, sign);
}
model::UsdPerSecond<> Reader::Price(std::string_view key, Sign sign) const {
  return Quantity<model::UsdPerSecond<>>(key, sign);
}

std::optional<std::string> Reader::OptionalText(std::string_view key) const {
  return Has(key) ? std::optional(Text(key)) : std::nullopt;
}
std::optional<bool> Reader::OptionalFlag(std::string_view key) const {
  return Has(key) ? std::optional(Flag(key)) : std::nullopt;
}
std::optional<int64_t> Reader::OptionalInteger(std::string_view key,
                                               int64_t min,
                                               int64_t max) const {
  return Has(key) ? std::optional(Integer(key, min, max)) : std::nullopt;
}
std::optional<double> Reader::OptionalNumber(std::string_view key,
                                             double min,
                                             double max) const {
  return Has(key) ? std::optional(Number(key, min, max)) : std::nullopt;
}
std::optional<model::Bytes<>> Reader::OptionalBytes(std::string_view key,
                                                    Sign sign) const {
  return Has(key) ? std::optional(Bytes(key, sign)) : std::nullopt;
}
std::optional<model::BytesPerSecond<>> Reader::OptionalBandwidth(
    std::string_view key, Sign sign) const {
  return Has(key) ? std::optional(Bandwidth(key, sign)) : std::nullopt;
}
std::optional<model::UsdPerSecond<>> Reader::OptionalPrice(std::string_view key,
                                                           Sign sign) const {
  return Has(key) ? std::optional(Price(key, sign)) : std::nullopt;
}

Reader Reader::Map(std::string_view key) const {
  constexpr std::string_view kExpected = "a map of keys";
  Node& found = Require(key, kExpected);
  if (found.kind != Node::Kind::kMap) {
    FailAt(
        found,
        fmt::format(
            "expected {}, got {}{}", kExpected, Got(found), ValueHint(found)));
  }
  return {document_, &found};
}

std::optional<Reader> Reader::OptionalMap(std::string_view key) const {
  return Has(key) ? std::optional(Map(key)) : std::nullopt;
}

std::vector<Reader> Reader::Maps(std::string_view key) const {
  std::vector<Reader> maps;
  for (Node* item : List(key, "a list of maps").items) {
    if (item->kind != Node::Kind::kMap) {
      FailAt(*item, fmt::format("expected a map of keys, got {}", Got(*item)));
    }
    maps.push_back(Reader(document_, item));
  }
  return maps;
}

std::vector<std::string> Reader::Texts(std::string_view key) const {
  std::vector<std::string> texts;
  for (const Node* item : ListOfScalars(key, "a list of texts").items) {
    texts.push_back(TextOf(*item, "a text"));
  }
  return texts;
}

std::vector<int64_t> Reader::Integers(std::string_view key,
                                      int64_t min,
                                      int64_t max) const {
  std::vector<int64_t> values;
  for (const Node* item : ListOfScalars(key, "a list of integers").items) {
    values.push_back(IntegerOf(*item, min, max));
  }
  return values;
}

std::vector<double> Reader::Numbers(std::string_view key,
                                    double min,
                                    double max) const {
  std::vector<double> values;
  for (const Node* item : ListOfScalars(key, "a list of numbers").items) {
    values.push_back(NumberOf(*item, min, max));
  }
  return values;
}

std::vector<Reader> Reader::OptionalMaps(std::string_view key) const {
  return Has(key) ? Maps(key) : std::vector<Reader>();
}

std::vector<std::string> Reader::OptionalTexts(std::string_view key) const {
  return Has(key) ? Texts(key) : std::vector<std::string>();
}

void Reader::Fail(std::string_view key, std::string_view message) const {
  const Node* node = Find(key);
  if (node != nullptr) FailAt(*node, message);
  Fail(fmt::format("{}: {}", key, message));
}

void Reader::Fail(std::string_view message) const { FailAt(*node_, message); }

void Reader::FailAbout(std::string_view message) const {
  const Node* at = node_;
  std::string_view path = message.substr(0, message.find(": "));
  while (!path.empty()) {
    const size_t end = std::min(path.find('.'), path.size());
    const auto entry = std::find_if(
        at->entries.begin(), at->entries.end(), [&](const Node::Entry& one) {
          return one.key == path.substr(0, end);
        });
    if (entry == at->entries.end()) break;
    at = entry->value;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  throw InputError(at->origin.empty() ? file() : at->origin,
                   at->line,
                   at->column,
                   std::string(message));
}

const std::string& Reader::file() const { return document_->file; }

int Reader::line() const { return node_->line; }

bool Reader::IsSet(std::string_view key) const {
  const Node* node = Find(key);
  return node != nullptr && !node->origin.empty();
}

std::string Reader::Position(std::string_view key) const {
  const Node* node = Find(key);
  if (node == nullptr) node = node_;
  if (!node->origin.empty()) return node->origin;
  return fmt::format("{}:{}:{}", file(), node->line, node->column);
}

void Reader::FailAt(const Node& node, std::string_view message) const {
  const std::string path = internal::PathOf(node);
  throw InputError(
      node.origin.empty() ? file() : node.origin,
      node.line,
      node.column,
      fmt::format("{}{}{}", path, path.empty() ? "" : ": ", message));
}

void Reader::FailChoice(std::string_view key,
                        const std::vector<std::string_view>& known) const {
  const Node* node = Find(key);
  ENSURE(node != nullptr, "a choice that was read exists");
  const std::string hint = ValueHint(*node);
  FailAt(
      *node,
      fmt::format("expected one of {}, got {}{}",
                  model::JoinNames(known, kMostKeysSaid),
                  Got(*node),
                  hint.empty() ? model::DidYouMean(node->text, known) : hint));
}

}  // namespace trainfare::hardware
