#include "scenarios/report/chart_configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/report/column_unit.h"
#include "scenarios/report/json.h"

namespace trainfare::scenarios {
namespace {

// Names of more points than this would hide each other.
constexpr size_t kNamedPoints = 12;
constexpr int kDotRadius = 4;
constexpr int kChosenRadius = 8;
// Of a point that is all of a whole.
constexpr int kWholeRadius = 22;
// How far from a point a pointer finds it, in pixels.
constexpr int kHitRadius = 8;
constexpr int kThickestBar = 18;
// No bar is too small to be seen.
constexpr int kShortestBar = 2;

Json ScaleOf(const Axis& axis) {
  return {{"type", axis.logarithmic ? "logarithmic" : "linear"},
          {"quantity", axis.quantity},
          {"unit", axis.unit},
          {"title", {{"display", true}, {"text", axis.Title()}}}};
}

// Points are found by a pointer near them, bars by one in their row.
Json OptionsOf(Json scales, bool legend, const char* mode) {
  const bool is_row = std::string_view(mode) == "index";
  return {
      {"scales", std::move(scales)},
      {"interaction",
       {{"mode", mode}, {"axis", is_row ? "y" : "xy"}, {"intersect", !is_row}}},
      {"plugins", {{"legend", {{"display", legend}, {"align", "start"}}}}}};
}

Json DataOf(const Chart& chart, const std::vector<ChartPoint>& points) {
  Json data = Json::array();
  for (const ChartPoint& point : points) {
    if (!chart.x.Shows(point.x) || !chart.y.Shows(point.y)) continue;
    Json one = {{"x", point.x}, {"y", point.y}, {"name", point.label}};
    if (point.share > 0) one["share"] = point.share;
    data.push_back(std::move(one));
  }
  return data;
}

// In pixels, for each of `data`: areas are as shares are.
Json RadiiOf(const Json& data, int usual) {
  Json radii = Json::array();
  for (const Json& point : data) {
    const double share = point.value("share", 0.0);
    radii.push_back(
        share > 0 ? std::max<double>(usual, kWholeRadius * std::sqrt(share))
                  : usual);
  }
  return radii;
}

Json PointSet(const Chart& chart, bool marked) {
  std::vector<ChartPoint> points;
  std::copy_if(chart.points.begin(),
               chart.points.end(),
               std::back_inserter(points),
               [&](const ChartPoint& point) { return point.marked == marked; });
  Json data = DataOf(chart, points);
  Json radii = RadiiOf(data, marked ? kChosenRadius : kDotRadius);
  return {{"label", marked ? chart.names.marked : chart.names.all},
          {"share", chart.names.share},
          {"role", marked ? "chosen" : "dot"},
          {"named", marked || chart.points.size() <= kNamedPoints},
          {"pointStyle", marked ? "rectRot" : "circle"},
          {"pointHoverBorderWidth", 3},
          {"pointHitRadius", kHitRadius},
          {"pointHoverRadius", radii},
          {"pointRadius", std::move(radii)},
          {"data", std::move(data)}};
}

// Without points of its own that a pointer could find.
Json LineSet(const Chart& chart, const ChartLine& line) {
  return {{"label", line.label},
          {"role", "line"},
          {"showLine", true},
          {"pointStyle", "line"},
          {"pointRadius", 0},
          {"pointHoverRadius", 0},
          {"pointHitRadius", 0},
          {"borderWidth", 2},
          {"data", DataOf(chart, line.points)}};
}

// An axis with some room on both sides of all that `place` takes of the points.
Json ScaleAround(const Axis& axis,
                 const Chart& chart,
                 double ChartPoint::*place) {
  constexpr double kRoom = 1.5;  // on a logarithmic axis
  std::vector<double> values;
  const auto take = [&](const std::vector<ChartPoint>& points) {
    for (const ChartPoint& point : points) {
      if (axis.Shows(point.*place)) values.push_back(point.*place);
    }
  };
  take(chart.points);
  for (const ChartLine& line : chart.lines) take(line.points);
  Json scale = ScaleOf(axis);
  if (axis.logarithmic && !values.empty()) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    scale["min"] = *low / kRoom;
    scale["max"] = *high * kRoom;
  } else {
    scale["beginAtZero"] = true;
    scale["grace"] = "5%";
  }
  return scale;
}

// The first data set lies on top.
Json PlaneOf(const Chart& chart) {
  Json sets = Json::array();
  for (const bool marked : {true, false}) {
    Json points = PointSet(chart, marked);
    if (!points["data"].empty()) sets.push_back(std::move(points));
  }
  for (const ChartLine& line : chart.lines) {
    sets.push_back(LineSet(chart, line));
  }
  const bool legend = sets.size() > 1;
  return {{"type", "scatter"},
          {"data", {{"datasets", std::move(sets)}}},
          {"options",
           OptionsOf({{"x", ScaleAround(chart.x, chart, &ChartPoint::x)},
                      {"y", ScaleAround(chart.y, chart, &ChartPoint::y)}},
                     legend,
                     "nearest")}};
}

// The bars that are marked, or the others, with nothing in the rows between.
Json BarSet(const Chart& chart, bool marked) {
  Json data = Json::array();
  for (const ChartBar& bar : chart.bars) {
    const bool shown = bar.marked == marked && chart.x.Shows(bar.low) &&
                       chart.x.Shows(bar.high);
    data.push_back(shown ? Json::array({bar.low, bar.high}) : Json());
  }
  return {{"label", marked ? chart.names.marked : chart.names.all},
          {"role", marked ? "chosen" : "bar"},
          {"pointStyle", "rect"},
          {"grouped", false},
          {"maxBarThickness", kThickestBar},
          {"minBarLength", kShortestBar},
          {"data", std::move(data)}};
}

// An upright stroke at the value of each bar.
Json MarkSet(const Chart& chart) {
  Json data = Json::array();
  for (const ChartBar& bar : chart.bars) {
    const bool shown = bar.value && chart.x.Shows(*bar.value);
    data.push_back(shown ? Json(*bar.value) : Json());
  }
  return {{"type", "line"},
          {"label", chart.names.value},
          {"role", "mark"},
          {"showLine", false},
          {"pointStyle", "line"},
          {"pointRotation", 90},
          {"pointRadius", kThickestBar / 2 + 2},
          {"pointHoverRadius", kThickestBar / 2 + 2},
          {"pointBorderWidth", 3},
          {"data", std::move(data)}};
}

Json BarsOf(const Chart& chart) {
  Json sets = Json::array();
  Json labels = Json::array();
  for (const ChartBar& bar : chart.bars) labels.push_back(bar.label);
  const auto has = [&](auto what) {
    return std::any_of(chart.bars.begin(), chart.bars.end(), what);
  };
  if (has([](const ChartBar& bar) { return bar.value.has_value(); })) {
    sets.push_back(MarkSet(chart));
  }
  for (const bool marked : {true, false}) {
    if (has([&](const ChartBar& bar) { return bar.marked == marked; })) {
      sets.push_back(BarSet(chart, marked));
    }
  }
  Json x = ScaleOf(chart.x);
  x["beginAtZero"] = true;
  x["grace"] = "8%";
  Json names = {{"type", "category"}, {"grid", {{"display", false}}}};
  Json options =
      OptionsOf({{"x", x}, {"y", std::move(names)}}, sets.size() > 1, "index");
  options["indexAxis"] = "y";
  if (chart.limit && chart.x.Shows(*chart.limit)) {
    const std::string text = fmt::format("{} {} {}",
                                         chart.limit_label,
                                         PlainNumber(*chart.limit, 3),
                                         chart.x.unit);
    options["limit"] = {{"value", *chart.limit}, {"text", text}};
    options["layout"] = {{"padding", {{"top", 20}}}};
    options["scales"]["x"]["suggestedMax"] = *chart.limit;
  }
  return {
      {"type", "bar"},
      {"data", {{"labels", std::move(labels)}, {"datasets", std::move(sets)}}},
      {"options", std::move(options)}};
}

}  // namespace

std::string ChartConfigurations(const std::vector<Chart>& charts) {
  Json list = Json::array();
  for (const Chart& chart : charts) {
    list.push_back(chart.bars.empty() ? PlaneOf(chart) : BarsOf(chart));
  }
  // Labels may be anybody's text.
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace trainfare::scenarios
