#include "scenarios/report/limits.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "scenarios/validation/error_summary.h"
#include "scenarios/validation/summary_json.h"

namespace trainfare::scenarios {
namespace {

// Two answers, one of which does not know its cost, and what is beside them.
Report ReportWith(std::string_view second_cost = "80") {
  Report report;
  report.json = R"({"price": {"price_usd_per_hour": 2},
    "device": "t4",
    "list": [{"hidden_s": 1}],
    "predictions": [
      {"cost_usd": 120.5, "mfu": 0.4, "grade": "measured",
       "run": {"compile_s": 60, "low_s": 1}, "other": {"low_s": 2}},
      {"cost_usd": )" +
                std::string(second_cost) + R"(, "mfu": 0.5,
       "run": {"compile_s": 3000, "low_s": 1}, "other": {"low_s": 2}}],
    "part": null})";
  report.answers = {"/predictions/0", "/predictions/1"};
  return report;
}

std::string Complaint(const char* limit, Report report = ReportWith()) {
  CheckLimits({LimitFromText(limit)}, report);
  CHECK((report.exit_code == kLimitPassed) == !report.complaint.empty());
  return report.complaint;
}

}  // namespace

TEST_CASE("every answer is held to a limit") {
  CHECK(Complaint("cost_usd>100") ==
        "--fail-if: cost_usd of predictions/0 is 120.5, limit cost_usd>100");
  CHECK(Complaint("cost_usd<100") ==
        "--fail-if: cost_usd of predictions/1 is 80.00, limit cost_usd<100");
  CHECK(Complaint("cost_usd>120.5").empty());
  CHECK_FALSE(Complaint("cost_usd>=120.5").empty());
  CHECK(Complaint("price_usd_per_hour>1") ==
        "--fail-if: price_usd_per_hour is 2.000, limit price_usd_per_hour>1");
}

TEST_CASE("what is not known is not within a limit") {
  for (const char* limit : {"cost_usd>1000", "cost_usd<0"}) {
    CAPTURE(limit);
    CHECK(Complaint(limit, ReportWith("null"))
              .find("cost_usd of predictions/1 is not known") !=
          std::string::npos);
  }
  // A part that an answer may have, and has not.
  CHECK(Complaint("part.cost_s>1") ==
        "--fail-if: part.cost_s is not known, limit part.cost_s>1");
  // By its last name alone, where an example has said that there is one.
  Report report = ReportWith();
  CheckLimits({LimitFromText("hidden_s>1")}, report, Unfound::kNotKnown);
  CHECK(report.exit_code == kLimitPassed);
  CHECK(report.complaint ==
        "--fail-if: hidden_s is not known, limit hidden_s>1");
}

TEST_CASE("a limit is written in units of its figure") {
  CHECK(Complaint("compile_s>1h").empty());
  CHECK_FALSE(Complaint("run.compile_s > 49 min").empty());
  CHECK(Complaint("cost_usd>121usd").empty());
  CHECK_FALSE(Complaint("mfu<45%").empty());
  CHECK(Complaint("mfu<0.4").empty());
  Report report = ReportWith();
  report.answers_in_percent = true;
  CHECK_FALSE(Complaint("mfu<45%", report).empty());
  CHECK(Complaint("mfu>1%", report).empty());  // 0.4 % and 0.5 %
}

TEST_CASE("a figure without its unit is told which") {
  const auto refusal = [](const char* text) {
    try {
      LimitFromText(text);
    } catch (const UsageError& error) {
      const std::string words = error.what();
      return words.substr(words.rfind('"') + 1);
    }
    return std::string("none");
  };
  CHECK(refusal("run_time>4h") == "; hint: run_time_s");
  CHECK(refusal("memory>20GiB") == "; hint: memory_bytes");
  CHECK(refusal("cost<3usd").empty());
  CHECK(refusal("run_time>long").empty());
}

