// The gated delta rule in the place of attention (Gated DeltaNet), and gated
// attention beside it. docs/models/delta_rule.md works the numbers.

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "model/activations.h"
#include "model/architecture.h"
#include "model/kernels.h"
#include "model/presets.h"
#include "model/sharding.h"
#include "model/split.h"
#include "model/trainable.h"
#include "model/transients.h"
#include "tests/model/decoder_workloads.h"
#include "tests/model/refusal.h"
#include "tests/model/step_kernels.h"

namespace trainfare::model {
namespace {

// Qwen3.5 9B: 16 heads of keys and 32 of values, of 128 each; the convolution
// takes 8192 channels, and all that the first products make is 12352.
constexpr int64_t kHidden = 4096;
constexpr int64_t kSize = 128;
constexpr int64_t kHeads = 32;
constexpr int64_t kKeys = 16 * kSize;
constexpr int64_t kValues = kHeads * kSize;
constexpr int64_t kChannels = 2 * kKeys + kValues;
constexpr int64_t kProjection = kChannels + kValues + 2 * kHeads;
constexpr int64_t kChunk = 64;
constexpr int64_t kBlocks = 24;
// Two chunks.
constexpr int64_t kTokens = 128;

constexpr BlockParts kDelta{Mixer::kDeltaRule, FeedForwardKind::kDense};
constexpr BlockParts kDeltaAlone{Mixer::kDeltaRule, FeedForwardKind::kNone};

Workload Qwen9b(int64_t length) { return Narrow("qwen3.5-9b", 1, length); }

int64_t FlopsOf(const Workload& w, KernelName name, Phase phase) {
  return SumsOf(w, name, phase).matrix_flops / kBlocks;
}
int64_t BlockBytesOf(const Workload& w, KernelName name, Phase phase) {
  return SumsOf(w, name, phase).bytes / kBlocks;
}

}  // namespace

TEST_CASE("parameters of Qwen3.5 9B, by hand") {
  const int64_t delta = kHidden * kProjection + 4 * kChannels + 2 * kHeads +
                        kSize + kValues * kHidden + kHidden;
  CHECK(delta == 67'408'064);
  const int64_t attention =
      kHidden * (2 * 4096 + 2 * 1024) + 4096 * kHidden + 2 * 256 + kHidden;
  CHECK(attention == 58'724'864);
  const int64_t feed_forward = 3 * kHidden * 12288 + kHidden;
  const int64_t tables = 2LL * 248320 * kHidden + kHidden;
  const Architecture& a = FindArchitecture("qwen3.5-9b");
  CHECK(TotalParameters(a) ==
        24 * delta + 8 * attention + 32 * feed_forward + tables);
  CHECK(TotalParameters(a) == 8'953'803'264);
  // Two products in the place of four are as large.
  Architecture joint = a;
  joint.delta_joint_projections = true;
  CHECK(TotalParameters(joint) == TotalParameters(a));
  CHECK(ParameterTensorCount(a) - ParameterTensorCount(joint) == 2 * 24);
}

TEST_CASE("blocks of the delta rule stand spread evenly") {
  const Architecture& a = FindArchitecture("qwen3-next-80b-a3b");
  CHECK(a.attention_layers() == 12);
  CHECK(a.expert_layers() == 48);
  int64_t attends = 0;
  for (int64_t block = 0; block < a.layers; ++block) {
    const BlockParts parts = a.parts_of(block);
    CHECK(parts.experts());
    if (parts.mixer == Mixer::kAttention) ++attends;
    if (parts.mixer != Mixer::kAttention) {
      CHECK(parts.mixer == Mixer::kDeltaRule);
    }
    // One of each four.
    if (block % 4 == 3) CHECK(attends == block / 4 + 1);
  }
}

// With C tokens a chunk and K = V, a token of a head: K K^T 2 C K and its
// inverse C C / 2; u and w 4 C K; what is taken off and the states 4 K K; the
// outputs 2 K K + 4 C K.
TEST_CASE("FLOPs of the delta rule, by hand") {
  const Workload w = Qwen9b(kTokens);
  using enum Phase;
  CHECK(FlopsOf(w, "delta input projection", kForward) ==
        2 * kTokens * kHidden * kChannels);
  CHECK(FlopsOf(w, "delta gate projection", kForward) ==
        2 * kTokens * kHidden * kValues);
  CHECK(FlopsOf(w, "delta write projection", kForward) ==
        2 * kTokens * kHidden * kHeads);
  CHECK(FlopsOf(w, "delta decay projection", kForward) ==
        2 * kTokens * kHidden * kHeads);
  CHECK(FlopsOf(w, "delta output projection", kForward) ==
        2 * kTokens * kHidden * kValues);
  const int64_t steps = kTokens * kHeads;
  const int64_t pairs = 2 * kChunk * kSize * steps;  // a product of pairs
  const int64_t states = 2 * kSize * kSize * steps;  // of states
  const int64_t cubes = 2 * kChunk * kChunk * steps;
  CHECK(FlopsOf(w, "chunk inverse", kForward) == pairs + cubes / 4);
  CHECK(FlopsOf(w, "chunk updates", kForward) == 2 * pairs);
  CHECK(FlopsOf(w, "chunk recurrence", kForward) == 2 * states);
  CHECK(FlopsOf(w, "chunk outputs", kForward) == states + 2 * pairs);
  CHECK(3 * states + 5 * pairs + cubes / 4 == kTokens * 5'832'704LL);
  // Updates and states run again.
  CHECK(FlopsOf(w, "chunk updates", kBackward) == 2 * pairs);
  CHECK(FlopsOf(w, "chunk recurrence", kBackward) == 2 * states);
  CHECK(FlopsOf(w, "chunk values gradient", kBackward) == 2 * pairs);
  CHECK(FlopsOf(w, "chunk recurrence gradient", kBackward) == 3 * states);
  CHECK(FlopsOf(w, "chunk outputs gradient", kBackward) ==
        3 * states + 4 * pairs);
  CHECK(FlopsOf(w, "chunk inverse gradient", kBackward) ==
        7 * pairs + 2 * cubes);
  CHECK(8 * states + 15 * pairs + 2 * cubes == kTokens * 16'777'216LL);
  // What is no multiple of a chunk is one more; shorter texts are one.
  CHECK(FlopsOf(Qwen9b(kTokens + 1), "chunk outputs", kForward) ==
        (states + 2 * pairs) / 2 * 3);
  CHECK(FlopsOf(Qwen9b(32), "chunk updates", kForward) == 2 * pairs / 2 / 4);
}

TEST_CASE("bytes of the delta rule, by hand") {
  const Workload w = Qwen9b(kTokens);
  const auto bytes = [&](KernelName name) {
    return BlockBytesOf(w, name, Phase::kForward);
  };
  CHECK(bytes("causal convolution") == kTokens * kChannels * (2 + 2));
  CHECK(bytes("delta heads") == kTokens * kChannels * (2 + 2));
  CHECK(bytes("delta unit norm") == kTokens * 2 * kKeys * (2 + 2));
  CHECK(bytes("chunk decay") == kTokens * kHeads * (4 + 4));
  // Of a head and token a sum of g in fp32, beta in 16 bits, a row of an
  // inverse; two chunks' states.
  const int64_t gates = kTokens * kHeads * (4 + 2);
  const int64_t inverses = kTokens * kHeads * kChunk * 2;
  const int64_t states = 2 * kValues * kSize * 2;
  CHECK(bytes("chunk inverse") == kTokens * kKeys * 2 + gates + inverses);
  CHECK(bytes("chunk updates") == kTokens * (kKeys + kValues) * 2 + gates +
                                      inverses + kTokens * 2 * kValues * 2);
  CHECK(bytes("chunk recurrence") == kTokens * (kKeys + 2 * kValues) * 2 +
                                         kTokens * kHeads * 4 + states +
                                         kTokens * kValues * 2);
  CHECK(bytes("chunk outputs") == kTokens * (2 * kKeys + 2 * kValues) * 2 +
                                      kTokens * kHeads * 4 + states);
  CHECK(bytes("gated norm") == kTokens * kValues * (2 + 2 + 2));
  // Gradients of both of a head, once of queries and twice of keys.
  CHECK(BlockBytesOf(w, "sum head gradients", Phase::kBackward) ==
        3 * kTokens * (kValues + kKeys) * 2);
}

// Operations of PyTorch launch what decays and writes one by one; a compiler,
// once. Qwen3-Next lays heads out anew behind two products.
TEST_CASE("what stacks launch around the delta rule") {
  using enum Phase;
  Workload w = Qwen9b(kTokens);
  const auto launches = [&](KernelName name) {
    return SumsOf(w, name, kForward).launches /
           w.architecture.delta_rule_layers;
  };
  CHECK(launches("delta gates") == 8);
  CHECK(launches("delta heads") == 1);
  w.architecture.delta_joint_projections = true;
  CHECK(launches("delta heads") == 2);
  CHECK(launches("delta gate projection") == 0);
  CHECK(FlopsOf(w, "delta input projection", kForward) ==
        2 * kTokens * kHidden * (kChannels + kValues));
  // Megatron-LM: one product, and queries and keys of each head of values.
  w.stack.fusion = Fusion::kMegatron;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  CHECK(launches("delta gates") == 1);
  CHECK(launches("delta write projection") == 0);
  CHECK(FlopsOf(w, "delta input projection", kForward) ==
        2 * kTokens * kHidden * kProjection);
  CHECK(BlockBytesOf(w, "delta heads", kForward) ==
        kTokens * (kChannels + 2 * kValues) * (2 + 2));
}

// In bf16: what the norm gave; what the convolution took; queries, keys and
// values; the result, its gate and what its norm gave; 64 of an inverse and
// beta a head; in fp32 four numbers a head of values, one a head of queries and
// keys.
TEST_CASE("what the delta rule keeps, by hand") {
  Workload w = Qwen9b(kTokens);
  const int64_t narrow = kHidden + 2 * kChannels + 3 * kValues + kHeads * 65;
  const int64_t wide = 4 * kHeads + 2 * 16;
  const int64_t norm = 2 * kHidden + 8;
  CHECK(2 * narrow + 4 * wide + norm == 78'536);
  const int64_t feed_forward = LayerActivationBytes(
      w, BlockParts{Mixer::kNone, FeedForwardKind::kDense});
  CHECK(LayerActivationBytes(w, kDelta) == kTokens * 78'536 + feed_forward);
  CHECK(KeptByBlocks(w) ==
        24 * LayerActivationBytes(w, kDelta) +
            8 * LayerActivationBytes(w, TransformerBlock(/*experts=*/false)));
  CHECK(KeptByBlock(w, 0) == LayerActivationBytes(w, kDelta));
  // Under autocast each of four products keeps a copy of what it takes.
  Workload autocast = w;
  autocast.stack.narrow_weights = false;
  const int64_t copies = LayerActivationBytes(autocast, kDelta);
  autocast.architecture.delta_joint_projections = true;
  CHECK(copies - LayerActivationBytes(autocast, kDelta) ==
        2 * kTokens * kHidden * 2);
  // Megatron-LM keeps queries and keys of each head of values, and what its
  // norm gave before the gate.
  Workload megatron = w;
  megatron.stack.fusion = Fusion::kMegatron;
  megatron.optimizer.implementation = OptimizerImplementation::kFused;
  const BlockParts alone{Mixer::kDeltaRule, FeedForwardKind::kNone};
  CHECK(LayerActivationBytes(megatron, alone) ==
        kTokens * (78'536 + 2 * (2 * (kValues - kKeys) + kValues)));
  w.gradient_checkpointing = true;
  CHECK(KeptByBlocks(w) == 32 * kTokens * kHidden * 2);
}

// Going back: the gate's gradient and the result's, values with three more of
// their like, w and its gradient, those of queries, and two of keys; states and
// their gradients. Forward the products, the convolution and its heads, and of
// each head w, u, what is written, the result and an inverse; and the states.
TEST_CASE("what a pass of the delta rule makes, by hand") {
  Workload w = Qwen9b(kTokens);
  const int64_t states = 2 * kValues * kSize;
  CHECK(BlockGradientBytes(
            w, BlockParts{Mixer::kDeltaRule, FeedForwardKind::kNone}) ==
        2 * (kTokens * 11 * kValues + 2 * states));
  CHECK(ForwardTransients(w) ==
        2 * kTokens * kHidden * 2 +
            2 * (kTokens * (kProjection + 2 * kChannels + 4 * kValues +
                            kHeads * kChunk) +
                 states));
}

// The first product of attention is twice as wide, and a gate goes over what
// attention gives.
TEST_CASE("gated attention, by hand") {
  using enum Phase;
  Workload w = Qwen9b(kTokens);
  CHECK(SumsOf(w, "query projection", kForward).matrix_flops ==
        8 * 2 * kTokens * kHidden * 2 * 4096);
  CHECK(SumsOf(w, "attention output projection", kForward).matrix_flops ==
        8 * 2 * kTokens * kHidden * 4096);
  // By operations: a copy, the sigmoid, the product; back two products, the
  // sigmoid, and queries beside gates.
  CHECK(SumsOf(w, "attention gate", kForward).bytes ==
        8 * kTokens * 4096 * (4 + 4 + 6));
  CHECK(SumsOf(w, "attention gate gradient", kBackward).bytes ==
        8 * kTokens * 4096 * (2 * 6 + 6 + 2 * 4));
  const BlockParts attention = TransformerBlock(/*experts=*/false);
  const int64_t gated = LayerActivationBytes(w, attention);
  const int64_t parameters = TotalParameters(w.architecture);
  w.architecture.gated_attention = false;
  // The gate, and what it made of the context.
  CHECK(gated - LayerActivationBytes(w, attention) == kTokens * 2 * 4096 * 2);
  CHECK(parameters - TotalParameters(w.architecture) == 8 * kHidden * 4096);
  CHECK(SumsOf(w, "attention gate", kForward).launches == 0);
  w.architecture.gated_attention = true;
  w.stack.fusion = Fusion::kMegatron;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  CHECK(SumsOf(w, "attention gate", kForward).bytes ==
        8 * kTokens * 4096 * (2 + 2 + 2));
  CHECK(SumsOf(w, "attention gate gradient", kBackward).bytes ==
        8 * kTokens * 4096 * (6 + 4));
}

// A rank of 4 has 4 heads of keys and 8 of values.
TEST_CASE("ranks divide the heads of the delta rule") {
  Workload w = Qwen9b(kTokens);
  w.stack.fusion = Fusion::kMegatron;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  w.parallel.tensor = 4;
  CHECK(RefusalOf(w).empty());
  const Workload rank = OfStage(w, 0);
  CHECK(rank.architecture.delta_channels() == kChannels / 4);
  CHECK(rank.architecture.delta_projection_width() == kProjection / 4);
  CHECK(rank.architecture.query_projection_width() == 2 * 4096 / 4);
  // Two sums a block, and one more of the embeddings; of the logits' gradient.
  const TensorMessages messages = TensorMessagesOf(w, rank);
  CHECK(messages.forward == 64 + 1);
  CHECK(messages.backward == 64 + 1);
  w.architecture.delta_key_heads = 2;
  CHECK(RefusalOf(w) ==
        "parallel.tensor: expected a divisor of the 2 heads of keys of the "
        "delta rule, got 4");
}

TEST_CASE("units of shards are blocks of the delta rule and of attention") {
  Workload w = Qwen9b(kTokens);
  w.parallel.shard = Shard::kFsdp;
  w.parallel.data = 8;
  const ShardUnits units = ShardUnitsOf(w);
  int64_t blocks = 0;
  int64_t elements = units.root.elements;
  for (const ShardedBlocks& alike : units.blocks) {
    blocks += alike.count;
    elements += alike.count * alike.unit.elements;
  }
  CHECK(blocks == 32);
  CHECK(elements == 8'953'803'264);
  CHECK(units.root.elements == 2LL * 248320 * kHidden + kHidden);
  CHECK(units.blocks.front().unit.elements ==
        67'408'064 + 3 * kHidden * 12288 + kHidden);
}

// docs/models/delta_rule.md, "Adapters"; PEFT 0.21 counts as many of Qwen3.5
// 0.8B, of rank 16.
TEST_CASE("adapters beside the delta rule, by hand") {
  const auto adapted = [](std::string_view preset,
                          std::initializer_list<std::string_view> modules,
                          Fusion fusion = Fusion::kEager) {
    Workload w = Narrow(preset, 1, kTokens);
    w.stack.fusion = fusion;
    w.trainable.lora_rank = 16;
    for (const std::string_view module : modules) {
      AddLoraMatrix(module, w.trainable.lora);
    }
    NameUsualMatrices(w.architecture, w.trainable);
    NameAllMatrices(w.architecture, fusion, w.trainable);
    CHECK(RefusalOf(w).empty());
    return w;
  };
  const auto count = [&](std::initializer_list<std::string_view> modules) {
    return AdapterParameters(adapted("qwen3.5-0.8b", modules));
  };
  CHECK(count({"in_proj_qkv", "out_proj"}) == 2'949'120);
  CHECK(count({"in_proj_a", "in_proj_z"}) == 1'184'256);
  CHECK(count({"q_proj", "v_proj"}) == 638'976);
  CHECK(count({"all-linear"}) == 10'822'656);
  // 18 blocks of the rule, 6 of attention, 24 feed-forwards.
  const int64_t delta =
      16 * ((1024 + 6144) + 2 * (1024 + 2048) + 2 * (1024 + 16));
  const int64_t attention =
      16 * ((1024 + 4096) + 2 * (1024 + 512) + (2048 + 1024));
  CHECK(18 * delta + 6 * attention + 24 * 3 * 16 * (1024 + 3584) == 10'822'656);
  // Qwen3-Next has two first products, Megatron-LM one of all.
  const Workload two =
      adapted("qwen3-next-80b-a3b", {"in_proj_qkvz", "in_proj_ba"});
  CHECK(AdapterParameters(two) == 36 * 16 * ((2048 + 12288) + (2048 + 64)));
  const Workload one =
      adapted("qwen3-next-80b-a3b", {"in_proj_qkvz"}, Fusion::kMegatron);
  CHECK(AdapterParameters(one) == 36 * 16 * (2048 + 12352));
  // Frozen products make no gradients of weights; those of adapters are thin.
  const Workload all = adapted("qwen3.5-0.8b", {"all-linear"});
  Workload whole = all;
  whole.trainable = {};
  CHECK(SumsOf(all, "weight gradient", Phase::kBackward).launches == 0);
  CHECK(SumsOf(whole, "weight gradient", Phase::kBackward).launches > 0);
  // Without adapters beside them the first products keep no input, nor the last
  // what it took, nor the feed-forward what its products took.
  Workload none = adapted("qwen3.5-0.8b", {"q_proj"});
  none.stack.fusion = Fusion::kLiger;
  Workload trained = none;
  trained.trainable = {};
  CHECK(LayerActivationBytes(trained, kDeltaAlone) -
            LayerActivationBytes(none, kDeltaAlone) ==
        kTokens * (1024 + 2048) * 2);
}

// Updates and states are made anew, which no model computes twice.
TEST_CASE("MFU of adapters beside the delta rule counts nothing made anew") {
  Workload w = Qwen9b(kTokens);
  w.trainable.lora_rank = 16;
  w.trainable.lora.delta_rule_in = true;
  w.work = Work::kForwardBackward;
  REQUIRE(RefusalOf(w).empty());
  using enum Phase;
  const KernelList list = ExpandKernels(w);
  const int64_t again = SumsOf(w, "chunk updates", kBackward).matrix_flops +
                        SumsOf(w, "chunk recurrence", kBackward).matrix_flops;
  CHECK(again == kBlocks * kTokens * kHeads * (32'768 + 65'536));
  Workload flash = w;
  flash.architecture.delta_rule_layers = flash.architecture.layers;
  const KernelList alone = ExpandKernels(flash);
  CHECK(MicroBatchModelFlops(flash) ==
        alone.Counts(kForward).matrix_flops +
            alone.Counts(kBackward).matrix_flops -
            32 * kTokens * kHeads * (32'768 + 65'536));
}

// Twelve of 24 blocks of the rule, four of eight of attention.
TEST_CASE("stages have their share of blocks of the delta rule") {
  Workload w = Qwen9b(kTokens);
  w.parallel = {.data = 2, .pipeline = 2};
  CHECK(RefusalOf(w).empty());
  const Architecture lower = OfStage(w, 0).architecture;
  const Architecture upper = OfStage(w, 1).architecture;
  CHECK(lower.delta_rule_layers + upper.delta_rule_layers == 24);
  CHECK(lower.attention_layers() + upper.attention_layers() == 8);
  CHECK(lower.delta_rule_layers == 12);
}

TEST_CASE("what is not counted of the delta rule is refused by its name") {
  const Workload w = Qwen9b(kTokens);
  CHECK(RefusalOf(w).empty());
  const auto refusal = [&](auto change) {
    Workload changed = w;
    change(changed);
    return RefusalOf(changed);
  };
  CHECK(refusal([](Workload& v) { v.parallel.context = 2; }) ==
        "parallel.context: expected 1 of a model with delta_rule_layers, got "
        "2");
  CHECK(refusal([](Workload& v) {
          v.trainable.lora_rank = 8;
          v.trainable.lora.state_space_in = true;
        }) ==
        "trainable.lora.matrices: expected some of query, key, value, output, "
        "feed_forward_gate, feed_forward_in, feed_forward_out, delta_rule_in, "
        "delta_rule_gate, delta_rule_write, delta_rule_decay, delta_rule_out "
        "beside the delta rule, got state_space_in");
  CHECK(refusal([](Workload& v) {
          v.architecture.state_space_layers = 2;
          v.architecture.state_heads = v.architecture.state_head_size = 8;
          v.architecture.state_size = 8;
        }) == "model.delta_rule_layers: expected 0 beside state_space_layers");
  CHECK(refusal([](Workload& v) { v.architecture.delta_key_heads = 3; }) ==
        "model.delta_value_heads: expected a multiple of delta_key_heads = 3, "
        "got 32");
  CHECK(refusal([](Workload& v) { v.architecture.delta_value_size = 0; }) ==
        "model.delta_value_size: expected a count of at least 1, got 0");
  CHECK(refusal([](Workload& v) { v.architecture.delta_rule_layers = 33; }) ==
        "model.delta_rule_layers: expected a count of at most 32, got 33");
  CHECK(refusal([](Workload& v) { v.architecture.clipped_projections = true; })
            .starts_with("model.gated_attention: expected false, or a decoder "
                         "whose values are as wide as queries, without "));
}

}  // namespace trainfare::model
