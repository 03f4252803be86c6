#include "scenarios/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "hardware/files/foreign_text.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"

namespace trainfare::scenarios {
namespace {

size_t Width(std::string_view text) { return hardware::DisplayWidth(text); }

// Names in a report come out of files: as they may be shown.
std::string Shown(std::string_view text) {
  return hardware::OneLine(text, std::string::npos);
}

std::string CutTo(const std::string& text, size_t width) {
  if (Width(text) <= width) return text;
  const size_t dots = std::min<size_t>(width, 3);
  return std::string(hardware::CutToWidth(text, width - dots)) +
         std::string(dots, '.');
}

// Columns in front of the decimal point of the first number in `text`.
size_t BeforePoint(std::string_view text) {
  const size_t point = text.find('.');
  if (point != std::string_view::npos) return Width(text.substr(0, point));
  const size_t unit = text.find(' ');
  return Width(text.substr(0, unit));
}

std::string Padded(const std::string& text, size_t before, size_t width) {
  const size_t used = before + Width(text);
  return std::string(before, ' ') + text +
         std::string(width > used ? width - used : 0, ' ');
}

std::string TrimRight(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// A cell that begins like a formula is one to a spreadsheet, which would run
// what somebody else wrote: an apostrophe makes it a text. Numbers are none.
std::string CsvField(const std::string& raw) {
  std::string field = Shown(raw);
  const bool formula =
      field.size() > 1 &&
      std::string_view("=+-@").find(field.front()) != std::string_view::npos &&
      !hardware::ParseNumber(field);
  if (formula) field.insert(0, 1, '\'');
  if (field.find_first_of(",\"") == std::string::npos) return field;
  std::string quoted = "\"";
  for (const char letter : field) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + '"';
}

std::string MarkdownField(const std::string& field) {
  std::string escaped;
  for (const char letter : Shown(field)) {
    if (letter == '|') escaped += '\\';
    escaped += letter;
  }
  return escaped;
}

// Rows that people see.
std::vector<size_t> ShownRows(const Table& table) {
  std::vector<size_t> rows;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (!table.elided.contains(r)) rows.push_back(r);
  }
  return rows;
}

bool IsFor(const Column& column, Audience audience) {
  return column.audience == Audience::kAll || column.audience == audience;
}

constexpr size_t kGap = 2;
// The last column is never narrower, however narrow the terminal is.
constexpr size_t kLeastLast = 12;

// Which columns a person sees in a width, and where in a line they stand.
class TextLayout {
 public:
  TextLayout(const Table& table, std::optional<size_t> width)
      : table_(table), rows_(ShownRows(table)) {
    for (size_t c = 0; c < table.columns.size(); ++c) {
      Measure(c);
      if (IsFor(table.columns[c], Audience::kPeople)) columns_.push_back(c);
    }
    if (!width || columns_.empty()) return;
    while (Used() + std::min(widths_[columns_.back()], kLeastLast) > *width &&
           DropOne()) {
    }
    const size_t used = Used();
    last_width_ = *width > used + kLeastLast ? *width - used : kLeastLast;
  }

  // A line with what `text_of` says of each column.
  template <class TextOf>
  std::string Line(const TextOf& text_of, bool is_title) const {
    std::string line;
    for (const size_t c : columns_) {
      if (c != columns_.front()) line += std::string(kGap, ' ');
      line += CellText(c, text_of(c), is_title);
    }
    return TrimRight(line) + "\n";
  }

  // The lines of a row: more than one where its last cell goes on below.
  std::vector<std::string> RowLines(const std::vector<Cell>& row) const {
    const size_t last = columns_.empty() ? 0 : columns_.back();
    if (columns_.empty() || !table_.columns[last].wraps ||
        last_width_ == std::string::npos) {
      return {Line([&](size_t c) { return row[c].text; }, false)};
    }
    std::vector<std::string> lines;
    std::istringstream parts(Wrapped(row[last].text, last_width_, ""));
    for (std::string part; std::getline(parts, part);) {
      const bool first = lines.empty();
      lines.push_back(Line(
          [&](size_t c) {
            if (c == last) return part;
            return first ? row[c].text : std::string();
          },
          false));
    }
    return lines;
  }

  size_t RuleWidth() const {
    if (columns_.empty()) return 0;
    return Used() + std::min(widths_[columns_.back()], last_width_);
  }

 private:
  void Measure(size_t c) {
    size_t before = 0;
    for (const size_t r : rows_) {
      before = std::max(before, BeforePoint(table_.rows[r][c].text));
    }
    size_t width = Width(table_.columns[c].title);
    for (const size_t r : rows_) {
      const std::string& text = table_.rows[r][c].text;
      const size_t shift = table_.columns[c].align == Align::kDecimal
                               ? before - BeforePoint(text)
                               : 0;
      width = std::max(width, shift + Width(text));
    }
    before_.push_back(before);
    widths_.push_back(width);
  }

