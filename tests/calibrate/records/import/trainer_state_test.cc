#include "calibrate/records/import/trainer_state.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "calibrate/records/import/observations.h"
#include "model/error.h"
#include "model/presets.h"
#include "tests/calibrate/records/replaced.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;
using model::InputError;

// 750 steps of which two evaluations took 4 s and 6 s; a third came after.
const std::string kState = R"({
  "best_metric": null, "epoch": 3.0, "eval_steps": 250, "global_step": 750,
  "is_world_process_zero": true, "max_steps": 750, "num_train_epochs": 3,
  "train_batch_size": 64, "total_flos": 2.6e+15,
  "log_history": [
    {"epoch": 1.0, "grad_norm": 2.1, "learning_rate": 4e-05, "loss": 0.7,
     "step": 250},
    {"epoch": 1.0, "eval_loss": 0.3, "eval_runtime": 4.0,
     "eval_samples_per_second": 500.0, "step": 250},
    {"epoch": 2.0, "eval_loss": 0.2, "eval_runtime": 6.0, "step": 500},
    {"epoch": 3.0, "step": 750, "total_flos": 2.6e+15, "train_loss": 0.31,
     "train_runtime": 160.0, "train_samples_per_second": 300.0,
     "train_steps_per_second": 4.688},
    {"epoch": 3.0, "eval_loss": 0.2, "eval_runtime": 5.0, "step": 750}]})";

class StateFile {
 public:
  explicit StateFile(const std::string& text)
      : path_((fs::temp_directory_path() /
               ("trainer_state_" + std::to_string(::getpid()) + ".json"))
                  .string()) {
    std::ofstream(path_) << text;
  }
  ~StateFile() { fs::remove(path_); }
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

RunContext Emotion() {
  RunContext run;
  run.workload.architecture = model::FindArchitecture("bert-base-uncased");
  run.workload.batch = 64;
  run.workload.sequence_length = 32;
  run.workload.precision = model::Precision::kFp16;
  run.device = "t4";
  return run;
}

std::string MessageOf(const std::string& text) {
  const StateFile file(text);
  try {
    ReadTrainerState(file.path(), Emotion());
  } catch (const InputError& error) {
    return std::string(error.what()).substr(file.path().size());
  }
  return "";
}

}  // namespace

TEST_CASE("a run of Hugging Face's Trainer is a mean step time") {
  const StateFile file(kState);
  REQUIRE(IsTrainerState(file.path()));
  const Observation o = ReadTrainerState(file.path(), Emotion());
  // (160 s - 4 s - 6 s) / 750.
  CHECK(model::ToSeconds(o.measured) == Near(0.2, 1e-12));
  CHECK(o.quantity == Quantity::kStep);
  CHECK(o.device == "t4");
  CHECK(o.device_count == 1);
  CHECK(o.workload == Emotion().workload);

  const ObservationFiles files = ReadObservations({file.path()}, Emotion());
  REQUIRE(files.observations.size() == 1);
  CHECK(files.observations[0].device == "t4");
  // Without a scenario nobody knows what was trained.
  try {
    ReadObservations({file.path()});
    FAIL("expected an error");
  } catch (const InputError& error) {
    CHECK(std::string(error.what()) ==
          file.path() +
              ": does not say what was trained on what; calibrate --from it "
              "with --scenario and --device");
  }
}

TEST_CASE("a state that says too little is refused") {
  CHECK(MessageOf(Replaced(kState, "\"train_batch_size\": 64", "\"a\": 1"))
            .empty());
  CHECK(MessageOf(Replaced(
            kState, "\"train_batch_size\": 64", "\"train_batch_size\": 16")) ==
        ": train_batch_size: expected the scenario's batch of 64, got 16; "
        "--batch changes it");
  CHECK(MessageOf(Replaced(kState, "\"train_runtime\": 160.0, ", ""))
            .find(": log_history: no train_runtime; the run did not end") == 0);
  CHECK(MessageOf(Replaced(kState, "160.0", "9.0")) ==
        ": log_history[3].train_runtime: expected more than the 10.0 s of the "
        "evaluations before it");
  CHECK(MessageOf(Replaced(kState, "\"step\": 750, ", "")) ==
        ": log_history[3].step: missing");
  const StateFile records("{\"schema\": \"trainfare.measurement/1\"}\n");
  CHECK_FALSE(IsTrainerState(records.path()));
  const StateFile lines("{\"log_history\": []}\n{}\n");
  CHECK_FALSE(IsTrainerState(lines.path()));
}

}  // namespace trainfare::calibrate
