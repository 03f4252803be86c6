#include "scenarios/report/chart.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "scenarios/report/column_unit.h"

namespace trainfare::scenarios {
namespace {

Cell NumberCell(double value) { return {PlainNumber(value, 4), value}; }

Cell NumberOrNone(const std::optional<double>& value) {
  return value ? NumberCell(*value) : Cell("-", std::string());
}

Table TableOfBars(const Chart& chart) {
  const bool values = std::any_of(
      chart.bars.begin(), chart.bars.end(), [](const ChartBar& bar) {
        return bar.value.has_value();
      });
  Table table;
  table.columns = {{chart.x.Title(), "label", Align::kLeft},
                   {"from", "low", Align::kDecimal}};
  if (values) table.columns.push_back({"value", "value", Align::kDecimal});
  table.columns.push_back({"to", "high", Align::kDecimal});
  for (const ChartBar& bar : chart.bars) {
    std::vector<Cell> cells = {bar.label, NumberCell(bar.low)};
    if (values) cells.push_back(NumberOrNone(bar.value));
    cells.push_back(NumberCell(bar.high));
    table.Add(std::move(cells));
  }
  return table;
}

}  // namespace

std::string Axis::Title() const {
  return unit.empty() ? quantity : ColumnUnit{unit}.Title(quantity);
}

bool Axis::Shows(double value) const {
  return std::isfinite(value) && (!logarithmic || value > 0);
}

Table TableOf(const Chart& chart) {
  if (!chart.bars.empty()) return TableOfBars(chart);
  Table table;
  table.columns = {{"", "label", Align::kLeft},
                   {chart.x.Title(), "x", Align::kDecimal},
                   {chart.y.Title(), "y", Align::kDecimal}};
  const bool shares = !chart.names.share.empty();
  if (shares) {
    const std::string title = ColumnUnit{"%"}.Title(chart.names.share);
    table.columns.push_back({title, "share_percent", Align::kDecimal});
  }
  const auto add = [&](const std::string& label, const ChartPoint& point) {
    std::vector<Cell> cells = {label, NumberCell(point.x), NumberCell(point.y)};
    if (shares) {
      cells.push_back(NumberOrNone(
          point.share > 0 ? std::optional(100 * point.share) : std::nullopt));
    }
    table.Add(std::move(cells));
  };
  for (const ChartPoint& point : chart.points) add(point.label, point);
  for (const ChartLine& line : chart.lines) {
    for (const ChartPoint& point : line.points) add(line.label, point);
  }
  return table;
}

}  // namespace trainfare::scenarios
