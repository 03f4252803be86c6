#pragma once

// A row of a table of measurements, and what its cells say as numbers.

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

// The number above 0 that the first group of a pattern finds in words.
std::optional<int64_t> NumberIn(const std::string& words,
                                const std::regex& pattern);

using model::Lowered;

struct TableRow {
  const hardware::CsvFile& table;
  const hardware::CsvRow& row;
  const std::string& file;
  // "; optimizer=lion" of each column whose words are of stack_notes, and the
  // same of notes.
  std::string more_stack = {};
  std::string more_notes = {};

  const std::string& operator[](std::string_view column) const {
    return table.Field(row, column);
  }
  bool Has(std::string_view column) const {
    return table.TryColumn(column).has_value();
  }
  // framework, stack_notes and the columns beside it as one text.
  std::string StackWords() const {
    return (*this)["framework"] + "; " + (*this)["stack_notes"] + more_stack;
  }
  // stack_notes, notes and the columns beside them as one text.
  std::string AllNotes() const {
    return (*this)["stack_notes"] + "; " + (*this)["notes"] + more_notes;
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
