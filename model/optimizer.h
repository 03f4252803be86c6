#pragma once

// What updates weights: the rule, its kernels, and the state that it keeps.

#include <array>
#include <cstdint>
#include <string_view>

#include "model/words.h"

namespace trainfare::model {

enum class OptimizerKind {
  kNone,
  kSgd,
  kAdamW,
  kAdan,
  kLamb,
  kLion,
  kMuon,  // of matrices of the blocks; all else AdamW (model/muon.h)
  // Second moments by row and column of a matrix, no momentum (Shazeer & Stern
  // 2018).
  kAdafactor,
  // As in the first BERT repositories: no bias correction, and each tensor is
  // clipped to its own norm before its update.
  kBertAdam,
};
template <>
inline constexpr auto kWords<OptimizerKind> =
    Words<OptimizerKind>("optimizer",
                         {{OptimizerKind::kNone, "none"},
                          {OptimizerKind::kSgd, "sgd"},
                          {OptimizerKind::kAdamW, "adamw"},
                          {OptimizerKind::kAdan, "adan"},
                          {OptimizerKind::kLamb, "lamb"},
                          {OptimizerKind::kLion, "lion"},
                          {OptimizerKind::kMuon, "muon"},
                          {OptimizerKind::kAdafactor, "adafactor"},
                          {OptimizerKind::kBertAdam, "bert_adam"}});
// Adam and AdamW read and write the same; the decay is a factor between.
template <>
inline constexpr auto kWordAliases<OptimizerKind> =
    std::to_array<Word<OptimizerKind>>({{OptimizerKind::kAdamW, "adam"},
                                        {OptimizerKind::kAdamW,
                                         "adamw_torch"}});
inline constexpr std::string_view kHintOfFused =
    "name adamw, implementation fused";
inline constexpr std::string_view kHintOfLowRank =
    "state of low rank is not counted; adafactor keeps the least of those "
    "known";
inline constexpr std::string_view kHintOfPreconditioners =
    "its preconditioners are not counted; muon is the nearest";
inline constexpr std::string_view kHintOfEightBits =
    "name adamw, state_bits 8, implementation fused";
inline constexpr std::string_view kHintOfPaging =
    "name adamw; its paging is not counted";
template <>
inline constexpr auto kWordHints<OptimizerKind> = std::to_array<WordHint>(
    {{"adamw_torch_fused", kHintOfFused},
     {"adamw_apex_fused", kHintOfFused},
     {"fused_adam", kHintOfFused},
     {"fused_adamw", kHintOfFused},
     {"fusedadam", kHintOfFused},
     {"adamw_hf", "name adamw, implementation for_loop"},
     {"adamw8bit", kHintOfEightBits},
     {"adamw_8bit", kHintOfEightBits},
     {"adamw_bnb_8bit", kHintOfEightBits},
     {"adam8bit", kHintOfEightBits},
     {"adam_8bit", kHintOfEightBits},
     {"paged_adamw", kHintOfPaging},
     {"paged_adamw_32bit", kHintOfPaging},
     {"paged_adamw_8bit",
      "name adamw, state_bits 8, implementation fused; its paging is not "
      "counted"},
     {"lion_8bit", "name lion, state_bits 8, implementation fused"},
     {"galore", kHintOfLowRank},
     {"galore_adamw", kHintOfLowRank},
     {"apollo", kHintOfLowRank},
     {"apollo_adamw", kHintOfLowRank},
     {"shampoo", kHintOfPreconditioners},
     {"soap", kHintOfPreconditioners},
     {"sophia",
      "its estimates of curvature are not counted; adamw keeps as "
      "much state"},
     {"adam_mini",
      "a second moment a block is not counted; lion keeps as much "
      "state"},
     {"schedule_free_adamw", "adamw keeps as much state"}});
enum class OptimizerImplementation {
  kForLoop,      // one small kernel per operation and tensor
  kMultiTensor,  // one kernel per operation over chunks of tensors (_foreach)
  kFused,        // one kernel for the whole update
};
template <>
inline constexpr auto kWords<OptimizerImplementation> =
    Words<OptimizerImplementation>(
        "optimizer implementation",
        {{OptimizerImplementation::kForLoop, "for_loop"},
         {OptimizerImplementation::kMultiTensor, "multi_tensor"},
         {OptimizerImplementation::kFused, "fused"}});
template <>
inline constexpr auto kWordAliases<OptimizerImplementation> =
    std::to_array<Word<OptimizerImplementation>>(
        {{OptimizerImplementation::kForLoop, "for-loop"},
         {OptimizerImplementation::kForLoop, "forloop"},
         {OptimizerImplementation::kMultiTensor, "foreach"}});

// Where narrow gradients meet the fp32 masters of narrow weights.
enum class Masters {
  // In passes of their own: gradients to fp32 before the update, parameters
  // back to 16 bits after it (Apex O2, DeepSpeed, Megatron).
  kApart,
  // In the update, which reads narrow gradients and writes narrow parameters
  // beside the masters: trainfare-trainer. One pass where it is fused, a tensor
  // at a time in a for-loop.
  kInUpdate,
  // There are none: the update is of the narrow weights, and its state as
  // narrow as they ("pure bf16": PyTorch over weights loaded in 16 bits).
  kNone,
};
template <>
inline constexpr auto kWords<Masters> =
    Words<Masters>("place of masters",
                   {{Masters::kApart, "apart"},
                    {Masters::kInUpdate, "in_update"},
                    {Masters::kNone, "none"}});

struct Optimizer {
  OptimizerKind kind = OptimizerKind::kAdamW;
  OptimizerImplementation implementation =
      OptimizerImplementation::kMultiTensor;
  // A learning rate for each layer (layer-wise decay): its tensors, those with
  // and those without weight decay, are an update of their own.
  bool by_layer = false;
  Masters masters = Masters::kApart;  // where there are any
  // Narrow weights' gradients are added to sums in fp32, which stand from the
  // beginning and are what ranks send (nanotron's accumulate_grad_in_fp32).
  bool wide_gradients = false;
  // Each tensor is updated as soon as its gradient is there, which then goes
  // (torchtune's optimizer_in_bwd; Lv et al. 2023, LOMO).
  bool in_backward = false;
  // Bits of a number of its state: 8 with constants a group (Dettmers et al.
  // 2022), 16 in bf16 (DeepSeek-V3's moments); 0 = as wide as the update.
  int64_t state_bits = 0;
  friend bool operator==(const Optimizer&, const Optimizer&) = default;
};

}  // namespace trainfare::model
