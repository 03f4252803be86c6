#include "scenarios/job/open_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hardware/catalog/kind_facts.h"
#include "hardware/files/unit_text.h"
#include "model/architecture.h"
#include "model/optimizer_kernels.h"
#include "model/trainable.h"

namespace trainfare::scenarios {
namespace {

using hardware::Device;
using model::Seconds;

OpenTime Known(Seconds<> time) { return {time, time, time}; }

// What checkpoints may take of a run before readers are told.
constexpr double kShownShare = 0.25;

model::Bytes<> CheckpointSize(const model::Workload& w) {
  return model::Byte(4.0 * static_cast<double>(model::TrainableParameters(w) +
                                               model::StateNumbersOf(w)));
}

// Whether lengths come as they are drawn, so that no run before has compiled
// them all.
bool ShapesAreNew(const Scenario& scenario, const JobEstimate& job) {
  return scenario.padding.kind == PaddingKind::kDynamic &&
         job.lengths.size() > 1;
}

// The middle of a range, in logarithms.
OpenTime Between(Seconds<> from, Seconds<> to) {
  return {from, Seconds<>(std::sqrt(from.base() * to.base())), to};
}

// Where two do not hang on each other, distances to the bounds add as their
// squares.
OpenTime Sum(const OpenTime& a, const OpenTime& b) {
  const Seconds<> usual = a.usual + b.usual;
  const Seconds<> below(
      std::hypot((a.usual - a.low).base(), (b.usual - b.low).base()));
  const Seconds<> above(
      std::hypot((a.high - a.usual).base(), (b.high - b.usual).base()));
  return {usual - below, usual, usual + above};
}

}  // namespace

bool CompilesAtStart(const Scenario& scenario, const Device& device) {
  return scenario.workload.stack.fusion == model::Fusion::kCompiled &&
         !device.static_shapes && !scenario.extras.warm_cache;
}

OpenTime StartUpTime(const Scenario& scenario,
                     const Device& device,
                     const Cluster& cluster) {
  if (scenario.extras.start_up) return Known(*scenario.extras.start_up);
  const hardware::RunFacts& facts = hardware::FactsOfRuns();
  const auto parameters = static_cast<double>(
      model::TotalParameters(scenario.workload.architecture));
  const Seconds<> usual = facts.process_start +
                          model::Byte(2.0 * parameters) / facts.parameters_read;
  OpenTime start{usual / facts.start_factor, usual, usual * facts.start_factor};
  if (CompilesAtStart(scenario, device)) {
    start =
        Sum(start,
            scenario.extras.compile_per_shape
                ? Known(*scenario.extras.compile_per_shape)
                : Between(facts.shortest_compiling, facts.longest_compiling));
  }
  if (!cluster.rented) return start;
  return Sum(start, Between(facts.shortest_renting, facts.longest_renting));
}

std::string StartUpWords(const JobEstimate& job) {
  if (job.start_up_known) return "";
  return fmt::format("; {} of start-up assumed, --start-up 0 leaves it out",
                     hardware::FormatTime(job.run.start_up));
}

std::string StartUpNote(bool rented, bool compiled) {
  using hardware::FormatTime;
  const hardware::RunFacts& facts = hardware::FactsOfRuns();
  const std::string renting =
      rented ? fmt::format("{} to {} of renting, ",
                           FormatTime(facts.shortest_renting),
                           FormatTime(facts.longest_renting))
             : "";
  const std::string compiling =
      compiled ? fmt::format("{} to {} of compiling, ",
                             FormatTime(facts.shortest_compiling),
                             FormatTime(facts.longest_compiling))
               : "";
  return fmt::format(
      "start-up is assumed: {}{}{} of a process and its parameters at {}, "
      "within a factor of {:.2g}; say what it takes by --start-up or "
      "run.start_up",
      renting,
      compiling,
      FormatTime(facts.process_start),
      hardware::FormatBandwidth(facts.parameters_read),
      facts.start_factor);
}

OpenTime CheckpointTime(const Scenario& scenario, const Cluster& cluster) {
  if (scenario.extras.checkpoint) return Known(*scenario.extras.checkpoint);
  if (scenario.workload.work != model::Work::kTraining) return {};
  return {{},
          {},
          CheckpointSize(scenario.workload) /
              (hardware::FactsOfRuns().slowest_write *
               static_cast<double>(cluster.hosts))};
}

std::optional<std::string> CheckpointNote(const JobEstimate& job,
                                          const Scenario& scenario,
                                          const Cluster& cluster) {
  if (scenario.extras.checkpoint || !job.fits()) return std::nullopt;
  const Seconds<> longest = CheckpointTime(scenario, cluster).high;
  const Seconds<> all = longest * static_cast<double>(scenario.epochs);
  if (all < job.run.total() * kShownShare) return std::nullopt;
  return fmt::format(
      "checkpoints are assumed: none in the answer, in its interval up to one "
      "after each epoch, {} of parameters and optimizer state in fp32 at {}{}, "
      "which take {}; say what one takes by run.checkpoint, as in --set "
      "\"run.checkpoint=30 s\" (0 s: none)",
      hardware::FormatBytes(CheckpointSize(scenario.workload)),
      hardware::FormatBandwidth(hardware::FactsOfRuns().slowest_write),
      cluster.hosts > 1 ? " a host" : "",
      hardware::FormatTime(longest));
}

Seconds<> CompileTime(const Scenario& scenario,
                      const Device& device,
                      const JobEstimate& job) {
  if (scenario.extras.compile_per_shape) {
    return *scenario.extras.compile_per_shape;
  }
  if (!device.compiler || !ShapesAreNew(scenario, job)) return {};
  return Seconds<>(std::sqrt(device.compiler->shortest_compile.base() *
                             device.compiler->longest_compile.base()));
}

OpenTime CompilingTime(const Scenario& scenario,
                       const Device& device,
                       const JobEstimate& job) {
  if (job.compile_known || !device.compiler) return Known(job.run.compile);
  const hardware::CompilerFacts& compiler = *device.compiler;
  if (!ShapesAreNew(scenario, job)) {
    return {{},
            job.run.compile,
            compiler.longest_compile * job.run.distinct_shapes};
  }
  return {compiler.shortest_compile * job.run.distinct_shapes,
          job.run.compile,
          compiler.longest_compile *
              std::max(job.run.distinct_shapes, job.run.shape_changes)};
}

}  // namespace trainfare::scenarios
