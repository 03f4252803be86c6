#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "model/error.h"
#include "tests/near.h"
#include "trainer/measure/trace.h"
#include "trainer/training/measure.h"

namespace trainfare::trainer {
namespace {

using nlohmann::json;

json Record(const std::string& more) {
  Measurer measurer(at::kCPU);
  const auto record = measurer.Run(ParseMeasureRequest(
      R"({"model": "bert-tiny", "batch": 2, "sequence_length": 16,
          "steps": 2, "warmup": 1, "seed": 4)" +
      more + "}"));
  DOCTEST_REQUIRE(record.has_value());
  return json::parse(ToJsonLine(*record));
}

DOCTEST_TEST_CASE("layers are timed where asked, and tile their pass") {
  const json record = Record(R"(, "layers": true, "accumulation": 2)");
  const auto parts = record["parts"].get<std::vector<std::string>>();
  DOCTEST_CHECK(parts == std::vector<std::string>{
                             "embeddings", "layer 0", "layer 1", "head"});
  for (const json& sample : record["samples"]) {
    const json& timeline = sample["timeline"];
    DOCTEST_REQUIRE(timeline["passes"].size() == 2);
    double forward_s = 0;
    double backward_s = 0;
    double last_s = 0;
    for (const json& pass : timeline["passes"]) {
      for (const char* key : {"forward_at_s", "backward_at_s"}) {
        const auto at_s = pass[key].get<std::vector<double>>();
        DOCTEST_REQUIRE(at_s.size() == parts.size() + 1);
        for (const double instant : at_s) {
          DOCTEST_CHECK(instant >= last_s);
          last_s = instant;
        }
        // Every part takes time: a hook that never ran would leave none.
        for (size_t i = 0; i < parts.size(); ++i) {
          DOCTEST_CHECK(at_s[i + 1] > at_s[i]);
        }
        (key[0] == 'f' ? forward_s : backward_s) += at_s.back() - at_s.front();
      }
    }
    // Instants are kept to the nanosecond.
    DOCTEST_CHECK(forward_s == Near(sample["forward_s"].get<double>(), 1e-5));
    DOCTEST_CHECK(backward_s == Near(sample["backward_s"].get<double>(), 1e-5));
    const auto optimizer =
        timeline["optimizer_at_s"].get<std::vector<double>>();
    DOCTEST_CHECK(optimizer.at(0) >= last_s);
    DOCTEST_CHECK(optimizer.at(1) > optimizer.at(0));
    DOCTEST_CHECK(sample["step_s"].get<double>() > optimizer.at(1) - 1e-8);
  }
}

DOCTEST_TEST_CASE("timing layers changes no loss, and costs nothing unasked") {
  const json plain = Record("");
  const json timed = Record(R"(, "layers": true)");
  DOCTEST_CHECK_FALSE(plain.contains("parts"));
  for (size_t i = 0; i < plain["samples"].size(); ++i) {
    DOCTEST_CHECK_FALSE(plain["samples"][i].contains("timeline"));
    DOCTEST_CHECK(plain["samples"][i]["loss"] == timed["samples"][i]["loss"]);
  }
}

DOCTEST_TEST_CASE("a record proves where it ran") {
  const json record = Record("");
  DOCTEST_CHECK(record["device"]["time_s"] > 0);
  DOCTEST_CHECK(record["device"]["time_s"] == record["host_load"]["cpu_s"]);
  const json& energy = record["energy"];
  DOCTEST_CHECK((energy.contains("missing") || energy["energy_j"] >= 0));

  StepRecord idle;
  idle.device = {"NVIDIA H100", "cuda", 1, "0000:3B:00.0"};
  idle.samples.push_back({0, true, {}});
  idle.samples.back().times.forward_s = 1;  // of a warm-up step: no proof
  DOCTEST_CHECK_THROWS_WITH(RequireDeviceTime(idle),
                            "NVIDIA H100 did no work on the timed steps");
  idle.samples.back().warmup = false;
  DOCTEST_CHECK_NOTHROW(RequireDeviceTime(idle));
  DOCTEST_CHECK(json::parse(ToJsonLine(idle))["device"]["bus_id"] ==
                "0000:3B:00.0");

  DOCTEST_CHECK_NOTHROW(RequireRanOn(at::kCPU, at::zeros({1})));
  DOCTEST_CHECK_THROWS_WITH(
      RequireRanOn(at::Device(at::kCUDA, 0), at::zeros({1})),
      "asked to run on cuda:0, but the result is on cpu");
}

DOCTEST_TEST_CASE("a step is a trace whose events nest and tile") {
  const json record = Record(R"(, "layers": true)");
  const json trace = ChromeTrace(record, "records:1", 2);
  std::vector<json> spans;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") spans.push_back(event);
  }
  // Step, two passes of four parts each, optimizer.
  DOCTEST_REQUIRE(spans.size() == 1 + 2 * (1 + 4) + 1);
  const auto named = [&](const char* name, const char* category) -> json {
    for (const json& span : spans) {
      if (span["name"] == name && span["cat"] == category) return span;
    }
    return nullptr;
  };
  const json& sample = record["samples"][2];
  const auto end = [](const json& span) {
    return span["ts"].get<double>() + span["dur"].get<double>();
  };
  const json step = named("step 2", "step");
  DOCTEST_CHECK(step["ts"] == 0);
  DOCTEST_CHECK(step["dur"].get<double>() ==
                Near(1e6 * sample["step_s"].get<double>(), 1e-5));
  for (const char* phase : {"forward", "backward"}) {
    const json whole = named(phase, "phase");
    double parts_us = 0;
    for (const char* part : {"embeddings", "layer 0", "layer 1", "head"}) {
      const json span = named(part, phase);
      DOCTEST_CHECK(span["ts"] >= whole["ts"]);
      DOCTEST_CHECK(end(span) <= end(whole) + 1e-6);
      parts_us += span["dur"].get<double>();
    }
    DOCTEST_CHECK(parts_us == Near(whole["dur"].get<double>(), 1e-6));
    DOCTEST_CHECK(end(whole) <= end(step));
  }
  // Back through the model: the head's part comes first.
  DOCTEST_CHECK(end(named("head", "backward")) <=
                named("layer 1", "backward")["ts"].get<double>() + 1e-6);
  DOCTEST_CHECK(end(named("layer 1", "backward")) <=
                named("layer 0", "backward")["ts"].get<double>() + 1e-6);
}

