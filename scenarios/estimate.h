#pragma once

// What one job takes on one device or on several that train data parallel:
// step, run, memory, energy. Prices are left to the caller.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/predictor.h"
#include "hardware/device.h"
#include "hardware/instance.h"
#include "hardware/interconnect.h"
#include "model/memory.h"
#include "model/run.h"
#include "model/units.h"
#include "scenarios/scenario.h"

namespace trainfare::scenarios {

// Devices of one host that train together.
struct Cluster {
  int64_t devices = 1;
  // Between two of them; needed for more than one.
  std::optional<hardware::Interconnect> link;
};

// `devices` of a host of `instance`, or beside each other by the links of the
// device's own datasheet. Throws InputError when no link is known.
Cluster ClusterOf(const hardware::Instance& instance, int64_t devices);
Cluster ClusterOf(const hardware::Device& device, int64_t devices);

// One optimizer step. The named terms add up to total().
struct StepEstimate {
  hardware::PhaseTime<double> forward;
  hardware::PhaseTime<double> backward;
  hardware::PhaseTime<double> optimizer;
  model::Seconds<> other;          // of the host, between phases
  model::Seconds<> communication;  // that no computation hides
  model::Seconds<> input;          // waiting for the batch
  double log_sigma = 0;
  double low_factor = 1;  // times total(): the 80 % interval
  double high_factor = 1;
  calibrate::Grade grade = calibrate::Grade::kDatasheetOnly;
  int64_t figures = 0;  // behind the fit; 0: no fit

  model::Seconds<> total() const;
  // What the device itself is busy with, and of this its matrix engines.
  model::Seconds<> busy() const;
  model::Seconds<> matrix() const;
};

// One optimizer step on all devices of the cluster. Throws InputError when the
// device cannot run the precision, or the workload is not valid.
StepEstimate EstimateStep(const calibrate::Predictor& predictor,
                          const model::Workload& workload,
                          const Cluster& cluster);

// A part of the answer, and what a step dominated by it is called.
struct Term {
  std::string name;
  std::string bound;
  model::Seconds<> time;
};
std::vector<Term> TermsOf(const StepEstimate& step);

struct JobEstimate {
  model::Workload workload;  // at the longest batch
  std::vector<model::PaddedLength> lengths;
  int64_t devices = 1;
  bool compiles = false;  // every distinct shape anew
  // How long that takes was said; else it is not counted.
  bool compile_known = false;

  model::MemoryEstimate memory;
  model::Bytes<> capacity;
  std::optional<int64_t> largest_batch;  // nullopt: not even one sequence
  bool fits() const { return memory.total() <= capacity; }

  // The rest only if it fits. Means over the lengths of a full batch.
  StepEstimate step;
  model::RunTimes run;
  model::Seconds<> run_low;
  model::Seconds<> run_high;
  double samples_per_second = 0;
  double tokens_per_second = 0;  // padding included
  // Model FLOPs over peak, counted as PaLM does: matrix products of forward
  // and backward with attention, nothing recomputed.
  double mfu = 0;
  std::string bottleneck;  // "memory-bound: memory traffic is 61 % of a step"

  // Of the devices, without their host. With no idle power known the limit
  // all the time: an upper bound. Absent where no limit is published.
  std::optional<model::Joules<>> energy;
  bool energy_is_bound = false;
};

// Throws InputError when the device cannot run the precision.
JobEstimate EstimateJob(const Scenario& scenario,
                        const calibrate::Predictor& predictor,
                        const Cluster& cluster);

// What the framework and the driver take on a device of this kind.
model::MemorySurroundings SurroundingsOf(const hardware::Device& device,
                                         int64_t devices);

}  // namespace trainfare::scenarios
