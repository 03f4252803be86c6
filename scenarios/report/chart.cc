#include "scenarios/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hardware/files/foreign_text.h"
#include "scenarios/report/column_unit.h"

namespace trainfare::scenarios {
namespace {

constexpr double kWidth = 720;
constexpr double kLeft = 70;
constexpr double kBarLeft = 230;
constexpr double kRight = 20;
constexpr double kTop = 14;
constexpr double kPlaneHeight = 340;
constexpr double kBarHeight = 24;
constexpr double kBelow = 46;
constexpr int kTicks = 6;

// Where values of an axis stand between two places of the drawing.
class Scale {
 public:
  Scale(const Axis& axis, std::vector<double> values, double from, double to)
      : logarithmic_(axis.logarithmic), from_(from), to_(to) {
    std::erase_if(values, [&](double v) { return !Shows(v); });
    if (values.empty()) return;
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    least_ = Place(*low);
    most_ = Place(*high);
    if (!logarithmic_) least_ = std::min(least_, 0.0);
    // Something to look at even where all values are one.
    const double span = most_ - least_;
    const double margin = span > 0 ? 0.05 * span : 0.5;
    most_ += margin;
    if (logarithmic_ || least_ < 0) least_ -= margin;
  }

  bool Shows(double value) const {
    return std::isfinite(value) && (!logarithmic_ || value > 0);
  }

  double At(double value) const {
    return from_ + (Place(value) - least_) / (most_ - least_) * (to_ - from_);
  }

  // Round values: 1, 2 and 5 times powers of ten.
  std::vector<double> Ticks() const {
    return logarithmic_ ? LogarithmicTicks() : LinearTicks();
  }

 private:
  double Place(double value) const {
    return logarithmic_ ? std::log10(value) : value;
  }

  std::vector<double> LogarithmicTicks() const {
    std::vector<double> ticks;
    const int decades = static_cast<int>(std::ceil(most_ - least_));
    const int step = std::max(1, decades / kTicks);
    const int first = static_cast<int>(std::floor(least_));
    for (int decade = first; decade <= most_; decade += step) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        if (decades > 2 && digit > 1.0) continue;
        const double value = digit * std::pow(10.0, decade);
        const double place = Place(value);
        if (place >= least_ && place <= most_) ticks.push_back(value);
      }
    }
    return ticks;
  }

  std::vector<double> LinearTicks() const {
    const double rough = (most_ - least_) / kTicks;
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double digit : {5.0, 2.0, 1.0}) {
      if (digit * power >= rough) step = digit * power;
    }
    std::vector<double> ticks;
    const int first = static_cast<int>(std::ceil(least_ / step));
    for (int i = first; i * step <= most_; ++i) ticks.push_back(i * step);
    return ticks;
  }

  bool logarithmic_;
  double from_;
  double to_;
  double least_ = 0;
  double most_ = 1;
};

std::string TickText(double value) {
  const double size = std::abs(value);
  if (size != 0 && (size >= 1e6 || size < 1e-3)) {
    return fmt::format("{:.0e}", value);
  }
  return fmt::format("{:.6g}", value);
}

std::string Text(double x,
                 double y,
                 std::string_view anchor,
                 std::string_view text) {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
      x,
      y,
      anchor,
      Escaped(text));
}

std::string Line(
    double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format(
      "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" "
      "y2=\"{:.1f}\"/>\n",
      style,
      x1,
      y1,
      x2,
      y2);
}

std::string XAxis(const Axis& axis, const Scale& scale, double bottom) {
  std::string out;
  for (const double tick : scale.Ticks()) {
    const double x = scale.At(tick);
    out += Line(x, kTop, x, bottom, "grid");
    out += Text(x, bottom + 16, "middle", TickText(tick));
  }
  return out + Text(kWidth / 2, bottom + 36, "middle", axis.title);
}

std::string YAxis(const Axis& axis, const Scale& scale) {
  std::string out;
  for (const double tick : scale.Ticks()) {
    const double y = scale.At(tick);
    out += Line(kLeft, y, kWidth - kRight, y, "grid");
    out += Text(kLeft - 6, y + 4, "end", TickText(tick));
  }
  return out + fmt::format(
                   "<text transform=\"translate(14 {:.1f}) rotate(-90)\" "
                   "text-anchor=\"middle\">{}</text>\n",
                   kTop + kPlaneHeight / 2,
                   Escaped(axis.title));
}

// Labels of points, none upon another.
class Labels {
 public:
  std::string Beside(double x, double y, std::string_view text) {
    const bool late = x > 0.7 * kWidth;
    const double width = kLetterWidth * static_cast<double>(text.size());
    Box box{late ? x - 8 - width : x + 8, 0, width};
    for (const double off : {-6.0, 12.0, -20.0, 26.0, -34.0, 40.0}) {
      box.y = y + off;
      if (std::any_of(taken_.begin(), taken_.end(), [&](const Box& other) {
            return Meet(box, other);
          })) {
        continue;
      }
      taken_.push_back(box);
      return Text(late ? x - 8 : x + 8, box.y, late ? "end" : "start", text);
    }
    return "";  // It stands in the point's title and in the table.
  }

 private:
  static constexpr double kLetterWidth = 6.5;
  static constexpr double kLineHeight = 12;

  struct Box {
    double x = 0;
    double y = 0;
    double width = 0;
  };

