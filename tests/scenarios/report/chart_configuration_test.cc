#include "scenarios/report/chart_configuration.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/near.h"

namespace trainfare::scenarios {
namespace {

nlohmann::json Configured(const Chart& chart) {
  return nlohmann::json::parse(ChartConfigurations({chart})).at(0);
}

// The data sets of a chart by their role.
nlohmann::json SetOf(const nlohmann::json& chart, const std::string& role) {
  for (const nlohmann::json& set : chart.at("data").at("datasets")) {
    if (set.at("role") == role) return set;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("a plane has what its axes show, the marked point by itself") {
  Chart chart;
  chart.x = {"run", "min", true};
  chart.y = {"cost", "$"};
  chart.names = {"candidates", "chosen", "", ""};
  chart.points = {{"a", 1, 2, false},
                  {"b", 10, 3, true},
                  {"nowhere", -1, 2, false},
                  {"not known", 2, std::nan(""), false}};
  chart.lines = {{"front", {{"a", 1, 2, false}, {"b", 10, 3, false}}}};
  const nlohmann::json made = Configured(chart);
  CHECK(made.at("type") == "scatter");
  const nlohmann::json chosen = SetOf(made, "chosen");
  const nlohmann::json dots = SetOf(made, "dot");
  CHECK(chosen.at("data").dump() == R"([{"name":"b","x":10.0,"y":3.0}])");
  CHECK(dots.at("data").dump() == R"([{"name":"a","x":1.0,"y":2.0}])");
  CHECK(chosen.at("pointStyle") != dots.at("pointStyle"));
  CHECK(SetOf(made, "line").at("data").size() == 2);
  const nlohmann::json& scales = made.at("options").at("scales");
  CHECK(scales.at("x").at("type") == "logarithmic");
  CHECK(scales.at("x").at("title").at("text") == "run (min)");
  CHECK(scales.at("x").at("min") < 1.0);
  CHECK(scales.at("x").at("max") > 10.0);
  CHECK(scales.at("y").at("beginAtZero") == true);
  CHECK(made.at("options").at("plugins").at("legend").at("display") == true);
}

TEST_CASE("points are named where their names have room") {
  Chart chart;
  chart.points = {{"chosen", 0, 0, true}};
  for (int i = 1; i < 12; ++i) chart.points.push_back({"", 1.0 * i, 1, false});
  CHECK(SetOf(Configured(chart), "dot").at("named") == true);
  chart.points.push_back({"", 12, 1, false});
  CHECK(SetOf(Configured(chart), "dot").at("named") == false);
  CHECK(SetOf(Configured(chart), "chosen").at("named") == true);
}

TEST_CASE("areas of points are as their shares") {
  Chart chart;
  chart.x = {"intensity", "FLOP/B"};
  chart.y = {"rate", "FLOP/s"};
  chart.names = {"kernels", "", "", "share of the time"};
  chart.points = {{"large", 1, 2, false, 0.64},
                  {"nowhere", std::nan(""), 2, false, 0.2},
                  {"small", 3, 4, false, 0.16}};
  const nlohmann::json dots = SetOf(Configured(chart), "dot");
  const auto radii = dots.at("pointRadius").get<std::vector<double>>();
  REQUIRE(radii.size() == 2);
  CHECK(radii.at(0) == Near(2 * radii.at(1), 1e-5));  // root of 0.64 / 0.16
  CHECK(dots.at("data").at(1).at("share") == 0.16);
  const Table twin = TableOf(chart);
  CHECK(twin.columns.back().title == "share of the time (%)");
  CHECK(twin.rows.front().back().text == "64.00");
}

TEST_CASE("bars run from low to high, with a mark and a limit") {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  Chart chart;
  chart.x = {"memory", "GiB"};
  chart.names = {"interval", "chosen", "prediction", ""};
  chart.bars = {{"one", 1, 3, 2.0, true},
                {"two", 2, 5, {}, false},
                {"endless", 1, kInfinite, kInfinite, false}};
  chart.limit = 40;
  chart.limit_label = "capacity";
  const nlohmann::json made = Configured(chart);
  CHECK(made.at("type") == "bar");
  CHECK(made.at("data").at("labels").dump() == R"(["one","two","endless"])");
  CHECK(SetOf(made, "chosen").at("data").dump() == "[[1.0,3.0],null,null]");
  CHECK(SetOf(made, "bar").at("data").dump() == "[null,[2.0,5.0],null]");
  CHECK(SetOf(made, "mark").at("data").dump() == "[2.0,null,null]");
  CHECK(TableOf(chart).rows.at(1).at(2).text == "-");
  const nlohmann::json& options = made.at("options");
  CHECK(options.at("limit").at("text") == "capacity 40.0 GiB");
  CHECK(options.at("scales").at("x").at("suggestedMax") == 40.0);
  CHECK(options.at("plugins").at("legend").at("display") == true);
}

TEST_CASE("a label that is no text of UTF-8 does no harm") {
  Chart chart;
  chart.bars = {{"\xff", 0, 1, {}, false}};
  CHECK(Configured(chart).at("data").at("labels").at(0) == "\xef\xbf\xbd");
  CHECK(TableOf(chart).columns.size() == 3);  // none for values
}

}  // namespace trainfare::scenarios
