#pragma once

// Lists of fields (model/fields.h) out of one map of a YAML file, whose errors
// have their position, and as the text of one.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "hardware/files/unit_text.h"
#include "hardware/files/yaml_reader.h"
#include "hardware/files/yaml_text.h"
#include "model/error.h"
#include "model/fields.h"

namespace trainfare::hardware {

// A number whose unit is not known before the program runs: "1", or one of the
// base units (BaseUnit).
template <class Number>
struct InUnit {
  Number& value;
  std::string_view unit;
};
template <class Number>
InUnit(Number&, std::string_view) -> InUnit<Number>;
template <class T>
inline constexpr bool kIsInUnit = false;
template <class Number>
inline constexpr bool kIsInUnit<InUnit<Number>> = true;

// Whether a value is one word, number or list of these, and no struct.
template <class T>
inline constexpr bool kIsScalar =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || model::IsQuantity<T> ||
    std::is_same_v<T, std::string> || kIsInUnit<T> || model::HasWords<T>;

// A value with a form of its own: "ReadValue(map, key, value)".
template <class T>
concept ReadsItself = requires(const Reader& map, std::string_view key, T& t) {
  ReadValue(map, key, t);
};

// The same as a YamlFieldWriter has it: "YamlText(value)", on the key's line.
template <class T>
concept WritesItself = requires(const T& value) {
  YamlText(value);
};

class YamlFieldReader {
  // The archive of a struct's keys, and of those that its map must have.
  struct KeysOf {
    const std::vector<std::string_view>& apart;
    std::vector<std::string_view> known = {};
    std::vector<std::string_view> required = {};

    template <class T>
    void operator()(const model::Field& field, const T&) {
      known.push_back(field.name);
      const bool is_apart =
          std::find(apart.begin(), apart.end(), field.name) != apart.end();
      if (field.required && !is_apart) required.push_back(field.name);
    }
  };

 public:
  using Reads = void;

  // `apart`: fields that the file has in another form, or not at all.
  explicit YamlFieldReader(const Reader& map,
                           std::vector<std::string_view> apart = {})
      : map_(map), apart_(std::move(apart)) {}

  template <class T>
  void operator()(const model::Field& field, T& value) {
    if (std::find(apart_.begin(), apart_.end(), field.name) != apart_.end()) {
      return;
    }
    if (!field.required && !map_.Has(field.name)) return;
    if constexpr (model::kIsOptional<T>) {
      Read(field, value.emplace());
    } else {
      Read(field, value);
    }
  }

  // For a map that lacks a field of `value`'s that it must have: throws at a
  // key that is none of them (Reader::ExpectKeys).
  template <class T>
  static void ExpectFields(const Reader& map,
                           const T& value,
                           const std::vector<std::string_view>& apart = {}) {
    KeysOf keys{apart};
    VisitFields(keys, value);
    map.ExpectKeys(keys.required, keys.known);
  }

  // The same archive of the same file, but for these fields.
  YamlFieldReader Without(std::vector<std::string_view> apart) const {
    return YamlFieldReader(map_, std::move(apart));
  }

  // For what a list of fields checks itself: throws at the value of `key`.
  [[noreturn]] void Fail(std::string_view key, std::string_view message) const {
    map_.Fail(key, message);
  }

 private:
  template <class T>
  void Read(const model::Field& field, T& value) {
    if constexpr (ReadsItself<T>) {
      ReadValue(map_, field.name, value);
    } else if constexpr (model::kIsList<T>) {
      ReadList(field, value);
    } else if constexpr (kIsScalar<T>) {
      ReadScalar(field, value);
    } else {
      ReadStruct(map_.Map(field.name), value);
    }
  }

  template <class T>
  void ReadStruct(const Reader& map, T& value) {
    ExpectFields(map, std::as_const(value), apart_);
    YamlFieldReader inner(map, apart_);
    VisitFields(inner, value);
  }

  template <class T>
  void ReadList(const model::Field& field, std::vector<T>& values) {
    if constexpr (std::is_same_v<T, std::string>) {
      values = map_.Texts(field.name);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      values = map_.Integers(field.name, field.least, field.most);
    } else if constexpr (std::is_same_v<T, double>) {
      values = map_.Numbers(field.name, field.low, field.high);
    } else {
      values.clear();
      for (const Reader& map : map_.Maps(field.name)) {
        ReadStruct(map, values.emplace_back());
      }
    }
  }

