#include "calibrate/records/import/mlperf_log.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "model/error.h"
#include "model/presets.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

using model::InputError;

RunContext BertRun() {
  RunContext run;
  run.workload.architecture = model::FindArchitecture("bert-large-uncased");
  run.workload.batch = 56;
  run.workload.sequence_length = 512;
  run.workload.precision = model::Precision::kFp16;
  run.device = "a100_sxm4_80gb";
  return run;
}

std::string Event(int64_t time_ms,
                  const std::string& key,
                  const std::string& value = "null",
                  const std::string& metadata = "") {
  return fmt::format(
      R"(:::MLLOG {{"namespace": "", "time_ms": {}, "event_type": "POINT_IN_TIME", "key": "{}", "value": {}, "metadata": {{"file": "run.py", "lineno": 1{}}}}})"
      "\n",
      time_ms,
      key,
      value,
      metadata);
}

// 100 steps of 448 in 60 s, of which two evaluations took 4 s and 6 s.
const std::string kBegin = Event(1000, "submission_benchmark", R"("bert")") +
                           Event(1000, "global_batch_size", "448.0") +
                           Event(1000, "gradient_accumulation_steps", "1") +
                           Event(1000, "max_sequence_length", "512");
const std::string kRun = Event(2000, "run_start") + Event(2000, "eval_start") +
                         Event(6000, "eval_stop") +
                         Event(6000, "eval_accuracy", "0.7") +
                         Event(40000, "eval_start") + Event(46000, "eval_stop");
const std::string kSamples = Event(61000, "train_samples", "44800");
const std::string kStop =
    Event(62000, "run_stop", "null", R"(, "status": "success")");

MlperfRun ParseLog(const std::string& text) {
  return ParseMlperfLog(text, "folder/result_0.txt", BertRun());
}

void CheckLogRefused(const std::string& text, const std::string& message) {
  CHECK_THROWS_WITH_AS(
      ParseLog(text), ("folder/result_0.txt" + message).c_str(), InputError);
}

}  // namespace

TEST_CASE("MLPerf log: the mean step without evaluations") {
  const MlperfRun run =
      ParseLog("a line of the launcher\n" + kBegin + kRun + kSamples + kStop);
  // (60 - 4 - 6) s / (44,800 / 448)
  CHECK(model::ToSeconds(run.observation.measured) == Near(0.5, 1e-12));
  CHECK(run.observation.device_count == 8);
  CHECK(run.observation.label == "result_0.txt");
  CHECK(run.observation.device == "a100_sxm4_80gb");
  CHECK(run.observation.quantity == Quantity::kStep);
  CHECK(run.notes.empty());
}

TEST_CASE("MLPerf log: clocks of today are read") {
  // Milliseconds since 1970.
  constexpr int64_t kStart = 1'760'000'000'000;
  CHECK(model::ToSeconds(ParseLog(kBegin + Event(kStart, "run_start") +
                                  Event(kStart + 1, "train_samples", "44800") +
                                  Event(kStart + 60'000, "run_stop"))
                             .observation.measured) == 0.6);
}

TEST_CASE("MLPerf log: how much was trained stands in one of three places") {
  const double half = 0.5;
  const auto step_s = [](const std::string& text) {
    return model::ToSeconds(ParseLog(text).observation.measured);
  };
  // The samples of the data stand before the run: twice in two epochs.
  CHECK(step_s(kBegin + Event(1500, "train_samples", "22400") + kRun +
               Event(30000, "epoch_stop") + Event(61000, "epoch_stop") +
               kStop) == Near(half, 1e-12));
  // Counted along: the last count is what was trained.
  CHECK(
      step_s(kBegin + kRun +
             Event(30000, "block_stop", "null", R"(, "samples_count": 22400)") +
             Event(61000, "block_stop", "null", R"(, "samples_count": 44800)") +
             kStop) == Near(half, 1e-12));
  CheckLogRefused(
      kBegin + kRun + kStop,
      ": train_samples: missing, and no samples_count; how much was "
      "trained is not known");
}

TEST_CASE("MLPerf log: evaluations without times are said") {
  const MlperfRun run =
      ParseLog(kBegin + Event(2000, "run_start") +
               Event(6000, "eval_accuracy", "0.7") + kSamples + kStop);
  CHECK(model::ToSeconds(run.observation.measured) == Near(0.6, 1e-12));
  REQUIRE(run.notes.size() == 1);
  CHECK(run.notes.front() ==
        "folder/result_0.txt: evaluations are in the time: the log does not "
        "say how long they took (eval_start, eval_stop)");
}

TEST_CASE("MLPerf log: what cannot be a run of the scenario") {
  CheckLogRefused(kBegin, ": run_start: missing; the run did not begin");
  CheckLogRefused(kBegin + kRun + kSamples,
                  ": run_stop: missing; the run did not end");
  CheckLogRefused(
      kBegin + kRun + kSamples +
          Event(62000, "run_stop", "null", R"(, "status": "aborted")"),
      ":12: metadata.status: the run did not end well: aborted");
  CheckLogRefused(kRun + kSamples + kStop, ": global_batch_size: missing");
  CheckLogRefused(
      Event(1000, "global_batch_size", "450") + kRun + kSamples + kStop,
      ": global_batch_size: expected a multiple of the scenario's "
      "batch of 56, got 450; --batch changes it");
  CheckLogRefused(Event(1000, "global_batch_size", "448.5"),
                  ":1: value: expected a whole number, got 448.5");
  CheckLogRefused(
      Event(1000, "gradient_accumulation_steps", "2"),
      ":1: value: expected the scenario's accumulation of 1, got 2");
  CheckLogRefused(Event(1000, "max_sequence_length", "128"),
                  ":1: value: expected the scenario's length of 512, got 128");
  CheckLogRefused(kBegin + kRun + Event(3000, "run_start"),
                  ":11: key: expected one run in a file, got a second");
  CheckLogRefused(kStop, ":1: key: expected run_start before it");
  CheckLogRefused(
      "0: :::MLLOG {\"namespace\": \"\", \"time_m",
      ":1:13: expected a JSON object behind :::MLLOG; is the line cut "
      "off?");
  CheckLogRefused(
      kBegin + Event(62000, "run_start") + kSamples + Event(61000, "run_stop"),
      ": run_stop: expected a time after run_start and the "
      "evaluations");
}

TEST_CASE("MLPerf log: known by its lines") {
  CHECK(IsMlperfLog(kBegin));
  CHECK_FALSE(IsMlperfLog("# nThread 1 nGpus 8"));
}

}  // namespace trainfare::calibrate
