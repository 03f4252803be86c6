#include "calibrate/records/import/csv.h"

#include <csv.h>
#include <fmt/format.h>

#include <algorithm>

#include "model/error.h"

namespace trainfare::calibrate {
namespace {

using model::InputError;

// What the callbacks of libcsv fill.
struct Collector {
  int line = 1;
  CsvRow row;
  std::vector<CsvRow> rows;
  int newlines = 0;  // inside the fields of the row so far
};

void OnField(void* data, size_t size, void* collector) {
  auto& c = *static_cast<Collector*>(collector);
  const std::string_view field(static_cast<const char*>(data), size);
  c.newlines += static_cast<int>(std::count(field.begin(), field.end(), '\n'));
  c.row.fields.emplace_back(field);
}

void OnRow(int /*character*/, void* collector) {
  auto& c = *static_cast<Collector*>(collector);
  c.row.line = c.line;
  // An empty line has no field at all.
  if (!c.row.fields.empty()) c.rows.push_back(std::move(c.row));
  c.row = {};
  c.line += 1 + c.newlines;
  c.newlines = 0;
}

// One newline a line, so that lines can be counted.
std::string Normalised(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  std::string normal;
  normal.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    normal += text[i];
  }
  return normal;
}

}  // namespace

const std::string& CsvText::Field(const CsvRow& row,
                                  std::string_view column) const {
  static const std::string none;
  const auto found = columns.find(column);
  return found == columns.end() ? none : row.fields[found->second];
}

CsvText ParseCsv(std::string_view text, const std::string& name) {
  csv_parser parser{};
  if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI | CSV_REPALL_NL) != 0) {
    throw std::bad_alloc();
  }
  Collector collector;
  const std::string normal = Normalised(text);
  const size_t parsed = csv_parse(
      &parser, normal.data(), normal.size(), &OnField, &OnRow, &collector);
  bool whole = parsed == normal.size();
  if (whole) whole = csv_fini(&parser, &OnField, &OnRow, &collector) == 0;
  csv_free(&parser);
  if (!whole) {
    throw InputError(name,
                     collector.line,
                     0,
                     "a quote is not closed, or stands inside a field; a quote "
                     "in a quoted field is written twice");
  }
  if (collector.rows.empty()) {
    throw InputError(name, 1, 0, "expected a header line, got nothing");
  }
  CsvText result;
  const CsvRow& header = collector.rows.front();
  for (size_t i = 0; i < header.fields.size(); ++i) {
    if (!result.columns.emplace(header.fields[i], i).second) {
      throw InputError(
          name,
          header.line,
          0,
          fmt::format("the column \"{}\" stands twice", header.fields[i]));
    }
  }
  for (size_t i = 1; i < collector.rows.size(); ++i) {
    CsvRow& row = collector.rows[i];
    if (row.fields.size() != header.fields.size()) {
      throw InputError(
          name,
          row.line,
          0,
          fmt::format("expected {} fields as in the header, got {}",
                      header.fields.size(),
                      row.fields.size()));
    }
    result.rows.push_back(std::move(row));
  }
  return result;
}

}  // namespace trainfare::calibrate