  template <class T>
  void ReadScalar(const model::Field& field, T& value) {
    if constexpr (std::is_enum_v<T>) {
      value = map_.Parsed(field.name, model::FromText<T>);
    } else if constexpr (model::HasWords<T>) {
      ReadWords(field, value);
    } else if constexpr (std::is_same_v<T, bool>) {
      value = map_.Flag(field.name);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      value = map_.Integer(field.name, field.least, field.most);
    } else if constexpr (std::is_same_v<T, double>) {
      value = map_.Number(field.name, field.low, field.high);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = map_.Text(field.name);
    } else if constexpr (kIsInUnit<T>) {
      value.value = ReadInUnit(field, value.unit);
    } else {
      value = ReadQuantity<T>(field);
    }
  }

  template <class T>
  void ReadWords(const model::Field& field, T& value) {
    // A setting has them as any list.
    const bool is_one = map_.IsText(field.name) && !map_.IsSet(field.name);
    const std::vector<std::string> words =
        is_one ? std::vector{map_.Text(field.name)} : map_.Texts(field.name);
    if (words.empty()) {
      map_.Fail(field.name, "expected at least one word, got none");
    }
    try {
      FromWords(words, value);
    } catch (const model::InputError& error) {
      map_.Fail(field.name, error.what());
    }
  }

  template <class Q>
  Q ReadQuantity(const model::Field& field) const {
    const Q value =
        map_.Quantity<Q>(field.name,
                         field.may_be_zero ? Reader::Sign::kZeroOrMore
                                           : Reader::Sign::kPositive);
    if (value.base() < field.least_base || value.base() > field.most_base) {
      map_.Fail(field.name,
                fmt::format("expected {:g} to {:g} {}, got {:g}; is the "
                            "prefix right?",
                            field.least_base,
                            field.most_base,
                            BaseUnit(DimensionOf<Q>()),
                            value.base()));
    }
    return value;
  }

  double ReadInUnit(const model::Field& field, std::string_view unit) const {
    if (unit == "1") return map_.Number(field.name, 0.0, Reader::kNoBound);
    if (unit == "s") return ReadQuantity<model::Seconds<>>(field).base();
    if (unit == "B/s") {
      return ReadQuantity<model::BytesPerSecond<>>(field).base();
    }
    ENSURE(false, "a unit of a number that files do not know");
  }

  const Reader& map_;
  std::vector<std::string_view> apart_;
};

// Reads those fields that a map has over values that are there already: none
// has a default, and none must be given.
class YamlFieldChanger {
 public:
  explicit YamlFieldChanger(const Reader& map) : map_(map), reader_(map) {}

  template <class T>
  void operator()(const model::Field& field, T& value) {
    if (map_.Has(field.name)) reader_(field, value);
  }

 private:
  const Reader& map_;
  YamlFieldReader reader_;
};

// Writes what YamlFieldReader reads back as the same value: every number in the
// fewest digits that tell it. A field that a file need not have is left out
// where it is empty: absent, "", [], false, 0, a count at its least.
class YamlFieldWriter {
 public:
  // Appends to `out` lines that begin with `indent`.
  explicit YamlFieldWriter(std::string& out, std::string indent = "")
      : out_(out), indent_(std::move(indent)) {}

  template <class T>
  void operator()(const model::Field& field, const T& value) {
    if (!field.required && IsEmpty(field, value)) return;
    Comment(field.comment);
    if constexpr (model::kIsOptional<T>) {
      Write(field, *value);
    } else {
      Write(field, value);
    }
  }

  // "{ low: 1, high: 2 }", for a key that is a name and no field.
  template <class T>
  static std::string Flow(const T& value) {
    OneLine line;
    VisitFields(line, value);
    return fmt::format("{{ {} }}", line.text);
  }

  // The items of a list, whose first line is marked.
  static YamlFieldWriter Item(std::string& out, const std::string& indent) {
    YamlFieldWriter item(out, indent + "  ");
    item.first_ = indent + "- ";
    return item;
  }

