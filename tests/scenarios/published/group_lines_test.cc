// The rows of each group in lines, and what is asked of them.

#include "scenarios/published/group_lines.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/scenarios/published/shipped.h"

namespace trainfare::scenarios {
namespace {

using calibrate::PublishedGroup;
using calibrate::PublishedRun;

}  // namespace

TEST_CASE("what a workload assumes makes its runs inferred, a price does not") {
  const auto inferred = [](const char* run) {
    return IsInferred(AllPublished().runs.at(run));
  };
  // Of IMDb nobody states the length, whichever device it is on.
  CHECK(inferred("imdb_v100x1_ls_fp16_adan_fused_multi_b16"));
  CHECK(inferred("imdb_tpuv2_tf_fp32_b16"));
  PublishedRun run;
  CHECK_FALSE(IsInferred(run));
  run.assumed = {{"price", "of the day"}};
  CHECK_FALSE(IsInferred(run));
  run.assumed["batch"] = "as elsewhere";
  CHECK(IsInferred(run));
  for (const auto& row : PublishedAnswerJson()["rows"]) {
    const PublishedRun& of_row =
        AllPublished().RunOf(*AllPublished().Find(std::string(row["label"])));
    CHECK(row["inferred"] == IsInferred(of_row));
    CHECK(row["assumed"].size() == of_row.assumed.size());
  }
}

TEST_CASE("each group stands under both protocols with what moves it") {
  std::map<std::string, std::set<std::string>> protocols;
  for (const auto& group : PublishedAnswerJson()["groups"]) {
    protocols[group["group"]].insert(group["protocol"]);
    CHECK(group.contains("free_parameters"));
    CHECK(group.contains("chosen_on_these_rows"));
    CHECK(group["stated"]["n"] <= group["n"]);
    // A limit is met or it is missed by something.
    if (group["met"] == false) {
      CHECK(group["verdict"].get<std::string>().starts_with("missed: "));
    }
  }
  // Nothing that something is asked of is left out for want of answers.
  for (const calibrate::PublishedGroup& group : AllPublished().groups) {
    CAPTURE(group.name);
    if (group.as_shipped && group.as_shipped->worst) {
      CHECK(protocols.contains(group.name));
    }
  }
  for (const auto& name_of : protocols) {
    const auto& name = name_of.first;
    const auto& both = name_of.second;
    CAPTURE(name);
    CHECK(both.size() == 2);
  }
}

TEST_CASE("orders are as free, seen and chosen as what they are made of") {
  int64_t orders = 0;
  for (const auto& group : PublishedAnswerJson()["groups"]) {
    if (!group["group"].get<std::string>().starts_with("order_by_")) continue;
    ++orders;
    CHECK(group["chosen_on_these_rows"] == "yes");
    // More than any group of one maker's devices has.
    CHECK(group["free_parameters"] > 20);
    const bool shipped = group["protocol"] == "as-shipped";
    CHECK((group["seen_by_fit"] > 0) == shipped);
  }
  CHECK(orders == 4);
}

TEST_CASE("every row of a group is in one line of it") {
  // By group and protocol: those of the rows, and those that the lines count.
  std::map<std::string, int64_t> of_rows;
  std::map<std::string, int64_t> of_lines;
  std::set<std::string> lines;
  for (const auto& row : PublishedAnswerJson()["rows"]) {
    for (const char* protocol : {"as-shipped", "leave-one-out"}) {
      const auto& answer = row[protocol];
      if (answer["how"] == "printed figures") continue;
      if (!answer.contains("measure") && answer["refused"] == false) continue;
      ++of_rows[std::string(row["group"]) + " " + protocol];
    }
  }
  for (const auto& line : PublishedAnswerJson()["groups"]) {
    const std::string group = line["group"];
    const std::string protocol = line["protocol"];
    CAPTURE(group);
    // What is right or wrong has no percent, and what has percent is neither.
    const bool judged = line["measure"] == "right_or_wrong";
    CHECK((judged ? line["n"] : line["judged"]) == 0);
    CHECK(lines.insert(group + protocol + std::string(line["measure"])).second);
    if (group.starts_with("order_by_")) continue;
    const int64_t rows = line["n"].get<int64_t>() +
                         line["judged"].get<int64_t>() +
                         line["refused"].get<int64_t>();
    if (rows > 0) of_lines[group + " " + protocol] += rows;
  }
  CHECK(of_lines == of_rows);
  CHECK(of_lines["trainium as-shipped"] > 20);
  // Points beside percent, and bounds beside both.
  CHECK(lines.contains("adanas-shippedpoints"));
  CHECK(lines.contains("trainiumas-shippedpoints"));
  CHECK(lines.contains("trainiumas-shippedright_or_wrong"));
}

TEST_CASE("a wrong bound misses the limit of its group, and is named") {
  PublishedGroup::Limit worst;
  worst.worst = 12;
  const AskedLimit judged = PartOf(worst, LineMeasure::kRightOrWrong);
  GroupLine line;
  line.measure = LineMeasure::kRightOrWrong;
  line.judged = line.right = 3;
  CHECK(VerdictOf(judged, line).met() == true);
  CHECK(VerdictOf({}, line).met() == std::nullopt);
  CHECK(VerdictOf({}, line).Words() == "-");
  line.right = 1;
  CHECK(VerdictOf(judged, line).met() == false);
  CHECK(VerdictOf(judged, line).missed == std::vector<std::string>{"2 wrong"});
  CHECK(VerdictOf(judged, line).Words() == "missed: 2 wrong");
  // Percent are of no points, and nothing is asked where nothing was set.
  CHECK_FALSE(PartOf(worst, LineMeasure::kPoints).has_value());
  CHECK_FALSE(PartOf({}, LineMeasure::kRightOrWrong).has_value());
  CHECK(LimitText(PartOf(worst, LineMeasure::kPercent)) == "worst 12 %");
  CHECK(LimitText(judged) == "all right");
  // A median of nothing meets no limit.
  GroupLine refused;
  refused.refused = 2;
  CHECK(VerdictOf(worst, refused).Words() == "missed: no row is answered");
  for (const auto& row : PublishedAnswerJson()["rows"]) {
    const auto& answer = row["as-shipped"];
    if (!answer.contains("right") || answer["measure"] != "bound") continue;
    const std::string note =
        "as-shipped: " + std::string(row["label"]) + " is wrong: ";
    const auto& notes = PublishedAnswerJson()["notes"];
    const bool named =
        std::any_of(notes.begin(), notes.end(), [&](const auto& text) {
          return std::string(text).starts_with(note);
        });
    CAPTURE(note);
    CHECK(named == (answer["right"] == false));
  }
}

}  // namespace trainfare::scenarios
