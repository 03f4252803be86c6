#include "model/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "model/error.h"
#include "model/internal/require_count.h"
#include "model/internal/validate_architecture.h"
#include "model/internal/validate_trainable.h"
#include "model/limits.h"
#include "model/sharding.h"
#include "model/split.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::model {
namespace {

using internal::RequireCount;

// What another thing is not counted beside, and whether it is asked for.
struct Beside {
  std::string_view what;
  bool asked;
};

// Above every sum that is taken of a step's kernels and of its memory: FLOPs
// of the products (two a multiply-add; four passes where activations are
// computed again), and the bytes of all tensors, each touched many times.
double LargestSum(const Workload& w) {
  constexpr double kFlops = 2 * 4;
  constexpr double kTouchedBytes = 400;
  const Architecture& a = w.architecture;
  const auto real = [](int64_t count) { return static_cast<double>(count); };
  const double h = real(a.hidden);
  const double layers = real(a.blocks());
  const double length = real(std::max(w.sequence_length, w.target_length));
  const double tokens = real(w.batch) * length;
  // Self- and cross-attention, the feed-forward, and as much in adapters.
  const double latent = real(std::max(a.latent_query, a.latent_key_value));
  const double widest = std::max({h,
                                  latent,
                                  real(a.query_projection_width()),
                                  real(a.context_width()),
                                  real(a.heads * a.full_head_size),
                                  real(a.key_value_up_width()),
                                  real(a.state_projection_width()),
                                  real(a.delta_projection_width())});
  const double experts = real(a.experts) * real(a.expert_intermediate) +
                         real(a.shared_intermediate);
  const double block =
      (a.decoder_layers > 0 ? 8 : 4) * std::max(h, latent) * widest +
      h * real(a.attention_gate_width()) +
      4 * h * real(a.convolution_layers > 0 ? a.convolution_width() : 0) +
      3 * h * (real(std::max(a.intermediate, a.upper_intermediate)) + experts) +
      3 * (h + real(a.layer_table_rows())) * real(a.layer_embedding_size) +
      real(a.relative_buckets) * real(a.heads);
  const double weights =
      block * (w.trainable.lora_rank > 0 ? 3 : 1) * layers +
      std::max(h, real(a.embedding_size)) *
          (4 * h + real(a.vocabulary + a.positions + a.token_types + a.labels));
  const double pairs = tokens * length * layers;
  const double activations =
      tokens *
          (h + real(a.intermediate) + real(a.layer_embedding_size) * layers) *
          layers +
      pairs * real(a.heads) + tokens * real(a.vocabulary);
  // Of the delta rule a token of a head takes less: 22 K V + 26 C K + 14 C V +
  // 5 C C (docs/models/delta_rule.md).
  const double of_head =
      real(a.delta_key_size + a.delta_value_size + a.delta_chunk);
  const double scans =
      tokens * layers *
      (real(a.state_width()) * real(a.state_size + a.state_chunk) +
       4 * real(a.delta_value_heads) * of_head * of_head);
  const double compression = weights * real(w.compression.rank);
  // Five iterations over a matrix of m x n, m <= n: 4 m m n + 2 m m m each.
  const double muon = w.optimizer.kind == OptimizerKind::kMuon
                          ? weights * 5 * std::max(h, latent)
                          : 0;
  return kFlops * (tokens * weights + 4 * pairs * widest + 2 * scans +
                   compression + muon) +
         kTouchedBytes * (activations + scans + weights);
}

// A quarter of what 64 bits hold.
constexpr double kLargestSum = 0x1p61;

void RequireCountable(const Workload& w) {
  const double sum = LargestSum(w);
  if (sum <= kLargestSum) return;
  throw InputError(
      fmt::format("batch {} x length {} of a model with {} layers of {}: "
                  "expected a step of at most {:.2g} operations and bytes, got "
                  "{:.2g}; is one of them mistyped?",
                  w.batch,
                  std::max(w.sequence_length, w.target_length),
                  w.architecture.blocks(),
                  w.architecture.hidden,
                  kLargestSum,
                  sum));
}

// FlashAttention's own kernels take heads of up to 256 (its README); what of a
// framework is "flash" turns to others (Dao-AILab/flash-attention, issue 2427).
void ValidateFlashHeads(const Workload& w) {
  constexpr int64_t kWidest = 256;
  const Attention attention = w.stack.attention;
  if (!ScoresOnChip(attention) || attention == Attention::kFlash) return;
  const Architecture& a = w.architecture;
  const int64_t widest =
      std::max({a.query_head_size(), a.context_head_size(), a.full_head_size});
  if (widest <= kWidest) return;
  throw InputError(
      fmt::format("attention: expected flash or materialised of heads of {}, "
                  "got {}, which takes up to {}; hint: flash",
                  widest,
                  ToText(attention),
                  kWidest));
}

// What a step does with blocks that are no Transformer's.
void ValidateStepOfOtherBlocks(const Workload& w) {
  if (!w.architecture.other_blocks()) return;
  for (const Beside& one : std::to_array<Beside>(
           {{"trainable.frozen_layers", w.trainable.frozen_layers > 0},
            {"checkpointed_blocks", w.checkpointed_blocks > 0},
            {"operation_checkpointing", w.operation_checkpointing}})) {
    if (!one.asked) continue;
    throw InputError(
        fmt::format("{}: expected none with model.{}, where it is not counted",
                    one.what,
                    w.architecture.other_blocks_key()));
  }
}

// Blocks that share their weights: what divides, freezes, adapts or runs again
// some of them is not counted.
void ValidateSharedBlocks(const Workload& w) {
  const Architecture& a = w.architecture;
  if (!a.shared_blocks) return;
  const Parallel& p = w.parallel;
  for (const Beside& one : std::to_array<Beside>(
           {{"a family that is no encoder", a.family != Family::kEncoder},
            {"experts", a.experts > 0},
            {"windowed_layers", a.windowed_layers > 0},
            {"unrotated_layers", a.unrotated_layers > 0},
            {"relative_bias_each_block", a.relative_bias_each_block},
            {"first_norm: false", !a.first_norm},
            {"trainable", !w.trainable.everything()},
            {"optimizer.by_layer", w.optimizer.by_layer},
            {"checkpointing",
             w.gradient_checkpointing || w.attention_checkpointing ||
                 w.operation_checkpointing},
            {"parallel.shard", p.shard != Shard::kNone},
            {"parallel.tensor, context or pipeline",
             p.tensor > 1 || p.context > 1 || p.pipeline > 1}})) {
    if (!one.asked) continue;
    throw InputError(fmt::format(
        "model.shared_blocks: expected false beside {}, got true", one.what));
  }
}

// What is computed again, and that it is of the model.
void ValidateCheckpointing(const Workload& w) {
  const Architecture& a = w.architecture;
  RequireCount(w.checkpointed_blocks, 0, a.layers, "checkpointed_blocks");
  if (w.checkpointed_blocks > 0 &&
      (!w.gradient_checkpointing || a.decoder_layers > 0)) {
    throw InputError(fmt::format("checkpointed_blocks: expected {}, got {}",
                                 w.gradient_checkpointing
                                     ? "0, which is all, in models of two sides"
                                     : "gradient_checkpointing beside it",
                                 w.checkpointed_blocks));
  }
  if (w.attention_checkpointing && w.gradient_checkpointing &&
      w.checkpointed_blocks == 0) {
    throw InputError(
        "attention_checkpointing: expected false where gradient_checkpointing "
        "computes all of every block again, got true; hint: "
        "checkpointed_blocks, or one of the two");
  }
  if (w.attention_checkpointing && a.decoder_layers > 0) {
    throw InputError(
        "attention_checkpointing: expected false in models of two sides, got "
        "true; hint: gradient_checkpointing");
  }
  if (!w.operation_checkpointing) return;
  const auto refuse = [](const char* where) {
    throw InputError(
        fmt::format("operation_checkpointing: expected false {}, got true; "
                    "hint: gradient_checkpointing",
                    where));
  };
  if (w.gradient_checkpointing && w.checkpointed_blocks == 0) {
    refuse("where gradient_checkpointing computes all of every block again");
  }
  if (w.attention_checkpointing) refuse("beside attention_checkpointing");
  if (a.decoder_layers > 0) refuse("in models of two sides");
  if (a.next_token_blocks > 0) refuse("with next-token blocks");
}

// An expert gets a token once at most.
void ValidateLoadFactor(const Workload& w) {
  const Architecture& a = w.architecture;
  if (a.experts == 0) {
    if (w.load_factor == 1) return;
    throw InputError(
        fmt::format("load_factor: expected 1 in a model without experts, got "
                    "{}; hint: model.experts",
                    w.load_factor));
  }
  const double most = static_cast<double>(a.scored_experts()) /
                      static_cast<double>(a.experts_per_token);
  if (w.load_factor >= 1 && w.load_factor <= most) return;
  throw InputError(
      fmt::format("load_factor: expected 1 to {}, where one of {} experts gets "
                  "all tokens that go to {} each, got {}",
                  most,
                  a.experts,
                  a.experts_per_token,
                  w.load_factor));
}

// Rows that each expert finds are as many as they are: the host waits for their
// number, which a step that is replayed whole and a graph of fixed shapes do
// without.
void ValidateExperts(const Workload& w) {
  const ExpertKernels asked = w.stack.experts;
  if (asked == ExpertKernels::kOfStack) return;
  if (w.architecture.experts == 0) {
    throw InputError(fmt::format(
        "experts: expected of_stack in a model without experts, got "
        "{}; hint: model.experts",
        ToText(asked)));
  }
  const Fusion stack = w.stack.fusion;
  if (FindsRows(asked) &&
      (RulesOf(stack).launches == Launches::kOnce || stack == Fusion::kXla)) {
    throw InputError(
        fmt::format("experts: expected grouped or split in stack {}, whose "
                    "shapes are fixed, got {}",
                    ToText(stack),
                    ToText(asked)));
  }
}

// Blocks in 16 bits among those that narrow their operands.
void ValidateWideBlocks(const Workload& w) {
  if (w.wide_blocks == 0) return;
  RequireCount(w.wide_blocks, 0, w.architecture.layers, "wide_blocks");
  const auto require_none = [&](bool beside, std::string_view what) {
    if (!beside) return;
    throw InputError(
        fmt::format("wide_blocks: expected 0 {}, got {}", what, w.wide_blocks));
  };
  require_none(w.architecture.two_sided(), "of a model of two sides");
  require_none(BaseAsProducts(w),
               "beside a base in the bits of its products "
               "(trainable.lora.base_bits)");
  require_none(GathersInFp8(w), "where blocks are gathered in 8 bits");
}

void ValidateFp8(const Workload& w) {
  if (!w.fp8.gathered) return;
  if (!ShardsParameters(w.parallel)) {
    throw InputError(
        fmt::format("fp8.gathered: expected false where nothing is gathered "
                    "(parallel.shard: {}), got true; hint: zero3 or fsdp",
                    ToText(w.parallel.shard)));
  }
  if (w.trainable.base_bits > 0) {
    throw InputError(
        fmt::format("fp8.gathered: expected false beside a base of {} bits, "
                    "which is gathered as it is, got true",
                    w.trainable.base_bits));
  }
}

void ValidateNarrowOperands(const Workload& w) {
  ValidateFp8(w);
  ValidateWideBlocks(w);
}

// Muon and Adafactor look at whole matrices, each in the framework's own
// operations, which only the compiler of a whole graph makes one pass of.
void ValidateOptimizer(const Workload& w) {
  const Optimizer& o = w.optimizer;
  if (o.state_bits != 0 && o.state_bits != 8 && o.state_bits != 16) {
    throw InputError(
        fmt::format("optimizer.state_bits: expected 8, 16, or 0 for as wide as "
                    "the update, got {}",
                    o.state_bits));
  }
  if (o.state_bits == 16 &&
      o.implementation != OptimizerImplementation::kFused) {
    throw InputError(
        fmt::format("optimizer.state_bits: expected 0 or 8 beside "
                    "implementation {}, got 16; hint: fused",
                    ToText(o.implementation)));
  }
  // DeepSpeed's and FSDP's updates on the host are by fp32 state.
  if (o.state_bits != 0 && w.parallel.offload != Offload::kNone) {
    throw InputError(fmt::format(
        "optimizer.state_bits: expected 0 beside parallel.offload: {}, whose "
        "host updates state as wide as masters, got {}",
        ToText(w.parallel.offload),
        o.state_bits));
  }
  const bool muon = o.kind == OptimizerKind::kMuon;
  if (!muon && o.kind != OptimizerKind::kAdafactor) return;
  const auto refuse = [&](std::string_view key,
                          std::string_view expected,
                          std::string_view got) {
    throw InputError(fmt::format("{}: expected {} beside optimizer {}, got {}",
                                 key,
                                 expected,
                                 ToText(o.kind),
                                 got));
  };
  if (w.parallel.offload != Offload::kNone) {
    refuse("parallel.offload", "none", ToText(w.parallel.offload));
  }
  if (o.state_bits != 0) {
    refuse("optimizer.state_bits", "0", fmt::to_string(o.state_bits));
  }
  if (o.by_layer) refuse("optimizer.by_layer", "false", "true");
  if (o.masters == Masters::kInUpdate) {
    refuse("optimizer.masters", "apart or none", ToText(o.masters));
  }
  const bool is_graph =
      w.stack.fusion == Fusion::kXla || w.stack.fusion == Fusion::kCompiled;
  if (!muon && !is_graph &&
      o.implementation == OptimizerImplementation::kFused) {
    refuse("optimizer.implementation",
           "for_loop or multi_tensor",
           ToText(o.implementation));
  }
}

void ValidatePowerLimit(const Workload& w) {
  const double power_limit = w.power_limit.base();
  if (power_limit >= 0.0 && power_limit <= kMostPower) return;
  throw InputError(
      fmt::format("power_limit: expected 0 to {} W, 0 for the board's own, "
                  "got {}",
                  kMostPower,
                  power_limit));
}

}  // namespace

