#pragma once

// A row of a table of measurements, and what its cells say as numbers.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <string_view>

#include "hardware/files/csv_file.h"
#include "model/letters.h"

namespace trainfare::calibrate {

// Why a row is left out; counted, not an error.
struct Unused {
  std::string reason;
};

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
// "without torch.compile", "cpu offload: none". Both in lower case.
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

// The number above 0 that the first group of a pattern finds in words.
std::optional<int64_t> NumberIn(const std::string& words,
                                const std::regex& pattern);

using model::Lowered;

struct TableRow {
  const hardware::CsvFile& table;
  const hardware::CsvRow& row;
  const std::string& file;

  const std::string& operator[](std::string_view column) const {
    return table.Field(row, column);
  }
  bool Has(std::string_view column) const {
    return table.TryColumn(column).has_value();
  }
  // framework and stack_notes as one text.
  std::string StackWords() const {
    return (*this)["framework"] + "; " + (*this)["stack_notes"];
  }
  // stack_notes and notes as one text.
  std::string AllNotes() const {
    return (*this)["stack_notes"] + "; " + (*this)["notes"];
  }
  // Throws InputError "file:line: column: expected ...".
  [[noreturn]] void Fail(std::string_view column,
                         std::string_view expected) const;
  // Whether the cell says nothing: "", "-", "n/a", "nan".
  bool Blank(std::string_view column) const;
  // nullopt where the cell is no number: "1,234.5" is one.
  std::optional<double> Number(std::string_view column) const;
  // nullopt when the cell says nothing. Throws InputError when it is no whole
  // number, "4" or "4.0", above 0.
  std::optional<int64_t> Count(std::string_view column) const;
  // The same of what a row needs; throws Unused when it is none.
  int64_t WholeNumber(std::string_view column, std::string_view what) const;
};

}  // namespace trainfare::calibrate
