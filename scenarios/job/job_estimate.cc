#include "scenarios/job/job_estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hardware/files/unit_text.h"
#include "model/error.h"

namespace trainfare::scenarios {

using model::Seconds;

std::string JobEstimate::Obstacle() const {
  if (memory.total() > capacity) {
    return fmt::format("does not fit memory by {}",
                       hardware::FormatBytes(memory.total() - capacity));
  }
  if (host && !host->fits()) {
    return fmt::format(
        "does not fit the host's memory by {}: what is offloaded takes {}",
        hardware::FormatBytes(host->total() - *host->capacity),
        hardware::FormatBytes(host->total()));
  }
  ENSURE(compilation && compilation->fails, "a job that does not fit");
  return fmt::format(
      "does not fit the host's memory by {}: compiling it takes {}, {}; use a "
      "smaller batch, or set {}run.warm_cache",
      hardware::FormatBytes(compilation->memory - compilation->host_memory),
      hardware::FormatBytes(compilation->memory),
      compilation->swap.base() > 0 ? "too much to swap" : "there is no swap",
      compilation->swap.base() > 0 ? "" : "run.swap or ");
}

double JobEstimate::Excess() const {
  double share = memory.total() / capacity;
  if (host && host->capacity) {
    share = std::max(share, host->total() / *host->capacity);
  }
  if (compilation && compilation->fails) {
    share = std::max(share, compilation->memory / compilation->host_memory);
  }
  return std::max(0.0, share - 1.0);
}

model::Bytes<> HostHolding::total() const {
  model::Bytes<> sum;
  for (const model::MemoryTerm& term : terms) sum += term.size;
  return sum * static_cast<double>(ranks);
}

std::string GradeWords(const StepEstimate& step, int64_t devices) {
  std::string words = calibrate::GradeText(step.grade, step.figures);
  if (step.ring_ranks > 0 && step.ring_ranks != devices) {
    words += fmt::format(", ring of {} ranks", step.ring_ranks);
  }
  return words;
}

Seconds<> StepEstimate::total() const {
  return forward.total() + backward.total() + optimizer.total() + other +
         communication + slowed_computation + waiting + host_update + input;
}

Seconds<> StepEstimate::backward_with_messages() const {
  return backward.total() + communication + slowed_computation;
}

double StepEstimate::LowFactor(double part_log_sigma) const {
  return log_sigma > 0 ? std::pow(low_factor, part_log_sigma / log_sigma) : 1.0;
}

double StepEstimate::HighFactor(double part_log_sigma) const {
  return log_sigma > 0 ? std::pow(high_factor, part_log_sigma / log_sigma)
                       : 1.0;
}

double StepEstimate::LowFactor95(double part_log_sigma) const {
  return std::pow(LowFactor(part_log_sigma), width_95);
}

double StepEstimate::HighFactor95(double part_log_sigma) const {
  return std::pow(HighFactor(part_log_sigma), width_95);
}

Seconds<> StepEstimate::matrix() const {
  return forward.matrix + backward.matrix + optimizer.matrix;
}

Seconds<> StepEstimate::busy() const {
  return forward.working() + backward.working() + optimizer.working();
}

std::vector<Term> TermsOf(const StepEstimate& step) {
  hardware::PhaseTime<double> sum = step.forward;
  sum += step.backward;
  sum += step.optimizer;
  return {{"matrix products", "compute-bound", sum.matrix},
          {"vector arithmetic", "compute-bound", sum.vector},
          {"memory traffic", "memory-bound", sum.memory},
          {"spilling on-chip memory", "spill-bound", sum.spill},
          {"launching kernels", "launch-bound", sum.overhead},
          {"the host between phases", "launch-bound", step.other},
          {"exposed communication", "communication-bound", step.communication},
          {"computation slowed by communication",
           "communication-bound",
           step.slowed_computation},
          {"waiting for other stages", "pipeline-bound", step.waiting},
          {"the update on the host", "host-bound", step.host_update},
          {"waiting for input", "input-bound", step.input}};
}

std::string JobEstimate::Bottleneck() const {
  if (run.compile > run.training + run.evaluation) {
    return fmt::format(
        "compile-bound: compiling {:.0f} shapes is {:.0f} % of "
        "the run",
        run.distinct_shapes,
        100.0 * (run.compile / run.total()));
  }
  const std::vector<Term> terms = TermsOf(step);
  const auto largest = std::max_element(
      terms.begin(), terms.end(), [](const Term& a, const Term& b) {
        return a.time < b.time;
      });
  return fmt::format("{}: {:.0f} % of a step is {}",
                     largest->bound,
                     100.0 * (largest->time / step.total()),
                     largest->name);
}

}  // namespace trainfare::scenarios