TEST_CASE("a figure that is not there, no number, or two is refused") {
  for (const char* limit : {"cots_usd>1", "hidden_s>1", "grade>1", "low_s>1"}) {
    CAPTURE(limit);
    CHECK_THROWS_AS(Complaint(limit), UsageError);
  }
  CHECK(Complaint("run.low_s>1").empty());
  CHECK_THROWS_WITH_AS(Complaint("low_s>1"),
                       "--fail-if: \"low_s\" is other.low_s and run.low_s; "
                       "say which",
                       UsageError);
  for (const char* bad : {"mape",
                          "mape>",
                          "mape>x",
                          "mape=5",
                          ">5",
                          "mape>>5",
                          "cost_usd>5%",
                          "cost_usd>5s",
                          "mape>nan",
                          "run_time_s>4parsecs"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(LimitFromText(bad), UsageError);
  }
}

TEST_CASE("what moved since a baseline is looked at after the answers") {
  const auto complaint = [](const char* limit, std::string_view choice) {
    Report report;
    report.json =
        R"({"candidates": [{"cost_usd": 3}], "baseline": {"choice": )" +
        std::string(choice) + "}}";
    report.answers = {"/candidates/0"};
    report.changes = {"/baseline/choice"};
    return Complaint(limit, std::move(report));
  };
  const char* moved = R"({"cost_usd": 9, "cost_percent": 7.5})";
  CHECK(complaint("cost_percent>5%", moved) ==
        "--fail-if: cost_percent is 7.500, limit cost_percent>5%");
  CHECK(complaint("cost_percent>8", moved).empty());
  CHECK(complaint("cost_usd>5", moved).empty());
  CHECK_THROWS_AS(complaint("cots_percent>5", moved), UsageError);
  // One of the two recommends nothing: by how much it moved is not known.
  CHECK(complaint("cost_percent>5", "null") ==
        "--fail-if: cost_percent is not known, limit cost_percent>5");
}

TEST_CASE("a complaint names the first ten") {
  Report report;
  report.json = R"({"rows": [)";
  for (int i = 0; i < 12; ++i) {
    report.json += i > 0 ? R"(, {"x": 1})" : R"({"x": 1})";
    report.answers.push_back("/rows/" + std::to_string(i));
  }
  report.json += "]}";
  CHECK(Complaint("x>0", report)
            .ends_with("x of rows/9 is 1.000, limit x>0; and 2 more"));
}

TEST_CASE("an answer that has failed already keeps its code") {
  Report report = ReportWith();
  report.exit_code = kNothingFits;
  CheckLimits({LimitFromText("cost_usd>100")}, report);
  CHECK(report.exit_code == kNothingFits);
}

TEST_CASE("limits on errors are in percent") {
  const Limit limit = LimitFromText(" coverage <= 70 % ");
  CHECK(limit.figure == "coverage");
  CHECK_FALSE(limit.above);
  CHECK(limit.inclusive);
  CHECK(limit.value == 70.0);
  CHECK_NOTHROW(RequireFigures({limit}, SummaryFigures()));
  CHECK_THROWS_AS(RequireFigures({LimitFromText("mean>5")}, SummaryFigures()),
                  UsageError);
  const ErrorSummary summary = Summarise({{4.0, true}, {-6.0, false}});
  const auto code = [&](const char* text) {
    Report report;
    report.json = R"({"overall": {"mape": 5, "max": 6, "coverage": 50}})";
    AnswerWithOverall(summary, report);
    CheckLimits({LimitFromText(text)}, report);
    return report.exit_code;
  };
  CHECK(code("mape>5%") == kOk);
  CHECK(code("mape>=5%") == kLimitPassed);
  CHECK(code("coverage<60") == kLimitPassed);
  CHECK(code("max>6") == kOk);
  Report none;
  none.json = R"({"overall": {"mape": null}})";
  AnswerWithOverall(Summarise({}), none);
  CHECK(none.exit_code == kInput);
}

}  // namespace trainfare::scenarios
