#pragma once

// What one step took, and when its parts began and ended
// (docs/guide/measurements.md).

#include <optional>
#include <vector>

namespace trainfare::trainer {

// The passes of one micro-batch. Parts follow each other without a gap, so n
// parts have n + 1 instants, in seconds since the step began. The backward pass
// goes through the parts from the last to the first.
struct PassTimeline {
  std::vector<double> forward_at_s;
  std::vector<double> backward_at_s;
};

struct StepTimeline {
  std::vector<PassTimeline> passes;
  double optimizer_begin_s = 0;
  double optimizer_end_s = 0;
};

// The backward pass that sends gradients to other ranks, in seconds since its
// start. Of each bucket of gradients and of each layer (record.h).
struct GradientTimes {
  std::vector<double> bucket_ready;  // last gradient of the bucket computed
  std::vector<double> bucket_start;  // sending begins
  std::vector<double> bucket_end;    // the mean is here
  std::vector<double> layer_ready;   // last gradient of the layer computed
  double compute_end = 0;            // last gradient of all
};

// Time of the parts of one step: on a CPU by the monotonic clock, on a GPU by
// events in its queue; the whole step by the monotonic clock on both, from an
// idle device to an idle device.
struct StepTimes {
  double forward_s = 0;
  double backward_s = 0;
  double optimizer_s = 0;
  double step_s = 0;  // input, zeroing, forward, backward, optimizer
  double loss = 0;    // of several ranks their mean
  bool stop = false;  // a rank asked to stop: all stop behind this step
  // In which this rank, of those that share state, waited for the others.
  std::optional<double> waited_s;
  std::optional<StepTimeline> timeline;    // where it was asked for
  std::optional<GradientTimes> gradients;  // of one of several ranks
};

}  // namespace trainfare::trainer
