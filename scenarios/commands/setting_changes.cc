#include "scenarios/commands/setting_changes.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "hardware/catalog/kind_facts.h"
#include "hardware/models/device_models.h"
#include "model/parallel.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::scenarios {
namespace {

using model::Fusion;
using model::Precision;
using model::Workload;

// Frameworks that go operation by operation, but for some of a block.
bool IsByFramework(Fusion stack) {
  return stack == Fusion::kEager || stack == Fusion::kFused ||
         stack == Fusion::kLiger || stack == Fusion::kUnsloth;
}

// A stack that the device may not have.
bool IsOn(const TimedJob& asked, Fusion stack) {
  return hardware::StackOn(asked.device, stack) == stack;
}

std::string Compile(const TimedJob& asked, Scenario& changed) {
  Fusion& stack = changed.workload.stack.fusion;
  if (!IsByFramework(stack) || !IsOn(asked, Fusion::kCompiled)) return "";
  stack = Fusion::kCompiled;
  return "--set stack=compiled";
}

std::string FuseByLiger(const TimedJob& asked, Scenario& changed) {
  Workload& w = changed.workload;
  if (w.stack.fusion != Fusion::kEager || !IsOn(asked, Fusion::kLiger) ||
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

// A token goes once to each host that has experts of it.
std::string ExchangeByHost(const TimedJob&, Scenario& changed) {
  model::Parallel& parallel = changed.workload.parallel;
  if (parallel.expert == 1 ||
      std::exchange(parallel.expert_exchange, model::ExpertExchange::kByHost) ==
          model::ExpertExchange::kByHost) {
    return "";
  }
  return "--set parallel.expert_exchange=by_host";
}

// Beside another micro-batch's work, where there is one.
std::string OverlapExperts(const TimedJob&, Scenario& changed) {
  Workload& w = changed.workload;
  if (w.parallel.expert == 1 || w.accumulation == 1 ||
      std::exchange(w.parallel.expert_overlap, true)) {
    return "";
  }
  return "--set parallel.expert_overlap=true";
}

// In one kernel, or, where the device's generation has kernels of its own, in
// one of these.
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
  const Workload& w = changed.workload;
  Precision& precision = changed.workload.precision;
  const auto has = [&](Precision one) {
    return asked.device.MatrixPeak(one).has_value();
  };
  if (precision == Precision::kFp32 || precision == Precision::kTf32) {
    precision = has(Precision::kBf16) ? Precision::kBf16 : Precision::kFp16;
  } else if (!model::NarrowsOperands(precision)) {
    precision = Precision::kFp8;
  } else {
    return "";
  }
  if (!has(precision)) return "";
  // A base of few bits is widened to 16 by every library of such adapters,
  // which then multiplies those, unless products take it as it is.
  if (model::NarrowsOperands(precision) && w.trainable.base_bits > 0 &&
      !model::BaseAsProducts(w)) {
    return "";
  }
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

std::string GoByOperation(const TimedJob& asked, Scenario& changed) {
  Fusion& stack = changed.workload.stack.fusion;
  if (std::exchange(stack, Fusion::kEager) == Fusion::kEager ||
      !IsOn(asked, Fusion::kEager)) {
    return "";
  }
  return "--set stack=eager";
}

std::string LoopOverExperts(const TimedJob&, Scenario& changed) {
  Workload& w = changed.workload;
  if (w.architecture.experts == 0 || model::FindsRows(model::ExpertsOf(w))) {
    return "";
  }
  w.stack.experts = model::ExpertKernels::kLoop;
  return "--set experts=loop";
}

std::string WriteScores(const TimedJob&, Scenario& changed) {
  if (std::exchange(changed.workload.stack.attention,
                    model::Attention::kMaterialised) ==
      model::Attention::kMaterialised) {
    return "";
  }
  return "--set attention=materialised";
}

// The next wider one that the device has units for.
std::string Widen(const TimedJob& asked, Scenario& changed) {
  Precision& precision = changed.workload.precision;
  const auto has = [&](Precision one) {
    return asked.device.MatrixPeak(one).has_value();
  };
  if (precision == Precision::kFp32) return "";
  if (model::NarrowsOperands(precision)) {
    precision = Precision::kBf16;
  } else if (precision != Precision::kTf32 && has(Precision::kTf32)) {
    precision = Precision::kTf32;
  } else {
    precision = Precision::kFp32;
  }
  if (!has(precision)) return "";
  return fmt::format("--precision {}", model::ToText(precision));
}

std::string UpdateByTensor(const TimedJob&, Scenario& changed) {
  model::OptimizerImplementation& implementation =
      changed.workload.optimizer.implementation;
  if (changed.workload.work != model::Work::kTraining ||
      std::exchange(implementation, model::OptimizerImplementation::kForLoop) ==
          model::OptimizerImplementation::kForLoop) {
    return "";
  }
  return "--set optimizer.implementation=for_loop";
}

std::string RunBlocksAgain(const TimedJob&, Scenario& changed) {
  Workload& w = changed.workload;
  if (std::exchange(w.gradient_checkpointing, true)) return "";
  return "--set gradient_checkpointing=true";
}

std::string ShareState(const TimedJob& asked, Scenario& changed) {
  model::Parallel& parallel = changed.workload.parallel;
  if (asked.devices == 1 || parallel.shard != model::Shard::kNone) return "";
  parallel.shard = model::Shard::kFsdp;
  return "--set parallel.shard=fsdp";
}

std::string PadAll(const TimedJob&, Scenario& changed) {
  Padding& padding = changed.padding;
  if (padding.kind != PaddingKind::kDynamic) return "";
  changed.PadTo(changed.workload.sequence_length);
  return fmt::format("--set 'padding={{ static: {} }}'", padding.length);
}

// As a board that is too warm, or that somebody set so.
std::string LimitPower(const TimedJob& asked, Scenario& changed) {
  constexpr double kShare = 0.6;
  const hardware::Device& device = asked.device;
  if (!device.max_power || !device.idle_power ||
      changed.workload.power_limit.base() > 0.0) {
    return "";
  }
  const double watts = std::round(kShare * device.max_power->base());
  changed.workload.power_limit = model::Watt(watts);
  return fmt::format("--set power_limit={:.0f}W", watts);
}

constexpr auto kFaster = std::to_array<SettingChange>({Compile,
                                                       FuseByLiger,
                                                       GroupExperts,
                                                       ExchangeByHost,
                                                       OverlapExperts,
                                                       KeepScoresOnChip,
                                                       Narrow,
                                                       FuseUpdate,
                                                       KeepActivations,
                                                       KeepWholeState});
constexpr auto kLarger =
    std::to_array<SettingChange>({TakeLargerBatch, PadToOwnLongest});
constexpr auto kSlower = std::to_array<SettingChange>({GoByOperation,
                                                       LoopOverExperts,
                                                       WriteScores,
                                                       Widen,
                                                       UpdateByTensor,
                                                       RunBlocksAgain,
                                                       ShareState,
                                                       PadAll,
                                                       LimitPower});

}  // namespace

std::span<const SettingChange> FasterSettings() { return kFaster; }
std::span<const SettingChange> LargerSteps() { return kLarger; }
std::span<const SettingChange> SlowerSettings() { return kSlower; }

}  // namespace trainfare::scenarios
