#pragma once

// Enumerators as the words of files and flags: one table an enum, that stands
// beside it.

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "model/error.h"

namespace trainfare::model {

template <class Enum>
struct Word {
  Enum value;
  std::string_view text;
};

template <class Enum, std::size_t kCount>
struct WordTable {
  std::string_view what;  // that the words name, as messages say it
  std::array<Word<Enum>, kCount> words;
};

template <class Enum, std::size_t kCount>
consteval WordTable<Enum, kCount> Words(std::string_view what,
                                        const Word<Enum> (&words)[kCount]) {
  return {what, std::to_array(words)};
}

// The table of an enum: specialised for each that has words.
template <class Enum>
inline constexpr auto kWords = nullptr;

template <class Enum>
concept HasWordTable =
    !std::is_same_v<std::remove_cvref_t<decltype(kWords<Enum>)>,
                    std::nullptr_t>;

template <HasWordTable Enum>
std::string_view ToText(Enum value) {
  for (const Word<Enum>& word : kWords<Enum>.words) {
    if (word.value == value) return word.text;
  }
  ENSURE(false, "an enumerator without a word");
}

// Throws InputError that lists the known words.
template <HasWordTable Enum>
Enum FromText(std::string_view text) {
  std::string known;
  for (const Word<Enum>& word : kWords<Enum>.words) {
    if (word.text == text) return word.value;
    if (!known.empty()) known += ", ";
    known += word.text;
  }
  throw InputError(fmt::format(
      "unknown {} \"{}\"; known: {}", kWords<Enum>.what, text, known));
}

}  // namespace trainfare::model
