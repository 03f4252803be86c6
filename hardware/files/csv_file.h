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
  // Throws InputError "file:line: ..." when the file cannot be read, has no
  // header, names a column twice, or ends inside quotes.
  static CsvFile Read(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<std::string>& header() const { return header_; }
  // Rows may be shorter or longer than the header; blank lines are left out.
  const std::vector<CsvRow>& rows() const { return rows_; }

  // Throws InputError that names the known columns.
  size_t Column(std::string_view name) const;
  std::optional<size_t> TryColumn(std::string_view name) const;

 private:
  std::string path_;
  std::vector<std::string> header_;
  std::vector<CsvRow> rows_;
};

}  // namespace trainfare::hardware
