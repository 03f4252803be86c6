#pragma once

// A field of a struct that files have, as archives get it.
//
//   struct Archive {
//     template <class T> void operator()(const Field& field, T& value);
//   };
//
// An archive gets every field in order: a number, a text, a flag, a word (an
// enum), words (LoraMatrices), or a struct with fields of its own; of some also
// a quantity, an optional, a list. A reading archive keeps the value of what
// its file leaves out, and has a member type `Reads`. Archives: JsonFieldReader
// and JsonFieldWriter (model/json_fields.h), YamlFieldReader and
// YamlFieldWriter (hardware/files/yaml_fields.h), FieldKeyLister
// (hardware/files/field_keys.h), FieldTexts() (model/fields.h).

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "model/limits.h"

namespace trainfare::model {

struct Field {
  std::string_view name;
  std::string_view about = {};  // one line, for `trainfare list keys`
  bool required = false;        // of a file that is read
  int64_t least = 0;            // of a count, inclusive
  int64_t most = kLargestDimension;
  // Of a count whose 0 says that there is no such thing, which a person says by
  // leaving the key out.
  int64_t least_asked = 0;
  double low = 0.0;  // of a number, inclusive
  double high = 1.0;
  // A quantity's bounds in base units, inclusive; above 0 unless it may be 0.
  double least_base = 0.0;
  double most_base = std::numeric_limits<double>::infinity();
  bool may_be_zero = false;
  // How it is written: a struct on one line; what stands above the field, for
  // whoever reads the file.
  std::string_view json = {};  // its name in JSON, where that has its unit
  bool one_line = false;
  bool plain = false;  // a text that is a word of ours, and needs no quotes
  std::string_view comment = {};
};

inline std::string NameInJson(const Field& field) {
  return std::string(field.json.empty() ? field.name : field.json);
}

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;

template <class T>
concept IsQuantity = requires(const T& value) {
  typename T::Scalar;
  value.base();
};

template <class T>
concept HasWords = requires(const T& value) {
  ToWords(value);
};

template <class Archive>
concept ReadingArchive = requires {
  typename Archive::Reads;
};

// T or const T, as an archive reads or writes.
template <class T, class Struct>
concept Of = std::same_as<std::remove_const_t<T>, Struct>;

}  // namespace trainfare::model
