#include "scenarios/commands/unused_settings.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "model/parallel.h"
#include "model/stack_rules.h"

namespace trainfare::scenarios {
namespace {

struct Unused {
  std::string_view key;
  bool is_so;
  std::string where;
  std::string_view hint;  // what gives it an effect; empty: nothing does
};

// What counts where weights are in 16 bits.
constexpr std::string_view kNarrow = "narrow_weights: true";

// Of how the network is made, and of its products.
std::vector<Unused> OfModel(const model::Workload& w) {
  const std::string precision(model::ToText(w.precision));
  const model::Architecture& a = w.architecture;
  return {{"fp8",
           w.precision != model::Precision::kFp8 && w.fp8 != model::Fp8(),
           "in " + precision,
           "precision: fp8"},
          {"wide_blocks",
           !model::NarrowsOperands(w.precision) && w.wide_blocks > 0,
           "in " + precision,
           "precision: fp8 or fp4"},
          {"target_length",
           w.target_length > 0 && !a.two_sided(),
           "in a model of one side",
           ""},
          {"shared_next_token",
           a.shared_next_token && a.next_token_blocks == 0,
           "without such blocks",
           "next_token_blocks: 1"}};
}

// Of what is trained, and of how it is updated.
std::vector<Unused> OfTraining(const model::Workload& w) {
  const bool narrow = model::NarrowWeights(w);
  const model::Trainable& trainable = w.trainable;
  return {
      {"optimizer.masters",
       w.optimizer.masters != model::Masters::kApart && !narrow,
       "where weights are in fp32",
       kNarrow},
      {"optimizer.wide_gradients",
       w.optimizer.wide_gradients && !narrow,
       "where gradients are in fp32",
       kNarrow},
      {"trainable.lora.double_quantised",
       !trainable.double_quantised && trainable.base_bits != 4,
       "without a base in 4 bits",
       "trainable.lora.base_bits: 4"},
      {"trainable.lora.as_units",
       trainable.adapters_as_units && w.parallel.shard != model::Shard::kFsdp,
       "where nothing is gathered",
       "parallel.shard: fsdp"},
      {"parallel.expert_overlap",
       w.parallel.expert_overlap && w.accumulation == 1,
       "with one micro-batch",
       "accumulation: 2"}};
}

// Of the devices that it is on.
std::vector<Unused> OfDevices(const model::Workload& run,
                              const hardware::Device& device) {
  const bool has_levels = device.compiler && device.compiler->levels > 0;
  return {{"gradient_compression",
           run.compression.kind != model::CompressionKind::kNone &&
               model::RanksThatSum(run.parallel) <= 1,
           "where no ranks sum gradients",
           ""},
          {"compiler_level",
           run.stack.compiler_level != 2 && !has_levels,
           fmt::format("on {}, whose compiler has none", device.name),
           ""}};
}

}  // namespace

std::vector<Note> UnusedSettingsNotes(const model::Workload& asked,
                                      const model::Workload& run,
                                      const hardware::Device& device) {
  std::vector<Note> notes;
  for (const auto& settings :
       std::array{OfModel(asked), OfTraining(asked), OfDevices(run, device)}) {
    for (const Unused& one : settings) {
      if (!one.is_so) continue;
      notes.emplace_back(
          fmt::format("{}: of no effect {}{}",
                      one.key,
                      one.where,
                      one.hint.empty() ? std::string()
                                       : fmt::format("; hint: {}", one.hint)));
    }
  }
  return notes;
}

}  // namespace trainfare::scenarios
