// What is asked of each group, word for word as it was asked: no limit follows
// what comes out of a day.

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "scenarios/published/group_lines.h"
#include "tests/scenarios/published/shipped.h"

namespace trainfare::scenarios {
namespace {

// Percent; nullopt: nothing is asked.
struct AskedErrors {
  std::optional<double> median;
  std::optional<double> worst;
  bool all_right = false;
  bool all_inside = false;
  bool all_answered = false;  // what was run is never refused

  bool operator==(const AskedErrors&) const = default;
};

AskedErrors Worst(double percent) { return {.median = {}, .worst = percent}; }

AskedErrors MedianAndWorst(double median, double worst) {
  return {.median = median, .worst = worst};
}

AskedErrors NoneRefused(AskedErrors asked) {
  asked.all_answered = true;
  return asked;
}

const AskedErrors kAllRight = {.median = {}, .worst = {}, .all_right = true};

struct RequestedRow {
  std::optional<AskedErrors> as_shipped;
  std::optional<AskedErrors> left_out;
};

// The table of the request.
const std::map<std::string, RequestedRow>& Request() {
  static const std::map<std::string, RequestedRow> table = {
      // V100, A100, A10, T4
      {"gpu_times", {MedianAndWorst(5, 15), MedianAndWorst(5, 15)}},
      // 2 and 4 GPUs
      {"data_parallel",
       {Worst(10), AskedErrors{.median = {}, .worst = 15, .all_inside = true}}},
      {"tpu_times",
       {NoneRefused(MedianAndWorst(6, 15)),
        NoneRefused(MedianAndWorst(8, 20))}},
      {"trainium", {NoneRefused(Worst(12)), NoneRefused(Worst(20))}},
      {"emotion", {MedianAndWorst(10, 25), MedianAndWorst(10, 25)}},
      {"sambanova", {NoneRefused(Worst(10)), {}}},
      {"cerebras", {NoneRefused(Worst(10)), {}}},
      {"groq", {NoneRefused(Worst(10)), {}}},
      {"graphcore", {Worst(10), {}}},
      {"energy", {Worst(10), Worst(12)}},
      {"fits", {NoneRefused(kAllRight), {}}}};
  return table;
}

std::optional<AskedErrors> AskedOf(const AskedLimit& limit) {
  if (!limit) return std::nullopt;
  return AskedErrors{limit->median,
                     limit->worst,
                     limit->all_right,
                     limit->all_inside,
                     limit->all_answered};
}

}  // namespace

TEST_CASE("the limits are those that were asked for") {
  std::set<std::string> groups;
  for (const calibrate::PublishedGroup& group : AllPublished().groups) {
    CAPTURE(group.name);
    const auto asked = Request().find(group.name);
    const RequestedRow row =
        asked == Request().end() ? RequestedRow{} : asked->second;
    CHECK(AskedOf(group.as_shipped) == row.as_shipped);
    CHECK(AskedOf(group.leave_one_out) == row.left_out);
    groups.insert(group.name);
  }
  for (const auto& of_group : Request()) {
    CAPTURE(of_group.first);
    CHECK(groups.contains(of_group.first));
  }
}

TEST_CASE("each limit is on the page, that of an order, too") {
  std::set<std::string> asked;
  for (const auto& line : PublishedAnswerJson()["groups"]) {
    if (line["met"].is_null()) continue;
    asked.insert(std::string(line["group"]) + " " +
                 std::string(line["protocol"]));
    if (!std::string(line["group"]).starts_with("order_by_")) continue;
    CHECK(line["limit"] == "all right");
    CHECK(line["met"] == (line["right"] == line["judged"]));
  }
  std::set<std::string> wanted;
  for (const auto& name_of : Request()) {
    if (name_of.second.as_shipped) wanted.insert(name_of.first + " as-shipped");
    if (name_of.second.left_out) {
      wanted.insert(name_of.first + " leave-one-out");
    }
  }
  for (const char* order : {"order_by_run_time", "order_by_cost"}) {
    wanted.insert(std::string(order) + " as-shipped");
    wanted.insert(std::string(order) + " leave-one-out");
  }
  CHECK(asked == wanted);
  CHECK(PublishedAnswerJson()["limits"] == wanted.size());
}

TEST_CASE("what a limit asks of its line is in keys as it is in words") {
  const auto number_of = [](const std::optional<double>& most) {
    return most ? nlohmann::json(*most) : nlohmann::json(nullptr);
  };
  std::map<std::string, AskedLimit> limits;  // by group and protocol
  for (const calibrate::PublishedGroup& group : AllPublished().groups) {
    limits[group.name + " as-shipped"] = group.as_shipped;
    limits[group.name + " leave-one-out"] = group.leave_one_out;
  }
  int64_t of_percent = 0;
  for (const auto& line : PublishedAnswerJson()["groups"]) {
    CAPTURE(line.dump());
    const auto& asked = line["asked"];
    CHECK(asked.is_null() == line["met"].is_null());
    CHECK(line["missed"].empty() == (line["met"] != false));
    if (asked.is_null()) continue;
    const auto limit = limits.find(std::string(line["group"]) + " " +
                                   std::string(line["protocol"]));
    CHECK(asked["all_right"] == (line["measure"] == "right_or_wrong"));
    if (limit == limits.end()) continue;  // an order's, which is all
    CHECK(asked["all_inside"] == limit->second->all_inside);
    CHECK(asked["all_answered"] == limit->second->all_answered);
    if (line["measure"] != "percent") continue;
    ++of_percent;
    CHECK(asked["median_percent"] == number_of(limit->second->median));
    CHECK(asked["worst_percent"] == number_of(limit->second->worst));
  }
  CHECK(of_percent > 10);
}

TEST_CASE("what met its limit as shipped meets it") {
  std::map<std::string, int64_t> lines;  // that something is asked of
  for (const auto& line : PublishedAnswerJson()["groups"]) {
    if (line["protocol"] != "as-shipped" || line["met"].is_null()) continue;
    const std::string group = line["group"];
    CAPTURE(group);
    ++lines[group];
    const std::set<std::string> met = {"gpu_times",
                                       "tpu_times",
                                       "emotion",
                                       "sambanova",
                                       "cerebras",
                                       "groq",
                                       "energy",
                                       "fits"};
    if (!met.contains(group)) continue;
    CHECK(line["met"] == true);
    // By the numbers, whatever the verdict says.
    const AskedErrors limit = *Request().at(group).as_shipped;
    if (line["measure"] == "percent") {
      if (limit.median) CHECK(line["median"] <= *limit.median);
      if (limit.worst) CHECK(line["max"] <= *limit.worst);
    }
    CHECK(line["right"] == line["judged"]);
    CHECK(line["n"].get<int64_t>() + line["judged"].get<int64_t>() > 0);
  }
  CHECK(lines["energy"] == 1);
  CHECK(lines["fits"] == 1);
}

}  // namespace trainfare::scenarios
