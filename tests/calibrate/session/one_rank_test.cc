// From end to end, with a trainer that only pretends.

#include "calibrate/session/one_rank.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "calibrate/fit/predictor.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/records/measurement.h"
#include "calibrate/session/command.h"
#include "hardware/catalog/device.h"
#include "model/error.h"
#include "model/units.h"
#include "model/workload.h"
#include "tests/calibrate/session/fake_trainer.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;

using model::InputError;

TEST_CASE("a disturbed run is repeated once, and the better one is fitted to" *
          doctest::skip(NoPython())) {
  const FakeTrainer fake("disturbed");
  std::ostringstream log;
  const CalibrateResult result = Calibrate(fake.Options(), log);
  REQUIRE(result.fit.has_value());
  // Every run came twice, first disturbed and three times as long; but for
  // repeats that the budget had no room for any more.
  CHECK(log.str().find("disturbed, its threads waited 25 % of the time for a "
                       "processor; it is run once more") != std::string::npos);
  const Measurements measured = ReadMeasurements(result.records_path);
  // What it was fitted to are the runs that were not disturbed.
  std::map<std::string, bool> has_clean;  // by workload
  std::set<double> clean_s;
  for (const MeasuredRun& run : measured.runs) {
    has_clean[Describe(run.workload)] |= !run.disturbed;
    if (!run.disturbed) {
      clean_s.insert(model::ToSeconds(run.samples.front().step));
    }
  }
  CHECK(measured.runs.size() > 3);
  const auto workloads = static_cast<int64_t>(has_clean.size());
  CHECK(result.fit->provenance.runs == workloads);
  const int64_t never_clean =
      std::count_if(has_clean.begin(), has_clean.end(), [](const auto& one) {
        return !one.second;
      });
  CHECK(never_clean <= 1 + workloads / 4);
  int64_t steps = 0;
  int64_t not_clean = 0;
  for (const FittedRun& run : result.fit->runs) {
    if (run.quantity != Quantity::kStep) continue;
    if (!clean_s.contains(model::ToSeconds(run.measured))) ++not_clean;
    ++steps;
  }
  CHECK(not_clean == never_clean);
  CHECK(steps == result.fit->provenance.runs);

  // The same from the file, and it says so.
  CalibrateOptions again;
  again.from = {result.records_path};
  again.output = fake / "again.yaml";
  std::ostringstream file_log;
  CHECK(Calibrate(again, file_log).fit->Values() == result.fit->Values());
  CHECK(file_log.str().find("left out for a better run of the same workload") !=
        std::string::npos);
}

TEST_CASE("on a machine that stays busy runs weigh less, and that is said" *
          doctest::skip(NoPython())) {
  const FakeTrainer fake("busy");
  std::ostringstream log;
  const CalibrateResult result = Calibrate(fake.Options(), log);
  REQUIRE(result.fit.has_value());
  // Both of two equally bad repeats are kept.
  CHECK(result.fit->provenance.runs == LinesOf(result.records_path));
  CHECK(log.str().find("runs were disturbed by something else on this machine "
                       "and weigh less in the fit") != std::string::npos);
}

TEST_CASE("a trainer that fails is one line, and nothing measured is lost" *
          doctest::skip(NoPython())) {
  const FakeTrainer fake("die");
  std::ostringstream log;
  CHECK_THROWS_WITH_AS(
      Calibrate(fake.Options(), log),
      ((fake / "fake-trainer") +
       " ended with exit code 7: error: no more memory; 2 finished runs kept "
       "in " +
       (fake / "fits/here.partial.jsonl"))
          .c_str(),
      InputError);
  CHECK(LinesOf(fake / "fits/here.partial.jsonl") == 2);
  CHECK(!fs::exists(fake / "fits/here.yaml"));

  FakeTrainer::Mode("cut");
  CalibrateOptions options = fake.Options();
  options.fresh = true;
  CHECK_THROWS_WITH_AS(Calibrate(options, log),
                       ((fake / "fake-trainer") +
                        " ended with exit code 0; 2 finished runs kept in " +
                        (fake / "fits/here.partial.jsonl"))
                           .c_str(),
                       InputError);
  CHECK(LinesOf(fake / "fits/here.partial.jsonl") == 2);
}

TEST_CASE("a trainer that refuses, or runs elsewhere, says so" *
          doctest::skip(NoPython())) {
  const FakeTrainer fake("refuse");
  std::ostringstream log;
  CHECK_THROWS_WITH_AS(Calibrate(fake.Options(), log),
                       "the trainer refuses every run: out of memory",
                       InputError);
  CHECK(log.str().find("the trainer refuses: out of memory") !=
        std::string::npos);
  FakeTrainer::Mode("other");
  const hardware::Device& host = hardware::DeviceCatalog::Shipped().Find("cpu");
  CHECK_THROWS_WITH_AS(Calibrate(fake.Options(), log),
                       ("the trainer ran on \"Other 5000\", not on cpu (\"" +
                        host.reported_name + "\")")
                           .c_str(),
                       InputError);
}

TEST_CASE("what a run is worth is told by the interval that is predicted" *
          doctest::skip(NoPython())) {
  const FakeTrainer fake("towards");
  const CalibrateOptions options = TowardsStep(fake, 32);
  std::ostringstream log;
  const CalibrateResult result = Calibrate(options, log);
  REQUIRE(result.fit.has_value());
  const Predictor predictor(hardware::DeviceCatalog::Shipped().Find("cpu"),
                            *result.fit);
  model::Workload step = options.towards.front();
  step.work = model::Work::kTraining;
  const StepPrediction answer = predictor.Predict(step);
  const std::string said = fmt::format(
      "-> +-{:.1f} %", 50.0 * (answer.high_factor - answer.low_factor));
  const std::string text = log.str();
  const size_t last = text.rfind("-> +-");
  REQUIRE(last != std::string::npos);
  CHECK(text.substr(last, said.size()) == said);
}

}  // namespace
}  // namespace trainfare::calibrate
