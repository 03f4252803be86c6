#pragma once

// The measuring mode: runs of training steps as a plan asks for them, one
// record each (docs/measurement.md, "The trainer's measuring mode").

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "model/workload.h"
#include "trainer/record.h"
#include "trainer/session.h"

namespace trainfare::trainer {

struct MeasureRequest {
  model::Workload workload;
  int64_t steps = 5;
  int64_t warmup = 2;
  double max_seconds = 60;
  uint64_t seed = 1;
};

// Throws InputError that names the key.
MeasureRequest ParseMeasureRequest(const std::string& text);

class Measurer {
 public:
  explicit Measurer(at::Device device) : device_(device) {}

  // Runs the steps; nullopt when a signal ended the run before it had a step
  // to report.
  std::optional<StepRecord> Run(const MeasureRequest& request);

 private:
  Session& SessionFor(const MeasureRequest& request);

  at::Device device_;
  // The last model, kept for the next request: its memory, not its weights.
  std::unique_ptr<Session> session_;
  std::optional<model::Workload> session_workload_;
};

// Reads requests from `plan`, appends records to `out` ("-": standard streams).
// Returns the exit code.
int RunMeasurePlan(const std::string& plan,
                   const std::string& out,
                   at::Device device);

}  // namespace trainfare::trainer
