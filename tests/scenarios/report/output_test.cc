#include "scenarios/report/output.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "model/error.h"
#include "scenarios/report/result_json.h"
#include "tests/scenarios/hermetic.h"

namespace trainfare::scenarios {
namespace {

Report ExampleReport() {
  Report report;
  report.json = "{\"step_time_s\": 1}";
  report.headline = {"one second"};
  Table table;
  table.columns = {{"step", "step_time_s", Align::kRight}};
  table.Add({Cell("1 s", 1.0)});
  report.tables = {table, table};
  report.notes = {"measured nowhere"};
  report.warnings = {"old"};
  return report;
}

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Of every format, and with a title that Markdown takes for a heading.
Report AnsweredReport() {
  Report report = ExampleReport();
  report.headline = {"# of sequences"};
  report.trace = std::vector<TraceProcess>{};
  report.warnings.clear();  // those of answers have codes
  report.json =
      AnswerText(ResultHead("trainfare.prediction/1", Origin()), report);
  return report;
}

void RequireReplaceableBy(const Report& report, const std::string& file) {
  OutputOptions options;
  options.exports = {file};
  RequireOurExports(options);
  RequireExportable(report, options);
}

}  // namespace

TEST_CASE("each format has what it should") {
  CHECK(Render(ExampleReport(), Format::kJson) == "{\"step_time_s\": 1}\n");
  CHECK(Render(ExampleReport(), Format::kCsv) == "step_time_s\n1\n");
  CHECK(Render(ExampleReport(), Format::kTable) ==
        "one second\n\nstep\n----\n 1 s\n\nstep\n----\n 1 s\n\n"
        "note: measured nowhere\n");
  CHECK(Render(ExampleReport(), Format::kMarkdown) ==
        "one second\n\n| step |\n| ---: |\n| 1 s |\n\n| step |\n| ---: |\n"
        "| 1 s |\n\n- measured nowhere\n");
}

TEST_CASE("results go out, all else to the log, and nothing when quiet") {
  const TemporaryFolder folder;
  OutputOptions options;
  options.format = Format::kJson;
  options.exports = {folder.Path("a.csv"), folder.Path("a.md")};
  std::ostringstream out;
  std::ostringstream log;
  Write(ExampleReport(), options, out, log);
  CHECK(out.str() == "{\"step_time_s\": 1}\n");
  CHECK(log.str() ==
        "trainfare: warning: old\nwritten: " + folder.Path("a.csv") +
            "\nwritten: " + folder.Path("a.md") + "\n");
  CHECK(Contents(folder.Path("a.csv")) == "step_time_s\n1\n");
  CHECK(Contents(folder.Path("a.md")) ==
        "<!-- written by trainfare -->\n" +
            Render(ExampleReport(), Format::kMarkdown));

  options.quiet = true;
  std::ostringstream silent;
  Write(ExampleReport(), options, out, silent);
  CHECK(silent.str().empty());
}

TEST_CASE("a suffix that no format has is refused before anything is written") {
  const TemporaryFolder folder;
  OutputOptions options;
  options.exports = {folder.Path("a.json"), folder.Path("b.txt")};
  std::ostringstream out;
  CHECK_THROWS_AS(Write(ExampleReport(), options, out, out), model::InputError);
  CHECK(out.str().empty());
  CHECK_FALSE(std::filesystem::exists(folder.Path("a.json")));
  CHECK_THROWS_WITH_AS(
      ExportFormat("r.pdf"),
      "--export r.pdf: expected a file ending in .html, .json, .csv, .md or "
      ".trace.json, or - for standard output",
      model::InputError);
}

TEST_CASE("a file that cannot be written leaves no piece behind") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(WriteFile(folder.Path("no/such/a.json"), "{}"),
                       (folder.Path("no/such/a.json") +
                        ": cannot be written: No such file or directory")
                           .c_str(),
                       model::InputError);
  // A folder stands where the file should go: the part is taken away again.
  std::filesystem::create_directory(folder.Path("taken.json"));
  CHECK_THROWS_AS(WriteFile(folder.Path("taken.json"), "{}"),
                  model::InputError);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(folder.Path("x")).parent_path())) {
    if (entry.is_regular_file()) ++files;
  }
  CHECK(files == 0);
}

TEST_CASE("an export of ours may be replaced, and no other file") {
  const TemporaryFolder folder;
  const Report report = AnsweredReport();
  std::ostringstream log;
  const auto written = [&](const char* name) {
    OutputOptions options;
    options.exports = {folder.Path(name)};
    Write(report, options, log, log);
    RequireReplaceableBy(report, folder.Path(name));
    return Contents(folder.Path(name));
  };
  const auto require = [&](const char* name, const std::string& text) {
    CAPTURE(text.substr(0, 200));
    RequireReplaceableBy(report, folder.Write(name, text));
  };
  const std::string json = written("a.json");
  const std::string page = written("a.html");
  const std::string trace = written("a.trace.json");
  const std::string csv = written("a.csv");
  const std::string markdown = written("a.md");
  require("b.json", Json::parse(json).dump());  // in another layout, too
  require("b.csv", csv + "2\n");

  const std::string record =
      R"({"schema": "trainfare.measurement/1", "kind": "step"})";
  for (const auto& of_others : {
           std::pair{"c.json", R"({"schema": "x", "a": "trainfare.x"})" + json},
           std::pair{"c.json", record},
           std::pair{"c.json", trace},
           std::pair{"c.trace.json", json},
           std::pair{"c.trace.json",
                     std::string("{\n  \"displayTimeUnit\": \"ms\",\n  "
                                 "\"otherData\": {\n    \"tool\": \"x\"\n  "
                                 "}\n}\n")},
           // Of 0.2.0, which did not say whose it is.
           std::pair{"c.trace.json",
                     std::string("{\n  \"displayTimeUnit\": \"ms\",\n  "
                                 "\"otherData\": {\n    \"title\": \"x\",\n    "
                                 "\"tool_version\": \"0.2.0\"\n  }\n}\n")},
           std::pair{"c.html", page.substr(0, page.find("trainfare."))},
           std::pair{"c.html", "<p>of others</p>\n" + page},
           std::pair{"c.csv", std::string("step_time_s,mine\n1,2\n")},
           std::pair{"c.csv", std::string("step_time_s")},
           std::pair{"c.md", std::string("| step |\n| ---: |\n| 1 s |\n")},
           std::pair{"c.md", "My notes\n\n" + markdown},
       }) {
    const char* name = of_others.first;
    const std::string text = of_others.second;
    CAPTURE(text.substr(0, 200));
    CHECK_THROWS_AS(require(name, text), model::InputError);
    CHECK(Contents(folder.Path(name)) == text);
  }
  // What is empty holds nothing.
  require("d.md", "");
}

TEST_CASE("an unknown format gets all of them") {
  CHECK_THROWS_WITH_AS(
      FormatFromText("xml"),
      "--format: expected table, json, csv or markdown, got \"xml\"",
      model::InputError);
}

}  // namespace trainfare::scenarios