DOCTEST_TEST_CASE("buckets of gradients are a track of their own") {
  json record = Record(R"(, "layers": true)");
  json& sample = record["samples"][1];
  sample["bucket_start_s"] = {0.001, 0.002};
  sample["bucket_end_s"] = {0.0015, 0.004};
  const json trace = ChromeTrace(record, "records:1", 1);
  const double begin_us =
      1e6 * sample["timeline"]["passes"][0]["backward_at_s"][0].get<double>();
  int buckets = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event.value("cat", "") != "gradients") continue;
    DOCTEST_CHECK(event["tid"] == 2);
    DOCTEST_CHECK(event["name"] == "bucket " + std::to_string(buckets));
    DOCTEST_CHECK(event["ts"].get<double>() ==
                  Near(begin_us + (buckets == 0 ? 1000 : 2000), 1e-5));
    DOCTEST_CHECK(event["dur"].get<double>() ==
                  Near(buckets == 0 ? 500 : 2000, 1e-5));
    ++buckets;
  }
  DOCTEST_CHECK(buckets == 2);
}

DOCTEST_TEST_CASE("a trace of what was not recorded is refused") {
  const auto message = [](const json& record, std::optional<int64_t> step) {
    try {
      ChromeTrace(record, "f:3", step);
    } catch (const model::InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  DOCTEST_CHECK(message(Record(""), std::nullopt) ==
                "f:3: timeline: missing; measure or train with --layers");
  json record = Record(R"(, "layers": true)");
  DOCTEST_CHECK(message(record, 7) == "f:3: no step 7; it has 0 to 2");
  record["samples"][2]["timeline"]["passes"][0]["backward_at_s"].erase(0);
  DOCTEST_CHECK(message(record, 2) ==
                "f:3: timeline.backward_at_s: expected 5 instants, got 4");
  record["samples"][1]["bucket_start_s"] = {0.001, 0.002};
  record["samples"][1]["bucket_end_s"] = {0.0015};
  DOCTEST_CHECK(message(record, 1) ==
                "f:3: samples.bucket_end_s: expected 2 instants, got 1");
  record["samples"][1]["timeline"]["passes"] = json::array();
  DOCTEST_CHECK(message(record, 1) == "f:3: timeline.passes: empty");
  record.erase("workload");
  DOCTEST_CHECK(message(record, 0).find("f:3: not a record of a step: ") == 0);
}

}  // namespace
}  // namespace trainfare::trainer
