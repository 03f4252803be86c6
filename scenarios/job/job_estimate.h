#pragma once

// What is known of a step, and of a job: times, memory, energy, and words for
// what they say.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/fit/predictor.h"
#include "calibrate/fit/rank_step.h"
#include "calibrate/records/engine_profile.h"
#include "hardware/models/step_time.h"
#include "model/collective.h"
#include "model/memory.h"
#include "model/padding.h"
#include "model/run.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::scenarios {

// One optimizer step. The named terms add up to total().
struct StepEstimate {
  hardware::PhaseTime<double> forward;
  hardware::PhaseTime<double> backward;
  hardware::PhaseTime<double> optimizer;
  model::Seconds<> other;          // of the host, between phases
  model::Seconds<> communication;  // that no computation hides
  // What messages beside it add to computation.
  model::Seconds<> slowed_computation;
  model::Seconds<> waiting;      // for other stages of a pipeline
  model::Seconds<> host_update;  // the update, where the host makes it
  model::Seconds<> input;        // waiting for the batch
  double log_sigma = 0;
  // The same of its parts, each by its own terms; of backward with its
  // messages, which is less sure over ranks.
  double forward_log_sigma = 0;
  double backward_log_sigma = 0;
  double optimizer_log_sigma = 0;
  double low_factor = 1;  // times total(): the 80 % interval
  double high_factor = 1;
  double width_95 = 1;  // of the 95 % interval in 80 % ones, in the logarithm
  calibrate::Grade grade = calibrate::Grade::kDatasheetOnly;
  int64_t figures = 0;  // behind the fit; 0: no fit
  // As StepPrediction has them.
  bool source_seen = false;
  double source_sigma = 0;
  // Over how many ranks the ring was measured; 0: it was not, or is not needed.
  int64_t ring_ranks = 0;
  // By which the ranks of one host send each other, nothing beside it; absent:
  // they do not, or lie over hosts.
  std::optional<model::RingLevel<double>> ring;
  // What ranks that share training state send, by part of the step; empty: none
  // do.
  std::vector<calibrate::ShardTraffic> traffic;

  model::Seconds<> total() const;
  // The backward pass with what ranks wait for each other in it.
  model::Seconds<> backward_with_messages() const;
  // Times a part with that log_sigma: its 80 % interval. Half an interval is as
  // many standard deviations as the step's.
  double LowFactor(double part_log_sigma) const;
  double HighFactor(double part_log_sigma) const;
  // The same of the 95 % interval.
  double LowFactor95(double part_log_sigma) const;
  double HighFactor95(double part_log_sigma) const;
  // What the device itself is busy with, and of this its matrix engines.
  model::Seconds<> busy() const;
  model::Seconds<> matrix() const;
};

// A part of the answer, and what a step dominated by it is called.
struct Term {
  std::string_view name;
  std::string_view bound;
  model::Seconds<> time;
};
std::vector<Term> TermsOf(const StepEstimate& step);

// "interpolated", "extrapolated from 2 figures, ring of 2 ranks".
std::string GradeWords(const StepEstimate& step, int64_t devices);

// What compiling the graph takes of the host's memory, where a device's
// compiler is known to need much (Neuron).
struct HostCompilation {
  model::Bytes<> memory;
  model::Bytes<> host_memory;
  model::Bytes<> swap;
  bool swaps = false;  // more than the host has, and yet it finishes
  bool fails = false;
};

// What is offloaded to the memory of one host.
struct HostHolding {
  std::vector<model::MemoryTerm> terms;  // of one rank
  int64_t ranks = 1;
  std::optional<model::Bytes<>> capacity;  // absent: not known

  model::Bytes<> total() const;  // of all its ranks
  bool fits() const { return !capacity || total() <= *capacity; }
};

struct JobEstimate {
  model::Workload workload;                      // at the longest batch
  std::vector<model::PaddedLength> lengths;      // that a step waits for
  std::vector<model::PaddedLength> own_lengths;  // of each device's sequences
  int64_t devices = 1;                           // ranks
  int64_t ranks_per_device = 1;
  int64_t idle_devices = 0;  // rented beside them
  bool compiles = false;     // every distinct shape anew
  // How long that takes was said; else the interval has up to the longest of
  // its kind a shape, where that is known.
  bool compile_known = false;
  std::optional<model::Seconds<>> longest_compile;
  bool compiles_at_start = false;  // its graphs (scenarios/job/open_times.h)
  // Whether start-up was said; else it is as usual
  // (scenarios/job/open_times.h).
  bool start_up_known = true;

  model::MemoryEstimate memory;
  model::Bytes<> capacity;
  std::optional<int64_t> largest_batch;  // nullopt: not even one sequence
  // No memory ends there: a larger one cannot be counted
  // (model::LargestCountableBatch).
  bool any_batch = false;
  // Absent: no compiler that minds, or a host that is not known.
  std::optional<HostCompilation> compilation;
  std::optional<HostHolding> host;  // absent: nothing is offloaded
  bool fits() const {
    return memory.total() <= capacity && !(compilation && compilation->fails) &&
           (!host || host->fits());
  }
  // Why it does not fit: "does not fit memory by 3 GiB". By how much, as a share
  // of the memory that is exceeded by most.
  std::string Obstacle() const;
  double Excess() const;

  // The rest only if it fits. Means over the lengths of a full batch.
  StepEstimate step;
  model::RunTimes run;
  model::Seconds<> run_low;  // the 80 % interval
  model::Seconds<> run_high;
  // Of the interval, how far times besides steps that the scenario leaves open
  // may lie from what the run counts.
  model::Seconds<> open_below;
  model::Seconds<> open_above;
  model::Seconds<> run_low_95;
  model::Seconds<> run_high_95;
  double samples_per_second = 0;
  double tokens_per_second = 0;  // padding included
  // Of a rank in a step, counted as PaLM does: matrix products of forward and
  // backward with attention, nothing recomputed.
  double model_flops = 0;
  double mfu = 0;  // these over the peak
  // The same with the pairs of positions alone that a model sees, half of them
  // in causal attention, as Megatron-LM counts these, and fewer in windows and
  // packed documents; nullopt: it sees all, or nobody asked.
  std::optional<double> mfu_causal;
  // How busy the engines are in a step of the longest batch, where the device's
  // model has engines.
  std::optional<calibrate::EngineProfile> engines;
  // "memory-bound: memory traffic is 61 % of a step".
  std::string Bottleneck() const;

  // The energy of the devices, without their host, and of those of the rented
  // instance that rest meanwhile. With no idle power known the limit all the
  // time, of those that train: an upper bound. Absent where no limit is
  // published.
  std::optional<model::Joules<>> energy;
  bool energy_is_bound = false;
  double power_log_sigma = 0;  // standard deviation of the log of mean power
  // Of all devices of the job while no step runs, where idle power is known.
  model::Watts<> resting_power;
};

}  // namespace trainfare::scenarios
