#pragma once

// Enumerators as the words of files and flags: one table an enum.

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "model/error.h"

namespace trainfare::model::internal {

template <class Enum, std::size_t kCount>
using EnumNames = std::array<std::pair<Enum, std::string_view>, kCount>;

template <class Enum, std::size_t kCount>
std::string_view EnumName(Enum value, const EnumNames<Enum, kCount>& names) {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) return name;
  }
  ENSURE(false, "an enumerator without a name");
}

// Throws InputError that lists the known words.
template <class Enum, std::size_t kCount>
Enum EnumFromName(std::string_view text,
                  const EnumNames<Enum, kCount>& names,
                  std::string_view what) {
  std::string known;
  for (const auto& [value, name] : names) {
    if (name == text) return value;
    if (!known.empty()) known += ", ";
    known += name;
  }
  throw InputError(
      fmt::format("unknown {} \"{}\"; known: {}", what, text, known));
}

}  // namespace trainfare::model::internal
