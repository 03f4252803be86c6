#include "scenarios/report/trace.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/near.h"

namespace trainfare::scenarios {

TEST_CASE("a trace in microseconds, each lane by its number") {
  const TraceLane compute{"computation",
                          {{"forward", 0.0, 2e-3, {}},
                           {"gemm", 0.0, 1.5e-3, {{"alone_s", 1.4e-3}}},
                           {"copy", 1.5e-3, 2e-3, {}}}};
  const TraceLane exchange{"exchange", {{"\"sum\"", 1e-3, 1.0000014e-3, {}}}};
  const auto trace = nlohmann::json::parse(
      ChromeTrace("a job", {{"one", {compute, exchange}}, {"two", {compute}}}));
  CHECK(trace["displayTimeUnit"] == "ms");
  CHECK(trace["otherData"]["tool"] == "trainfare");
  CHECK(trace["otherData"]["title"] == "a job");
  const auto& events = trace["traceEvents"];
  REQUIRE(events.size() == 12);
  CHECK(events[0]["name"] == "process_name");
  CHECK(events[0]["args"]["name"] == "one");
  CHECK(events[1]["args"]["name"] == "computation");
  CHECK(events[3]["ph"] == "X");
  CHECK(events[3]["dur"] == 1500.0);
  CHECK(events[3]["args"]["alone_s"] == 1.4e-3);
  CHECK(events[4]["ts"] == 1500.0);
  CHECK(events[6]["name"] == "\"sum\"");
  CHECK(events[6]["tid"] == 2);
  // Whole nanoseconds: what is less is rounded.
  CHECK(events[6]["dur"].get<double>() == Near(0.001, 1e-5));
  CHECK(events[8]["tid"] == 1);
  CHECK(events[8]["pid"] == 2);
}

}  // namespace trainfare::scenarios
