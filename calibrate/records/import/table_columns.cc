#include "calibrate/records/import/table_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "calibrate/records/import/table_rules.h"
#include "hardware/files/foreign_text.h"
#include "model/letters.h"
#include "model/nearest.h"

namespace trainfare::calibrate {
namespace {

bool IsIn(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A name may be of any length.
std::string Named(const std::string& column) {
  constexpr size_t kMost = 60;
  return hardware::OneLine(column, kMost);
}

// What a column that is not read may mean; empty: nobody knows.
std::string MeaningOf(const std::string& column) {
  const ColumnRules& rules = RulesOfTables().columns;
  const auto other = rules.other_names.find(model::Lowered(column));
  if (other != rules.other_names.end()) return other->second;
  const std::vector<std::string> near =
      model::Nearest(column, model::NameViews(rules.read), 1);
  return near.empty() ? "" : near.front();
}

std::string WordsOf(const std::vector<std::string>& columns,
                    const hardware::CsvFile& csv,
                    const hardware::CsvRow& row) {
  std::string words;
  for (size_t i = 0; i < csv.header().size(); ++i) {
    if (i >= row.fields.size() || row.fields[i].empty()) continue;
    const std::string name = model::Lowered(csv.header()[i]);
    if (IsIn(columns, name)) {
      words += fmt::format("; {}={}", name, row.fields[i]);
    }
  }
  return words;
}

bool SaysNothing(const hardware::CsvFile& csv, size_t column) {
  return std::all_of(
      csv.rows().begin(), csv.rows().end(), [&](const hardware::CsvRow& row) {
        return column >= row.fields.size() || row.fields[column].empty();
      });
}

}  // namespace

std::vector<std::string> UnreadColumns(const hardware::CsvFile& csv) {
  const TableRules& rules = RulesOfTables();
  std::vector<std::string> unread;
  for (size_t i = 0; i < csv.header().size(); ++i) {
    const std::string& column = csv.header()[i];
    if (IsIn(rules.columns.read, column) ||
        IsIn(rules.columns.of_no_matter, model::Lowered(column)) ||
        IsIn(rules.columns.of_stack, model::Lowered(column)) ||
        IsIn(rules.columns.of_notes, model::Lowered(column)) ||
        rules.measured_all_reduce.contains(column) || SaysNothing(csv, i)) {
      continue;
    }
    const std::string meant = MeaningOf(column);
    unread.push_back(meant.empty()
                         ? Named(column)
                         : fmt::format("{} ({}?)", Named(column), meant));
  }
  return unread;
}

MoreWords MoreWordsOf(const hardware::CsvFile& csv,
                      const hardware::CsvRow& row) {
  const ColumnRules& rules = RulesOfTables().columns;
  return {WordsOf(rules.of_stack, csv, row), WordsOf(rules.of_notes, csv, row)};
}

std::string ColumnMeant(const hardware::CsvFile& csv,
                        std::string_view missing) {
  for (const std::string& column : csv.header()) {
    if (IsIn(RulesOfTables().columns.read, column)) continue;
    if (MeaningOf(column) == missing) {
      return fmt::format("; is \"{}\" meant?", Named(column));
    }
  }
  return "";
}

}  // namespace trainfare::calibrate
