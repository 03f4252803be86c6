#pragma once

// CSV as RFC 4180 has it, read by header names.

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trainfare::calibrate {

struct CsvRow {
  int line = 0;  // of its first character, from 1
  std::vector<std::string> fields;
};

struct CsvText {
  std::map<std::string, size_t, std::less<>> columns;  // name to position
  std::vector<CsvRow> rows;

  // Empty when there is no such column.
  const std::string& Field(const CsvRow& row, std::string_view column) const;
};

// Throws InputError "name:line: ..." for a quote that is not closed or stands
// in the middle, a row of another width than the header, a column named twice,
// and when there is no header.
CsvText ParseCsv(std::string_view text, const std::string& name);

}  // namespace trainfare::calibrate
