#include "calibrate/session/machine.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibrate/session/plan.h"
#include "calibrate/session/rank_plan.h"
#include "hardware/models/kind.h"
#include "model/error.h"
#include "model/presets.h"

namespace trainfare::calibrate {
namespace {

using model::InputError;

MachineDevices Gpus(int count) {
  MachineDevices machine;
  machine.processor = "a processor";
  machine.gpus.assign(static_cast<size_t>(count), "NVIDIA A100-SXM4-80GB");
  return machine;
}

CalibrateOptions Asking(std::string device, std::vector<int64_t> ranks = {}) {
  CalibrateOptions options;
  options.device = std::move(device);
  options.ranks = std::move(ranks);
  return options;
}

std::string_view TrainerDevice(const CalibrationTarget& target) {
  return hardware::KindOf(target.device).trainer_device;
}

}  // namespace

TEST_CASE("what the trainer says of its devices") {
  const MachineDevices machine = ParseDevices(
      "{\"kind\": \"cpu\", \"name\": \"A\"}\n"
      "{\"kind\": \"cuda\", \"name\": \"B\", \"number\": 0}\n");
  CHECK(machine.processor == "A");
  CHECK(machine.gpus == std::vector<std::string>{"B"});
  CHECK(ParseDevices("{\"kind\": \"none\", \"reason\": \"no CUDA\"}\n")
            .gpus.empty());
  CHECK_THROWS_WITH_AS(ParseDevices("{\"kind\": \"cpu\"}\n"),
                       "devices of the trainer:1: name: missing",
                       InputError);
  CHECK_THROWS_AS(ParseDevices("what?\n"), InputError);
}

TEST_CASE("GPUs go before the processor, and all of them are ranks") {
  CHECK(TrainerDevice(TargetOf(Gpus(0), Asking(""))) == "cpu");
  CHECK(TargetOf(Gpus(0), Asking("")).ranks.empty());
  const CalibrationTarget one = TargetOf(Gpus(1), Asking(""));
  CHECK(TrainerDevice(one) == "cuda");
  CHECK(one.device.name == "a100_sxm4_80gb");
  CHECK(one.ranks.empty());
  CHECK(TargetOf(Gpus(4), Asking("")).ranks == std::vector<int64_t>{4});
  CHECK(TargetOf(Gpus(4), Asking("", {2})).ranks == std::vector<int64_t>{2});
  CHECK(TargetOf(Gpus(4), Asking("", {1})).ranks.empty());
  CHECK(TrainerDevice(TargetOf(Gpus(4), Asking("cpu"))) == "cpu");
  CHECK(TrainerDevice(TargetOf(Gpus(4), Asking("a100_sxm4_80gb"))) == "cuda");
}

TEST_CASE("what is not here is refused by name") {
  CHECK_THROWS_WITH_AS(
      TargetOf(Gpus(0), Asking("a100_sxm4_80gb")),
      "device: a100_sxm4_80gb is not here, the trainer finds the processor "
      "alone; measure there, then: calibrate --from FILE --device "
      "a100_sxm4_80gb",
      InputError);
  CHECK_THROWS_AS(TargetOf(Gpus(1), Asking("h100_sxm")), InputError);
  CHECK_THROWS_WITH_AS(TargetOf(Gpus(2), Asking("", {4})),
                       "--ranks: expected from 2 to 2, the GPUs here, got 4",
                       InputError);
  CHECK_THROWS_AS(TargetOf(Gpus(0), Asking("", {100000})), InputError);
  CHECK_THROWS_AS(TargetOf(Gpus(0), Asking("", {0})), InputError);
  MachineDevices mixed = Gpus(1);
  mixed.gpus.emplace_back("Tesla T4");
  CHECK_THROWS_WITH_AS(
      TargetOf(mixed, Asking("")),
      "the GPUs here are of several kinds, NVIDIA A100-SXM4-80GB and Tesla T4; "
      "choose those of one with CUDA_VISIBLE_DEVICES",
      InputError);
  MachineDevices unknown = Gpus(0);
  unknown.gpus.emplace_back("Unheard Of 9");
  CHECK_THROWS_AS(TargetOf(unknown, Asking("")), InputError);
}

TEST_CASE("half precision is what the GPU has") {
  using model::Precision;
  const auto& catalog = hardware::DeviceCatalog::Shipped();
  CHECK(DefaultPrecisions(catalog.Find("cpu")) ==
        std::vector<Precision>{Precision::kFp32});
  CHECK(DefaultPrecisions(catalog.Find("a100_sxm4_80gb")) ==
        std::vector<Precision>{Precision::kFp32, Precision::kBf16});
  CHECK(DefaultPrecisions(catalog.Find("t4")) ==
        std::vector<Precision>{Precision::kFp32, Precision::kFp16});
}

TEST_CASE("a GPU's plan has both stacks and what its memory holds") {
  using model::Precision;
  const auto& catalog = hardware::DeviceCatalog::Shipped();
  const hardware::Device& t4 = catalog.Find("t4");
  const auto has = [](const std::vector<model::Workload>& runs,
                      const char* model,
                      int64_t batch,
                      int64_t length,
                      model::Fusion stack) {
    return std::any_of(
        runs.begin(), runs.end(), [&](const model::Workload& run) {
          return run.architecture.name == model && run.batch == batch &&
                 run.sequence_length == length && run.stack.fusion == stack;
        });
  };
  const auto small = RunsHere(t4, DefaultPrecisions(t4));
  CHECK(has(small, "bert-base-uncased", 4, 32, model::Fusion::kEager));
  CHECK(has(small, "bert-base-uncased", 4, 32, model::Fusion::kFused));
  CHECK(has(small, "bert-large-uncased", 4, 128, model::Fusion::kFused));
  // 16 GB do not hold this.
  CHECK_FALSE(
      has(small, "bert-large-uncased", 256, 512, model::Fusion::kEager));
  const hardware::Device& a100 = catalog.Find("a100_sxm4_80gb");
  const auto large = RunsHere(a100, DefaultPrecisions(a100));
  CHECK(large.size() > small.size());
  CHECK(has(large, "bert-base-uncased", 256, 128, model::Fusion::kEager));
  // A processor's plan is what it was.
  const hardware::Device& cpu = catalog.Find("cpu");
  CHECK(RunsHere(cpu, {Precision::kFp32}).size() ==
        CandidateRuns(cpu, {Precision::kFp32}).size());
}

TEST_CASE("ranks repeat what one ran, the middle batch of each model once") {
  std::vector<MeasuredRun> runs;
  const auto add = [&](const char* model, int64_t batch, int64_t ranks) {
    MeasuredRun run;
    run.workload.architecture = model::FindArchitecture(model);
    run.workload.batch = batch;
    run.workload.sequence_length = 64;
    run.device_count = ranks;
    Sample sample;
    sample.step = model::Second(0.01);
    run.samples.assign(3, sample);
    runs.push_back(run);
  };
  add("bert-small", 1, 1);
  add("bert-small", 16, 1);
  add("bert-tiny", 64, 1);
  add("bert-tiny", 4, 1);
  const auto planned = RunsOverRanks(runs, 2, 2);
  REQUIRE(planned.size() == 2);
  CHECK(planned[0].workload.architecture.name == "bert-tiny");
  CHECK(planned[0].workload.batch == 4);
  CHECK(planned[1].workload.batch == 16);
  // 22 steps of 20 ms, and the model.
  CHECK(planned[0].steps == 20);
  CHECK(planned[0].expected_duration.base() > 0.44);
  add("bert-tiny", 4, 2);
  CHECK(RunsOverRanks(runs, 2, 2).size() == 1);
  CHECK(RunsOverRanks(runs, 4, 4).size() == 2);
}

TEST_CASE("all-reduces that were timed are not timed again") {
  CHECK(SizesToTime(2, {}, {model::Collective::kAllReduce}, true).size() == 4);
  std::vector<MeasuredCollective> timed(1);
  timed[0].ranks = 2;
  timed[0].size = model::MiB(1.0);
  CHECK(SizesToTime(2, timed, {model::Collective::kAllReduce}, false).size() ==
        3);
  CHECK(SizesToTime(2, timed, {model::Collective::kAllReduce}, true).size() ==
        4);
  CHECK(SizesToTime(4, timed, {model::Collective::kAllReduce}, false).size() ==
        4);
  timed.push_back(timed[0]);
  timed[1].computation_speed = 0.9;
  CHECK(SizesToTime(2, timed, {model::Collective::kAllReduce}, true).size() ==
        3);
}

}  // namespace trainfare::calibrate
