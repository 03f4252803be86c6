#include "scenarios/commands/memory_advice.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <optional>
#include <string_view>
#include <utility>

#include "model/bisection.h"
#include "model/error.h"
#include "model/trainable.h"
#include "model/validate.h"
#include "model/workload.h"

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

// What is to be changed, and on how many devices.
struct FitQuestion {
  const Scenario& scenario;
  int64_t devices = 1;
  const FitTrial& trial;
};

// With the changes of a set of bits; nullopt where one of them changes nothing,
// the job is none any more or does not fit.
std::optional<std::string> Changed(const FitQuestion& question, unsigned bits) {
  Scenario changed = question.scenario;
  for (size_t i = 0; i < kChanges.size(); ++i) {
    if ((bits >> i & 1U) == 0) continue;
    if (!kChanges[i].apply(changed.workload, question.devices)) {
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

// The fewest of the changes that leave what is learned as it is, with all of
// `always`.
std::optional<std::string> Fewest(const FitQuestion& question,
                                  unsigned always) {
  for (int count = 0; count <= static_cast<int>(kDropout); ++count) {
    for (unsigned bits = 0; bits < 1U << kDropout; ++bits) {
      if (std::popcount(bits) != count) continue;
      const auto outcome = Changed(question, bits | always);
      if (!outcome) continue;
      std::string words;
      for (size_t i = 0; i < kChanges.size(); ++i) {
        if (((bits | always) >> i & 1U) == 0) continue;
        words += kChanges[i].words;
        words += ' ';
      }
      return fmt::format("{}({})", words, *outcome);
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

std::vector<std::string> MemoryAdvice(const Scenario& scenario,
                                      int64_t devices,
                                      const FitTrial& trial) {
  const FitQuestion question{scenario, devices, trial};
  std::vector<std::string> advice;
  const auto add = [&](const std::optional<std::string>& line) {
    if (line) advice.push_back(*line);
  };
  add(Fewest(question, 0));
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
