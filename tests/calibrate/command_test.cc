// A calibration from end to end, with a trainer that only pretends.

#include "calibrate/command.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include "calibrate/measurement.h"
#include "calibrate/predictor.h"
#include "hardware/device.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;

using model::InputError;

// Answers requests for bert-tiny. FAKE_MODE: "" answers all; "interrupt" sends
// SIGINT to its parent on the third request and reports that run when told to
// end; "refuse" refuses everything; "die" ends on the third request; "cut"
// writes half a record and ends; "other" ran on another processor; "disturbed"
// is disturbed at every second request, then takes three times as long; "busy"
// is disturbed always.
constexpr const char* kFakeTrainer = R"PY(#!/usr/bin/env python3
import json, os, signal, sys, time
mode = os.environ.get("FAKE_MODE", "")
assert sys.argv[1:] == ["measure", "--plan", "-", "--out", "-"], sys.argv
device = "Other 5000" if mode == "other" else os.environ["FAKE_DEVICE"]

def record(request, number):
    tokens = request["batch"] * request["sequence_length"]
    forward = 2e-4 + 4e-6 * tokens
    backward = 3e-4 + 9e-6 * tokens
    optimizer = 1e-3
    disturbed = mode == "busy" or mode == "disturbed" and number % 2 == 1
    if disturbed:
        forward, backward, optimizer = 3 * forward, 3 * backward, 3 * optimizer
    sample = {"warmup": False, "forward_s": forward, "backward_s": backward,
              "optimizer_s": optimizer,
              "step_s": forward + backward + optimizer + 1e-4}
    return json.dumps({
        "schema": "trainfare.measurement/1", "kind": "step",
        "id": "run-%d-%d" % (os.getpid(), number),
        "device": {"name": device, "kind": "cpu", "threads": 2},
        "host": {"system": "Linux"}, "software": {"trainer": "fake"},
        "workload": {
            "model": {"name": "bert-tiny", "family": "encoder", "layers": 2,
                      "hidden": 128, "heads": 2, "intermediate": 512,
                      "vocabulary": 30522, "positions": 512, "token_types": 2,
                      "head": "sequence-classification", "labels": 2,
                      "dropout": 0.1},
            "batch": request["batch"],
            "sequence_length": request["sequence_length"],
            "precision": request["precision"],
            "optimizer": request["optimizer"], "stack": request["stack"],
            "attention": request["attention"]},
        "disturbed": disturbed,
        "host_load": {"wall_s": 1.0, "waited_s": 0.5 if disturbed else 0.0},
        "samples": [sample] * request["steps"]})

number = 0
for line in sys.stdin:
    request = json.loads(line)
    assert request["model"] == "bert-tiny", request
    number += 1
    if mode == "refuse":
        print(json.dumps({"schema": "trainfare.measurement/1", "kind": "error",
                          "request": request, "message": "out of memory"}),
              flush=True)
        continue
    if mode == "die" and number == 3:
        sys.stderr.write("first\nerror: no more memory\n")
        sys.exit(7)
    if mode == "cut" and number == 3:
        sys.stdout.write(record(request, number)[:100])
        sys.exit(0)
    if mode == "interrupt" and number == 3:
        def finish(*_):
            print(record(request, number), flush=True)
            os._exit(130)
        signal.signal(signal.SIGTERM, finish)
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(30)
    print(record(request, number), flush=True)
)PY";

