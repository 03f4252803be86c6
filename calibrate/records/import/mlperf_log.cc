#include "calibrate/records/import/mlperf_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "hardware/files/json_object.h"
#include "hardware/files/json_text.h"
#include "hardware/files/text_file.h"
#include "model/error.h"
#include "model/limits.h"

namespace trainfare::calibrate {
namespace {

using hardware::JsonObject;
using model::InputError;

constexpr std::string_view kMark = ":::MLLOG ";

// What the events of a run say, in the order of the file.
class LogReader {
 public:
  LogReader(const std::string& name, const RunContext& run)
      : name_(name), run_(run) {}

  void Take(std::string_view line) {
    ++line_;
    // A launcher may write the rank before it.
    const size_t mark = line.find(kMark);
    if (mark == std::string_view::npos) return;
    line.remove_prefix(mark + kMark.size());
    if (!nlohmann::json::accept(line)) {
      throw InputError(name_,
                       line_,
                       static_cast<int>(mark + kMark.size() + 1),
                       "expected a JSON object behind :::MLLOG; is the line "
                       "cut off?");
    }
    const nlohmann::json value = hardware::ParseJson(line, name_, line_);
    Take(JsonObject(value, name_, line_), value);
  }

  MlperfRun Finish() const {
    const model::Workload& workload = run_.workload;
    if (!start_ms_) Fail("run_start: missing; the run did not begin");
    if (!stop_ms_) Fail("run_stop: missing; the run did not end");
    if (!global_batch_) Fail("global_batch_size: missing");
    const std::optional<int64_t> samples = Samples();
    if (!samples) {
      Fail(
          "train_samples: missing, and no samples_count; how much was trained "
          "is not known");
    }
    const int64_t of_a_device = workload.batch * workload.accumulation;
    if (*global_batch_ % of_a_device != 0) {
      Fail(
          fmt::format("global_batch_size: expected a multiple of the "
                      "scenario's batch of {}, got {}; --batch changes it",
                      of_a_device,
                      *global_batch_));
    }
    const double training_s =
        1e-3 * static_cast<double>(*stop_ms_ - *start_ms_ - evaluation_ms_);
    if (!(training_s > 0.0)) {
      Fail("run_stop: expected a time after run_start and the evaluations");
    }
    MlperfRun result;
    Observation& observation = result.observation;
    observation.label = std::filesystem::path(name_).filename().string();
    observation.group = workload.architecture.name;
    observation.device = run_.device;
    observation.device_count = *global_batch_ / of_a_device;
    observation.workload = workload;
    observation.quantity = Quantity::kStep;
    const double steps = std::ceil(static_cast<double>(*samples) /
                                   static_cast<double>(*global_batch_));
    observation.measured = model::Second(training_s / steps);
    observation.framework = "MLPerf log";
    if (evaluated_ && evaluation_ms_ == 0) {
      result.notes.push_back(fmt::format(
          "{}: evaluations are in the time: the log does not say how long they "
          "took (eval_start, eval_stop)",
          name_));
    }
    return result;
  }

 private:
  [[noreturn]] void Fail(const std::string& message) const {
    throw InputError(name_, 0, 0, message);
  }

  void Take(const JsonObject& event, const nlohmann::json& value) {
    const std::string key = event.Text("key");
    const int64_t time_ms = event.Count("time_ms", 0);
    const bool running = start_ms_ && !stop_ms_;
    if (key == "run_start") {
      if (start_ms_) {
        event.FailWith("key", "expected one run in a file, got a second");
      }
      start_ms_ = time_ms;
    } else if (key == "run_stop") {
      if (!start_ms_) event.FailWith("key", "expected run_start before it");
      if (event.Has("metadata")) {
        const std::string status =
            event.Object("metadata").Text("status", "success");
        if (status != "success") {
          event.FailWith("metadata.status",
                         fmt::format("the run did not end well: {}", status));
        }
      }
      stop_ms_ = time_ms;
    } else if (key == "eval_start" && running) {
      eval_start_ms_ = time_ms;
    } else if (key == "eval_stop" && running && eval_start_ms_) {
      evaluation_ms_ += time_ms - *eval_start_ms_;
      eval_start_ms_.reset();
    } else if (key == "eval_accuracy" && running) {
      evaluated_ = true;
    } else if (key == "epoch_stop" && running) {
      ++epochs_;
    } else if (key == "global_batch_size") {
      global_batch_ = Number(event, value);
    } else if (key == "gradient_accumulation_steps") {
      Require(event, value, "accumulation", run_.workload.accumulation);
    } else if (key == "max_sequence_length") {
      Require(event, value, "length", run_.workload.sequence_length);
    } else if (key == "train_samples") {
      // Before the run it is the size of the data, after it what was trained.
      (start_ms_ ? trained_ : data_) = Number(event, value);
    }
    if (running && event.Has("metadata") && value["metadata"].is_object() &&
        event.Object("metadata").Has("samples_count")) {
      count_ = std::max(count_.value_or(0),
                        event.Object("metadata").Count("samples_count", 0));
    }
  }

  // Python's logger writes every number as 448.0.
  static int64_t Number(const JsonObject& event, const nlohmann::json& value) {
    event.PositiveNumber("value", "a count of at least 1");
    const double number = value["value"].get<double>();
    if (number != std::floor(number) ||
        number > static_cast<double>(model::kMostSamples)) {
      event.FailWith("value",
                     fmt::format("expected a whole number, got {}", number));
    }
    return static_cast<int64_t>(number);
  }

  static void Require(const JsonObject& event,
                      const nlohmann::json& value,
                      std::string_view what,
                      int64_t expected) {
    const int64_t got = Number(event, value);
    if (got == expected) return;
    event.FailWith(
        "value",
        fmt::format(
            "expected the scenario's {} of {}, got {}", what, expected, got));
  }

  std::optional<int64_t> Samples() const {
    if (count_ && *count_ > 0) return count_;
    if (trained_) return trained_;
    if (data_ && epochs_ > 0) {
      return model::CheckedProduct({*data_, epochs_}, "train_samples");
    }
    return std::nullopt;
  }

  const std::string& name_;
  const RunContext& run_;
  int line_ = 0;
  std::optional<int64_t> start_ms_;
  std::optional<int64_t> stop_ms_;
  std::optional<int64_t> eval_start_ms_;
  int64_t evaluation_ms_ = 0;
  bool evaluated_ = false;
  int64_t epochs_ = 0;
  std::optional<int64_t> global_batch_;
  std::optional<int64_t> count_;    // samples_count, the greatest
  std::optional<int64_t> trained_;  // train_samples after run_start
  std::optional<int64_t> data_;     // train_samples before it
};

}  // namespace

bool IsMlperfLog(std::string_view text) {
  return text.find(kMark) != std::string_view::npos;
}

MlperfRun ParseMlperfLog(std::string_view text,
                         const std::string& name,
                         const RunContext& run) {
  LogReader reader(name, run);
  hardware::ForEachLine(text,
                        [&](std::string_view line) { reader.Take(line); });
  return reader.Finish();
}

}  // namespace trainfare::calibrate
