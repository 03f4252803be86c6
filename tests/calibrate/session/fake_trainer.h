#pragma once

// A trainer that only pretends, for calibrations from end to end.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "calibrate/session/options.h"
#include "hardware/catalog/device.h"
#include "model/presets.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// Answers requests for bert-tiny. FAKE_MODE: "" answers all; "interrupt" sends
// SIGINT to its parent on the third request and reports that run when told to
// end; "interrupt-first" on the first, and ends without an answer; "refuse"
// refuses everything; "die" ends on the third request; "cut"
// writes half a record and ends; "other" ran on another processor; "disturbed"
// is disturbed at every second request, then takes three times as long; "busy"
// is disturbed always; "no-ranks" fails where it is one of several ranks;
// "interrupt-ranks" sends SIGINT after three all-reduces. FAKE_SLOWNESS: so
// many times slower than else. FAKE_GPUS: so many GPUs are here, of the name
// FAKE_DEVICE. All it answers is synthetic.
inline constexpr const char* kFakeTrainer = R"PY(#!/usr/bin/env python3
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
    if mode == "interrupt-first":
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(30)
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
      : folder_(std::filesystem::temp_directory_path() /
                ("trainfare_command_test_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_ / "fits");
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
    std::filesystem::remove_all(folder_, ignored);
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
  std::filesystem::path folder_;
};

// For doctest::skip, which is asked before main: of one program once.
inline bool NoPython() {
  static const bool none = std::system("python3 -c pass >/dev/null 2>&1") != 0;
  return none;
}

inline int64_t LinesOf(const std::string& path) {
  std::ifstream file(path);
  return std::count(std::istreambuf_iterator<char>(file),
                    std::istreambuf_iterator<char>(),
                    '\n');
}

// Steps of bert-tiny, long enough that a change of speed is seen.
inline CalibrateOptions TowardsStep(const FakeTrainer& fake, int64_t length) {
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

}  // namespace trainfare::calibrate
