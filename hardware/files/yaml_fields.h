#pragma once

// The fields of model/fields.h out of one map of a YAML file, whose errors have
// their position.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "hardware/files/yaml_reader.h"
#include "model/error.h"
#include "model/fields.h"

namespace trainfare::hardware {

class YamlFieldReader {
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
    if constexpr (std::is_enum_v<T>) {
      value = map_.Parsed(field.name, model::FromText<T>);
    } else if constexpr (model::HasWords<T>) {
      const std::vector<std::string> words = map_.Texts(field.name);
      if (words.empty()) {
        map_.Fail(field.name, "expected at least one word, got none");
      }
      try {
        FromWords(words, value);
      } catch (const model::InputError& error) {
        map_.Fail(field.name, error.what());
      }
    } else if constexpr (std::is_same_v<T, bool>) {
      value = map_.Flag(field.name);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      value = map_.Integer(field.name, field.least, field.most);
    } else if constexpr (std::is_same_v<T, double>) {
      value = map_.Number(field.name, field.low, field.high);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = map_.Text(field.name);
    } else {
      const Reader inner_map = map_.Map(field.name);
      YamlFieldReader inner(inner_map, apart_);
      VisitFields(inner, value);
    }
  }

 private:
  const Reader& map_;
  std::vector<std::string_view> apart_;
};

}  // namespace trainfare::hardware
