#pragma once

// Strict reading of YAML files.
//
//   Reader root = Reader::FromFile(path);
//   device.vendor = root.Text("vendor");
//   Reader memory = root.Map("memory");
//   device.memory_bandwidth = memory.Bandwidth("bandwidth");
//   device.cuts = root.OptionalFlag("cuts");
//   root.Finish();  // here and nowhere else: keys that nobody asked for
//
// Every failure is an InputError "file:line:col: path.to.key: expected X, got
// Y; hint". Refused at once: malformed YAML, an empty file, duplicate keys,
// anchors, tags, several documents; when asked for: a missing key, a wrong
// type, NaN and Inf, a value out of range, a wrong or absent unit.
//
// A Reader stands for one map of the file and is cheap to copy. Asking for a
// key, also by Has(), makes it known to Finish(), which looks at the whole
// file: maps and lists read through Map() and Maps() need no Finish() of their
// own.

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/units.h"

namespace trainfare::hardware {

namespace internal {
struct YamlNode;
struct YamlDocument;
}  // namespace internal

// A value that somebody sets from outside of the file, in place of what stands
// there or beside it.
struct YamlSetting {
  std::string path;    // "dataset.train"
  std::string value;   // YAML of one line: "1000", "{ static: 128 }"
  std::string origin;  // begins the messages about it: "--set"
  // The key under which a single value that stands where the path needs a map
  // stays in that map ("of", of "model: gpt2"); empty: there can be none.
  std::string single_key = "";
};

// Every text that the value of a setting has in it, as a reader gets it: without
// quotes, escapes read. Throws InputError where it is no YAML, or nothing.
std::vector<std::string> TextsOf(const YamlSetting& setting);

class Reader {
 public:
  // The top of the file must be a map.
  static Reader FromFile(const std::string& path,
                         const std::vector<YamlSetting>& settings = {});
  // `name` stands for the file in messages.
  static Reader FromText(std::string_view text,
                         const std::string& name,
                         const std::vector<YamlSetting>& settings = {});

  // Throws when a map anywhere in the file has a key that was not asked for.
  void Finish() const;
  // For a map of `known` keys that lacks one of `required`: throws at another
  // that is none of them and is not the missing one mistyped, which the reading
  // of that one says.
  void ExpectKeys(const std::vector<std::string_view>& required,
                  const std::vector<std::string_view>& known) const;

  // --- what stands there ---
  // The last line of the file has no end: it may be cut off.
  bool EndsInLine() const;
  bool Has(std::string_view key) const;     // present, also as "key:" alone
  bool IsMap(std::string_view key) const;   // false too when absent
  bool IsList(std::string_view key) const;  // false too when absent
  bool IsText(std::string_view key) const;  // one scalar
  // The keys in file order, all known from here on: for maps whose keys are
  // names and not words of the schema.
  std::vector<std::string> Keys() const;

  // --- one value ---
  std::string Text(std::string_view key) const;  // not empty
  std::string Date(std::string_view key) const;  // 2026-05-20
  bool Flag(std::string_view key) const;         // true or false
  // Bounds inclusive.
  int64_t Integer(std::string_view key, int64_t min, int64_t max) const;
  double Number(std::string_view key, double min, double max) const;
  // Greater than 0; pass kZeroOrMore where 0 has a meaning.
  enum class Sign { kPositive, kZeroOrMore };
  // Any quantity that has a text form (unit_text.h).
  template <class Q>
  Q Quantity(std::string_view key, Sign = Sign::kPositive) const;
  model::Bytes<> Bytes(std::string_view key, Sign = Sign::kPositive) const;
  model::BytesPerSecond<> Bandwidth(std::string_view key,
                                    Sign = Sign::kPositive) const;
  model::Seconds<> Time(std::string_view key, Sign = Sign::kPositive) const;
  model::Hertz<> Frequency(std::string_view key, Sign = Sign::kPositive) const;
  model::Watts<> Power(std::string_view key, Sign = Sign::kPositive) const;
  model::Joules<> Energy(std::string_view key, Sign = Sign::kPositive) const;
  model::Usd<> Money(std::string_view key, Sign = Sign::kPositive) const;
  model::UsdPerSecond<> Price(std::string_view key,
                              Sign = Sign::kPositive) const;
  // One of named values: Choice<Kind>("kind", {{"cpu", Kind::kCpu}, ...}).
  template <class T>
  T Choice(std::string_view key,
           std::span<const std::pair<std::string_view, T>> choices) const;
  template <class T>
  T Choice(
      std::string_view key,
      std::initializer_list<std::pair<std::string_view, T>> choices) const {
    return Choice<T>(key, std::span(choices.begin(), choices.size()));
  }
  // Text through a function that throws InputError without a position, which
  // is added: Parsed("precision", model::FromText<model::Precision>).
  template <class Parse>
  auto Parsed(std::string_view key, Parse parse) const;

