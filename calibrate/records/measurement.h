#pragma once

// Measurement records (docs/guide/measurements.md) of trainfare.measurement/1:
// reading them, and what they say as observations.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/records/assumed.h"
#include "calibrate/records/observation.h"
#include "calibrate/records/power_observation.h"
#include "model/collective.h"
#include "model/kernels.h"
#include "model/step_sample.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

using Sample = model::StepSample;

struct MeasuredRun {
  int line = 0;    // in its file, from 1
  std::string id;  // of the record; "file:line" where it has none
  std::string time;
  std::string device;       // as the machine reports it
  std::string device_kind;  // "cpu", "cuda"; may be empty
  int64_t device_count = 1;
  int64_t threads = 0;  // 0: not said
  std::string host;
  std::string software;
  model::Workload workload;
  Assumed assumed;             // none where who wrote the record ran it
  model::Bytes<> peak_memory;  // 0: not said
  // Something else took time from the timed steps, by the record's own word.
  bool disturbed = false;
  // Time that threads were ready and had no processor, of what they had.
  std::optional<double> waited_share;
  // What the device drew, by its own counter; absent where it has none.
  std::optional<model::Watts<>> mean_power;
  std::vector<model::Bytes<>> buckets;  // of gradients; empty: not by ranks
  std::string backend;    // of the ranks: gloo, nccl; may be empty
  std::string transport;  // between them; may be empty
  std::vector<Sample> samples;
};

// Collectives of one size over ranks, timed by themselves.
struct MeasuredCollective {
  int line = 0;
  model::Collective collective = model::Collective::kAllReduce;
  int64_t ranks = 0;
  model::Bytes<> size;    // on each rank, of all shares together
  model::Seconds<> time;  // median of the samples
  // Speed of what the ranks computed meanwhile, 1 as without messages; absent
  // where they only communicated.
  std::optional<double> computation_speed;
  std::string device;  // as the machine reports it
  std::string device_kind;
  int64_t threads = 0;    // of a rank; 0: not said
  std::string backend;    // gloo, nccl; may be empty
  std::string transport;  // between the ranks; may be empty
  std::string software;
};

// One operation of a step, timed by itself.
struct MeasuredKernel {
  int line = 0;
  std::string id;      // of the record; "file:line" where it has none
  std::string device;  // as the machine reports it
  std::string host;
  std::string software;
  model::Workload workload;  // whose step asks for it
  std::string operation;
  model::KernelKind kind = model::KernelKind::kGemm;
  model::Phase phase = model::Phase::kForward;
  int64_t per_step = 1;
  // What the model counts for it; names are left out.
  std::vector<model::Kernel> kernels;
  model::Seconds<> time;      // median of the samples
  double relative_noise = 0;  // of the median
  bool disturbed = false;
  std::optional<double> waited_share;  // as of a run
};

// A request that the trainer could not run.
struct RefusedRun {
  int line = 0;
  std::string request;
  std::string message;
};

struct Measurements {
  std::string file;
  std::vector<MeasuredRun> runs;
  std::vector<MeasuredKernel> kernels;
  std::vector<MeasuredCollective> collectives;
  std::vector<RefusedRun> refused;
  int64_t other_kinds = 0;  // records of whole jobs
  // Says what was dropped: "<file>:<line>: ...".
  std::optional<std::string> dropped_tail;
};

// What to do about a last line that was cut off while it was written.
enum class CutTail { kRefuse, kDrop };

// Throws InputError "file:line: ..." for what is not a record of this schema.
Measurements ReadMeasurements(const std::string& path,
                              CutTail cut_tail = CutTail::kRefuse);
// The same from text; `name` stands for the file in messages.
Measurements ParseMeasurements(std::string_view text,
                               const std::string& name,
                               CutTail cut_tail = CutTail::kRefuse);

// One line: a run, a kernel, or the message of a refused request.
struct MeasurementLine {
  std::optional<MeasuredRun> run;
  std::optional<MeasuredKernel> kernel;
  std::optional<MeasuredCollective> collective;
  std::optional<RefusedRun> refused;
};
MeasurementLine ParseMeasurementLine(std::string_view line,
                                     const std::string& name,
                                     int line_number);

}  // namespace trainfare::calibrate