// Gradients that go as they come are of one micro-batch, and nobody else waits
// for them whole.
void RequireUpdateInBackward(const Workload& w) {
  if (!w.optimizer.in_backward) return;
  const auto require_none = [](bool beside, std::string_view what) {
    if (!beside) return;
    throw InputError(fmt::format(
        "optimizer.in_backward: expected false {}, got true", what));
  };
  require_none(w.accumulation > 1,
               "where micro-batches add up gradients (accumulation: 1)");
  require_none(RanksThatSum(w.parallel) > 1 && !ShardsParameters(w.parallel),
               "where ranks sum gradients of all (parallel.shard: zero3 or "
               "fsdp)");
  require_none(w.parallel.pipeline > 1, "under a pipeline");
  require_none(w.parallel.offload != Offload::kNone, "beside parallel.offload");
  require_none(KeepsMasters(w),
               "beside masters of narrow weights, without which "
               "optimizer.masters is none");
  require_none(Autocasts(w) && w.precision == Precision::kFp16,
               "in fp16, whose gradients are unscaled together");
  require_none(w.optimizer.wide_gradients, "beside wide_gradients");
  require_none(w.optimizer.by_layer, "beside learning_rate.layer_decay");
  require_none(w.optimizer.kind == OptimizerKind::kMuon, "beside muon");
  require_none(w.compression.kind != CompressionKind::kNone,
               "beside gradient_compression");
}

