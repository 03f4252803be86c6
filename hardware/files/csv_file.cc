#include "hardware/files/csv_file.h"

#include <csv.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "hardware/files/text_file.h"
#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::hardware {
namespace {

using model::InputError;

// Rows as libcsv finds them.
struct RowCollector {
  std::vector<CsvRow> rows;
  CsvRow row;
  int line = 1;       // of what is being fed
  int row_start = 1;  // of the row that is being collected

  static void OnField(void* text, size_t size, void* self) {
    auto& collector = *static_cast<RowCollector*>(self);
    collector.row.fields.emplace_back(static_cast<const char*>(text), size);
  }
  static void OnRow(int /*end*/, void* self) {
    auto& collector = *static_cast<RowCollector*>(self);
    collector.row.line = collector.row_start;
    collector.rows.push_back(std::exchange(collector.row, {}));
    collector.row_start = collector.line + 1;
  }
};

// The C parser, freed again.
class Parser {
 public:
  Parser() {
    if (csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL) !=
        0) {
      throw std::bad_alloc();
    }
  }
  ~Parser() { csv_free(&parser_); }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
  csv_parser* get() { return &parser_; }

 private:
  csv_parser parser_{};
};

}  // namespace

CsvFile CsvFile::Read(const std::string& path) {
  const std::string text = ReadTextFile(path, "a CSV file");
  std::string_view rest = text;
  if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);
  RowCollector collector;
  Parser parser;
  const auto fail = [&](int line) {
    throw InputError(path,
                     line,
                     0,
                     fmt::format("not valid CSV: {}",
                                 csv_strerror(csv_error(parser.get()))));
  };
  // A physical line at a time, so that each row knows where it began.
  while (!rest.empty()) {
    const size_t newline = rest.find('\n');
    const size_t size =
        newline == std::string_view::npos ? rest.size() : newline + 1;
    if (collector.row.fields.empty() && rest.substr(0, size) == "\n") {
      ++collector.row_start;
    }
    if (csv_parse(parser.get(),
                  rest.data(),
                  size,
                  RowCollector::OnField,
                  RowCollector::OnRow,
                  &collector) != size) {
      fail(collector.line);
    }
    rest.remove_prefix(size);
    ++collector.line;
  }
  if (csv_fini(parser.get(),
               RowCollector::OnField,
               RowCollector::OnRow,
               &collector) != 0) {
    fail(collector.row_start);
  }
  if (collector.rows.empty()) {
    throw InputError(path, 0, 0, "expected a header line, got an empty file");
  }
  CsvFile file;
  file.path_ = path;
  file.header_ = std::move(collector.rows.front().fields);
  std::vector<std::string> sorted = file.header_;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    throw InputError(
        path, 1, 0, fmt::format("the column \"{}\" stands twice", *twice));
  }
  file.rows_.assign(std::make_move_iterator(collector.rows.begin() + 1),
                    std::make_move_iterator(collector.rows.end()));
  return file;
}

std::optional<size_t> CsvFile::TryColumn(std::string_view name) const {
  const auto found = std::find(header_.begin(), header_.end(), name);
  if (found == header_.end()) return std::nullopt;
  return static_cast<size_t>(found - header_.begin());
}

size_t CsvFile::Column(std::string_view name) const {
  const std::optional<size_t> column = TryColumn(name);
  if (column) return *column;
  const std::vector<std::string_view> known = model::NameViews(header_);
  throw InputError(path_,
                   1,
                   0,
                   fmt::format("missing column \"{}\"; known: {}",
                               name,
                               model::JoinNames(known, 40)));
}

}  // namespace trainfare::hardware
