#pragma once

// What words of a table's cells say, and what they deny.

#include <algorithm>
#include <string>
#include <string_view>

namespace trainfare::calibrate {

inline bool Contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

template <class Words>
inline bool ContainsAny(std::string_view text, const Words& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return Contains(text, word);
  });
}

// Whether `text` has `word` and does not deny it there: "no flash attention",
// "w/o torch.compile", "use_liger_kernel=False" (`denials` of tables.yaml).
// Both in lower case; '-', '_' and blanks are one, and a word that begins or
// ends with a blank does so in `text`.
bool Says(std::string_view text, std::string_view word);

template <class Words>
inline bool SaysAny(std::string_view text, const Words& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return Says(text, word);
  });
}

// Words of cells as one text in lower case, in which a blank stands around each
// word and each mark: "ZeRO_stage=3; TP" is " zero stage 3 ; tp ".
std::string WordsApart(std::string_view cells);

// Whether such a text has these words, whole, and does not deny them there.
bool SaysWhole(std::string_view apart, std::string_view words);

}  // namespace trainfare::calibrate
