#include "scenarios/report/chart.h"

#include <cmath>
#include <utility>

#include "scenarios/report/column_unit.h"

namespace trainfare::scenarios {
namespace {

Cell NumberCell(double value) { return {PlainNumber(value, 4), value}; }

Table TableOfBars(const Chart& chart) {
  Table table;
  table.columns = {{chart.x.Title(), "label", Align::kLeft},
                   {"from", "low", Align::kDecimal},
                   {"value", "value", Align::kDecimal},
                   {"to", "high", Align::kDecimal}};
  for (const ChartBar& bar : chart.bars) {
    table.Add({bar.label,
               NumberCell(bar.low),
               bar.value ? NumberCell(*bar.value) : Cell("-", std::string()),
               NumberCell(bar.high)});
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
      cells.push_back(point.share > 0 ? NumberCell(100 * point.share)
                                      : Cell("-", std::string()));
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
