#pragma once

// One step of a run as its record says it (docs/guide/measurements.md): what
// the trainer writes and a calibration reads, in one list of fields.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/fields.h"
#include "model/limits.h"
#include "model/units.h"

namespace trainfare::model {

// A part that was not timed is absent.
struct StepSample {
  int64_t index = 0;
  bool warmup = false;
  std::optional<Seconds<>> forward;
  std::optional<Seconds<>> backward;
  std::optional<Seconds<>> optimizer;
  Seconds<> step;
  // In which this rank, of those that share state, waited for the others.
  std::optional<Seconds<>> waited;
  // Times on one of several ranks, since its backward pass began; a value a
  // bucket of gradients, of the last a layer (ranks.layers of the record).
  std::optional<Seconds<>> backward_compute;
  std::vector<Seconds<>> bucket_ready;
  std::vector<Seconds<>> bucket_start;
  std::vector<Seconds<>> bucket_end;
  std::vector<Seconds<>> layer_ready;
};

template <class Archive, Of<StepSample> S>
void VisitFields(Archive& archive, S& sample) {
  archive(Field{.name = "step", .most = kLargestCount}, sample.index);
  archive(Field{.name = "warmup"}, sample.warmup);
  const auto time = [&](std::string_view name, auto& value, bool required) {
    archive(Field{.name = name,
                  .required = required,
                  .least_base = kShortestTime,
                  .most_base = kLongestTime},
            value);
  };
  time("forward_s", sample.forward, false);
  time("backward_s", sample.backward, false);
  time("optimizer_s", sample.optimizer, false);
  time("step_s", sample.step, true);
  archive(
      Field{.name = "waited_s", .most_base = kLongestTime, .may_be_zero = true},
      sample.waited);
  time("backward_compute_s", sample.backward_compute, false);
  time("bucket_ready_s", sample.bucket_ready, false);
  time("bucket_start_s", sample.bucket_start, false);
  time("bucket_end_s", sample.bucket_end, false);
  time("layer_ready_s", sample.layer_ready, false);
}

}  // namespace trainfare::model
