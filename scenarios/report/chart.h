#pragma once

// Figures of a report, drawn as SVG that needs no script, font or network.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/report/table.h"

namespace trainfare::scenarios {

struct Axis {
  std::string title;  // with its unit
  bool logarithmic = false;
};

struct ChartPoint {
  std::string label;
  double x = 0;
  double y = 0;
  bool marked = false;
};

struct ChartLine {
  std::string label;
  std::vector<ChartPoint> points;
};

// A bar from `low` to `high`, with a mark at `value` where there is one.
struct ChartBar {
  std::string label;
  double low = 0;
  double high = 0;
  std::optional<double> value;
  bool marked = false;
};

// Points and lines in a plane; or, where it has bars, these below each other
// over the x axis.
struct Chart {
  std::string title;
  std::string caption;  // what to read in it
  Axis x;
  Axis y;
  std::vector<ChartLine> lines;
  std::vector<ChartPoint> points;
  std::vector<ChartBar> bars;
  // A value of the x axis that bars are held against, and what it is.
  std::optional<double> limit;
  std::string limit_label;

  bool empty() const { return lines.empty() && points.empty() && bars.empty(); }
};

// The text of HTML and SVG: & < > " ' stand for themselves, what would do
// something to a terminal is gone.
std::string Escaped(std::string_view text);

// Empty for a chart of nothing. Values that an axis cannot show (not finite, 0
// or less on a logarithmic one) are left out.
std::string SvgChart(const Chart& chart);

// The same figures as a table.
Table TableOf(const Chart& chart);

}  // namespace trainfare::scenarios
