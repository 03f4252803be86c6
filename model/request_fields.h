#pragma once

// What the trainer's measuring mode is asked for, once: calibrate/ writes it,
// the trainer reads it (docs/guide/measurements.md).

#include <cstdint>
#include <optional>

#include "model/fields.h"
#include "model/limits.h"
#include "model/workload.h"

namespace trainfare::model {

struct MeasureRequest {
  Workload workload;
  int64_t steps = 5;
  int64_t warmup = 2;
  double max_seconds = 60;  // ends the run after one step that counts
  std::optional<int64_t> seed = {};
  std::optional<bool> layers = {};  // time each part of the model
};

// Fields of the workload stand beside the others.
template <class Archive, Of<MeasureRequest> R>
void VisitFields(Archive& archive, R& request) {
  constexpr int64_t kMost = 1'000'000'000;
  VisitFields(archive, request.workload);
  archive(Field{.name = "steps", .least = 1, .most = kMost}, request.steps);
  archive(Field{.name = "warmup", .most = kMost}, request.warmup);
  archive(Field{.name = "max_seconds", .high = 1e6}, request.max_seconds);
  archive(Field{.name = "seed", .most = kLargestSeed}, request.seed);
  archive(Field{.name = "layers"}, request.layers);
}

}  // namespace trainfare::model
