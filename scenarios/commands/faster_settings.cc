#include "scenarios/commands/faster_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/parallel.h"
#include "model/stack_rules.h"
#include "model/validate.h"
#include "scenarios/job/memory_range.h"

namespace trainfare::scenarios {
namespace {

using model::Fusion;
using model::Precision;
using model::Workload;

// Of the time of a step; less is lost among other things.
constexpr double kWorthSaying = 0.03;
constexpr size_t kMostSaid = 2;

// What was asked about.
struct TimedJob {
  const hardware::Device& device;
  int64_t devices = 1;
  const JobEstimate& job;
};

// One setting: changes the scenario and says by which flags; empty: it is so
// already, or not to be had.
using SettingChange = std::string (*)(const TimedJob& asked, Scenario& changed);

// Frameworks that go operation by operation, but for some of a block.
bool IsByFramework(Fusion stack) {
  return stack == Fusion::kEager || stack == Fusion::kFused ||
         stack == Fusion::kLiger || stack == Fusion::kUnsloth;
}

std::string Compile(const TimedJob&, Scenario& changed) {
  Fusion& stack = changed.workload.stack.fusion;
  if (!IsByFramework(stack)) return "";
  stack = Fusion::kCompiled;
  return "--set stack=compiled";
}

std::string FuseByLiger(const TimedJob&, Scenario& changed) {
  Workload& w = changed.workload;
  if (w.stack.fusion != Fusion::kEager ||
      w.architecture.head != model::Head::kCausalLanguageModel) {
    return "";
  }
  w.stack.fusion = Fusion::kLiger;
  return "--set stack=liger";
}

std::string GroupExperts(const TimedJob&, Scenario& changed) {
  Workload& w = changed.workload;
  if (w.architecture.experts == 0 ||
      model::ExpertsOf(w) == model::ExpertKernels::kGrouped) {
    return "";
  }
  w.stack.experts = model::ExpertKernels::kGrouped;
  return "--set experts=grouped";
}

// In one kernel, or, where the device's generation has kernels of its own, in one
// of these.
std::string KeepScoresOnChip(const TimedJob& asked, Scenario& changed) {
  model::Attention& attention = changed.workload.stack.attention;
  const auto& generation = asked.device.generation;
  const bool has_own = generation && generation->exposed_overlap < 1.0;
  if (attention == model::Attention::kMaterialised) {
    attention = model::Attention::kFlash;
  } else if (attention != model::Attention::kFlash3 && has_own) {
    attention = model::Attention::kFlash3;
  } else {
    return "";
  }
  return fmt::format("--set attention={}", model::ToText(attention));
}

// The next narrower one that the device has units for.
std::string Narrow(const TimedJob& asked, Scenario& changed) {
  Precision& precision = changed.workload.precision;
  const auto has = [&](Precision one) {
    return asked.device.MatrixPeak(one).has_value();
  };
  if (precision == Precision::kFp32 || precision == Precision::kTf32) {
    precision = has(Precision::kBf16) ? Precision::kBf16 : Precision::kFp16;
  } else if (precision != Precision::kFp8) {
    precision = Precision::kFp8;
  } else {
    return "";
  }
  if (!has(precision)) return "";
  return fmt::format("--precision {}", model::ToText(precision));
}

std::string FuseUpdate(const TimedJob&, Scenario& changed) {
  model::OptimizerImplementation& implementation =
      changed.workload.optimizer.implementation;
  if (changed.workload.work != model::Work::kTraining ||
      std::exchange(implementation, model::OptimizerImplementation::kFused) ==
          model::OptimizerImplementation::kFused) {
    return "";
  }
  return "--set optimizer.implementation=fused";
}

std::string KeepActivations(const TimedJob&, Scenario& changed) {
  Workload& w = changed.workload;
  if (!std::exchange(w.gradient_checkpointing, false)) return "";
  const bool of_some = std::exchange(w.checkpointed_blocks, 0) > 0;
  return std::string("--set gradient_checkpointing=false") +
         (of_some ? " --set checkpointed_blocks=0" : "");
}

std::string KeepWholeState(const TimedJob& asked, Scenario& changed) {
  model::Parallel& parallel = changed.workload.parallel;
  if (asked.devices == 1 || model::Offloads(parallel) ||
      parallel.shard == model::Shard::kNone) {
    return "";
  }
  parallel.shard = model::Shard::kNone;
  const bool replicates = std::exchange(parallel.replicate, 1) > 1;
  return std::string("--set parallel.shard=none") +
         (replicates ? " --set parallel.replicate=1" : "");
}

// Micro-batches together, as many as fit well: the same steps of the optimizer.
// Without any of them twice the batch, which is another training.
std::string TakeLargerBatch(const TimedJob& asked, Scenario& changed) {
  Workload& w = changed.workload;
  const int64_t most = asked.job.largest_batch.value_or(w.batch) * 3 / 4;
  if (w.accumulation == 1) {
    w.batch *= 2;
    if (w.batch > most ||
        w.batch * model::CopiesOf(asked.job.workload.parallel) >
            changed.train_samples) {
      return "";
    }
    return fmt::format("--batch {} (half as many steps)", w.batch);
  }
  const int64_t batch = w.batch;
  while (w.accumulation % 2 == 0 && w.batch * 2 <= most) {
    w.batch *= 2;
    w.accumulation /= 2;
  }
  if (w.batch == batch) return "";
  return fmt::format(
      "--batch {} --set accumulation={}", w.batch, w.accumulation);
}

std::string PadToOwnLongest(const TimedJob&, Scenario& changed) {
  Padding& padding = changed.padding;
  if (padding.kind != PaddingKind::kStatic || !changed.lengths ||
      changed.workload.documents > 1) {
    return "";
  }
  padding.kind = PaddingKind::kDynamic;
  return fmt::format("--set 'padding={{ dynamic: {} }}'", padding.length);
}

constexpr std::array<SettingChange, 10> kSettings = {Compile,
                                                     FuseByLiger,
                                                     GroupExperts,
                                                     KeepScoresOnChip,
                                                     Narrow,
                                                     FuseUpdate,
                                                     KeepActivations,
                                                     KeepWholeState,
                                                     TakeLargerBatch,
                                                     PadToOwnLongest};

// The share of the time of a sample's step that the changed job saves; nullopt:
// none worth saying, or there is no such job, or it may not fit. Most settings
// save nothing, which a step says without its run.
std::optional<double> SavedBy(const Scenario& changed,
                              const PredictionTarget& target,
                              const JobEstimate& job,
                              DeviceMemo& memo) {
  try {
    model::Validate(changed.workload);
    const JobEstimate step =
        EstimateJob(changed, memo, target.cluster, Detail::kStep);
    if (!step.fits() ||
        MemoryRangeOf(step.memory, step.capacity).high > step.capacity) {
      return std::nullopt;
    }
    const double saved = 1.0 - job.samples_per_second / step.samples_per_second;
    if (saved < kWorthSaying) return std::nullopt;
    const JobEstimate trial =
        EstimateJob(changed, memo, target.cluster, Detail::kTimes);
    if (trial.run.total() >= job.run.total()) return std::nullopt;
    return saved;
  } catch (const model::InputError&) {
    return std::nullopt;  // not of this model or device
  }
}

}  // namespace

std::optional<Note> FasterNote(const PredictionTarget& target,
                               const Scenario& scenario,
                               const JobEstimate& job) {
  const TimedJob asked{target.predictor.device(), target.cluster.devices, job};
  DeviceMemo memo(target.predictor, scenario.source);
  std::vector<std::pair<double, std::string>> savings;
  for (const SettingChange setting : kSettings) {
    Scenario changed = scenario;
    std::string words = setting(asked, changed);
    const Fusion stack = changed.workload.stack.fusion;
    if (words.empty() || (stack != scenario.workload.stack.fusion &&
                          hardware::StackOn(asked.device, stack) != stack)) {
      continue;
    }
    const auto saved = SavedBy(changed, target, job, memo);
    if (saved) savings.emplace_back(*saved, std::move(words));
  }
  if (savings.empty()) return std::nullopt;
  std::stable_sort(
      savings.begin(), savings.end(), [](const auto& a, const auto& b) {
        return a.first > b.first;
      });
  savings.resize(std::min(savings.size(), kMostSaid));
  std::vector<std::string> said;
  for (const auto& [saved, words] : savings) {
    said.push_back(fmt::format("{} ({:.0f} % less{})",
                               words,
                               100.0 * saved,
                               said.empty() ? " time a sample" : ""));
  }
  return Note(fmt::format("steps are faster with {}{}",
                          fmt::join(said, " or "),
                          said.size() > 1 ? ", each by itself" : ""));
}

}  // namespace trainfare::scenarios