  static bool Meet(const Box& a, const Box& b) {
    return a.x < b.x + b.width && b.x < a.x + a.width &&
           std::abs(a.y - b.y) < kLineHeight;
  }

  std::vector<Box> taken_;
};

// `labels`: nullptr: without one.
std::string Dot(const ChartPoint& point,
                const Scale& x,
                const Scale& y,
                Labels* labels) {
  if (!x.Shows(point.x) || !y.Shows(point.y)) return "";
  std::string out = fmt::format(
      "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"><title>{}"
      "</title></circle>\n",
      point.marked ? "chosen" : "dot",
      x.At(point.x),
      y.At(point.y),
      point.marked ? 6 : 4,
      Escaped(point.label));
  if (labels != nullptr) {
    out += labels->Beside(x.At(point.x), y.At(point.y), point.label);
  }
  return out;
}

std::string PolyLine(const ChartLine& line, const Scale& x, const Scale& y) {
  std::string places;
  for (const ChartPoint& point : line.points) {
    if (!x.Shows(point.x) || !y.Shows(point.y)) continue;
    places += fmt::format("{:.1f},{:.1f} ", x.At(point.x), y.At(point.y));
  }
  return fmt::format(
      "<polyline class=\"line\" points=\"{}\"><title>{}</title></polyline>\n",
      places,
      Escaped(line.label));
}

std::string Opening(const Chart& chart, double height) {
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
      kWidth,
      height,
      Escaped(chart.title));
}

// Labels of more points than this would lie on each other.
constexpr size_t kLabelledPoints = 12;

std::string Plane(const Chart& chart) {
  std::vector<double> xs;
  std::vector<double> ys;
  const auto take = [&](const std::vector<ChartPoint>& points) {
    for (const ChartPoint& point : points) {
      xs.push_back(point.x);
      ys.push_back(point.y);
    }
  };
  take(chart.points);
  for (const ChartLine& line : chart.lines) take(line.points);
  const double bottom = kTop + kPlaneHeight;
  const Scale x(chart.x, xs, kLeft, kWidth - kRight);
  const Scale y(chart.y, ys, bottom, kTop);
  std::string out = Opening(chart, bottom + kBelow);
  out += XAxis(chart.x, x, bottom) + YAxis(chart.y, y);
  for (const ChartLine& line : chart.lines) out += PolyLine(line, x, y);
  const bool few = chart.points.size() <= kLabelledPoints;
  Labels labels;
  for (const ChartPoint& point : chart.points) {
    out += Dot(point, x, y, few || point.marked ? &labels : nullptr);
  }
  return out + "</svg>\n";
}

std::string Bar(const ChartBar& bar, const Scale& x, double top) {
  std::string out =
      Text(kBarLeft - 8, top + kBarHeight / 2 + 4, "end", bar.label);
  if (!x.Shows(bar.low) || !x.Shows(bar.high)) return out;
  out += fmt::format(
      "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
      "height=\"{:.1f}\"/>\n",
      bar.marked ? "chosen" : "bar",
      x.At(bar.low),
      top + 4,
      std::max(1.0, x.At(bar.high) - x.At(bar.low)),
      kBarHeight - 8);
  if (bar.value && x.Shows(*bar.value)) {
    const double at = x.At(*bar.value);
    out += Line(at, top + 2, at, top + kBarHeight - 2, "mark");
  }
  return out;
}

std::string Bars(const Chart& chart) {
  std::vector<double> values;
  for (const ChartBar& bar : chart.bars) {
    values.insert(values.end(), {bar.low, bar.high});
    if (bar.value) values.push_back(*bar.value);
  }
  if (chart.limit) values.push_back(*chart.limit);
  const Scale x(chart.x, values, kBarLeft, kWidth - kRight);
  const double bottom =
      kTop + kBarHeight * static_cast<double>(chart.bars.size());
  std::string out = Opening(chart, bottom + kBelow);
  out += XAxis(chart.x, x, bottom);
  double top = kTop;
  for (const ChartBar& bar : chart.bars) {
    out += Bar(bar, x, top);
    top += kBarHeight;
  }
  if (chart.limit && x.Shows(*chart.limit)) {
    const double at = x.At(*chart.limit);
    out += Line(at, kTop, at, bottom, "mark");
    out += Text(at - 4, kTop - 3, "end", chart.limit_label);
  }
  return out + "</svg>\n";
}

Cell NumberCell(double value) { return {PlainNumber(value, 4), value}; }

}  // namespace

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : hardware::OneLine(text, std::string::npos)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string SvgChart(const Chart& chart) {
  if (chart.empty()) return "";
  return chart.bars.empty() ? Plane(chart) : Bars(chart);
}

Table TableOf(const Chart& chart) {
  Table table;
  if (!chart.bars.empty()) {
    table.columns = {{chart.x.title, "label", Align::kLeft},
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
  table.columns = {{"", "label", Align::kLeft},
                   {chart.x.title, "x", Align::kDecimal},
                   {chart.y.title, "y", Align::kDecimal}};
  const auto add = [&](const std::string& label, const ChartPoint& point) {
    table.Add({label, NumberCell(point.x), NumberCell(point.y)});
  };
  for (const ChartPoint& point : chart.points) add(point.label, point);
  for (const ChartLine& line : chart.lines) {
    for (const ChartPoint& point : line.points) add(line.label, point);
  }
  return table;
}

}  // namespace trainfare::scenarios
