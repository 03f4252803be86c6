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

// One change: its words, and whether it changes anything of the workload,
// which it then has changed.
struct Change {
  std::string_view words;
  bool (*apply)(Workload& w, int64_t devices);
};

// Those that cost least come first.
constexpr auto kChanges = std::to_array<Change>({
    {"--set stack=liger",
     [](Workload& w, int64_t) {
       const bool helps =
           w.architecture.head == model::Head::kCausalLanguageModel &&
           w.stack.fusion == model::Fusion::kEager;
       if (helps) w.stack.fusion = model::Fusion::kLiger;
       return helps;
     }},
    {"--set parallel.shard=fsdp",
     [](Workload& w, int64_t devices) {
       const bool helps = devices > 1 &&
                          w.parallel.shard == model::Shard::kNone &&
                          w.parallel.pipeline == 1;
       if (helps) w.parallel.shard = model::Shard::kFsdp;
       return helps;
     }},
    {"--set gradient_checkpointing=true",
     [](Workload& w, int64_t) {
       return !std::exchange(w.gradient_checkpointing, true);
     }},
    {"--batch 1",
     [](Workload& w, int64_t) { return std::exchange(w.batch, 1) > 1; }},
    {"--set narrow_weights=true",
     [](Workload& w, int64_t) {
       return model::BytesPerElement(w.precision) < 4 &&
              !std::exchange(w.stack.narrow_weights, true);
     }},
    {"--set dropout=0",
     [](Workload& w, int64_t) {
       return std::exchange(w.architecture.dropout, 0.0) > 0.0;
     }},
    {"--set optimizer.masters=none",
     [](Workload& w, int64_t) {
       return w.stack.narrow_weights &&
              std::exchange(w.optimizer.masters, model::Masters::kNone) !=
                  model::Masters::kNone;
     }},
    {"--set optimizer.state_bits=8",
     [](Workload& w, int64_t) {
       return std::exchange(w.optimizer.state_bits, 8) == 0;
     }},
    {kAdapterFlag,
     [](Workload& w, int64_t) {
       if (w.trainable.lora_rank > 0) return false;
       w.trainable.lora_rank = 16;
       model::NameUsualMatrices(w.architecture, w.trainable);
       return true;
     }},
    {"--set trainable.lora.base_bits=4",
     [](Workload& w, int64_t) {
       return w.trainable.lora_rank > 0 &&
              std::exchange(w.trainable.base_bits, 4) == 0;
     }},
});
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

// With the changes of a set of bits; nullopt where one of them changes nothing,
// the job is none any more or does not fit.
std::optional<std::string> Changed(const FitQuestion& question,
                                   unsigned bits,
                                   const Division& division = {}) {
  Scenario changed = question.scenario;
  Divide(division, changed.workload.parallel);
  for (size_t i = 0; i < kChanges.size(); ++i) {
    if ((bits >> i & 1U) == 0) continue;
    if (!kChanges[i].apply(changed.workload, question.places.devices)) {
      return std::nullopt;
    }
  }
  try {
    model::Validate(changed.workload);
    return question.trial(changed);
  } catch (const model::InputError&) {
    return std::nullopt;  // not of this model or device
  }
}

std::string WordsOf(unsigned bits) {
  std::string words;
  for (size_t i = 0; i < kChanges.size(); ++i) {
    if ((bits >> i & 1U) == 0) continue;
    words += kChanges[i].words;
    words += ' ';
  }
  return words;
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
      return fmt::format("{}{}({})", words, WordsOf(bits), *outcome);
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
      const auto outcome = Changed(question, bits | always);
      if (!outcome) continue;
      return fmt::format("{}({})", WordsOf(bits | always), *outcome);
    }
  }
  return std::nullopt;
}

// With one change and no other.
std::optional<std::string> Alone(const FitQuestion& question, size_t change) {
  const auto outcome = Changed(question, 1U << change);
  if (!outcome) return std::nullopt;
  return fmt::format("{} ({})", kChanges[change].words, *outcome);
}

}  // namespace

std::vector<std::string> SaferSettings(const Scenario& scenario,
                                       const RoomTrial& has_room) {
  const auto is_safe = [&](const Scenario& changed) {
    try {
      model::Validate(changed.workload);
      return has_room(changed);
    } catch (const model::InputError&) {
      return false;  // not of this model or device
    }
  };
  const auto is_safe_batch = [&](int64_t batch) {
    Scenario smaller = scenario;
    smaller.workload.batch = batch;
    return is_safe(smaller);
  };
  std::vector<std::string> settings;
  const int64_t batch = scenario.workload.batch;
  if (batch > 1 && is_safe_batch(1)) {
    settings.push_back(
        fmt::format("--batch {}", model::LargestThat(1, batch, is_safe_batch)));
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
                     : Alone(question, kDropout));
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