int64_t LargestCountableBatch(const Workload& workload) {
  Workload one = workload;
  one.batch = 1;
  // What does not grow with it is counted as if it did.
  const double batch = std::min(kLargestSum / LargestSum(one),
                                static_cast<double>(kLargestBatch));
  return std::max<int64_t>(1, static_cast<int64_t>(batch));
}

void Validate(const Workload& w) {
  const Architecture& a = w.architecture;
  RequireCount(w.batch, 1, kLargestBatch, "batch");
  RequireCount(w.sequence_length, 1, kLongestSequence, "sequence_length");
  RequireCount(w.target_length, 0, kLongestSequence, "target_length");
  RequireCount(w.documents, 1, w.key_length(), "documents");
  RequireCount(w.accumulation, 1, kLargestBatch, "accumulation");
  RequireCount(w.predictions_per_sequence,
               0,
               w.target_length > 0 ? w.target_length : w.sequence_length,
               "predictions_per_sequence");
  ValidatePowerLimit(w);
  internal::ValidateArchitecture(a);
  // Sums are taken from here on.
  RequireCountable(w);
  ValidateSharedBlocks(w);
  ValidateStepOfOtherBlocks(w);
  ValidateFlashHeads(w);
  internal::ValidateTrainable(w);
  ValidateLoadFactor(w);
  ValidateExperts(w);
  if (w.stack.compiler_level < 1 || w.stack.compiler_level > 3) {
    throw InputError(fmt::format("compiler_level: expected 1, 2 or 3, got {}",
                                 w.stack.compiler_level));
  }
  ValidateNarrowOperands(w);
  RequireUpdateInBackward(w);
  ValidateOptimizer(w);
  if (w.compression.kind == CompressionKind::kPowerSgd) {
    RequireCount(w.compression.rank,
                 1,
                 kLargestDimension,
                 "gradient_compression.power_sgd");
  }
  auto fault = FaultOf(w.parallel);
  if (!fault && DividesModel(w.parallel)) fault = FaultOfSplit(w);
  RequireNone(fault);
  if (w.parallel.shard != Shard::kNone &&
      w.compression.kind == CompressionKind::kPowerSgd) {
    throw InputError(
        fmt::format("gradient_compression: expected none or half beside "
                    "sharded state (parallel.shard: {}), got {}",
                    ToText(w.parallel.shard),
                    ToText(w.compression.kind)));
  }
  ValidateCheckpointing(w);
  const auto longest = a.longest_of_table();
  const int64_t length = std::max(w.sequence_length, w.target_length);
  if (longest && length > *longest) {
    throw InputError(fmt::format(
        "sequence_length: expected at most {}, the positions of {}, got {}",
        *longest,
        a.name.empty() ? "the model" : a.name,
        length));
  }
}

}  // namespace trainfare::model
