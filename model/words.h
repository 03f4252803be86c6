#pragma once

// Enumerators as the words of files and flags: one table an enum, that stands
// beside it, and what other programs call the same.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "model/error.h"
#include "model/letters.h"

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

// A word of other programs that is none of ours alone, in small letters, and
// what to write in its place.
struct WordHint {
  std::string_view text;
  std::string_view hint;
};

// What other programs call the enumerators, in small letters: read as they,
// never written or listed. Specialised for those that have such names.
template <class Enum>
inline constexpr auto kWordAliases = std::array<Word<Enum>, 0>();
template <class Enum>
inline constexpr auto kWordHints = std::array<WordHint, 0>();

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

// By its word or an alias, whose letter case does not count; nullopt: neither.
template <HasWordTable Enum>
std::optional<Enum> TryFromText(std::string_view text) {
  const auto& words = kWords<Enum>.words;
  // Most words are written as they stand there.
  for (const Word<Enum>& word : words) {
    if (word.text == text) return word.value;
  }
  const std::string lowered = Lowered(text);
  const auto of_lowered = [&](const Word<Enum>& word) {
    return Lowered(word.text) == lowered;
  };
  const auto word = std::find_if(words.begin(), words.end(), of_lowered);
  if (word != words.end()) return word->value;
  const auto& aliases = kWordAliases<Enum>;
  const auto alias = std::find_if(aliases.begin(), aliases.end(), of_lowered);
  if (alias != aliases.end()) return alias->value;
  return std::nullopt;
}

// "; hint: fp16 or bf16" for the end of a message; empty where there is none.
template <HasWordTable Enum>
std::string HintFor(std::string_view text) {
  const std::string lowered = Lowered(text);
  for (const WordHint& word : kWordHints<Enum>) {
    if (word.text == lowered) return fmt::format("; hint: {}", word.hint);
  }
  return "";
}

// Throws InputError that lists the known words.
template <HasWordTable Enum>
Enum FromText(std::string_view text) {
  if (const std::optional<Enum> known = TryFromText<Enum>(text)) return *known;
  std::string known;
  for (const Word<Enum>& word : kWords<Enum>.words) {
    if (!known.empty()) known += ", ";
    known += word.text;
  }
  throw InputError(fmt::format("unknown {} \"{}\"; known: {}{}",
                               kWords<Enum>.what,
                               text,
                               known,
                               HintFor<Enum>(text)));
}

}  // namespace trainfare::model