class FakeTrainer {
 public:
  explicit FakeTrainer(const char* mode)
      : folder_(fs::temp_directory_path() /
                ("trainfare_command_test_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    const std::string program = (folder_ / "fake-trainer").string();
    std::ofstream(program) << kFakeTrainer;
    ::chmod(program.c_str(), 0755);
    ::setenv("TRAINFARE_TRAINER", program.c_str(), 1);
    ::setenv(
        "FAKE_DEVICE",
        hardware::DeviceCatalog::Shipped().Find("cpu").reported_name.c_str(),
        1);
    Mode(mode);
  }
  FakeTrainer(const FakeTrainer&) = delete;
  FakeTrainer& operator=(const FakeTrainer&) = delete;
  ~FakeTrainer() {
    ::unsetenv("TRAINFARE_TRAINER");
    ::unsetenv("FAKE_MODE");
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  static void Mode(const char* mode) { ::setenv("FAKE_MODE", mode, 1); }
  std::string operator/(const char* name) const {
    return (folder_ / name).string();
  }
  CalibrateOptions Options() const {
    CalibrateOptions options;
    options.output = *this / "fits/here.yaml";
    options.models = {"bert-tiny"};
    options.budget = model::Second(20.0);
    return options;
  }

 private:
  fs::path folder_;
};

bool NoPython() {
  if (std::system("python3 -c pass >/dev/null 2>&1") == 0) return false;
  MESSAGE("skipped: no python3 for the trainer that pretends");
  return true;
}

int64_t Lines(const std::string& path) {
  std::ifstream file(path);
  return std::count(std::istreambuf_iterator<char>(file),
                    std::istreambuf_iterator<char>(),
                    '\n');
}

TEST_CASE("runs become records, a fit file and a prediction") {
  if (NoPython()) return;
  const FakeTrainer fake("");
  std::ostringstream log;
  const CalibrateResult result = Calibrate(fake.Options(), log);
  REQUIRE(result.fit.has_value());
  CHECK(!result.interrupted);
  CHECK(result.fit_path == fake / "fits/here.yaml");
  CHECK(result.records_path == fake / "fits/here.jsonl");
  CHECK(!fs::exists(fake / "fits/here.partial.jsonl"));
  CHECK(result.fit->provenance.software == "trainer fake");
  CHECK(result.fit->provenance.runs == Lines(result.records_path));
  CHECK(result.fit->provenance.runs > 10);
  CHECK(log.str().find("calibrate: run 1: bert-tiny fp32, batch ") !=
        std::string::npos);

  const Fit read = LoadFit(result.fit_path);
  CHECK(read.name == "here");
  CHECK(read.Values() == result.fit->Values());
  const Predictor predictor(hardware::DeviceCatalog::Shipped().Find("cpu"),
                            read);
  CHECK(predictor.fit().device == "cpu");

  const std::string summary = FitSummary(*result.fit);
  CHECK(summary.find("fit of cpu (") == 0);
  CHECK(summary.find("narrow_gemm_ratio") != std::string::npos);
  CHECK(FitJson(*result.fit).find("\"leave_one_out_error\"") !=
        std::string::npos);

  // The records give the same fit again.
  CalibrateOptions again;
  again.from = {result.records_path};
  again.output = fake / "again.yaml";
  const CalibrateResult refit = Calibrate(again, log);
  REQUIRE(refit.fit.has_value());
  CHECK(refit.fit->Values() == result.fit->Values());
  CHECK(refit.fit->provenance.source == "here.jsonl");
}

TEST_CASE("a disturbed run is repeated once, and the better one is fitted to") {
  if (NoPython()) return;
  const FakeTrainer fake("disturbed");
  std::ostringstream log;
  const CalibrateResult result = Calibrate(fake.Options(), log);
  REQUIRE(result.fit.has_value());
  // Every run came twice, first disturbed and three times as long; but for
  // repeats that the budget had no room for any more.
  CHECK(log.str().find("disturbed, its threads waited 25 % of the time for a "
                       "processor; it is run once more") != std::string::npos);
  const Measurements measured = ReadMeasurements(result.records_path);
  int64_t disturbed = 0;
  // What it was fitted to are the runs that were not disturbed.
  std::set<double> clean_s;
  for (const MeasuredRun& run : measured.runs) {
    if (run.disturbed) {
      ++disturbed;
    } else {
      clean_s.insert(model::ToSeconds(run.samples.front().step));
    }
  }
  const auto records = static_cast<int64_t>(measured.runs.size());
  CHECK(records > 10);
  CHECK(result.fit->provenance.runs == disturbed);
  int64_t steps = 0;
  int64_t not_clean = 0;
  for (const FittedRun& run : result.fit->runs) {
    if (run.quantity != Quantity::kStep) continue;
    if (!clean_s.contains(model::ToSeconds(run.measured))) ++not_clean;
    ++steps;
  }
  CHECK(not_clean == disturbed - (records - disturbed));
  CHECK(not_clean < disturbed / 4);
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

TEST_CASE("on a machine that stays busy runs weigh less, and that is said") {
  if (NoPython()) return;
  const FakeTrainer fake("busy");
  std::ostringstream log;
  const CalibrateResult result = Calibrate(fake.Options(), log);
  REQUIRE(result.fit.has_value());
  // Of equally bad repeats both are kept.
  CHECK(result.fit->provenance.runs == Lines(result.records_path));
  CHECK(log.str().find("runs were disturbed by something else on this machine "
                       "and weigh less in the fit") != std::string::npos);
}

TEST_CASE("interrupted, it keeps what is finished and goes on from there") {
  if (NoPython()) return;
  const FakeTrainer fake("interrupt");
  std::ostringstream log;
  const CalibrateResult first = Calibrate(fake.Options(), log);
  CHECK(first.interrupted);
  CHECK(first.records_path == fake / "fits/here.partial.jsonl");
  // The run in progress was reported on the way out.
  CHECK(Lines(first.records_path) == 3);
  CHECK(log.str().find("calibrate: interrupted; 3 finished runs kept in " +
                       first.records_path +
                       ", the next calibrate goes on from there") !=
        std::string::npos);
  const std::string kept = [&] {
    std::ifstream file(first.records_path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  // As if the machine had gone down while a line was written.
  std::ofstream(first.records_path, std::ios::app) << kept.substr(0, 50);

  FakeTrainer::Mode("");
  std::ostringstream second_log;
  const CalibrateResult second = Calibrate(fake.Options(), second_log);
  CHECK(!second.interrupted);
  CHECK(second_log.str().find("dropped the last line, it was cut off") !=
        std::string::npos);
  CHECK(second_log.str().find("calibrate: going on from 3 finished runs") !=
        std::string::npos);
  const Measurements all = ReadMeasurements(second.records_path);
  CHECK(all.runs.size() > 10);
  std::ifstream file(second.records_path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  CHECK(text.substr(0, kept.size()) == kept);
  CHECK(second.fit->provenance.runs == static_cast<int64_t>(all.runs.size()));
}

TEST_CASE("--fresh forgets, and sets aside what was there") {
  if (NoPython()) return;
  const FakeTrainer fake("interrupt");
  std::ostringstream log;
  Calibrate(fake.Options(), log);
  FakeTrainer::Mode("");
  CalibrateOptions options = fake.Options();
  options.fresh = true;
  std::ostringstream fresh_log;
  Calibrate(options, fresh_log);
  CHECK(fresh_log.str().find("going on from") == std::string::npos);
  CHECK(Lines(fake / "fits/here.partial.jsonl.old") == 3);
}

TEST_CASE("a trainer that fails is one line, and nothing measured is lost") {
  if (NoPython()) return;
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
  CHECK(Lines(fake / "fits/here.partial.jsonl") == 2);
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
  CHECK(Lines(fake / "fits/here.partial.jsonl") == 2);
}

TEST_CASE("a trainer that refuses, or runs elsewhere, says so") {
  if (NoPython()) return;
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

TEST_CASE("what cannot start says why before anything is run") {
  const FakeTrainer fake("");
  std::ostringstream log;
  CalibrateOptions options = fake.Options();
  options.budget = model::Second(0.0);
  CHECK_THROWS_WITH_AS(Calibrate(options, log),
                       "budget: expected a time above 0, got 0 s",
                       InputError);
  options = fake.Options();
  options.device = "t4";
  CHECK_THROWS_WITH_AS(
      Calibrate(options, log),
      "device: the runs are made on the processor here, not on t4; measure "
      "there, then: calibrate --from FILE --device t4",
      InputError);
  options = fake.Options();
  options.precisions = {model::Precision::kTf32};
  CHECK_THROWS_AS(Calibrate(options, log), InputError);
  options = fake.Options();
  options.output = fake / "fake-trainer/fit.yaml";  // a file in the way
  CHECK_THROWS_WITH_AS(Calibrate(options, log),
                       ((fake / "fake-trainer/fit.yaml") +
                        ": cannot be written: Not a directory")
                           .c_str(),
                       InputError);
  ::setenv("TRAINFARE_TRAINER", "/nowhere/trainer", 1);
  CHECK_THROWS_WITH_AS(
      Calibrate(fake.Options(), log),
      "TRAINFARE_TRAINER: expected a program, got \"/nowhere/trainer\"",
      InputError);
}

TEST_CASE("measurements of several devices ask for one") {
  const FakeTrainer fake("");
  const std::string table = fake / "t.csv";
  std::ofstream(table)
      << "device,model,seq_len,batch_per_device,precision,metric,value\n"
         "T4-16GB,bert-base,128,8,fp16,step_ms,100\n"
         "T4-16GB,bert-base,128,16,fp16,step_ms,190\n"
         "V100-SXM2-16GB,bert-base,128,8,fp16,step_ms,40\n";
  CalibrateOptions options;
  options.from = {table};
  options.output = fake / "t4.yaml";
  std::ostringstream log;
  CHECK_THROWS_WITH_AS(Calibrate(options, log),
                       "the measurements are of several devices; choose one "
                       "with --device: t4, v100_sxm2_16gb",
                       InputError);
  options.device = "t4";
  const CalibrateResult result = Calibrate(options, log);
  REQUIRE(result.fit.has_value());
  CHECK(result.fit->device == "t4");
  CHECK(result.fit->provenance.observations == 2);
  CHECK(LoadFit(options.output).kind == hardware::DeviceKind::kGpu);
}

}  // namespace
}  // namespace trainfare::calibrate
