#include "scenarios/commands/memory_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "model/bisection.h"
#include "model/error.h"
#include "model/logits.h"
#include "model/parallel.h"
#include "model/trainable.h"
#include "model/validate.h"
#include "model/workload.h"
#include "scenarios/job/device_memo.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/memory_range.h"

namespace trainfare::scenarios {
namespace {

using model::Workload;

// One change of a workload: the flag that says it; empty: it changes nothing.
using Change = std::string_view (*)(Workload& w, int64_t devices);

// Logits of a part of the rows at a time: by the stack that has it and more, or
// in one that has it not.
std::string_view ChunkLoss(Workload& w, int64_t) {
  if (w.architecture.head != model::Head::kCausalLanguageModel) return "";
  if (w.stack.fusion == model::Fusion::kEager) {
    w.stack.fusion = model::Fusion::kLiger;
    return "--set stack=liger";
  }
  if (w.stack.fusion != model::Fusion::kUnsloth || model::ChunksLoss(w)) {
    return "";
  }
  w.stack.loss = model::LossKernels::kChunked;
  return "--set loss=chunked";
}

std::string_view ShardState(Workload& w, int64_t devices) {
  if (devices == 1 || w.parallel.shard != model::Shard::kNone ||
      w.parallel.pipeline > 1) {
    return "";
  }
  w.parallel.shard = model::Shard::kFsdp;
  return "--set parallel.shard=fsdp";
}

std::string_view Recompute(Workload& w, int64_t) {
  return std::exchange(w.gradient_checkpointing, true)
             ? ""
             : "--set gradient_checkpointing=true";
}

std::string_view TakeBatchOfOne(Workload& w, int64_t) {
  return std::exchange(w.batch, 1) > 1 ? "--batch 1" : "";
}

std::string_view KeepWeightsNarrow(Workload& w, int64_t) {
  if (model::BytesPerElement(w.precision) >= 4) return "";
  return std::exchange(w.stack.narrow_weights, true)
             ? ""
             : "--set narrow_weights=true";
}

std::string_view LeaveOutDropout(Workload& w, int64_t) {
  return std::exchange(w.architecture.dropout, 0.0) > 0.0 ? "--set dropout=0"
                                                          : "";
}

std::string_view LeaveOutMasters(Workload& w, int64_t) {
  if (!w.stack.narrow_weights) return "";
  return std::exchange(w.optimizer.masters, model::Masters::kNone) ==
                 model::Masters::kNone
             ? ""
             : "--set optimizer.masters=none";
}

std::string_view NarrowOptimizerState(Workload& w, int64_t) {
  return std::exchange(w.optimizer.state_bits, 8) == 0
             ? "--set optimizer.state_bits=8"
             : "";
}

std::string_view TrainAdapters(Workload& w, int64_t) {
  if (w.trainable.lora_rank > 0) return "";
  w.trainable.lora_rank = 16;
  model::NameUsualMatrices(w.architecture, w.trainable);
  return kAdapterFlag;
}

std::string_view NarrowBase(Workload& w, int64_t) {
  if (w.trainable.lora_rank == 0) return "";
  return std::exchange(w.trainable.base_bits, 4) == 0
             ? "--set trainable.lora.base_bits=4"
             : "";
}

// Those that cost least come first.
constexpr auto kChanges = std::to_array<Change>({ChunkLoss,
                                                 ShardState,
                                                 Recompute,
                                                 TakeBatchOfOne,
                                                 KeepWeightsNarrow,
                                                 LeaveOutDropout,
                                                 LeaveOutMasters,
                                                 NarrowOptimizerState,
                                                 TrainAdapters,
                                                 NarrowBase});
// Those before it leave what is learned as it is, and are tried together.
constexpr size_t kDropout = 5;
constexpr size_t kUpdates = 6;   // the first of those that round the update
constexpr size_t kAdapters = 8;  // the first of those that train adapters
constexpr unsigned kNoDropout = 1U << kDropout;
constexpr unsigned kNoMasters = 1U << kUpdates;
constexpr unsigned kStateBits = kNoMasters << 1U;
constexpr unsigned kLora = 1U << kAdapters;
constexpr unsigned kFewBits = kLora << 1U;

constexpr unsigned kShards = 1U << 1U;
constexpr unsigned kRecomputed = kShards << 1U;
constexpr unsigned kBatchOfOne = kRecomputed << 1U;

// How many ranks have a copy of the model together, by what they divide.
struct Division {
  int64_t tensor = 1;
  int64_t pipeline = 1;
  int64_t context = 1;
};

// As many ranks in all, where their number is asked for.
void Divide(const Division& division, model::Parallel& parallel) {
  const int64_t before = model::RanksOfModel(parallel);
  parallel.tensor = std::max(parallel.tensor, division.tensor);
  parallel.pipeline = std::max(parallel.pipeline, division.pipeline);
  parallel.context = std::max(parallel.context, division.context);
  if (parallel.data == 0) return;
  parallel.data = std::max<int64_t>(
      1, parallel.data * before / model::RanksOfModel(parallel));
}

// What is to be changed, and where.
struct FitQuestion {
  const Scenario& scenario;
  const Places& places;
  const FitTrial& trial;
};

// The flags of the changes of a set of bits, and what it comes to with them;
// nullopt where one of them changes nothing, the job is none any more or does
// not fit.
std::optional<std::string> Changed(const FitQuestion& question,
                                   unsigned bits,
                                   const Division& division = {}) {
  Scenario changed = question.scenario;
  Divide(division, changed.workload.parallel);
  std::string words;
  for (size_t i = 0; i < kChanges.size(); ++i) {
    if ((bits >> i & 1U) == 0) continue;
    const std::string_view flag =
        kChanges[i](changed.workload, question.places.devices);
    if (flag.empty()) return std::nullopt;
    words += flag;
    words += ' ';
  }
  try {
    model::Validate(changed.workload);
    const auto outcome = question.trial(changed);
    if (!outcome) return std::nullopt;
    return fmt::format("{}({})", words, *outcome);
  } catch (const model::InputError&) {
    return std::nullopt;  // not of this model or device
  }
}

// Whether ranks may have a copy of the model so, all else as it is.
bool IsAsked(const Scenario& scenario, const Division& division) {
  Scenario divided = scenario;
  Divide(division, divided.workload.parallel);
  try {
    model::Validate(divided.workload);
    return true;
  } catch (const model::InputError&) {
    return false;
  }
}

// Twice as many ranks each time: those of a host divide layers, the others
// stages, where blocks are as many, and then sequences. What the job divides
// already stays. Empty: it is not to be divided.
std::vector<Division> DivisionsOf(const FitQuestion& question) {
  const model::Parallel& asked = question.scenario.workload.parallel;
  const Places& places = question.places;
  std::vector<Division> divisions;
  Division division = {asked.tensor, asked.pipeline, asked.context};
  const auto ranks = [&] {
    return division.tensor * division.pipeline * division.context;
  };
  const auto grow = [&](int64_t Division::*part, int64_t most) {
    while (2 * (division.*part) <= most && 2 * ranks() <= places.devices) {
      Division next = division;
      next.*part *= 2;
      if (!IsAsked(question.scenario, next)) return;
      division = next;
      divisions.push_back(division);
    }
  };
  grow(&Division::tensor, places.devices_of_host / asked.context);
  const Division of_host = division;
  grow(&Division::pipeline, places.devices);
  // Sequences divide in the place of stages, too.
  division = of_host;
  grow(&Division::context, places.devices);
  return divisions;
}

// The same with the model divided among the fewest ranks, recomputation and
// shorter batches where that alone is not enough.
std::optional<std::string> Divided(const FitQuestion& question) {
  const std::vector<Division> divisions = DivisionsOf(question);
  // What is so already is no change.
  const unsigned again =
      question.scenario.workload.gradient_checkpointing ? 0U : kRecomputed;
  for (const unsigned bits : {0U,
                              again,
                              kShards | again,
                              again | kBatchOfOne,
                              kShards | again | kBatchOfOne}) {
    for (const Division& division : divisions) {
      const auto outcome = Changed(question, bits, division);
      if (!outcome) continue;
      std::string words;
      const model::Parallel& asked = question.scenario.workload.parallel;
      model::Parallel divided = asked;
      Divide(division, divided);
      const auto add = [&](std::string_view key, int64_t was, int64_t is) {
        if (is != was) words += fmt::format("--set parallel.{}={} ", key, is);
      };
      add("data", asked.data, divided.data);
      add("tensor", asked.tensor, divided.tensor);
      add("pipeline", asked.pipeline, divided.pipeline);
      add("context", asked.context, divided.context);
      return words + *outcome;
    }
  }
  return std::nullopt;
}

// The fewest of the changes that leave what is learned as it is, with all of
// `always`.
std::optional<std::string> Fewest(const FitQuestion& question,
                                  unsigned always) {
  for (int count = 0; count <= static_cast<int>(kDropout); ++count) {
    for (unsigned bits = 0; bits < 1U << kDropout; ++bits) {
      if (std::popcount(bits) != count) continue;
      auto outcome = Changed(question, bits | always);
      if (outcome) return outcome;
    }
  }
  return std::nullopt;
}

}  // namespace

namespace {

// The largest of smaller batches that is safe; nullopt: none is.
std::optional<int64_t> SafeBatch(const Scenario& scenario,
                                 const RoomTrial& is_safe,
                                 Smaller which) {
  const int64_t batch = scenario.workload.batch;
  const int64_t of_step = batch * scenario.workload.accumulation;
  const auto is_safe_batch = [&](int64_t size) {
    Scenario smaller = scenario;
    smaller.workload.batch = size;
    if (which == Smaller::kDivisors) {
      smaller.workload.accumulation = of_step / size;
    }
    return is_safe(smaller);
  };
  if (which == Smaller::kDivisors) {
    // What more of them keep of gradients may be more than a batch saves, so
    // that memory does not fall with it.
    for (int64_t size = batch - 1; size > 0; --size) {
      if (of_step % size == 0 && is_safe_batch(size)) return size;
    }
    return std::nullopt;
  }
  if (batch == 1 || !is_safe_batch(1)) return std::nullopt;
  return model::LargestThat(1, batch, is_safe_batch);
}

}  // namespace

std::vector<std::string> SaferSettings(const Scenario& scenario,
                                       const RoomTrial& has_room,
                                       Smaller smaller) {
  const auto is_safe = [&](const Scenario& changed) {
    try {
      model::Validate(changed.workload);
      return has_room(changed);
    } catch (const model::InputError&) {
      return false;  // not of this model or device
    }
  };
  std::vector<std::string> settings;
  if (const auto batch = SafeBatch(scenario, is_safe, smaller)) {
    settings.push_back(fmt::format("--batch {}", *batch));
  }
  Scenario recomputed = scenario;
  if (scenario.workload.work != model::Work::kForward &&
      !std::exchange(recomputed.workload.gradient_checkpointing, true) &&
      is_safe(recomputed)) {
    settings.emplace_back("--set gradient_checkpointing=true");
  }
  return settings;
}

RoomTrial RoomOn(const PredictionTarget& target, std::string_view source) {
  const auto memo = std::make_shared<DeviceMemo>(target.predictor, source);
  return [&target, memo](const Scenario& changed) {
    const JobEstimate trial =
        EstimateJob(changed, *memo, target.cluster, Detail::kMemory);
    return trial.fits() && HasRoom(trial.memory, trial.capacity);
  };
}

std::vector<std::string> MemoryAdvice(const Scenario& scenario,
                                      const Places& places,
                                      const FitTrial& trial) {
  const FitQuestion question{scenario, places, trial};
  std::vector<std::string> advice;
  const auto add = [&](const std::optional<std::string>& line) {
    if (line) advice.push_back(*line);
  };
  add(Fewest(question, 0));
  if (advice.empty()) add(Divided(question));
  if (scenario.workload.work != model::Work::kTraining) return advice;
  // It learns otherwise, as people try first.
  add(advice.empty() ? Fewest(question, kNoDropout)
                     : Changed(question, 1U << kDropout));
  // Those of the update do, too: only where no other is enough.
  if (advice.empty()) {
    add(Fewest(question, kNoMasters));
    add(Fewest(question, kStateBits));
    if (advice.empty()) {
      add(Fewest(question, kNoMasters | kStateBits));
    }
  }
  const bool adapts = scenario.workload.trainable.lora_rank > 0;
  auto adapters =
      adapts ? std::optional<std::string>() : Fewest(question, kLora);
  if (!adapters) {
    adapters = Fewest(question, adapts ? kFewBits : kLora | kFewBits);
  }
  add(adapters);
  return advice;
}

}  // namespace trainfare::scenarios
