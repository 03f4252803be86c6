#pragma once

// The answer of a device model: a step's time as named terms that add up.

#include "model/units.h"

namespace trainfare::hardware {

// Exposed time by cause: what overlaps with something longer is not in it, so
// that the terms add up to the time that passes.
template <class T>
struct PhaseTime {
  model::Seconds<T> matrix;    // matrix engines
  model::Seconds<T> vector;    // elementwise arithmetic, reductions, random
  model::Seconds<T> memory;    // device memory traffic
  model::Seconds<T> spill;     // extra traffic past on-chip memory
  model::Seconds<T> overhead;  // fixed cost of kernels, waiting for the host

  model::Seconds<T> total() const {
    return matrix + vector + memory + spill + overhead;
  }
  PhaseTime& operator+=(const PhaseTime& other) {
    matrix += other.matrix;
    vector += other.vector;
    memory += other.memory;
    spill += other.spill;
    overhead += other.overhead;
    return *this;
  }
  friend PhaseTime operator*(const PhaseTime& phase, double times) {
    PhaseTime scaled = phase;
    scaled.matrix = phase.matrix * times;
    scaled.vector = phase.vector * times;
    scaled.memory = phase.memory * times;
    scaled.spill = phase.spill * times;
    scaled.overhead = phase.overhead * times;
    return scaled;
  }
};

// One optimizer step, all its micro-batches included.
template <class T>
struct StepTime {
  PhaseTime<T> forward;
  PhaseTime<T> backward;
  PhaseTime<T> optimizer;
  // Of the host and between phases: input, zeroing, bookkeeping.
  model::Seconds<T> other;

  // Of one micro-batch's backward pass, for the overlap with communication:
  // head, one layer, one decoder layer, embeddings.
  model::Seconds<T> backward_head;
  model::Seconds<T> backward_layer;
  model::Seconds<T> backward_decoder_layer;
  model::Seconds<T> backward_embeddings;

  model::Seconds<T> total() const {
    return forward.total() + backward.total() + optimizer.total() + other;
  }
};

}  // namespace trainfare::hardware
