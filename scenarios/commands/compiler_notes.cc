#include "scenarios/commands/compiler_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "hardware/catalog/device.h"
#include "hardware/files/unit_text.h"

namespace trainfare::scenarios {
namespace {

using hardware::FormatBytes;
using hardware::FormatTime;

// Devices whose own files say that of their compiler: chips, not parts of one.
std::string DevicesThatSay(bool (*said)(const hardware::CompilerFacts&)) {
  std::vector<std::string_view> names;
  for (const hardware::Device& one :
       hardware::DeviceCatalog::Shipped().devices()) {
    if (one.compiler && said(*one.compiler) && !one.part_of) {
      names.push_back(one.name);
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

bool SaysLevels(const hardware::CompilerFacts& compiler) {
  return !compiler.level_times.empty();
}

bool SaysGraphMemory(const hardware::CompilerFacts& compiler) {
  return compiler.graph_memory.has_value();
}

// What of its compiler nobody measured, where the job would turn on it.
void AddUnknownsOfCompiler(const PredictionTarget& target,
                           const Scenario& scenario,
                           std::vector<Note>& notes) {
  const hardware::Device& device = target.predictor.device();
  const auto& compiler = device.compiler;
  if (!compiler || compiler->levels == 0) return;
  if (scenario.workload.stack.compiler_level != 2 && !SaysLevels(*compiler)) {
    notes.push_back(
        fmt::format("compiler_level: what it changes was measured on {} alone, "
                    "not on {}: as level 2",
                    DevicesThatSay(SaysLevels),
                    device.name));
  }
  if (scenario.workload.work == model::Work::kTraining &&
      target.cluster.host_memory && !scenario.extras.warm_cache &&
      !SaysGraphMemory(*compiler)) {
    notes.push_back(fmt::format(
        "memory of the host for compiling was measured on {} alone, "
        "not on {}: no batch is refused for it",
        DevicesThatSay(SaysGraphMemory),
        device.name));
  }
}

// That compilation takes time which nobody said.
void AddCompileTime(const PredictionTarget& target,
                    const std::vector<JobEstimate>& jobs,
                    const Scenario& scenario,
                    std::vector<Note>& notes) {
  if (scenario.extras.compile_per_shape || scenario.extras.warm_cache ||
      std::none_of(jobs.begin(), jobs.end(), [](const JobEstimate& job) {
        return job.fits() && job.compiles;
      })) {
    return;
  }
  const hardware::Device& device = target.predictor.device();
  const JobEstimate& job = jobs.front();
  std::string counted = "is not counted";
  if (device.compiler) {
    counted = fmt::format(
        "is not known: the interval has {} to {} a graph{}",
        job.run.compile.base() > 0
            ? FormatTime(device.compiler->shortest_compile)
            : "nothing",
        FormatTime(device.compiler->longest_compile),
        job.run.shape_changes > job.run.distinct_shapes
            ? fmt::format(", once each or at every change of length ({:.0f})",
                          job.run.shape_changes)
            : "");
  }
  notes.emplace_back(
      fmt::format(
          "{} compiles every distinct shape ({:.0f} here); how long {}: set "
          "run.compile_per_shape, or run.warm_cache where it was done before",
          device.name,
          job.run.distinct_shapes,
          counted),
      Caution::kCompileTimeUnknown);
}

}  // namespace

void AddCompileNotes(const PredictionTarget& target,
                     const std::vector<JobEstimate>& jobs,
                     const Scenario& scenario,
                     std::vector<Note>& notes) {
  AddCompileTime(target, jobs, scenario, notes);
  AddUnknownsOfCompiler(target, scenario, notes);
  for (const JobEstimate& job : jobs) {
    if (job.compilation && job.compilation->swaps && job.fits()) {
      notes.emplace_back(
          fmt::format("batch {}, length {}: the compiler swaps, it takes {} on "
                      "a host of {}; how much longer that takes is not counted",
                      job.workload.batch,
                      job.workload.sequence_length,
                      FormatBytes(job.compilation->memory),
                      FormatBytes(job.compilation->host_memory)),
          Caution::kCompilerSwaps);
    }
  }
}

}  // namespace trainfare::scenarios
