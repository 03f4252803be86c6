#include "scenarios/report/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "hardware/files/foreign_text.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"

namespace trainfare::scenarios {
namespace {

// Names in a report come out of files: as they may be shown.
std::string Shown(std::string_view text) {
  return hardware::OneLine(text, std::string::npos);
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

bool IsFor(const Column& column, Audience audience) {
  return column.audience == Audience::kAll || column.audience == audience;
}

// A line of what machines see: `text_of` a column by its place.
template <class TextOf>
std::string CsvLine(const Table& table, const TextOf& text_of) {
  std::string line;
  bool first = true;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (!IsFor(table.columns[c], Audience::kMachines)) continue;
    if (!first) line += ',';
    first = false;
    line += CsvField(text_of(c));
  }
  return line + "\n";
}

}  // namespace

Cell::Cell(std::string human, double base_value)
    : text(std::move(human)), raw(ShortestNumber(base_value)) {}

Cell TimeCell(model::Seconds<> time) {
  return {hardware::FormatTime(time), ToSeconds(time)};
}

Cell CountCell(int64_t value) {
  return {fmt::format("{}", value), static_cast<double>(value)};
}

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

std::string CsvHeader(const Table& table) {
  return CsvLine(table, [&](size_t c) { return table.columns[c].key; });
}

std::string CsvTable(const Table& table) {
  std::string out = CsvHeader(table);
  for (const auto& row : table.rows) {
    out += CsvLine(table, [&](size_t c) { return row[c].raw; });
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
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (table.elided.contains(r)) continue;
    add_line([&](size_t c) { return MarkdownField(table.rows[r][c].text); });
  }
  if (!table.rest.empty()) out += fmt::format("\n{}\n", table.rest);
  return out;
}

}  // namespace trainfare::scenarios
