#include "scenarios/report/html.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "calibrate/fit/fit_folders.h"
#include "scenarios/commands/nearest_runs.h"
#include "scenarios/commands/predict.h"
#include "scenarios/commands/recommend.h"
#include "scenarios/report/page_files.h"
#include "tests/near.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {
namespace {

constexpr std::string_view kForeign = "<script>alert('x')</script>&\"";

Report Foreign() {
  const std::string name(kForeign);
  Report report;
  report.json = nlohmann::json{{"name", name}}.dump();
  report.headline = {name, name};
  Table table;
  table.title = name;
  table.columns = {{name, "name"}};
  table.Add({Cell(name)});
  table.Add({Cell("elided")});
  table.elided = {1};
  table.rest = name;
  report.tables = {table};
  Chart plane;
  plane.title = plane.caption = name;
  plane.x = plane.y = {name, name, true};
  plane.points = {{name, 1, 1, true}, {"left out", -1, 1, false}};
  plane.lines = {{name, {{name, 1, 1, false}, {name, 10, 5, false}}}};
  Chart bars;
  bars.title = bars.x.quantity = name;
  plane.names = bars.names = {name, name, name, name};
  bars.bars = {{name, 0, 1, 0.5, true}};
  bars.limit = 2;
  bars.limit_label = name;
  report.charts = {plane, bars};
  report.notes = {name};
  report.command = name;
  return report;
}

size_t CountOf(std::string_view text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

// Nothing runs but the scripts that the page was written with, nothing is
// fetched.
void CheckSelfContained(std::string page) {
  CHECK(page.size() < 1'000'000);
  for (const EmbeddedFile& script : {ChartLibrary(), PageScript()}) {
    CHECK(CountOf(page, script.digest()) == 1);
    const size_t at = page.find(script.text());
    REQUIRE(at != std::string::npos);
    page.erase(at, script.text().size());
  }
  CHECK(page.find("default-src 'none'") != std::string::npos);
  CHECK(CountOf(page, "<script></script>") == 2);
  CHECK(CountOf(page, "<script type=\"application/json\"") == 2);
  CHECK(CountOf(page, "<script") == 4);
  CHECK(CountOf(page, "</script") == 4);
  for (const char* fetch : {"src=", "href=", "url(", "@import", "<link"}) {
    CAPTURE(fetch);
    CHECK(page.find(fetch) == std::string::npos);
  }
}

// The JSON of an element.
nlohmann::json JsonOf(const std::string& page, const std::string& id) {
  const std::string begin = "id=\"" + id + "\">";
  const size_t from = page.find(begin) + begin.size();
  return nlohmann::json::parse(
      page.substr(from, page.find("</script>", from) - from));
}

nlohmann::json Data(const std::string& page) { return JsonOf(page, "result"); }

// What is asked of a shipped scenario, with its charts.
PredictOptions WithCharts() {
  PredictOptions options;
  options.scenario = "squad_bert_large";
  options.charts = true;
  return options;
}

}  // namespace

TEST_CASE("what others wrote stays text in a page") {
  const std::string page = HtmlPage(Foreign());
  CheckSelfContained(page);
  CHECK(page.find("alert('x')<") == std::string::npos);
  CHECK(CountOf(page, Escaped(kForeign)) > 12);
  // The data come back as they were.
  CHECK(Data(page).at("name") == kForeign);
  const nlohmann::json charts = JsonOf(page, "charts");
  REQUIRE(charts.size() == 2);
  const nlohmann::json& plane = charts.at(0).at("data").at("datasets");
  CHECK(plane.at(0).at("data").at(0).at("name") == kForeign);
  CHECK(charts.at(1).at("data").at("labels").at(0) == kForeign);
}

TEST_CASE("a page without charts has nothing to draw them with") {
  Report report;
  report.json = "{}";
  const std::string page = HtmlPage(report);
  CHECK(page.size() < 10'000);
  CHECK(CountOf(page, "<script") == 1);
}

TEST_CASE("a page of a recommendation has its choice, charts and data") {
  const FitFolder none;
  RecommendOptions options;
  options.scenario = "squad_bert_large";
  options.charts = true;
  const Report report = Recommend(options);
  const std::string page = HtmlPage(report);
  CheckSelfContained(page);
  CHECK(page.find(Escaped(report.headline.front())) != std::string::npos);
  const nlohmann::json answer = nlohmann::json::parse(report.json);
  CHECK(Data(page).at("chosen") == answer.at("chosen"));
  CHECK(Data(page).at("candidates").front() == answer.at("candidates").front());
  for (const char* title : {"cost against time",
                            "where a step goes",
                            "roofline",
                            "memory of one device",
                            "what the answer hangs on"}) {
    CAPTURE(title);
    CHECK(page.find(title) != std::string::npos);
  }
  // Charts are of the page alone: the answer is the same without them.
  options.charts = false;
  CHECK(Recommend(options).json == report.json);
}

TEST_CASE("the page of a prediction has the runs nearest to it") {
  const FitFolder none;
  PredictOptions options = WithCharts();
  options.device = {"v100_sxm2_32gb"};
  const Report report = Predict(options);
  const calibrate::LoadedFits fits = calibrate::LoadFitsOf("v100_sxm2_32gb");
  REQUIRE(fits.fits.size() == 1);
  const Scenario scenario = LoadScenario("squad_bert_large");
  const auto nearest = NearestRuns({&fits.fits.front()}, scenario.workload, 3);
  REQUIRE(nearest.size() == 3);
  // A run of the same stack and precision is nearer than of others.
  CHECK(nearest.front().run->place->settings ==
        calibrate::PlaceOf(scenario.workload).settings);
  CHECK(nearest.front().run->place->sequence_length == 384);
  const std::string page = HtmlPage(report);
  for (const NearRun& near : nearest) {
    CHECK(page.find(Escaped(near.run->label)) != std::string::npos);
  }
}

TEST_CASE("the page of a device without a fit has runs of others") {
  const FitFolder none;
  PredictOptions options = WithCharts();
  options.device.clear();
  options.instances = {"gcp/g2-standard-4"};
  const std::string page = HtmlPage(Predict(options));
  CHECK(page.find("nothing was measured on this device") != std::string::npos);
  // Its instance has one L4; another of the cloud has eight.
  CHECK(page.find("in gcp/g2-standard-96") != std::string::npos);
}

TEST_CASE("a page of many candidates stays small, and says what it left out") {
  nlohmann::json answer;
  for (int i = 0; i < 1000; ++i) {
    answer["candidates"].push_back(
        {{"instance", std::to_string(i)},
         {"estimate", {{"bottleneck", std::string(2000, 'x')}}}});
  }
  Report report;
  report.json = answer.dump();
  const std::string page = HtmlPage(report);
  CHECK(page.size() < 1'000'000);
  const nlohmann::json kept = Data(page);
  REQUIRE(kept.at("candidates").size() == 1000);
  CHECK(kept.at("candidates").front() == answer.at("candidates").front());
  CHECK(kept.at("candidates").back().at("estimate").is_null());
  const auto left_out = std::count_if(
      kept.at("candidates").begin(),
      kept.at("candidates").end(),
      [](const nlohmann::json& c) { return c.at("estimate").is_null(); });
  CHECK(page.find("lack the estimates of " + std::to_string(left_out) +
                  " candidates;") != std::string::npos);
}

TEST_CASE("a page of very many candidates lacks the last, and says so") {
  nlohmann::json answer;
  Table table;
  table.columns = {{"instance", "instance"}};
  for (int i = 0; i < 10000; ++i) {
    answer["candidates"].push_back(
        {{"instance", std::string(200, 'x')}, {"estimate", {{"batch", i}}}});
    table.Add({Cell(std::string(200, 'x'))});
  }
  Report report;
  report.json = answer.dump();
  report.tables = {table};
  const std::string page = HtmlPage(report);
  CHECK(page.size() < 1'000'000);
  const size_t kept = Data(page).at("candidates").size();
  CHECK(kept > 1000);
  CHECK(page.find("the last " + std::to_string(10000 - kept) +
                  " of 10000 candidates;") != std::string::npos);
  // Of those that are left, the best have theirs.
  CHECK(page.find("the estimates of " + std::to_string(kept - 10)) !=
        std::string::npos);
  CHECK(Data(page).at("candidates").at(9) == answer.at("candidates").at(9));
  CHECK(CountOf(page, "<td") == 500);
  CHECK(page.find("9500 more rows") != std::string::npos);
}

TEST_CASE("the parts of a step and of memory add up in their charts") {
  const FitFolder none;
  PredictOptions options = WithCharts();
  options.instances = {"aws/p4d.24xlarge"};
  const Report report = Predict(options);
  const nlohmann::json job =
      nlohmann::json::parse(report.json).at("predictions").at(0);
  bool scaling = false;
  for (const Chart& chart : report.charts) {
    if (chart.title == "where a step goes") {
      CHECK(chart.bars.back().high ==
            Near(1e3 * job.at("step_time_s").get<double>(), 1e-5));
    }
    if (chart.limit) {
      CHECK(chart.bars.back().high * 1024 * 1024 * 1024 ==
            Near(job.at("memory_bytes").get<double>(), 1e-5));
    }
    if (chart.title == "scaling over devices") {
      scaling = true;
      REQUIRE(chart.points.size() == 4);  // 1, 2, 4, 8
      CHECK(chart.points.back().marked);
      CHECK(chart.points.back().y ==
            Near(job.at("samples_per_s").get<double>(), 1e-5));
    }
  }
  CHECK(scaling);
}

}  // namespace trainfare::scenarios
