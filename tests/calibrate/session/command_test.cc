// A calibration from end to end, with a trainer that only pretends.

#include "calibrate/session/command.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "calibrate/fit/fit_file.h"
#include "calibrate/fit/fit_json.h"
#include "calibrate/fit/fit_options.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/records/measurement.h"
#include "calibrate/session/output_lock.h"
#include "hardware/catalog/device.h"
#include "hardware/models/device_models.h"
#include "hardware/models/gpu/parameters.h"
#include "model/error.h"
#include "model/presets.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;

using model::InputError;

// Answers requests for bert-tiny. FAKE_MODE: "" answers all; "interrupt" sends
// SIGINT to its parent on the third request and reports that run when told to
// end; "refuse" refuses everything; "die" ends on the third request; "cut"
// writes half a record and ends; "other" ran on another processor; "disturbed"
// is disturbed at every second request, then takes three times as long; "busy"
// is disturbed always; "no-ranks" fails where it is one of several ranks;
// "interrupt-ranks" sends SIGINT after three all-reduces. FAKE_SLOWNESS: so
// many times slower than else. FAKE_GPUS: so many GPUs are here, of the name
// FAKE_DEVICE. All it answers is synthetic.
constexpr const char* kFakeTrainer = R"PY(#!/usr/bin/env python3
import json, os, signal, sys, time
mode = os.environ.get("FAKE_MODE", "")
gpus = int(os.environ.get("FAKE_GPUS", "0"))
if sys.argv[1:] == ["devices"]:
    print(json.dumps({"kind": "cpu", "name": "a processor", "threads": 2}))
    for i in range(gpus):
        print(json.dumps({"kind": "cuda", "name": os.environ["FAKE_DEVICE"],
                          "number": i}))
    sys.exit(0)
on_gpu = ["--device", "cuda"] if gpus else []
ranks = int(os.environ.get("WORLD_SIZE", "1"))
rank = int(os.environ.get("RANK", "0"))
if ranks > 1:
    assert os.environ["LOCAL_RANK"] == str(rank)
    assert os.environ["LOCAL_WORLD_SIZE"] == str(ranks)
    assert os.environ["MASTER_ADDR"] == "127.0.0.1"
    assert int(os.environ["MASTER_PORT"]) > 0
    if rank > 0:
        # Synthetic ranks: one answers for all, the others only were started.
        assert sys.stdin.read() == ""
        sys.exit(0)
device = "Other 5000" if mode == "other" else os.environ["FAKE_DEVICE"]

def place():
    return {"name": device, "kind": "cuda" if gpus else "cpu", "count": ranks,
            "threads": 2 if ranks == 1 else 1}

if sys.argv[1:3] == ["bench", "collectives"]:
    assert ranks > 1 and sys.argv[3] == "--operations", sys.argv
    operations = sys.argv[4].split(",")
    assert sys.argv[5] == "--bytes", sys.argv
    assert sys.argv[7:] == ["--out", "-"] + on_gpu, sys.argv
    if mode == "no-ranks":
        sys.stderr.write("error: NCCL: no such library\n")
        sys.exit(1)
    done = 0
    for operation, size in ((one, int(size)) for one in operations
                            for size in sys.argv[6].split(",")):
        for beside in ([False] if gpus else [False, True]):
            if mode == "interrupt-ranks" and done == 3:
                os.kill(os.getppid(), signal.SIGINT)
                time.sleep(30)
            ring = 2 * (ranks - 1) * (1e-4 + size / (ranks * 2e9))
            ring *= {"all_reduce": 1, "all_gather": 0.6,
                     "reduce_scatter": 0.75}[operation]
            line = {"schema": "trainfare.measurement/1", "kind": "collective",
                    "operation": operation, "device": place(),
                    "software": {"trainer": "fake"}, "world_size": ranks,
                    "ranks": {"backend": "nccl" if gpus else "gloo",
                              "transport": "tcp within a host"},
                    "bytes": size,
                    "samples": [{"time_s": 2 * ring if beside else ring}]}
            if beside:
                line["computation"] = {"rounds_per_s": 80,
                                       "rounds_alone_per_s": 100}
            print(json.dumps(line), flush=True)
            done += 1
    sys.exit(0)

assert sys.argv[1:] == (["measure", "--plan", "-", "--out", "-"] + on_gpu), (
    sys.argv)