 private:
  template <class T>
  static bool IsEmpty(const model::Field& field, const T& value) {
    if constexpr (model::kIsOptional<T>) {
      return !value.has_value();
    } else if constexpr (requires { value.empty(); }) {
      return value.empty();
    } else if constexpr (std::is_same_v<T, bool>) {
      return !value;
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return value == field.least;
    } else if constexpr (std::is_same_v<T, double>) {
      return value == 0.0;
    } else if constexpr (model::IsQuantity<T>) {
      return value.base() == 0.0;
    } else {
      return false;
    }
  }

  template <class T>
  static std::string Scalar(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return std::string(ToText(value));
    } else if constexpr (std::is_same_v<T, std::string>) {
      return Quoted(value);
    } else if constexpr (kIsInUnit<T>) {
      return value.unit == "1" ? fmt::format("{}", value.value)
                               : fmt::format("{} {}", value.value, value.unit);
    } else if constexpr (model::IsQuantity<T>) {
      return fmt::format("{} {}", value.base(), BaseUnit(DimensionOf<T>()));
    } else if constexpr (model::HasWords<T>) {
      return List(ToWords(value));
    } else {
      return fmt::format("{}", value);
    }
  }
  template <class T>
  static std::string List(const std::vector<T>& values) {
    std::string text;
    for (const T& value : values) {
      text += text.empty() ? "" : ", ";
      if constexpr (kIsScalar<T>) {
        text += Scalar(value);
      } else {
        text += Flow(value);
      }
    }
    return fmt::format("[{}]", text);
  }

  // A struct on one line, and all within it.
  struct OneLine {
    std::string text;

    template <class T>
    void operator()(const model::Field& field, const T& value) {
      if (!field.required && IsEmpty(field, value)) return;
      text += fmt::format("{}{}: {}",
                          text.empty() ? "" : ", ",
                          field.name,
                          Inline(field, value));
    }
  };
  template <class T>
  static std::string Inline(const model::Field& field, const T& value) {
    if constexpr (WritesItself<T>) {
      return YamlText(value);
    } else if constexpr (model::kIsOptional<T>) {
      return Inline(field, *value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      return field.plain ? value : Quoted(value);
    } else if constexpr (model::kIsList<T>) {
      return List(value);
    } else if constexpr (kIsScalar<T>) {
      return Scalar(value);
    } else {
      return Flow(value);
    }
  }

  template <class T>
  void Write(const model::Field& field, const T& value) {
    if constexpr (model::kIsList<T>) {
      WriteList(field, value);
    } else if constexpr (kIsScalar<T> || WritesItself<T>) {
      Line(field.name, Inline(field, value));
    } else if (field.one_line) {
      Line(field.name, Flow(value));
    } else {
      Line(field.name, "");
      YamlFieldWriter inner(out_, indent_ + "  ");
      VisitFields(inner, value);
    }
  }

  template <class T>
  void WriteList(const model::Field& field, const std::vector<T>& values) {
    if constexpr (kIsScalar<T>) {
      Line(field.name, List(values));
    } else if (values.empty()) {
      Line(field.name, "[]");
    } else {
      Line(field.name, "");
      for (const T& value : values) WriteItem(field, value);
    }
  }
  template <class T>
  void WriteItem(const model::Field& field, const T& value) {
    if (field.one_line) {
      out_ += fmt::format("{}  - {}\n", indent_, Flow(value));
      return;
    }
    YamlFieldWriter item = Item(out_, indent_ + "  ");
    VisitFields(item, value);
  }

  void Line(std::string_view key, const std::string& value) {
    out_ += fmt::format("{}{}:{}{}\n",
                        first_.empty() ? indent_ : first_,
                        key,
                        value.empty() ? "" : " ",
                        value);
    first_.clear();
  }
  // A line of it is one of the file.
  void Comment(std::string_view text) {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      out_ += fmt::format("{}# {}\n", indent_, text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
  }

  std::string& out_;
  std::string indent_;
  std::string first_;  // what the first line begins with, if not the indent
};

}  // namespace trainfare::hardware
