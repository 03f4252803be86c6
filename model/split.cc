#include "model/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/element_widths.h"
#include "model/error.h"
#include "model/internal/passes/attention_shape.h"
#include "model/logits.h"
#include "model/parallel.h"
#include "model/pipeline.h"
#include "model/rounding.h"
#include "model/sharding.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::model {
namespace {

// Each rank's part of a width that so many divide.
int64_t PartOf(int64_t width, int64_t ranks) {
  return width == 0 ? 0 : CeilDivide(width, ranks);
}

// Of `count` blocks of a sort among `layers`, as many as `blocks` of them have
// on an average.
int64_t ShareOfSort(int64_t count, int64_t blocks, int64_t layers) {
  return std::min(blocks, (count * blocks + layers / 2) / layers);
}

// Of `count` blocks that are spread evenly among `layers` those from one up to
// another: all stages together have all of them.
int64_t Between(int64_t first, int64_t end, int64_t count, int64_t layers) {
  return count * end / layers - count * first / layers;
}

// Heads of a size of their own, so that fewer of them are narrower together.
void DivideLayers(const Parallel& p, Architecture& a) {
  const int64_t ranks = p.tensor;
  if (ranks == 1) return;
  a.value_head_size = a.context_head_size();
  a.head_size = a.query_head_size();
  a.full_key_value_heads = PartOf(a.full_key_value_heads, ranks);
  a.key_value_heads = PartOf(a.key_heads(), ranks);
  a.heads = PartOf(a.heads, ranks);
  a.state_heads = PartOf(a.state_heads, ranks);
  a.state_groups = PartOf(a.state_groups, ranks);
  a.delta_key_heads = PartOf(a.delta_key_heads, ranks);
  a.delta_value_heads = PartOf(a.delta_value_heads, ranks);
  if (a.convolution_layers > 0) {
    a.convolution_channels = PartOf(a.convolution_width(), ranks);
  }
  a.intermediate = PartOf(a.intermediate, ranks);
  a.upper_intermediate = PartOf(a.upper_intermediate, ranks);
  a.expert_intermediate = PartOf(a.expert_intermediate, PartsOfExperts(p));
  a.shared_intermediate = PartOf(a.shared_intermediate, ranks);
  a.vocabulary = PartOf(a.vocabulary, ranks);
}

// Elements of the matrices of blocks that a token meets, of experts its own.
double MatricesMet(const Architecture& a) {
  Architecture met = a;
  met.experts = a.experts_per_token;
  return static_cast<double>(BlockMatrixElements(met));
}

// Products of the head over those of a block.
double HeadInBlocks(const Architecture& a) {
  const double of_block = MatricesMet(a) / static_cast<double>(a.blocks());
  return static_cast<double>(a.vocabulary * a.word_width()) / of_block;
}

// Blocks before a stage of which each has as many, tables counted as `tables` of
// them before the first and behind the last. Of what is left over stages between
// first and last have one each, evenly among these, or all but the last.
int64_t EvenlyBefore(int64_t stage, const Workload& w, int64_t tables) {
  const int64_t stages = w.parallel.pipeline;
  const int64_t all = w.architecture.layers + 2 * tables;
  const int64_t left = all % stages;
  const int64_t between = stages - 2;
  const int64_t before = all / stages * stage - tables;
  if (left == 0) return before;
  if (left > between) return before + stage;
  return before + (2 * left * (stage - 1) + between) / (2 * between);
}

// The nearest to as many products before a stage as are its share.
int64_t ByCostBefore(int64_t stage, const Workload& w) {
  const Architecture& a = w.architecture;
  const double head = PredictsVocabulary(w) ? HeadInBlocks(a) : 0.0;
  return std::llround((static_cast<double>(a.layers) + head) *
                      static_cast<double>(stage) /
                      static_cast<double>(w.parallel.pipeline));
}

int64_t BlocksBefore(int64_t stage, const Workload& w) {
  switch (w.parallel.stages) {
    case StageCut::kBlocks:
      return EvenlyBefore(stage, w, 0);
    case StageCut::kTables:
      return EvenlyBefore(stage, w, 1);
    case StageCut::kCost:
      return ByCostBefore(stage, w);
  }
  ENSURE(false, "stages without a cut");
}

// Each rank has as many experts of a block.
void DivideExperts(int64_t ranks, Architecture& a) {
  a.experts = PartOf(a.experts, ranks);
  a.expert_ranks = ranks;
}

// Each rank has as many tokens of a sequence, and as many of what it predicts.
void DivideSequences(int64_t ranks, Workload& w) {
  w.sequence_length = PartOf(w.sequence_length, ranks);
  w.predictions_per_sequence = PartOf(w.predictions_per_sequence, ranks);
  w.part.context = ranks;
  w.parallel.data *= ranks;
}

// FLOPs of attention's core over those of all products of the blocks, a token
// forward: 2 H (q + v) p / s beside 2 P, where H heads of so wide queries and
// values see p pairs of s tokens, and a token meets P elements of matrices.
double ShareOfCore(const Workload& w) {
  const Architecture& a = w.architecture;
  const double matrices = MatricesMet(a);
  const auto pairs = [&](bool windowed) {
    return static_cast<double>(
        internal::PairsSeen(w, w.sequence_length, windowed));
  };
  const int64_t windowed = a.windowed_layers;
  // Heads of blocks that see all may be wider.
  const Architecture full = WithFullAttention(a);
  const auto width = [](const Architecture& of) {
    return static_cast<double>(of.query_width() + of.context_width());
  };
  const double seen =
      static_cast<double>(a.blocks() - windowed) * pairs(false) *
          (width(full) / width(a)) +
      (windowed > 0 ? static_cast<double>(windowed) * pairs(true) : 0.0);
  const double core = width(a) * seen / static_cast<double>(w.sequence_length);
  return core / (core + matrices);
}

// Blocks with experts from one on.
int64_t ExpertBlocksAbove(const Architecture& a, int64_t block) {
  if (a.experts == 0) return 0;
  return a.expert_layers() - a.expert_layers_below(block) + a.next_token_blocks;
}

// Blocks of which nothing behind attention is summed within a layer: ranks have
// other experts each, and no experts of every token, which they would divide.
int64_t UnsummedFrom(const Workload& w, int64_t block) {
  const Architecture& a = w.architecture;
  const bool summed =
      w.part.expert_folds == 1 || a.shared_intermediate > 0 || a.parallel_block;
  return summed ? 0 : ExpertBlocksAbove(a, block);
}

// Sums of hidden states that those of routed experts are worth beyond one: where
// ranks of a layer exchange a share of the tokens each, a copy for each of a
// token's experts, and have parts of these experts, they gather all copies and
// sum them before these go back (Megatron-Core's MoEAlltoAllTokenDispatcher), and
// experts of every token have a sum of their own.
int64_t MoreSumsOfExperts(const Parallel& p, const Architecture& a) {
  const bool gathers = p.sequence && p.expert > 1 && PartsOfExperts(p) > 1 &&
                       p.expert_exchange == ExpertExchange::kAllToAll;
  if (!gathers || ExpertFolds(p) > 1) return 0;
  const int64_t copies =
      CeilDivide(a.experts_per_token * a.expert_width(), a.hidden);
  return copies - 1 + (a.shared_intermediate > 0 ? 1 : 0);
}

// Of a model that has others than Transformer blocks, those from one up to
// another, which are spread evenly among themselves.
void KeepBlocks(const Architecture& whole,
                int64_t first,
                int64_t end,
                Architecture& a) {
  if (!whole.other_blocks()) return;
  a.state_space_layers = a.delta_rule_layers = 0;
  a.convolution_layers = a.feed_forward_layers = 0;
  for (const BlocksAlike& sort : BlocksByParts(whole, first, end)) {
    if (sort.parts.mixer == Mixer::kStateSpace) {
      a.state_space_layers += sort.count;
    } else if (sort.parts.mixer == Mixer::kDeltaRule) {
      a.delta_rule_layers += sort.count;
    } else if (sort.parts.mixer == Mixer::kConvolution) {
      a.convolution_layers += sort.count;
    } else if (sort.parts.mixer == Mixer::kNone) {
      a.feed_forward_layers += sort.count;
    }
  }
}

// The same of windows, where blocks without one have other attention.
void KeepWindows(const Architecture& whole,
                 int64_t first,
                 int64_t end,
                 Architecture& a) {
  const int64_t full =
      whole.full_layers_below(end) - whole.full_layers_below(first);
  if (full == end - first) a = WithFullAttention(a);
  a.windowed_layers = end - first - full;
}

// The blocks of one stage, and what stands before and behind them.
void KeepStage(const Workload& whole, int64_t stage, Workload& w) {
  const int64_t stages = whole.parallel.pipeline;
  if (stages == 1) return;
  const int64_t blocks = BlocksOfStage(whole, stage);
  const int64_t first = FirstBlockOfStage(whole, stage);
  Architecture& a = w.architecture;
  const int64_t layers = a.layers;
  const auto share = [&](int64_t& count) {
    count = Between(first, first + blocks, count, layers);
  };
  if (whole.architecture.attention_differs()) {
    KeepWindows(whole.architecture, first, first + blocks, a);
  } else {
    share(a.windowed_layers);
  }
  share(a.unrotated_layers);
  a.expert_phase =
      std::max<int64_t>(first - a.dense_layers, 0) % a.expert_period;
  const auto behind = [&](int64_t& from_lowest) {
    from_lowest = std::clamp<int64_t>(from_lowest - first, 0, blocks);
  };
  behind(a.dense_layers);
  behind(w.trainable.frozen_layers);
  w.wide_blocks =
      std::clamp<int64_t>(w.wide_blocks - (layers - first - blocks), 0, blocks);
  if (w.checkpointed_blocks > 0) {
    // Each stage has as many of them (Megatron-LM's recompute_num_layers).
    w.checkpointed_blocks = std::max<int64_t>(
        1, ShareOfSort(w.checkpointed_blocks, blocks, layers));
  }
  KeepBlocks(whole.architecture, first, first + blocks, a);
  a.layers = blocks;
  if (stage > 0) {
    a.looks_up_tokens = false;
    a.first_norm = true;
  }
  if (stage + 1 < stages) {
    a.head = Head::kNone;
    a.pooler = a.final_norm = false;
    a.next_token_blocks = 0;
  } else {
    // A copy of the table that the first stage looks tokens up in.
    a.untied_output = true;
  }
}

// Under a pipeline gradients are whole until they are summed behind the last
// micro-batch, so that ranks that divide them divide no more than the update.
void GatherOnce(Workload& w) {
  if (w.parallel.shard == Shard::kZero2) w.parallel.shard = Shard::kZero1;
  w.part.gathered_once = ShardsParameters(w.parallel);
}

// What of a model ranks cannot divide so: tokens, experts, widths, blocks.
std::optional<ParallelFault> FaultOfSequences(const Workload& w) {
  const int64_t ranks = w.parallel.context;
  if (w.sequence_length % ranks != 0) {
    return ParallelFault{
        "context",
        fmt::format("expected a divisor of the {} tokens of a sequence, got {}",
                    w.sequence_length,
                    ranks)};
  }
  if (ranks > 1 && w.architecture.other_blocks()) {
    return ParallelFault{"context",
                         fmt::format("expected 1 of a model with {}, got {}",
                                     w.architecture.other_blocks_key(),
                                     ranks)};
  }
  if (ranks > 1 && w.architecture.two_sided()) {
    return ParallelFault{
        "context",
        fmt::format("expected 1 of a model of two sides, got {}", ranks)};
  }
  return std::nullopt;
}

std::optional<ParallelFault> FaultOfSharedExperts(const Workload& w) {
  const int64_t experts = w.architecture.experts;
  const int64_t ranks = w.parallel.expert;
  if (ranks == 1 || (experts > 0 && experts % ranks == 0)) return std::nullopt;
  return ParallelFault{
      "expert",
      experts == 0
          ? fmt::format("expected 1 in a model without experts, got {}; hint: "
                        "model.experts",
                        ranks)
          : fmt::format("expected a divisor of the {} experts, got {}",
                        experts,
                        ranks)};
}

std::optional<ParallelFault> FaultOfLayers(const Workload& w) {
  const Architecture& a = w.architecture;
  const int64_t ranks = w.parallel.tensor;
  const auto divides = [&](std::string_view what,
                           int64_t count) -> std::optional<ParallelFault> {
    if (count % ranks == 0) return std::nullopt;
    return ParallelFault{
        "tensor",
        fmt::format(
            "expected a divisor of the {} {}, got {}", count, what, ranks)};
  };
  if (a.expert_norms && ranks > 1) {
    return ParallelFault{
        "tensor",
        fmt::format("expected 1 of a model with expert_norms, which take sums "
                    "that are not counted, got {}",
                    ranks)};
  }
  if (a.layer_embedding_size > 0 && ranks > 1) {
    return ParallelFault{
        "tensor",
        fmt::format("expected 1 of a model with layer_embedding_size, whose "
                    "embeddings of blocks no rank divides, got {}",
                    ranks)};
  }
  if (auto fault = divides("heads", a.heads)) return fault;
  for (const int64_t heads :
       {a.key_heads(), WithFullAttention(a).key_heads()}) {
    if (ranks % heads == 0) continue;  // each has a copy
    if (auto fault = divides("heads of keys and values", heads)) return fault;
  }
  if (a.state_space_layers > 0) {
    // Each rank has groups of heads with B and C of their own (Megatron-LM).
    if (auto fault = divides("heads of state spaces", a.state_heads)) {
      return fault;
    }
    if (auto fault = divides("groups of state spaces", a.state_groups)) {
      return fault;
    }
  }
  if (a.delta_rule_layers > 0) {
    // With each head of keys go those of values that share it.
    if (auto fault =
            divides("heads of keys of the delta rule", a.delta_key_heads)) {
      return fault;
    }
  }
  if (a.convolution_layers > 0) {
    if (auto fault =
            divides("channels of convolutions", a.convolution_width())) {
      return fault;
    }
  }
  if (a.upper_layers() > 0) {
    if (auto fault = divides("columns inside the upper feed-forward",
                             a.upper_intermediate)) {
      return fault;
    }
  }
  return divides("columns inside feed-forward", a.intermediate);
}

std::optional<ParallelFault> FaultOfStages(const Workload& w) {
  const Architecture& a = w.architecture;
  const Parallel& p = w.parallel;
  if (p.pipeline == 1) return std::nullopt;
  if (a.shared_key_value_layers > 0 || a.layer_embedding_size > 0) {
    return ParallelFault{
        "pipeline",
        fmt::format("expected 1 of a model with {}, which stages would send "
                    "each other, got {}",
                    a.shared_key_value_layers > 0 ? "shared_key_value_layers"
                                                  : "layer_embedding_size",
                    p.pipeline)};
  }
  if (a.two_sided()) {
    return ParallelFault{
        "pipeline",
        fmt::format("expected 1 of a model of two sides, got {}", p.pipeline)};
  }
  if (w.trainable.frozen_layers > 0 && PredictsVocabulary(w) &&
      !a.untied_output) {
    return ParallelFault{
        "pipeline",
        fmt::format("expected 1 beside trainable.frozen_layers of a model "
                    "whose output layer is its word embeddings, got {}",
                    p.pipeline)};
  }
  if (p.pipeline * p.chunks > a.layers) {
    return ParallelFault{
        p.chunks > 1 ? "chunks" : "pipeline",
        fmt::format("expected at most {} blocks in {} stages of {} chunks, got "
                    "more chunks than blocks",
                    a.layers,
                    p.pipeline,
                    p.chunks)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<ParallelFault> FaultOfSplit(const Workload& w) {
  if (auto fault = FaultOfSequences(w)) return fault;
  if (auto fault = FaultOfSharedExperts(w)) return fault;
  if (auto fault = FaultOfLayers(w)) return fault;
  return FaultOfStages(w);
}

int64_t FirstBlockOfStage(const Workload& w, int64_t stage) {
  const int64_t stages = w.parallel.pipeline;
  const int64_t layers = w.architecture.layers;
  if (stage == 0) return 0;
  if (stage == stages) return layers;
  // A block each at least.
  return std::clamp(BlocksBefore(stage, w), stage, layers - stages + stage);
}

int64_t BlocksOfStage(const Workload& w, int64_t stage) {
  return FirstBlockOfStage(w, stage + 1) - FirstBlockOfStage(w, stage);
}

Workload OfStage(const Workload& whole, int64_t stage) {
  Workload w = whole;
  const Parallel& p = whole.parallel;
  if (!DividesModel(p)) return w;
  KeepStage(whole, stage, w);
  DivideLayers(p, w.architecture);
  DivideExperts(p.expert, w.architecture);
  DivideSequences(p.context, w);
  w.part.tensor = p.tensor;
  if (p.sequence) w.part.token_shares = p.tensor;
  if (p.pipeline > 1) GatherOnce(w);
  w.part.expert_folds = ExpertFolds(p);
  w.parallel = w.parallel.OfWholeModels();
  return w;
}

Workload OfStageInFlight(const Workload& whole, int64_t stage) {
  Workload w = OfStage(whole, stage);
  const Parallel& p = whole.parallel;
  if (p.pipeline == 1 || whole.work == Work::kForward) return w;
  w.part.chunks = p.chunks;
  w.part.passes_kept =
      PassesInFlight({p.pipeline, p.chunks, whole.accumulation}, stage);
  return w;
}

TensorMessages TensorMessagesOf(const Workload& w, const Workload& of_stage) {
  TensorMessages messages;
  const Parallel& p = w.parallel;
  if (p.tensor == 1) return messages;
  const Architecture& a = of_stage.architecture;
  messages.hidden = Byte(
      static_cast<double>(of_stage.tokens() * a.hidden * Widths(w).element));
  // Both parts of a parallel block are one sum.
  const int64_t sums = a.parallel_block || a.single_part_blocks ? 1 : 2;
  // Blocks that predict a token further have both parts.
  const int64_t apart = a.single_part_blocks ? a.next_token_blocks : 0;
  const int64_t blocks = a.blocks() + apart;
  // A decoder of two sides sums behind its cross-attention, too.
  const int64_t crossed = a.decoder_layers;
  const int64_t again = BlocksComputedAgain(of_stage);
  const int64_t frozen = of_stage.trainable.frozen_layers;
  const int64_t more = MoreSumsOfExperts(p, a);
  const auto of_experts = [&](int64_t block) {
    return more * ExpertBlocksAbove(a, block) - UnsummedFrom(of_stage, block);
  };
  messages.forward = sums * blocks + crossed + of_experts(0);
  messages.again =
      sums * again + of_experts(0) - of_experts(std::min(a.layers, again));
  messages.backward = sums * (blocks - frozen) + crossed + of_experts(frozen);
  if (a.looks_up_tokens) ++messages.forward;
  if (PredictsVocabulary(of_stage)) ++messages.backward;
  return messages;
}

ContextMessages ContextMessagesOf(const Workload& w, const Workload& of_stage) {
  ContextMessages messages;
  if (w.parallel.context == 1) return messages;
  const Architecture& a = of_stage.architecture;
  const int64_t blocks = a.blocks();
  // Of blocks of two shapes as wide as they are on an average.
  const Architecture full = WithFullAttention(a);
  const int64_t windowed = a.attention_differs() ? a.windowed_layers : 0;
  const int64_t width =
      (windowed * (a.key_width() + a.value_width()) +
       (blocks - windowed) * (full.key_width() + full.value_width())) /
      blocks;
  messages.keys =
      Byte(static_cast<double>(of_stage.tokens() * width * Widths(w).element));
  const int64_t again =
      w.attention_checkpointing ? blocks : BlocksComputedAgain(of_stage);
  messages.forward = blocks;
  messages.backward = again + 2 * (blocks - of_stage.trainable.frozen_layers);
  messages.core = ShareOfCore(of_stage);
  return messages;
}

ExpertMessages ExpertMessagesOf(const Workload& w, const Workload& of_stage) {
  ExpertMessages messages;
  const Parallel& p = w.parallel;
  if (p.expert == 1) return messages;
  const Architecture& a = of_stage.architecture;
  // Of a layer's ranks each sends its share of the tokens, where they divide
  // these; else all of them have the same tokens.
  const int64_t rows =
      RowsOfExperts(of_stage, of_stage.part.OfTokens(of_stage.tokens()));
  messages.rows =
      Byte(static_cast<double>(rows * a.expert_width() * Widths(w).element));
  messages.once = messages.rows / static_cast<double>(a.experts_per_token);
  messages.routing = {a.scored_experts(),
                      a.experts_per_token,
                      a.expert_groups,
                      a.expert_groups_per_token};
  messages.exchange = p.expert_exchange;
  const int64_t blocks = ExpertBlocksAbove(a, 0);
  const int64_t frozen = of_stage.trainable.frozen_layers;
  const int64_t again =
      blocks -
      ExpertBlocksAbove(a, std::min(a.layers, BlocksComputedAgain(of_stage)));
  messages.forward = 2 * blocks;
  messages.backward = 2 * (again + ExpertBlocksAbove(a, frozen));
  return messages;
}

Bytes<> SentBetweenStages(const Workload& w) {
  const Parallel& p = w.parallel;
  const int64_t tokens =
      CeilDivide(w.tokens(), p.context * (p.sequence ? p.tensor : 1));
  return Byte(
      static_cast<double>(tokens * w.architecture.hidden * Widths(w).element));
}

Bytes<> SummedOfTiedTable(const Workload& w) {
  const Architecture& a = w.architecture;
  const bool both = w.parallel.pipeline > 1 && !a.untied_output &&
                    PredictsVocabulary(w) && w.trainable.everything() &&
                    w.work != Work::kForward;
  if (!both) return {};
  return Byte(static_cast<double>(PartOf(a.vocabulary, w.parallel.tensor) *
                                  a.word_width() * GradientWidth(w)));
}

}  // namespace trainfare::model
