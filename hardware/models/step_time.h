#pragma once

// The answer of a device model: a step's time as named terms that add up.

#include <cstdint>

#include "hardware/catalog/device.h"
#include "model/error.h"
#include "model/kernel_time.h"
#include "model/kernels.h"
#include "model/product_kernel.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::hardware {

// What the matrix engines do at most for `kernel`. The device has the workload's
// precision, and bf16 where its optimizer takes that.
inline model::FlopsPerSecond<> MatrixPeakOf(const Device& device,
                                            const model::Workload& workload,
                                            const model::Kernel& kernel) {
  const auto peak =
      device.MatrixPeak(model::OperandsOf(kernel, workload.precision));
  ENSURE(peak.has_value(), "a precision that the device does not have");
  return *peak;
}

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
  // What the device itself is busy with, not its host.
  model::Seconds<T> working() const { return total() - overhead; }
  PhaseTime& operator+=(const PhaseTime& other) {
    matrix += other.matrix;
    vector += other.vector;
    memory += other.memory;
    spill += other.spill;
    overhead += other.overhead;
    return *this;
  }
  friend PhaseTime operator*(const PhaseTime& phase, double times) {
    return {phase.matrix * times,
            phase.vector * times,
            phase.memory * times,
            phase.spill * times,
            phase.overhead * times};
  }
};

// One pass of one micro-batch by what it goes through: embeddings, one layer,
// one decoder layer, head. For the overlap with communication.
template <class T>
struct PassUnits {
  model::Seconds<T> embeddings;
  model::Seconds<T> layer;
  model::Seconds<T> decoder_layer;
  model::Seconds<T> head;

  friend PassUnits operator*(const PassUnits& units, double times) {
    return {units.embeddings * times,
            units.layer * times,
            units.decoder_layer * times,
            units.head * times};
  }
};

// One optimizer step, all its micro-batches included.
template <class T>
struct StepTime {
  PhaseTime<T> forward;
  PhaseTime<T> backward;
  PhaseTime<T> optimizer;
  // What the host takes, and what lies between phases: input, zeroing,
  // bookkeeping.
  model::Seconds<T> other;

  PassUnits<T> forward_units;
  PassUnits<T> backward_units;

  model::Seconds<T> total() const {
    return forward.total() + backward.total() + optimizer.total() + other;
  }
  friend StepTime operator*(const StepTime& step, double times) {
    return {step.forward * times,
            step.backward * times,
            step.optimizer * times,
            step.other * times,
            step.forward_units * times,
            step.backward_units * times};
  }
};

// Shares of a step's time that a device is busy: with matrix products, and with
// other work. The rest it waits for its host.
template <class T>
struct BusyShares {
  T products = T(0.0);
  T others = T(0.0);
};

template <class T>
BusyShares<T> BusySharesOf(const StepTime<T>& step) {
  const model::Seconds<T> total = step.total();
  const model::Seconds<T> products =
      step.forward.matrix + step.backward.matrix + step.optimizer.matrix;
  const model::Seconds<T> busy = step.forward.working() +
                                 step.backward.working() +
                                 step.optimizer.working();
  return {products / total, (busy - products) / total};
}

// The same step in another scalar, each of its times through `of`.
template <class To, class From, class Of>
PhaseTime<To> Mapped(const PhaseTime<From>& phase, const Of& of) {
  return {of(phase.matrix),
          of(phase.vector),
          of(phase.memory),
          of(phase.spill),
          of(phase.overhead)};
}
template <class To, class From, class Of>
PassUnits<To> Mapped(const PassUnits<From>& units, const Of& of) {
  return {of(units.embeddings),
          of(units.layer),
          of(units.decoder_layer),
          of(units.head)};
}
template <class To, class From, class Of>
StepTime<To> Mapped(const StepTime<From>& step, const Of& of) {
  return {Mapped<To>(step.forward, of),
          Mapped<To>(step.backward, of),
          Mapped<To>(step.optimizer, of),
          of(step.other),
          Mapped<To>(step.forward_units, of),
          Mapped<To>(step.backward_units, of)};
}

// Adds one kernel's exposed time to the terms of its phase, once a launch.
template <class T>
void AddKernel(PhaseTime<T>& phase,
               const model::Kernel& kernel,
               const model::ExposedTime<T>& exposed) {
  // No copy of a time that is added as it is: a scalar may be a long row.
  const auto add = [&](model::Seconds<T>& sum, const model::Seconds<T>& once) {
    if (kernel.launches == 1) {
      sum += once;
    } else {
      sum += once * static_cast<double>(kernel.launches);
    }
  };
  add(kernel.matrix_flops > 0 ? phase.matrix : phase.vector, exposed.compute);
  add(phase.memory, exposed.memory);
  add(phase.overhead, exposed.fixed);
}

// Keeps the time of one layer (head, embeddings) of one pass.
template <class T>
void RecordUnit(const model::Segment& segment,
                model::Seconds<T> time,
                PassUnits<T>& units) {
  const model::Seconds<T> once = time / static_cast<double>(segment.repeat);
  switch (segment.role) {
    case model::SegmentRole::kHead:
      units.head = once;
      break;
    case model::SegmentRole::kLayer:
      units.layer = once;
      break;
    case model::SegmentRole::kDecoderLayer:
      units.decoder_layer = once;
      break;
    case model::SegmentRole::kEmbeddings:
      units.embeddings = once;
      break;
    case model::SegmentRole::kAccumulation:
    case model::SegmentRole::kOptimizer:
    case model::SegmentRole::kCompression:
      break;
  }
}

// Adds up segments, each timed with all its repeats by `time_of`, into the
// phases of a step, as often as they run in it.
template <class T, class TimeOf>
StepTime<T> SumSegments(const model::Workload& workload,
                        const model::KernelList& kernels,
                        TimeOf&& time_of,
                        model::Seconds<T> other) {
  StepTime<T> step;
  step.other = other;
  for (const model::Segment& segment : kernels.segments) {
    const PhaseTime<T> time = time_of(segment);
    const int64_t passes = model::PassesInStep(workload, segment);
    const auto add = [&](PhaseTime<T>& sum) {
      if (passes == 1) {
        sum += time;
      } else {
        sum += time * static_cast<double>(passes);
      }
    };
    switch (segment.phase) {
      case model::Phase::kForward:
        add(step.forward);
        RecordUnit(segment, time.total(), step.forward_units);
        break;
      case model::Phase::kBackward:
        add(step.backward);
        RecordUnit(segment, time.total(), step.backward_units);
        break;
      case model::Phase::kOptimizer:
        step.optimizer += time;
        break;
    }
  }
  return step;
}

}  // namespace trainfare::hardware