def record(request, number):
    tokens = request["batch"] * request["sequence_length"] * (
        1 if gpus else ranks)
    forward = 2e-4 + 4e-6 * tokens
    backward = 3e-4 + 9e-6 * tokens
    optimizer = 1e-3
    slowness = float(os.environ.get("FAKE_SLOWNESS", "1"))
    forward, backward, optimizer = (
        slowness * forward, slowness * backward, slowness * optimizer)
    disturbed = mode == "busy" or mode == "disturbed" and number % 2 == 1
    if disturbed:
        forward, backward, optimizer = 3 * forward, 3 * backward, 3 * optimizer
    sample = {"warmup": False, "forward_s": forward, "backward_s": backward,
              "optimizer_s": optimizer,
              "step_s": forward + backward + optimizer + 1e-4}
    return json.dumps({
        "schema": "trainfare.measurement/1", "kind": "step",
        "id": "run-%d-%d" % (os.getpid(), number),
        "device": place(), "world_size": ranks,
        "ranks": {"backend": "nccl" if gpus else "gloo" if ranks > 1 else "none",
                  "transport": "tcp within a host"},
        "host": {"system": "Linux"}, "software": {"trainer": "fake"},
        "workload": {
            "model": request["model"],
            "batch": request["batch"],
            "sequence_length": request["sequence_length"],
            "precision": request["precision"],
            "optimizer": request["optimizer"], "stack": request["stack"],
            "attention": request["attention"],
            "parallel": request["parallel"]},
        "disturbed": disturbed,
        "host_load": {"wall_s": 1.0, "waited_s": 0.5 if disturbed else 0.0},
        "samples": [sample] * request["steps"]})