  // --- the same, nullopt when the key is absent ---
  std::optional<std::string> OptionalText(std::string_view key) const;
  std::optional<bool> OptionalFlag(std::string_view key) const;
  std::optional<int64_t> OptionalInteger(std::string_view key,
                                         int64_t min,
                                         int64_t max) const;
  std::optional<double> OptionalNumber(std::string_view key,
                                       double min,
                                       double max) const;
  std::optional<model::Bytes<>> OptionalBytes(std::string_view key,
                                              Sign = Sign::kPositive) const;
  std::optional<model::BytesPerSecond<>> OptionalBandwidth(
      std::string_view key, Sign = Sign::kPositive) const;
  std::optional<model::UsdPerSecond<>> OptionalPrice(
      std::string_view key, Sign = Sign::kPositive) const;

  // --- maps and lists ---
  Reader Map(std::string_view key) const;
  std::optional<Reader> OptionalMap(std::string_view key) const;
  // A list of maps, of texts, of numbers; an empty list [] is empty. Of texts
  // and numbers a setting may have commas alone: "query,value".
  std::vector<Reader> Maps(std::string_view key) const;
  std::vector<std::string> Texts(std::string_view key) const;
  std::vector<int64_t> Integers(std::string_view key,
                                int64_t min,
                                int64_t max) const;
  std::vector<double> Numbers(std::string_view key,
                              double min,
                              double max) const;
  // Absent: empty.
  std::vector<Reader> OptionalMaps(std::string_view key) const;
  std::vector<std::string> OptionalTexts(std::string_view key) const;

  // --- one's own checks ---
  // Throws at the value of `key`, or at its map when it has none.
  [[noreturn]] void Fail(std::string_view key, std::string_view message) const;
  // Throws at this map.
  [[noreturn]] void Fail(std::string_view message) const;
  // A message that begins with the path of a key ("trainable.lora.rank:
  // expected ..."), at that key, or at the innermost of its maps that is there.
  [[noreturn]] void FailAbout(std::string_view message) const;
  const std::string& file() const;
  int line() const;  // of this map, from 1
  // Whether a setting says the value, and not the file.
  bool IsSet(std::string_view key) const;
  // "file:line:col" of the value of `key`, for messages written later.
  std::string Position(std::string_view key) const;

  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  static constexpr double kNoBound = std::numeric_limits<double>::max();

 private:
  using Node = internal::YamlNode;

  static Reader FromDocument(internal::YamlDocument&& parsed,
                             const std::vector<YamlSetting>& settings);
  Reader(std::shared_ptr<internal::YamlDocument> document, Node* node);
  Node* Find(std::string_view key) const;  // nullptr: absent
  Node& Require(std::string_view key, std::string_view expected) const;
  const Node& Scalar(std::string_view key, std::string_view expected) const;
  const Node& List(std::string_view key, std::string_view expected) const;
  const Node& ListOfScalars(std::string_view key,
                            std::string_view expected) const;
  int64_t IntegerOf(const Node& node, int64_t min, int64_t max) const;
  double NumberOf(const Node& node, double min, double max) const;
  std::string TextOf(const Node& node, std::string_view expected) const;
  [[noreturn]] void FailAt(const Node& node, std::string_view message) const;
  [[noreturn]] void RefuseKey(const Node& node,
                              size_t entry,
                              std::vector<std::string_view> known) const;
  [[noreturn]] void FailChoice(
      std::string_view key, const std::vector<std::string_view>& known) const;

  std::shared_ptr<internal::YamlDocument> document_;
  Node* node_;  // not const: it remembers which keys were asked for
};

template <class T>
T Reader::Choice(
    std::string_view key,
    std::span<const std::pair<std::string_view, T>> choices) const {
  const std::string text = Text(key);
  std::vector<std::string_view> known;
  for (const auto& [name, value] : choices) {
    if (name == text) return value;
    known.push_back(name);
  }
  FailChoice(key, known);
}

template <class Parse>
auto Reader::Parsed(std::string_view key, Parse parse) const {
  const std::string text = Text(key);
  try {
    return std::invoke(parse, text);
  } catch (const model::InputError& error) {
    Fail(key, error.what());
  }
}

}  // namespace trainfare::hardware
