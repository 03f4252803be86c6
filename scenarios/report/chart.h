#pragma once

// Figures of a report: what is in them, whatever draws them.

#include <optional>
#include <string>
#include <vector>

#include "scenarios/report/table.h"

namespace trainfare::scenarios {

struct Axis {
  std::string quantity;
  std::string unit;  // empty: a plain number
  bool logarithmic = false;

  std::string Title() const;  // "cost ($)"
  // Not finite, and 0 or less on a logarithmic axis, is nowhere.
  bool Shows(double value) const;
};

struct ChartPoint {
  std::string label;
  double x = 0;
  double y = 0;
  bool marked = false;
  double share = 0;  // of a whole, shown by its area; 0: it is part of none
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

// What the legend calls points or bars, the marked ones, values of bars, and
// what shares of points are of.
struct ChartNames {
  std::string all;
  std::string marked;
  std::string value;
  std::string share;
};

// Points and lines in a plane; or, where it has bars, these below each other
// over the x axis.
struct Chart {
  std::string title;
  std::string caption;  // what to read in it
  Axis x;
  Axis y;
  ChartNames names;
  std::vector<ChartLine> lines;
  std::vector<ChartPoint> points;
  std::vector<ChartBar> bars;
  // A value of the x axis that bars are held against, and what it is.
  std::optional<double> limit;
  std::string limit_label;

  bool empty() const { return lines.empty() && points.empty() && bars.empty(); }
};

// The same figures as a table.
Table TableOf(const Chart& chart);

}  // namespace trainfare::scenarios
