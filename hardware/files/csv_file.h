#pragma once

// CSV files as people publish them: quoted fields, columns found by name.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainfare::hardware {

struct CsvRow {
  int line = 0;  // in the file, from 1
  std::vector<std::string> fields;
};

class CsvFile {
 public:
  enum class Rows {
    kAnyWidth,  // shorter or longer than the header
    kAsHeader,  // as many fields as the header has
  };
  // Throws InputError "file:line: ..." when the file cannot be read, has no
  // header, names a column twice, has a quote that is not closed or stands
  // inside a field, or does not end with a newline: it may be cut off.
  static CsvFile Read(const std::string& path, Rows rows = Rows::kAnyWidth);
  static CsvFile Parse(std::string_view text,
                       const std::string& name,
                       Rows rows = Rows::kAnyWidth);

  const std::string& path() const { return path_; }
  const std::vector<std::string>& header() const { return header_; }
  // Blank lines are left out.
  const std::vector<CsvRow>& rows() const { return rows_; }

  // Throws InputError that names the known columns.
  size_t Column(std::string_view name) const;
  std::optional<size_t> TryColumn(std::string_view name) const;
  // Empty where there is no such column, or the row ends before it.
  const std::string& Field(const CsvRow& row, std::string_view column) const;

 private:
  std::string path_;
  std::vector<std::string> header_;
  std::vector<CsvRow> rows_;
};

}  // namespace trainfare::hardware
