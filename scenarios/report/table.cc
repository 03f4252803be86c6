#include "scenarios/report/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/error.h"

namespace trainfare::scenarios {
namespace {

// Columns that a UTF-8 text takes: one a code point (no wide ones are used).
size_t Width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char letter) {
        return (static_cast<unsigned char>(letter) & 0xC0U) != 0x80U;
      }));
}

std::string CutTo(const std::string& text, size_t width) {
  if (Width(text) <= width) return text;
  std::string cut;
  size_t used = 0;
  for (const char letter : text) {
    const bool starts = (static_cast<unsigned char>(letter) & 0xC0U) != 0x80U;
    if (starts && ++used > width - std::min<size_t>(width, 3)) break;
    cut += letter;
  }
  return cut + std::string(std::min<size_t>(width, 3), '.');
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

std::string CsvField(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string quoted = "\"";
  for (const char letter : field) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + '"';
}

std::string MarkdownField(const std::string& field) {
  std::string escaped;
  for (const char letter : field) {
    if (letter == '|') escaped += '\\';
    escaped += letter == '\n' ? ' ' : letter;
  }
  return escaped;
}

}  // namespace

Cell::Cell(std::string human, double base_value)
    : text(std::move(human)), raw(ShortestNumber(base_value)) {}

void Table::Add(std::vector<Cell> cells) {
  ENSURE(cells.size() == columns.size(), "a row has a cell a column");
  rows.push_back(std::move(cells));
}

std::string ShortestNumber(double value) { return fmt::format("{}", value); }

std::string TextTable(const Table& table,
                      std::optional<size_t> width,
                      bool colour) {
  const size_t columns = table.columns.size();
  std::vector<size_t> before(columns, 0);  // the decimal point
  std::vector<size_t> widths(columns, 0);
  for (size_t c = 0; c < columns; ++c) {
    for (const auto& row : table.rows) {
      before[c] = std::max(before[c], BeforePoint(row[c].text));
    }
    widths[c] = Width(table.columns[c].title);
    for (const auto& row : table.rows) {
      const std::string& text = row[c].text;
      const size_t shift = table.columns[c].align == Align::kDecimal
                               ? before[c] - BeforePoint(text)
                               : 0;
      widths[c] = std::max(widths[c], shift + Width(text));
    }
  }
  constexpr size_t kGap = 2;
  size_t last_width = std::string::npos;
  if (width && columns > 0) {
    size_t used = 0;
    for (size_t c = 0; c + 1 < columns; ++c) used += widths[c] + kGap;
    constexpr size_t kLeast = 12;
    last_width = *width > used + kLeast ? *width - used : kLeast;
  }

  const auto cell = [&](size_t c, const std::string& full, bool is_title) {
    const std::string text = c + 1 == columns && last_width != std::string::npos
                                 ? CutTo(full, last_width)
                                 : full;
    switch (table.columns[c].align) {
      case Align::kLeft:
        break;
      case Align::kRight:
        return Padded(text,
                      widths[c] > Width(text) ? widths[c] - Width(text) : 0,
                      widths[c]);
      case Align::kDecimal:
        if (!is_title) {
          return Padded(text, before[c] - BeforePoint(text), widths[c]);
        }
        break;
    }
    return Padded(text, 0, widths[c]);
  };
  std::string out;
  if (!table.title.empty()) out += table.title + "\n";
  const auto add_line = [&](const auto& text_of, bool is_title, bool bold) {
    std::string line;
    for (size_t c = 0; c < columns; ++c) {
      if (c > 0) line += std::string(kGap, ' ');
      line += cell(c, text_of(c), is_title);
    }
    line = TrimRight(line);
    if (bold && colour) line = fmt::format("\x1b[1m{}\x1b[0m", line);
    out += line + "\n";
  };
  add_line([&](size_t c) { return table.columns[c].title; }, true, false);
  size_t rule = 0;
  for (size_t c = 0; c < columns; ++c) {
    const size_t shown =
        c + 1 == columns ? std::min(widths[c], last_width) : widths[c];
    rule += shown + (c > 0 ? kGap : 0);
  }
  out += std::string(rule, '-') + "\n";
  for (size_t r = 0; r < table.rows.size(); ++r) {
    add_line([&](size_t c) { return table.rows[r][c].text; },
             false,
             table.marked == r);
  }
  return out;
}

std::string CsvTable(const Table& table) {
  std::string out;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (c > 0) out += ',';
    out += CsvField(table.columns[c].key);
  }
  out += "\n";
  for (const auto& row : table.rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      if (c > 0) out += ',';
      out += CsvField(row[c].raw);
    }
    out += "\n";
  }
  return out;
}

std::string MarkdownTable(const Table& table) {
  std::string out;
  if (!table.title.empty()) out += fmt::format("**{}**\n\n", table.title);
  out += "|";
  for (const Column& column : table.columns) {
    out += fmt::format(" {} |", MarkdownField(column.title));
  }
  out += "\n|";
  for (const Column& column : table.columns) {
    out += column.align == Align::kLeft ? " --- |" : " ---: |";
  }
  out += "\n";
  for (const auto& row : table.rows) {
    out += "|";
    for (const Cell& cell : row) {
      out += fmt::format(" {} |", MarkdownField(cell.text));
    }
    out += "\n";
  }
  return out;
}

}  // namespace trainfare::scenarios
