#include "calibrate/records/measurement.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "calibrate/fit/step_model.h"
#include "calibrate/records/measured_observations.h"
#include "calibrate/session/requests.h"
#include "model/error.h"
#include "model/presets.h"
#include "model/stack_rules.h"
#include "model/validate.h"
#include "tests/calibrate/records/replaced.h"
#include "tests/model/walk_fields.h"
#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::calibrate {
namespace {

using model::InputError;

// One record as docs/guide/measurements.md describes it.
const std::string kRecord =
    R"({"schema": "trainfare.measurement/1", "kind": "step", "id": "3f2a", )"
    R"("time": "2026-11-20T12:00:00Z", )"
    R"("device": {"name": "AMD EPYC 9B45", "kind": "cpu", "count": 1, )"
    R"("threads": 2}, "host": {"system": "Linux 6.1", "logical_cores": 2}, )"
    R"("software": {"trainer": "0.1.0", "libtorch": "2.11.0"}, "workload": )"
    R"({"model": {"name": "bert-base-uncased", "family": "encoder", )"
    R"("layers": 12, "hidden": 768, "heads": 12, "intermediate": 3072, )"
    R"("vocabulary": 30522, "positions": 512, "token_types": 2, )"
    R"("head": "sequence-classification", "labels": 2, "dropout": 0.1}, )"
    R"("batch": 8, "sequence_length": 128, "accumulation": 1, )"
    R"("precision": "fp32", "optimizer": {"name": "adamw", )"
    R"("implementation": "fused"}, "stack": "eager", )"
    R"("attention": "materialised"}, "world_size": 1, )"
    R"("peak_memory_bytes": 2147483648, "samples": [)"
    R"({"step": 0, "warmup": true, "forward_s": 9.0, "backward_s": 9.0, )"
    R"("optimizer_s": 9.0, "step_s": 27.0}, )"
    R"({"step": 1, "warmup": false, "forward_s": 0.21, "backward_s": 0.42, )"
    R"("optimizer_s": 0.05, "step_s": 0.69}, )"
    R"({"step": 2, "warmup": false, "forward_s": 0.23, "backward_s": 0.44, )"
    R"("optimizer_s": 0.05, "step_s": 0.73}, )"
    R"({"step": 3, "warmup": false, "forward_s": 0.22, "backward_s": 0.40, )"
    R"("optimizer_s": 0.06, "step_s": 0.70}]})";

TEST_CASE("a run becomes medians of the steps that are not warm-up") {
  const Measurements file = ParseMeasurements(kRecord + "\n", "m.jsonl");
  REQUIRE(file.runs.size() == 1);
  const MeasuredRun& run = file.runs[0];
  CHECK(run.id == "3f2a");
  CHECK(run.device == "AMD EPYC 9B45");
  CHECK(run.threads == 2);
  CHECK(run.host == "logical_cores 2, system Linux 6.1");
  CHECK(run.workload.architecture ==
        model::FindArchitecture("bert-base-uncased"));
  CHECK(run.workload.batch == 8);
  CHECK(run.workload.sequence_length == 128);
  CHECK(model::ToGiB(run.peak_memory) == 2.0);

  const std::vector<Observation> observations = ObservationsOf(file.runs);
  REQUIRE(observations.size() == 4);
  CHECK(observations[0].quantity == Quantity::kStep);
  CHECK(model::ToSeconds(observations[0].measured) == 0.70);
  CHECK(observations[0].label == "3f2a");
  CHECK(observations[1].quantity == Quantity::kForward);
  CHECK(model::ToSeconds(observations[1].measured) == 0.22);
  CHECK(observations[2].quantity == Quantity::kBackward);
  CHECK(model::ToSeconds(observations[2].measured) == 0.42);
  CHECK(observations[3].quantity == Quantity::kOptimizer);
  CHECK(model::ToSeconds(observations[3].measured) == 0.05);
  // Deviations from 0.70: 0.01, 0.03, 0; MAD 0.01.
  CHECK(observations[0].relative_noise ==
        Near(1.4826 * 1.25331 * 0.01 / 1.73205 / 0.70, 1e-4));
}

TEST_CASE("a record says what of its run is assumed") {
  const auto with = [](const std::string& assumed) {
    return Replaced(kRecord,
                    R"("world_size": 1)",
                    R"("assumed": )" + assumed + R"(, "world_size": 1)");
  };
  const auto assumed = [&](const std::string& text) {
    return ObservationsOf(ParseMeasurements(with(text) + "\n", "m.jsonl").runs)
        .at(0)
        .assumed;
  };
  CHECK_FALSE(ObservationsOf(ParseMeasurements(kRecord + "\n", "m.jsonl").runs)
                  .at(0)
                  .assumed);
  CHECK(assumed(R"({"batch": "not stated"})"));
  CHECK(assumed(R"({"device": "an A100; which is not said"})"));
  CHECK_FALSE(assumed("{}"));
  const auto refusal = [&](const std::string& text) -> std::string {
    try {
      ParseMeasurements(with(text) + "\n", "m.jsonl");
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(refusal(R"(["batch"])") ==
        "m.jsonl:1: assumed: expected reasons by key, such as {\"batch\": "
        "\"not stated\"}, got array");
  CHECK(refusal(R"({"batsh": "not stated"})") ==
        "m.jsonl:1: assumed.batsh: expected a key of the workload or of the "
        "record, got \"batsh\"");
  CHECK(refusal(R"({"batch": 8})") ==
        "m.jsonl:1: assumed.batch: expected a reason in words, got number");
}

TEST_CASE("narrow weights and where their masters are updated") {
  const MeasuredRun plain =
      ParseMeasurements(kRecord + "\n", "m.jsonl").runs.at(0);
  CHECK_FALSE(plain.workload.stack.narrow_weights);
  CHECK(plain.workload.optimizer.masters == model::Masters::kApart);
  const std::string bf16 = Replaced(kRecord, "fp32", "bf16");
  const std::string narrow =
      Replaced(Replaced(bf16,
                        R"("implementation": "fused")",
                        R"("implementation": "fused", "masters": "in_update")"),
               R"("attention": "materialised")",
               R"("attention": "materialised", "narrow_weights": true)");
  const MeasuredRun run =
      ParseMeasurements(narrow + "\n", "m.jsonl").runs.at(0);
  CHECK(run.workload.stack.narrow_weights);
  CHECK(model::MastersInUpdate(run.workload));
  // Another run than that of autocast.
  CHECK(
      Describe(run.workload) ==
      Describe(ParseMeasurements(bf16 + "\n", "m.jsonl").runs.at(0).workload) +
          " narrow weights");
  // And asked for by name.
  PlannedRun planned;
  planned.workload = run.workload;
  const auto narrow_in = [&] {
    return internal::RequestLine(planned, 1.0).find("narrow_weights") !=
           std::string::npos;
  };
  CHECK(narrow_in());
}

TEST_CASE("what a plan asks for is what a record says is what is counted") {
  model::Workload start =
      ParseMeasurements(kRecord + "\n", "m.jsonl").runs.at(0).workload;
  start.architecture.family = model::Family::kEncoderDecoder;
  start.architecture.decoder_layers = 6;
  start.architecture.positions = 0;
  start.architecture.pooler = false;
  start.trainable.lora_rank = 4;
  start.trainable.lora.query = true;
  start.precision = model::Precision::kBf16;
  start.stack.narrow_weights = true;
  start.optimizer.masters = model::Masters::kInUpdate;
  start.compression = {model::CompressionKind::kPowerSgd, 4};
  const auto words = [](const model::Workload& workload) {
    PlannedRun planned;
    planned.workload = workload;
    return nlohmann::json::parse(internal::RequestLine(planned, 1.0));
  };
  int fields = 0;
  model::ForEachChangedField(
      start, [&](const std::string& path, const model::Workload& changed) {
        CAPTURE(path);
        ++fields;
        nlohmann::json request = words(changed);
        CHECK(request != words(start));
        CHECK(Describe(changed) != Describe(start));
        // What the trainer measured comes back as a record.
        nlohmann::json record = nlohmann::json::parse(kRecord);
        record["workload"] = request;
        try {
          model::Validate(changed);
        } catch (const InputError&) {
          return;  // 11 heads of 768
        }
        CHECK(ParseMeasurements(record.dump() + "\n", "m.jsonl")
                  .runs.at(0)
                  .workload == changed);
      });
  CHECK(fields > 35);
}

TEST_CASE("a record says whether something else took time from its run") {
  const auto run = [](const std::string& more) {
    return ParseMeasurements(Replaced(kRecord, R"("world_size": 1, )", more),
                             "m.jsonl")
        .runs.at(0);
  };
  CHECK_FALSE(run("").disturbed);
  CHECK_FALSE(run("").waited_share.has_value());
  // 0.6 s of 3 s on each of two threads.
  const MeasuredRun busy = run(R"("disturbed": true, "host_load": )"
                               R"({"wall_s": 3.0, "waited_s": 0.6}, )");
  CHECK(busy.disturbed);
  CHECK(*busy.waited_share == Near(0.1, 1e-5));
  CHECK_FALSE(run(R"("disturbed": true, "host_load": {"wall_s": 3.0}, )")
                  .waited_share.has_value());
  CHECK_THROWS_AS(run(R"("host_load": {"wall_s": 3.0, "waited_s": -1}, )"),
                  InputError);
  CHECK_THROWS_AS(run(R"("host_load": {"wall_s": 0, "waited_s": 1}, )"),
                  InputError);
}

TEST_CASE("a part timed in some steps only is left out") {
  const std::string record = Replaced(kRecord, R"("optimizer_s": 0.06, )", "");
  const std::vector<Observation> observations =
      ObservationsOf(ParseMeasurements(record, "m.jsonl").runs);
  REQUIRE(observations.size() == 3);
  CHECK(observations.back().quantity == Quantity::kBackward);
}

TEST_CASE("empty lines pass, a request refused is kept with its message") {
  const Measurements file = ParseMeasurements(
      "\n" + kRecord + "\r\n\n" +
          R"({"schema": "trainfare.measurement/1", "kind": "error", )"
          R"("request": {"batch": 0}, "message": "batch: expected more"})"
          "\n"
          R"({"schema": "trainfare.measurement/1", "kind": "collective"})"
          "\n",
      "m.jsonl");
  CHECK(file.runs.size() == 1);
  CHECK(file.runs[0].line == 2);
  REQUIRE(file.refused.size() == 1);
  CHECK(file.refused[0].line == 4);
  CHECK(file.refused[0].request == R"({"batch":0})");
  CHECK(file.refused[0].message == "batch: expected more");
  CHECK(file.other_kinds == 1);
}

TEST_CASE("a last line cut off is refused, or dropped with a note") {
  const std::string cut = kRecord + "\n" + kRecord.substr(0, 200);
  CHECK_THROWS_WITH_AS(ParseMeasurements(cut, "m.jsonl"),
                       "m.jsonl:2: the last line is cut off, its run was "
                       "interrupted; remove the line",
                       InputError);
  const Measurements kept = ParseMeasurements(cut, "m.jsonl", CutTail::kDrop);
  CHECK(kept.runs.size() == 1);
  CHECK(kept.dropped_tail.value_or("") ==
        "m.jsonl:2: dropped the last line, it was cut off");
  // Without its newline a whole line is whole.
  CHECK(ParseMeasurements(kRecord, "m.jsonl").runs.size() == 1);
}

TEST_CASE("what is no record says what, and on which line") {
  struct Case {
    std::string from;
    std::string to;
    std::string message;
  };
  const Case cases[] = {
      {"measurement/1",
       "measurement/2",
       "m.jsonl:1: schema: expected \"trainfare.measurement/1\", got "
       "\"trainfare.measurement/2\""},
      {R"("kind": "step")",
       R"("kind": "stpe")",
       "m.jsonl:1: kind: unknown kind \"stpe\"; did you mean \"step\"?; known: "
       "step, kernel, collective, copy, run, error"},
      {R"("step_s": 0.69)",
       R"("step_s": 0)",
       "m.jsonl:1: samples[1].step_s: expected a time above 0 in seconds, "
       "from 1e-12 to 1000000000000, got 0"},
      {R"("forward_s": 0.21)",
       R"("forward_s": -0.21)",
       "m.jsonl:1: samples[1].forward_s: expected a time above 0 in seconds, "
       "from 1e-12 to 1000000000000, got -0.21"},
      {R"("step_s": 0.69)",
       R"("step_s": null)",
       "m.jsonl:1: samples[1].step_s: missing"},
      {R"("step_s": 0.69)",
       R"("step_s": NaN)",
       "m.jsonl:1:993: expected one JSON object a line, got what is not JSON"},
      {R"("batch": 8)",
       R"("batch": 0)",
       "m.jsonl:1: workload.batch: expected an integer from 1 to "
       "1048576, got 0"},
      {R"("step_s": 0.69)",
       R"("step_s": 1e308)",
       "m.jsonl:1: samples[1].step_s: expected a time above 0 in seconds, "
       "from 1e-12 to 1000000000000, got 1e+308"},
      {R"("batch": 8)",
       R"("batch": 10000000000)",
       "m.jsonl:1: workload.batch: expected an integer from 1 to 1048576, got "
       "10000000000"},
      {R"("batch": 8)",
       R"("batch": 8, "batch": 9)",
       "m.jsonl:1: the key \"batch\" stands twice"},
      {R"("batch": 8, )", "", "m.jsonl:1: workload.batch: missing"},
      {R"("sequence_length": 128)",
       R"("sequence_length": 1024)",
       ""},  // the message is the model's own
      {R"("name": "AMD EPYC 9B45")",
       R"("name": 3)",
       "m.jsonl:1: device.name: expected a text, got 3"},
      {R"("hidden": 768, )", "", "m.jsonl:1: workload.model.hidden: missing"},
  };
  for (const Case& bad : cases) {
    CAPTURE(bad.to);
    const std::string text = Replaced(kRecord, bad.from, bad.to) + "\n";
    if (bad.message.empty()) {
      CHECK_THROWS_AS(ParseMeasurements(text, "m.jsonl"), InputError);
    } else {
      CHECK_THROWS_WITH_AS(
          ParseMeasurements(text, "m.jsonl"), bad.message.c_str(), InputError);
    }
  }
  CHECK_THROWS_WITH_AS(ParseMeasurements("", "m.jsonl"),
                       "m.jsonl:1: expected measurement records, got nothing",
                       InputError);
  CHECK_THROWS_WITH_AS(ParseMeasurements("[]\n", "m.jsonl"),
                       "m.jsonl:1: expected an object, got []",
                       InputError);
  CHECK_THROWS_WITH_AS(
      ReadMeasurements("nowhere/m.jsonl"),
      "nowhere/m.jsonl: cannot be opened: No such file or directory",
      InputError);
}

TEST_CASE("a run of warm-up steps only has no figure") {
  std::string record = kRecord;
  for (int i = 0; i < 3; ++i) {
    record = Replaced(record, R"("warmup": false)", R"("warmup": true)");
  }
  CHECK_THROWS_WITH_AS(ParseMeasurements(record, "m.jsonl"),
                       "m.jsonl:1: samples: expected a step that is not "
                       "warm-up, got none",
                       InputError);
}

}  // namespace
}  // namespace trainfare::calibrate
