#pragma once

// A row of a table of measurements, and what its cells say as numbers.

#include <algorithm>
#include <cstdint>
#include <optional>
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
  // nullopt when the cell says nothing. Throws InputError.
  std::optional<int64_t> Count(std::string_view column) const;
  // One whole number, "4" or "4.0"; throws Unused when it is none.
  int64_t WholeNumber(std::string_view column, std::string_view what) const;
};

}  // namespace trainfare::calibrate
