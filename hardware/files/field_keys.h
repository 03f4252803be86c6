#pragma once

// Lists of fields (model/fields.h) as what a person may write in a file: a row
// for each key.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "hardware/files/unit_text.h"
#include "model/fields.h"

namespace trainfare::hardware {

struct FieldKey {
  std::string path;  // "parallel.shard"
  // flag, count, number, text, list, word, words, quantity, map, or form: one
  // of several.
  std::string type;
  std::string words;  // that it may be, or its forms
  std::string least;  // numbers, in the base unit; empty: no bound
  std::string most;
  std::string unit;
  bool required = false;  // of its map
  std::string value;      // where the file says nothing; empty: none
  std::string about;
};

// A value with a form of its own says which, "FormOf(value)"; its default, if
// any, is "ToText(value)".
template <class T>
concept HasForm = requires(const T& value) {
  FormOf(value);
};

template <class Enum>
std::string JoinedWords() {
  std::string joined;
  for (const auto& word : model::kWords<Enum>.words) {
    joined += fmt::format("{}{}", joined.empty() ? "" : ", ", word.text);
  }
  return joined;
}

// The archive that makes them, of a value that has the defaults.
class FieldKeyLister {
 public:
  // Appends to `keys`; `prefix` stands before each path.
  explicit FieldKeyLister(std::vector<FieldKey>& keys,
                          std::string prefix = "",
                          std::vector<std::string_view> apart = {})
      : keys_(keys), prefix_(std::move(prefix)), apart_(std::move(apart)) {}

  template <class T>
  void operator()(const model::Field& field, const T& value) {
    if (std::find(apart_.begin(), apart_.end(), field.name) != apart_.end()) {
      return;
    }
    if constexpr (model::kIsOptional<T>) {
      Add(field, value.value_or(typename T::value_type()));
      if (!value) keys_[added_].value.clear();
    } else {
      Add(field, value);
    }
  }

  // As YamlFieldReader has it.
  FieldKeyLister Without(std::vector<std::string_view> apart) const {
    return FieldKeyLister(keys_, prefix_, std::move(apart));
  }

 private:
  template <class T>
  void Add(const model::Field& field, const T& value) {
    added_ = keys_.size();
    FieldKey& key = keys_.emplace_back();
    key.path = fmt::format("{}{}", prefix_, field.name);
    key.about = field.about;
    key.required = field.required;
    if constexpr (HasForm<T>) {
      key.type = "form";
      key.words = FormOf(value);
      if constexpr (requires { ToText(value); }) key.value = ToText(value);
    } else if constexpr (std::is_enum_v<T>) {
      key.type = "word";
      key.words = JoinedWords<T>();
      key.value = ToText(value);
    } else if constexpr (std::is_same_v<T, model::LoraMatrices>) {
      key.type = "words";
      key.words = fmt::format("{}", fmt::join(model::LoraMatrixNames(), ", "));
    } else if constexpr (std::is_same_v<T, bool>) {
      key.type = "flag";
      key.value = value ? "true" : "false";
    } else if constexpr (std::is_same_v<T, int64_t>) {
      SetRange("count",
               std::max(field.least, field.least_asked),
               field.most,
               value,
               key);
    } else if constexpr (std::is_same_v<T, double>) {
      SetRange("number", field.low, field.high, value, key);
    } else if constexpr (model::IsQuantity<T>) {
      SetQuantity(field, value, key);
    } else if constexpr (std::is_same_v<T, std::string>) {
      key.type = "text";
      key.value = value;
    } else if constexpr (model::kIsList<T>) {
      key.type = "list";
    } else {
      key.type = "map";
      FieldKeyLister inner(keys_, fmt::format("{}.", key.path), apart_);
      VisitFields(inner, value);
    }
    if (field.required) keys_[added_].value.clear();
  }

  // A default out of range stands for one that follows from other fields.
  template <class Number>
  static void SetRange(std::string_view type,
                       Number least,
                       Number most,
                       Number value,
                       FieldKey& key) {
    key.type = type;
    key.least = fmt::format("{}", least);
    key.most = fmt::format("{}", most);
    if (value >= least && value <= most) key.value = fmt::format("{}", value);
  }

  template <class Q>
  static void SetQuantity(const model::Field& field,
                          const Q& value,
                          FieldKey& key) {
    key.type = "quantity";
    key.unit = BaseUnit(DimensionOf<Q>());
    if (field.least_base > 0.0 || field.may_be_zero) {
      key.least = fmt::format("{}", field.least_base);
    }
    if (field.most_base < std::numeric_limits<double>::infinity()) {
      key.most = fmt::format("{}", field.most_base);
    }
    if (value.base() > 0.0 || field.may_be_zero) {
      key.value = fmt::format("{} {}", value.base(), key.unit);
    }
  }

  std::vector<FieldKey>& keys_;
  std::string prefix_;
  std::vector<std::string_view> apart_;
  size_t added_ = 0;  // the key of the field, before those of its struct
};

}  // namespace trainfare::hardware
