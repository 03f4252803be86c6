#pragma once

// One table, written as aligned text, CSV or Markdown.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/units.h"

namespace trainfare::scenarios {

enum class Align {
  kLeft,
  kRight,
  kDecimal,  // numbers of one unit: decimal points below each other
};

// Who a column is for.
enum class Audience { kAll, kPeople, kMachines };

struct Column {
  std::string title;  // for people: "step time"
  std::string key;    // for machines, with its base unit: "step_time_s"
  Align align = Align::kLeft;
  // On a narrow terminal the column with the highest goes first; 0 stays.
  int drop = 0;
  Audience audience = Audience::kAll;
};

struct Cell {
  Cell() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a word is its own cell.
  Cell(std::string word) : text(std::move(word)), raw(text) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Cell(const char* word) : text(word), raw(word) {}
  Cell(std::string human, double base_value);
  Cell(std::string human, std::string machine)
      : text(std::move(human)), raw(std::move(machine)) {}

  std::string text;  // as people read it, with its unit
  std::string raw;   // as CSV has it, in base units
};

// "62.1 ms".
Cell TimeCell(model::Seconds<> time);
Cell CountCell(int64_t value);

class Table {
 public:
  std::string title;  // above the table; may be empty
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  // Row shown in bold where there is colour; a word in it says the same.
  std::optional<size_t> marked;
  // Rows that people do not see, and below the table the line that says what
  // they are; machines get all of them.
  std::set<size_t> elided;
  std::string rest;

  // As many cells as columns.
  void Add(std::vector<Cell> cells);
};

// A column with its cell in the row of a `Row`, so that a column is one entry.
template <class Row>
struct ColumnWith {
  Column column;
  std::function<Cell(const Row&)> cell;
};
template <class Row>
Table TableOf(const std::vector<ColumnWith<Row>>& columns,
              const std::vector<Row>& rows) {
  Table table;
  for (const auto& one : columns) table.columns.push_back(one.column);
  for (const Row& row : rows) {
    std::vector<Cell> cells;
    for (const auto& one : columns) cells.push_back(one.cell(row));
    table.Add(std::move(cells));
  }
  return table;
}

// Whether a person sees any column of it.
bool IsForPeople(const Table& table);

// Without a limit a line is as long as it is. With one, columns are left out in
// the order of their `drop`, then cells go on below; a row that is too wide
// even so becomes a line for each of its cells.
std::string TextTable(const Table& table,
                      std::optional<size_t> width = std::nullopt,
                      bool colour = false);
std::string CsvTable(const Table& table);  // RFC 4180, header first
// The first line of it, with its end.
std::string CsvHeader(const Table& table);
std::string MarkdownTable(const Table& table);

// A number with as many digits as tell it from its neighbours, no more.
std::string ShortestNumber(double value);

}  // namespace trainfare::scenarios
