#pragma once

// The measuring mode: runs of training steps as a plan asks for them, one
// record each (docs/guide/measurements.md, "The trainer's measuring mode").

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/workload.h"
#include "trainer/data/measure_request.h"
#include "trainer/record/record.h"
#include "trainer/training/session.h"

namespace trainfare::trainer {

// What this trainer can run of what a request asks for. Throws InputError that
// names the key.
MeasureRequest ParseMeasureRequest(const std::string& text);

// The ranks that measure together; no communicator: this process is alone.
struct RankGroup {
  Communicator* communicator = nullptr;
  BucketOptions buckets;

  int rank() const { return communicator ? communicator->rank() : 0; }
  int count() const { return communicator ? communicator->world_size() : 1; }
  bool several() const { return count() > 1; }
};

class Measurer {
 public:
  // `layers`: time each part of the model in every run.
  explicit Measurer(at::Device device,
                    bool layers = false,
                    const RankGroup& ranks = {})
      : device_(device), layers_(layers), ranks_(ranks) {}

  // Runs the steps; nullopt when a signal ended the run before it had a step
  // to report.
  std::optional<StepRecord> Run(const MeasureRequest& request);

 private:
  std::optional<StepRecord> RunSteps(const MeasureRequest& request);
  Session& SessionFor(const MeasureRequest& request);

  at::Device device_;
  bool layers_;
  RankGroup ranks_;
  // The last model, kept for the next request: its memory, not its weights.
  std::unique_ptr<Session> session_;
  std::optional<model::Workload> session_workload_;
};

// Reads requests from `plan` ("-": standard input) and writes to `out` the
// lines that `answer` has for each, or one line that says why there are none.
// Of several ranks the first reads the plan and tells the others; it alone
// writes, unless `out` has "{rank}" in it. Throws InputError for a regular file
// whose lines are not all JSON objects, before the first is answered. Returns
// the exit code.
int AnswerPlan(
    const std::string& plan,
    const std::string& out,
    const std::function<std::vector<std::string>(const MeasureRequest&)>&
        answer,
    const RankGroup& ranks = {});

// Reads requests from `plan`, appends records to `out` ("-": standard streams).
// Returns the exit code.
int RunMeasurePlan(const std::string& plan,
                   const std::string& out,
                   at::Device device,
                   bool layers,
                   const RankGroup& ranks = {});

}  // namespace trainfare::trainer
