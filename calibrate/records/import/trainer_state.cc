#include "calibrate/records/import/trainer_state.h"

#include <fmt/format.h>

#include <filesystem>

#include "hardware/files/json_object.h"
#include "hardware/files/json_text.h"
#include "hardware/files/text_file.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

using hardware::JsonObject;
using model::InputError;

nlohmann::json ReadJson(const std::string& path) {
  return hardware::ParseJson(hardware::ReadTextFile(path, "a JSON file"), path);
}

}  // namespace

bool IsTrainerState(const std::string& path) {
  if (std::filesystem::path(path).extension() != ".json") return false;
  // What is no JSON as a whole may be records, a line each.
  const std::string text = hardware::ReadTextFile(path, "a JSON file");
  if (!nlohmann::json::accept(text)) return false;
  const nlohmann::json state = hardware::ParseJson(text, path);
  return state.is_object() && state.contains("log_history");
}

Observation ReadTrainerState(const std::string& path, const RunContext& run) {
  const nlohmann::json value = ReadJson(path);
  const JsonObject state(value, path, 0);
  const model::Workload& workload = run.workload;
  // Per device, as the Trainer counts it; absent before Transformers 4.32.
  if (state.Has("train_batch_size") &&
      state.Count("train_batch_size", 1) != workload.batch) {
    state.FailWith("train_batch_size",
                   fmt::format("expected the scenario's batch of {}, got {}; "
                               "--batch changes it",
                               workload.batch,
                               state.Count("train_batch_size", 1)));
  }
  const nlohmann::json& history = state.At("log_history");
  if (!history.is_array()) state.FailWith("log_history", "expected a list");
  constexpr const char* kTime = "a time above 0 in seconds";
  double evaluation_s = 0.0;  // within the training time
  for (size_t i = 0; i < history.size(); ++i) {
    const JsonObject entry(
        history[i], path, 0, fmt::format("log_history[{}]", i));
    if (entry.Has("eval_runtime")) {
      evaluation_s += entry.PositiveNumber("eval_runtime", kTime);
    }
    if (!entry.Has("train_runtime")) continue;
    const double steps = static_cast<double>(entry.Count("step", 1));
    const double training_s =
        entry.PositiveNumber("train_runtime", kTime) - evaluation_s;
    if (!(training_s > 0.0)) {
      entry.FailWith("train_runtime",
                     fmt::format("expected more than the {:.1f} s of the "
                                 "evaluations before it",
                                 evaluation_s));
    }
    Observation observation;
    observation.label = std::filesystem::path(path).filename().string();
    observation.group = workload.architecture.name;
    observation.device = run.device;
    observation.workload = workload;
    observation.quantity = Quantity::kStep;
    observation.measured = model::Second(training_s / steps);
    observation.framework = "Hugging Face Trainer";
    return observation;
  }
  state.FailWith("log_history",
                 "no train_runtime; the run did not end, its checkpoints do "
                 "not say how long it took");
}

}  // namespace trainfare::calibrate