number = 0
for line in sys.stdin:
    request = json.loads(line)
    assert mode == "towards" or request["model"]["name"] == (
        "bert-base-uncased" if gpus else "bert-tiny")
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
    ::unsetenv("FAKE_GPUS");
    ::unsetenv("FAKE_SLOWNESS");
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  static void Gpus(const char* count, const char* name) {
    ::setenv("FAKE_GPUS", count, 1);
    ::setenv("FAKE_DEVICE", name, 1);
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
  CHECK(result.fit->provenance.runs > 3);
  CHECK(log.str().find("calibrate: run 1: bert-tiny fp32, batch ") !=
        std::string::npos);

  const Fit read = LoadFit(result.fit_path);
  CHECK(read.name == "here");
  CHECK(read.Values() == result.fit->Values());
  const Predictor predictor(hardware::DeviceCatalog::Shipped().Find("cpu"),
                            read);
  CHECK(predictor.fit().device == "cpu");

  const std::string json = FitJson(*result.fit);
  CHECK(json.find("\"device\": \"cpu\"") != std::string::npos);
  CHECK(json.find("\"name\": \"narrow_gemm_ratio\"") != std::string::npos);

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

TEST_CASE("on a machine that stays busy runs weigh less, and that is said") {
  if (NoPython()) return;
  const FakeTrainer fake("busy");
  std::ostringstream log;
  const CalibrateResult result = Calibrate(fake.Options(), log);
  REQUIRE(result.fit.has_value());
  // Both of two equally bad repeats are kept.
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
  CHECK(all.runs.size() > 3);
  std::ifstream file(second.records_path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  CHECK(text.substr(0, kept.size()) == kept);
  CHECK(second.fit->provenance.runs == static_cast<int64_t>(all.runs.size()));
}

TEST_CASE("what changed while it was interrupted is seen") {
  if (NoPython()) return;
  const FakeTrainer fake("interrupt");
  CalibrateOptions options = fake.Options();
  // Steps are long enough to tell.
  ::setenv("FAKE_SLOWNESS", "100", 1);
  std::ostringstream log;
  CHECK(Calibrate(options, log).interrupted);
  CHECK(log.str().find("speed changed") == std::string::npos);
  FakeTrainer::Mode("");
  ::setenv("FAKE_SLOWNESS", "200", 1);
  options.budget = model::Second(60.0);
  std::ostringstream second_log;
  const CalibrateResult second = Calibrate(options, second_log);
  CHECK(second_log.str().find("this machine's speed changed meanwhile: "
                              "bert-tiny fp32, batch ") != std::string::npos);
  // The first run once more.
  const Measurements all = ReadMeasurements(second.records_path);
  REQUIRE(all.runs.size() > 3);
  CHECK(Describe(all.runs[3].workload) == Describe(all.runs[0].workload));
}

TEST_CASE("a good fit stays where a calibration is interrupted early") {
  if (NoPython()) return;
  const FakeTrainer fake("");
  std::ostringstream log;
  CalibrateOptions options = fake.Options();
  const CalibrateResult good = Calibrate(options, log);
  const int64_t runs = good.fit->provenance.runs;
  REQUIRE(runs > 6);

  FakeTrainer::Mode("interrupt");
  std::ostringstream second_log;
  const CalibrateResult second = Calibrate(options, second_log);
  CHECK(second.interrupted);
  CHECK(second.fit_path.empty());
  CHECK(LoadFit(options.output).provenance.runs == runs);
  CHECK(second_log.str().find("the fit there is kept: ") != std::string::npos);
  CHECK(second.kept.find("the fit there is kept: ") != std::string::npos);
  // The records of the good one, too.
  CHECK(Lines(fake / "fits/here.jsonl") == runs);

  options.force = true;
  options.fresh = true;
  const CalibrateResult third = Calibrate(options, second_log);
  CHECK(third.interrupted);
  CHECK(LoadFit(options.output).provenance.runs == 3);
  CHECK(LoadFit(options.output + ".old").provenance.runs == runs);
}

TEST_CASE("a finished calibration leaves fit and records of the one before") {
  if (NoPython()) return;
  const FakeTrainer fake("");
  // Both make the same runs on a machine of any speed: neither gets to the end
  // of its budget.
  CalibrateOptions options = fake.Options();
  options.budget = model::Second(600.0);
  options.target_interval = 0.2;
  std::ostringstream log;
  const CalibrateResult first = Calibrate(options, log);
  const CalibrateResult second = Calibrate(options, log);
  CHECK(log.str().find("the target interval is reached") != std::string::npos);
  CHECK(second.kept.empty());
  CHECK(second.fit_path == first.fit_path);
  CHECK(LoadFit(first.fit_path + ".old").provenance.runs ==
        first.fit->provenance.runs);
  CHECK(Lines(first.records_path + ".old") == first.fit->provenance.runs);
  CHECK(Lines(second.records_path) == second.fit->provenance.runs);
}

TEST_CASE("two calibrations of one output: the second says so and ends") {
  if (NoPython()) return;
  const FakeTrainer fake("");
  const CalibrateOptions options = fake.Options();
  fs::create_directories(fs::path(options.output).parent_path());
  std::ostringstream log;
  {
    const internal::OutputLock other(options.output);
    CHECK_THROWS_WITH_AS(
        Calibrate(options, log),
        (options.output + ": another calibrate is writing it; wait for its "
                          "end, or give this one an --output of its own")
            .c_str(),
        InputError);
    CHECK(!fs::exists(fake / "fits/here.partial.jsonl"));
  }
  CHECK(!fs::exists(options.output + ".lock"));
  CHECK_NOTHROW(Calibrate(options, log));
  CHECK(!fs::exists(options.output + ".lock"));
}

TEST_CASE("a fit's name says that it is one, before anything is run") {
  if (NoPython()) return;
  const FakeTrainer fake("");
  CalibrateOptions options = fake.Options();
  std::ostringstream log;
  const std::string yaml = options.output;
  // Its records would have the names of those of the fit in .yaml.
  options.output = fs::path(yaml).replace_extension(".yml").string();
  CHECK_THROWS_WITH_AS(
      Calibrate(options, log),
      (options.output + ": cannot be written: expected a name in .yaml, by "
                        "which fits are found")
          .c_str(),
      InputError);
  fs::create_symlink("elsewhere.yaml", yaml);
  options.output = yaml;
  CHECK_THROWS_WITH_AS(
      Calibrate(options, log),
      (yaml + ": cannot be written: expected a regular file or none, "
              "got a link; name its target")
          .c_str(),
      InputError);
  CHECK(!fs::exists(fake / "fits/here.partial.jsonl"));
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

// What is cut off of a last line is cut from a file of ours alone.
TEST_CASE("a link in the place of the partial file leaves its target whole") {
  if (NoPython()) return;
  const FakeTrainer fake("");
  const std::string victim = fake / "victim";
  std::ofstream(victim) << "no newline";
  fs::create_directories(fake / "fits");
  fs::create_symlink(victim, fake / "fits/here.partial.jsonl");
  std::ostringstream log;
  CHECK_THROWS_AS(Calibrate(fake.Options(), log), InputError);
  CHECK(fs::file_size(victim) == 10);
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
  if (NoPython()) return;
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
      "device: t4 is not here, the trainer finds the processor alone; measure "
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

TEST_CASE("a fit to records of kernels alone") {
  const FakeTrainer fake("");
  // An L40S that streams at half of its 864 GB/s.
  const std::string records = fake / "kernels.jsonl";
  std::ofstream file(records);
  for (const int64_t bytes : {400'000'000,
                              800'000'000,
                              1'000'000'000,
                              1'200'000'000,
                              1'600'000'000,
                              2'000'000'000}) {
    file << fmt::format(
        R"({{"schema": "trainfare.measurement/1", "kind": "kernel", )"
        R"("id": "k{0}", "device": {{"name": "l40s", "kind": "cuda"}}, )"
        R"("workload": {{"model": {{"name": "bert-tiny", "family": "encoder", )"
        R"("layers": 2, "hidden": 128, "heads": 2, "intermediate": 512, )"
        R"("vocabulary": 30522, "positions": 512, "token_types": 2, )"
        R"("head": "sequence-classification"}}, "batch": 8, )"
        R"("sequence_length": 64, "precision": "fp32", "optimizer": )"
        R"({{"name": "adamw", "implementation": "fused"}}, "stack": "eager", )"
        R"("attention": "materialised"}}, "operation": "scale", )"
        R"("kernel_kind": "elementwise", "phase": "forward", "per_step": 1, )"
        R"("disturbed": {1}, "kernels": [{{"kind": "elementwise", )"
        R"("matrix_flops": 0, "vector_flops": 0, "special_ops": 0, )"
        R"("random_draws": 0, "bytes_read": {0}, "bytes_written": {0}, )"
        R"("parameter_bytes": 0, "parameter_bytes_written": 0, )"
        R"("work_items": {2}, "launches": 1}}], )"
        R"("samples": [{{"time_s": {3}}}]}})"
        "\n",
        bytes,
        bytes == 400'000'000,
        bytes / 4,
        2.0 * static_cast<double>(bytes) / 432e9);
  }
  file.close();
  CalibrateOptions options;
  options.from = {records};
  options.output = fake / "l40s.yaml";
  std::ostringstream log;
  const CalibrateResult result = Calibrate(options, log);
  CHECK(log.str().find("1 of 6 kernels were disturbed") != std::string::npos);
  REQUIRE(result.fit.has_value());
  const Fit read = LoadFit(options.output);
  for (const Fit* fit : {&*result.fit, &read}) {
    CHECK(fit->device == "l40s");
    CHECK(fit->provenance.kernels == 6);
    CHECK(fit->provenance.runs == 0);
    CHECK(fit->kernel_in_sample_error == result.fit->kernel_in_sample_error);
    CHECK(fit->kernel_leave_one_out_error > 0);
    REQUIRE(fit->runs.size() == 6);
    CHECK(fit->runs[1].label == "k800000000");
    CHECK(fit->runs[1].quantity == Quantity::kKernel);
    CHECK(fit->runs[1].modelled / fit->runs[1].measured > 0.7);
    CHECK(fit->runs[1].modelled / fit->runs[1].measured < 1.05);
    // The prior and the five kernels that nothing disturbed meet between them,
    // as sure as they are; the other adds to that.
    constexpr size_t kRate = hardware::models::kGpuBandwidthEfficiency;
    const FittedParameter& rate = fit->parameters[kRate];
    REQUIRE(rate.determined);
    const double needed =
        rate.value * (fit->runs[1].modelled / fit->runs[1].measured);
    const double moved =
        std::log(rate.value / rate.prior) / std::log(needed / rate.prior);
    const double sigmas =
        FitOptions().kernel_sigma /
        hardware::ParametersOf(hardware::DeviceKind::kGpu)[kRate].prior_sigma;
    CHECK(moved > 1.0 / (1.0 + sigmas * sigmas / 5.0));
    CHECK(moved < 1.0);
  }
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

TEST_CASE("several ranks are timed, fitted and kept beside the runs of one") {
  if (NoPython() || hardware::HostCpu().cores < 2) return;
  const FakeTrainer fake("");
  CalibrateOptions options = fake.Options();
  options.ranks = {1, 2};
  std::ostringstream log;
  const CalibrateResult result = Calibrate(options, log);
  REQUIRE(result.fit.has_value());
  REQUIRE(result.fit->ranks.size() == 1);
  const RankFit& two = result.fit->ranks.front();
  CHECK(two.network.ranks == 2);
  CHECK(two.backend == "gloo");
  CHECK(two.network.alone.ring.step_latency.base() ==
        doctest::Approx(1e-4).epsilon(1e-6));
  CHECK(two.network.alone.ring.link.base() ==
        doctest::Approx(2e9).epsilon(1e-6));
  CHECK(two.network.speed == doctest::Approx(0.8));
  CHECK(two.ranks_per_device == 2);
  CHECK(two.all_reduces.size() == 8);
  CHECK_FALSE(two.runs.empty());
  CHECK(two.share < 1.0);
  CHECK(log.str().find("collectives over 2 ranks (") != std::string::npos);
  CHECK(log.str().find(": 2 ranks, bert-tiny fp32, batch ") !=
        std::string::npos);
  const Measurements all = ReadMeasurements(result.records_path);
  CHECK(all.collectives.size() == 8);
  // Runs of one are those that the parameters rest on.
  int64_t over_ranks = 0;
  for (const MeasuredRun& run : all.runs) {
    over_ranks += run.device_count == 2 ? 1 : 0;
  }
  CHECK(over_ranks == 1);
  CHECK(result.fit->provenance.runs + over_ranks ==
        static_cast<int64_t>(all.runs.size()));

  // The records give the same again.
  CalibrateOptions again;
  again.from = {result.records_path};
  again.output = fake / "again.yaml";
  const CalibrateResult refit = Calibrate(again, log);
  REQUIRE(refit.fit->ranks.size() == 1);
  CHECK(refit.fit->ranks[0].share == two.share);
  CHECK(refit.fit->ranks[0].source == "here.jsonl");
}

TEST_CASE(
    "towards ranks that share state their collectives and runs are timed") {
  if (NoPython() || hardware::HostCpu().cores < 2) return;
  const FakeTrainer fake("towards");
  CalibrateOptions options = fake.Options();
  options.ranks = {2};
  model::Workload asked;
  asked.architecture = model::FindArchitecture("bert-tiny");
  asked.batch = 4;
  asked.sequence_length = 64;
  asked.parallel.shard = model::Shard::kFsdp;
  options.towards = {asked};
  std::ostringstream log;
  const CalibrateResult result = Calibrate(options, log);
  REQUIRE(result.fit.has_value());
  REQUIRE(result.fit->ranks.size() == 1);
  const RankNetwork& network = result.fit->ranks.front().network;
  REQUIRE(network.all_gather.has_value());
  REQUIRE(network.reduce_scatter.has_value());
  // A factor of half an all-reduce's time.
  CHECK(network.all_gather->factor == doctest::Approx(1.2).epsilon(1e-6));
  CHECK(network.reduce_scatter->factor == doctest::Approx(1.5).epsilon(1e-6));
  std::map<model::Shard, int> runs;
  const Measurements all = ReadMeasurements(result.records_path);
  CHECK(all.collectives.size() == 3 * 8);
  for (const MeasuredRun& run : all.runs) {
    if (run.device_count == 2) ++runs[run.workload.parallel.shard];
  }
  CHECK(runs[model::Shard::kFsdp] > 0);
  CHECK(runs[model::Shard::kFsdp] == runs[model::Shard::kNone]);

  // The fit's file has all of it.
  const Fit kept = LoadFit(result.fit_path);
  CHECK(kept.ranks.front().network.all_gather->factor ==
        network.all_gather->factor);
}

// Steps of bert-tiny, long enough that a change of speed is seen.
CalibrateOptions TowardsStep(const FakeTrainer& fake, int64_t length) {
  CalibrateOptions options = fake.Options();
  model::Workload asked;
  asked.architecture = model::FindArchitecture("bert-tiny");
  asked.batch = 1;
  asked.sequence_length = length;
  options.towards = {asked};
  options.budget = model::Second(60.0);
  ::setenv("FAKE_SLOWNESS", "100", 1);
  return options;
}

TEST_CASE("towards another question what was measured for the first counts") {
  if (NoPython()) return;
  const FakeTrainer fake("towards");
  std::ostringstream log;
  const CalibrateResult first = Calibrate(TowardsStep(fake, 32), log);
  REQUIRE(first.fit.has_value());
  const Measurements before = ReadMeasurements(first.records_path);

  std::ostringstream second_log;
  CalibrateOptions options = TowardsStep(fake, 40);
  const CalibrateResult second = Calibrate(options, second_log);
  REQUIRE(second.fit.has_value());
  CHECK(second.kept.empty());
  CHECK(second_log.str().find("behind the fit that is there count, too") !=
        std::string::npos);
  // Its records are all that it was made of, and make it again.
  const Measurements after = ReadMeasurements(second.records_path);
  REQUIRE(after.runs.size() > before.runs.size());
  for (size_t i = 0; i < before.runs.size(); ++i) {
    CHECK(Describe(after.runs[i].workload) ==
          Describe(before.runs[i].workload));
  }
  CHECK(second.fit->range.max_sequence_length == 40);
  CHECK(second.fit->provenance.runs > first.fit->provenance.runs);
  CalibrateOptions again;
  again.from = {second.records_path};
  again.output = fake / "again.yaml";
  CHECK(Calibrate(again, log).fit->Values() == second.fit->Values());

  // On a machine that is half as fast by now they do not count.
  ::setenv("FAKE_SLOWNESS", "200", 1);
  std::ostringstream slow_log;
  const CalibrateResult slower = Calibrate(options, slow_log);
  CHECK(slow_log.str().find("this machine's speed changed since, by 100 %: "
                            "the ") != std::string::npos);
  CHECK(ReadMeasurements(slower.records_path).runs.size() < after.runs.size());

  // Nor where somebody starts afresh.
  options.fresh = true;
  std::ostringstream fresh_log;
  Calibrate(options, fresh_log);
  CHECK(fresh_log.str().find("behind the fit") == std::string::npos);
}

TEST_CASE("what a run is worth is told by the interval that is predicted") {
  if (NoPython()) return;
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

TEST_CASE("interrupted among all-reduces, the rest are timed the next time") {
  if (NoPython() || hardware::HostCpu().cores < 2) return;
  const FakeTrainer fake("interrupt-ranks");
  CalibrateOptions options = fake.Options();
  options.ranks = {2};
  std::ostringstream log;
  const CalibrateResult first = Calibrate(options, log);
  CHECK(first.interrupted);
  REQUIRE(first.fit.has_value());
  const Measurements kept = ReadMeasurements(first.records_path);
  CHECK(kept.collectives.size() == 3);

  FakeTrainer::Mode("");
  const CalibrateResult second = Calibrate(options, log);
  CHECK(!second.interrupted);
  REQUIRE(second.fit->ranks.size() == 1);
  // The second size lacked its half beside computation and is done anew.
  const Measurements all = ReadMeasurements(second.records_path);
  CHECK(all.collectives.size() == 3 + 6);
  CHECK(all.runs.size() > kept.runs.size());
}

TEST_CASE("ranks that fail cost a line, not the runs of one") {
  if (NoPython() || hardware::HostCpu().cores < 2) return;
  const FakeTrainer fake("no-ranks");
  CalibrateOptions options = fake.Options();
  options.ranks = {2};
  std::ostringstream log;
  const CalibrateResult result = Calibrate(options, log);
  REQUIRE(result.fit.has_value());
  CHECK(result.fit->ranks.empty());
  CHECK(log.str().find("2 ranks are not measured: ") != std::string::npos);
  CHECK(log.str().find("NCCL: no such library") != std::string::npos);
}

TEST_CASE("GPUs that the trainer finds are what is calibrated, all of them") {
  if (NoPython()) return;
  const FakeTrainer fake("");
  FakeTrainer::Gpus("2", "NVIDIA A100-SXM4-80GB");
  CalibrateOptions options = fake.Options();
  options.models = {"bert-base-uncased"};
  std::ostringstream log;
  const CalibrateResult result = Calibrate(options, log);
  REQUIRE(result.fit.has_value());
  CHECK(result.fit->device == "a100_sxm4_80gb");
  const Measurements all = ReadMeasurements(result.records_path);
  for (const MeasuredRun& run : all.runs) {
    CHECK(run.device_kind == "cuda");
    // Half precision is bf16 where there is a choice.
    CHECK(run.workload.precision != model::Precision::kFp16);
  }
  REQUIRE(result.fit->ranks.size() == 1);
  const RankFit& two = result.fit->ranks.front();
  CHECK(two.backend == "nccl");
  CHECK(two.ranks_per_device == 1);
  CHECK(two.share_prior == 1.0);
  CHECK_FALSE(two.network.beside_timed);
}

}  // namespace
}  // namespace trainfare::calibrate