  // The columns used of a line, up to where its last column begins.
  size_t Used() const {
    size_t used = 0;
    for (const size_t c : columns_) {
      if (c != columns_.back()) used += widths_[c] + kGap;
    }
    return used;
  }

  // Leaves out the columns that are to go next; false: none is.
  bool DropOne() {
    int most = 0;
    for (const size_t c : columns_) {
      most = std::max(most, table_.columns[c].drop);
    }
    if (most == 0) return false;
    std::erase_if(columns_,
                  [&](size_t c) { return table_.columns[c].drop == most; });
    return true;
  }

  std::string CellText(size_t c, const std::string& full, bool is_title) const {
    const std::string text = c == columns_.back() &&
                                     last_width_ != std::string::npos &&
                                     !table_.columns[c].wraps
                                 ? CutTo(full, last_width_)
                                 : full;
    switch (table_.columns[c].align) {
      case Align::kLeft:
        break;
      case Align::kRight:
        return Padded(text,
                      widths_[c] > Width(text) ? widths_[c] - Width(text) : 0,
                      widths_[c]);
      case Align::kDecimal:
        if (!is_title) {
          return Padded(text, before_[c] - BeforePoint(text), widths_[c]);
        }
        break;
    }
    return Padded(text, 0, widths_[c]);
  }

  const Table& table_;
  const std::vector<size_t> rows_;
  std::vector<size_t> before_;  // columns in front of the decimal point
  std::vector<size_t> widths_;
  std::vector<size_t> columns_;  // that are shown
  size_t last_width_ = std::string::npos;
};

}  // namespace

Cell::Cell(std::string human, double base_value)
    : text(std::move(human)), raw(ShortestNumber(base_value)) {}

void Table::Add(std::vector<Cell> cells) {
  ENSURE(cells.size() == columns.size(), "a row has a cell a column");
  rows.push_back(std::move(cells));
}

std::string ShortestNumber(double value) { return fmt::format("{}", value); }

bool IsForPeople(const Table& table) {
  return std::any_of(
      table.columns.begin(), table.columns.end(), [](const Column& column) {
        return IsFor(column, Audience::kPeople);
      });
}

std::string TextTable(const Table& given,
                      std::optional<size_t> width,
                      bool colour) {
  Table table = given;
  for (auto& row : table.rows) {
    for (Cell& cell : row) cell.text = Shown(cell.text);
  }
  const TextLayout layout(table, width);
  std::string out;
  if (!table.title.empty()) out += table.title + "\n";
  out += layout.Line([&](size_t c) { return table.columns[c].title; }, true);
  out += std::string(layout.RuleWidth(), '-') + "\n";
  for (const size_t r : ShownRows(table)) {
    for (std::string line : layout.RowLines(table.rows[r])) {
      if (table.marked == r && colour) {
        line.pop_back();
        line = fmt::format("\x1b[1m{}\x1b[0m\n", line);
      }
      out += line;
    }
  }
  if (!table.rest.empty()) out += Wrapped(table.rest, width, "");
  return out;
}

std::string Wrapped(std::string_view given,
                    std::optional<size_t> width,
                    std::string_view indent) {
  const std::string shown = Shown(given);
  if (!width || Width(shown) <= *width) return shown + "\n";
  std::string_view text = shown;
  std::string out;
  std::string line;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.size() > indent.size() && Width(line) + 1 + Width(word) > *width) {
      out += line + "\n";
      line = indent;
    } else if (!line.empty() && line != indent) {
      line += ' ';
    }
    line += word;
  }
  return out + line + "\n";
}

std::string CsvTable(const Table& table) {
  std::string out;
  const auto add_line = [&](const auto& text_of) {
    bool first = true;
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (!IsFor(table.columns[c], Audience::kMachines)) continue;
      if (!first) out += ',';
      first = false;
      out += CsvField(text_of(c));
    }
    out += "\n";
  };
  add_line([&](size_t c) { return table.columns[c].key; });
  for (const auto& row : table.rows) {
    add_line([&](size_t c) { return row[c].raw; });
  }
  return out;
}

std::string MarkdownTable(const Table& table) {
  std::string out;
  if (!table.title.empty()) out += fmt::format("**{}**\n\n", table.title);
  const auto add_line = [&](const auto& text_of) {
    out += "|";
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (!IsFor(table.columns[c], Audience::kPeople)) continue;
      out += fmt::format(" {} |", text_of(c));
    }
    out += "\n";
  };
  add_line([&](size_t c) { return MarkdownField(table.columns[c].title); });
  add_line([&](size_t c) {
    return table.columns[c].align == Align::kLeft ? "---" : "---:";
  });
  for (const size_t r : ShownRows(table)) {
    add_line([&](size_t c) { return MarkdownField(table.rows[r][c].text); });
  }
  if (!table.rest.empty()) out += fmt::format("\n{}\n", table.rest);
  return out;
}

}  // namespace trainfare::scenarios
