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

std::vector<CsvRow> RowsOf(std::string_view text, const std::string& name) {
  RowCollector collector;
  Parser parser;
  const auto fail = [&](int line) {
    throw InputError(name,
                     line,
                     0,
                     "a quote is not closed, or stands inside a field; a quote "
                     "in a quoted field is written twice");
  };
  const bool cut = !text.empty() && text.back() != '\n';
  // A physical line at a time, so that each row knows where it began.
  while (!text.empty()) {
    const size_t size = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, size);
    const bool blank = line == "\n" || line == "\r\n";
    if (collector.row.fields.empty() && blank) ++collector.row_start;
    if (csv_parse(parser.get(),
                  line.data(),
                  line.size(),
                  RowCollector::OnField,
                  RowCollector::OnRow,
                  &collector) != line.size()) {
      fail(collector.line);
    }
    text.remove_prefix(size);
    ++collector.line;
  }
  if (csv_fini(parser.get(),
               RowCollector::OnField,
               RowCollector::OnRow,
               &collector) != 0) {
    fail(collector.row_start);
  }
  // Half a number is a number, too.
  if (cut) {
    throw InputError(name,
                     collector.line - 1,
                     0,
                     "the last line has no end: the file is cut off, or a "
                     "newline is missing behind it");
  }
  return std::move(collector.rows);
}

// Throws InputError of a text in another encoding or with other line ends than
// files of commas have, and says what would do.
void RefuseOtherText(std::string_view text, const std::string& name) {
  const auto refuse = [&](const char* reason) {
    throw InputError(name, 1, 0, reason);
  };
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    refuse("expected UTF-8, got UTF-16; save it as \"CSV UTF-8\"");
  }
  if (text.find('\n') == std::string_view::npos &&
      text.find('\r') != std::string_view::npos) {
    refuse(
        "expected lines that end with a newline, got carriage returns alone");
  }
}

// The same of a header whose fields something else than commas separates.
void RefuseOtherSeparator(const CsvRow& header, const std::string& name) {
  if (header.fields.size() != 1) return;
  for (const auto& [mark, called] : {std::pair{';', "semicolons"},
                                     std::pair{'\t', "tabs"},
                                     std::pair{'|', "bars"}}) {
    if (header.fields[0].find(mark) == std::string::npos) continue;
    throw InputError(name,
                     header.line,
                     0,
                     fmt::format("expected fields between commas, got {}; "
                                 "numbers have a decimal point",
                                 called));
  }
}

}  // namespace

CsvFile CsvFile::Read(const std::string& path, Rows rows) {
  return Parse(ReadTextFile(path, "a CSV file"), path, rows);
}

CsvFile CsvFile::Parse(std::string_view text,
                       const std::string& name,
                       Rows rows) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  RefuseOtherText(text, name);
  CsvFile file;
  file.path_ = name;
  std::vector<CsvRow> all = RowsOf(text, name);
  if (all.empty()) {
    throw InputError(name, 1, 0, "expected a header line, got nothing");
  }
  RefuseOtherSeparator(all.front(), name);
  file.header_ = std::move(all.front().fields);
  std::vector<std::string> sorted = file.header_;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    throw InputError(name,
                     all.front().line,
                     0,
                     fmt::format("the column \"{}\" stands twice", *twice));
  }
  file.rows_.assign(std::make_move_iterator(all.begin() + 1),
                    std::make_move_iterator(all.end()));
  for (const CsvRow& row : file.rows_) {
    if (rows == Rows::kAnyWidth || row.fields.size() == file.header_.size()) {
      continue;
    }
    throw InputError(name,
                     row.line,
                     0,
                     fmt::format("expected {} fields as in the header, got {}",
                                 file.header_.size(),
                                 row.fields.size()));
  }
  return file;
}

const std::string& CsvFile::Field(const CsvRow& row,
                                  std::string_view column) const {
  static const std::string none;
  const std::optional<size_t> found = TryColumn(column);
  return found && *found < row.fields.size() ? row.fields[*found] : none;
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
