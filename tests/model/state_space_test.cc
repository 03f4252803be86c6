// State spaces in the place of attention (Mamba-2), and blocks of one part each.
// docs/models/state_spaces.md works the numbers.

#include <doctest/doctest.h>

#include <cstdint>
#include <string_view>

#include "model/activations.h"
#include "model/architecture.h"
#include "model/kernels.h"
#include "model/presets.h"
#include "model/sharding.h"
#include "model/split.h"
#include "model/transients.h"
#include "tests/model/decoder_workloads.h"
#include "tests/model/refusal.h"
#include "tests/model/step_kernels.h"
#include "tests/near.h"

namespace trainfare::model {
namespace {

// Nemotron-H 8B: 128 heads of 64, 8192 together, with 128 states each, 8 groups,
// chunks of 128; x, B and C are 10240 wide, all that the first product makes is
// 18560.
constexpr int64_t kHidden = 4096;
constexpr int64_t kInner = 128 * 64;
constexpr int64_t kChannels = kInner + 2 * 8 * 128;
constexpr int64_t kProjection = kInner + kChannels + 128;

Workload NemotronH(int64_t length) {
  return Narrow("nemotron-h-8b", 1, length);
}

}  // namespace

TEST_CASE("parameters of Nemotron-H, by hand") {
  const int64_t mamba = kHidden * kProjection + 4 * kChannels + kChannels +
                        3 * 128 + kInner + kInner * kHidden + kHidden;
  CHECK(mamba == 109'640'064);
  const int64_t feed_forward = 2 * kHidden * 21504 + kHidden;
  const int64_t attention =
      2 * kHidden * kHidden + 2 * kHidden * 1024 + kHidden;
  const int64_t tables = 2LL * 131072 * kHidden + kHidden;
  const Architecture& a = FindArchitecture("nemotron-h-8b");
  CHECK(TotalParameters(a) ==
        24 * mamba + 24 * feed_forward + 4 * attention + tables);
  CHECK(TotalParameters(a) == 8'100'852'736);
  CHECK(TotalParameters(FindArchitecture("nemotron-h-47b")) == 46'791'554'816);
  CHECK(TotalParameters(FindArchitecture("nemotron-h-56b")) == 56'324'350'464);
  // 23 blocks of 128 experts and one as wide as two, without gates.
  CHECK(TotalParameters(FindArchitecture("nemotron-3-nano-30b-a3b")) ==
        31'577'934'656 + 2688);
}

TEST_CASE("blocks of one part each stand spread evenly") {
  const Architecture& a = FindArchitecture("nemotron-h-8b");
  int64_t mixes = 0;
  int64_t attends = 0;
  int64_t widens = 0;
  for (const BlocksAlike& sort : BlocksByParts(a, 0, a.layers)) {
    const bool inner = sort.parts.feed_forward != FeedForwardKind::kNone;
    CHECK(inner == (sort.parts.mixer == Mixer::kNone));
    if (inner) widens += sort.count;
    if (sort.parts.mixer == Mixer::kAttention) attends += sort.count;
    if (sort.parts.mixer == Mixer::kStateSpace) mixes += sort.count;
  }
  CHECK(mixes == 24);
  CHECK(attends == 4);
  CHECK(widens == 24);
  for (int64_t first = 0; first < a.layers; ++first) {
    for (const BlocksAlike& sort : BlocksByParts(a, first, first + 1)) {
      CHECK(sort.parts == a.parts_of(first));
      CHECK(sort.count == 1);
    }
  }
  CHECK(a.parts_of(0).mixer == Mixer::kStateSpace);
  CHECK(a.parts_of(51).feed_forward == FeedForwardKind::kDense);
  // Of Granite's 40 blocks each has experts, and 4 have attention.
  const Architecture& granite = FindArchitecture("granite-4.0-h-tiny");
  CHECK(granite.attention_layers() == 4);
  CHECK(granite.expert_layers() == 40);
  CHECK(granite.parts_of(4) == TransformerBlock(/*experts=*/true));
  CHECK(granite.parts_of(5).mixer == Mixer::kStateSpace);
  // None are left where all of them mix so: Mamba-2 alone.
  Architecture mamba = a;
  mamba.state_space_layers = mamba.layers;
  mamba.feed_forward_layers = 0;
  CHECK(mamba.attention_layers() == 0);
  CHECK(mamba.parts_of(7).mixer == Mixer::kStateSpace);
}

// Of 256 tokens, two chunks: C B^T of all pairs of a chunk in 8 groups, the
// states of each chunk, what those give, and what the pairs do.
TEST_CASE("FLOPs of a scan, by hand") {
  const Workload w = NemotronH(256);
  const int64_t states = 2LL * 256 * kInner * 128;
  const int64_t pairs = 2LL * 2 * 128 * 128 * kInner;
  const int64_t scores = 2LL * 2 * 128 * 128 * 8 * 128;
  const auto flops = [&](KernelName name, Phase phase) {
    return SumsOf(w, name, phase).matrix_flops / 24;
  };
  using enum Phase;
  CHECK(flops("state-space input projection", kForward) ==
        2 * 256 * kHidden * kProjection);
  CHECK(flops("chunk states", kForward) == states);
  CHECK(flops("chunk scores", kForward) == scores);
  CHECK(flops("chunk scan", kForward) == states + pairs);
  CHECK(flops("state-space output projection", kForward) ==
        2 * 256 * kHidden * kInner);
  // A token's: 4 d N + 2 d Q + 2 G Q N.
  CHECK(2 * states + pairs + scores == 256 * 6'553'600LL);
  // States and scores run again; of their gradients three are as the states, a
  // fourth with pairs, two more of pairs, and two of scores.
  CHECK(flops("chunk states", kBackward) == states);
  CHECK(flops("chunk scores", kBackward) == scores);
  CHECK(flops("chunk states gradient", kBackward) == 3 * states);
  CHECK(flops("chunk scan gradient", kBackward) == states + pairs);
  CHECK(flops("chunk scores gradient", kBackward) == pairs + 2 * scores);
  CHECK(flops("chunk decay gradient", kBackward) == pairs);
  CHECK(5 * states + 3 * pairs + 3 * scores == 256 * 17'563'648LL);
  // What is no multiple of a chunk is one more; shorter texts are one.
  CHECK(SumsOf(NemotronH(256 + 32), "chunk scores", kForward).matrix_flops /
            24 ==
        scores / 2 * 3);
  CHECK(SumsOf(NemotronH(64), "chunk scores", kForward).matrix_flops / 24 ==
        scores / 2 / 4);
}

// What NVIDIA's frameworks count, of rates they publish: 28.23 % of 1979 TFLOP/s
// at 1625.5 tokens/s (dgxc-benchmarking, nemotronh), 328 TFLOP/s at 14,719
// tokens/s (Megatron-Bridge's summary of performance).
TEST_CASE("FLOPs of a token are near those published") {
  const auto of_token = [](std::string_view preset) {
    return static_cast<double>(MicroBatchModelFlops(Narrow(preset, 1, 8192))) /
           8192;
  };
  CHECK(of_token("nemotron-h-56b") == Near(0.2823 * 1979e12 / 1625.5, 0.02));
  CHECK(of_token("nemotron-3-nano-30b-a3b") == Near(328e12 / 14'719, 0.02));
}

TEST_CASE("bytes of a scan, by hand") {
  const Workload w = NemotronH(256);
  const auto bytes = [&](KernelName name) {
    return SumsOf(w, name, Phase::kForward).bytes / 24;
  };
  CHECK(bytes("causal convolution") == 256 * kChannels * (2 + 2));
  CHECK(bytes("chunk decay") == 256 * 128 * (2 + 8));
  // x, B and two sums a head; two chunks' states in fp32.
  const int64_t states = 2 * kInner * 128;
  CHECK(bytes("chunk states") ==
        256 * (kInner + 8 * 128) * 2 + 256 * 128 * 8 + states * 4);
  CHECK(bytes("state passing") == states * (4 + 2));
  CHECK(bytes("chunk scores") == 2 * 256 * 8 * 128 * 2 + 2 * 128 * 128 * 8 * 4);
  CHECK(bytes("chunk scan") == 256 * (2 * kInner + 8 * 128) * 2 + states * 2 +
                                   256 * 128 * 8 + 2 * 128 * 128 * 8 * 4);
  CHECK(bytes("gated norm") == 256 * kInner * (2 + 2 + 2));
}

// In bf16: what the norm gave, the first product's result, the scan's, a root a
// group; the residual's sum, which the norm took.
TEST_CASE("what a state space keeps, by hand") {
  Workload w = NemotronH(256);
  const BlockParts mamba{Mixer::kStateSpace, FeedForwardKind::kNone};
  const BlockParts inner{Mixer::kNone, FeedForwardKind::kDense};
  const BlockParts attention{Mixer::kAttention, FeedForwardKind::kNone};
  const int64_t kept = 256 * (2 * (2 * kHidden + kProjection + kInner) + 8 * 4 +
                              /*statistics*/ 8);
  CHECK(LayerActivationBytes(w, mamba) == kept);
  CHECK(KeptByBlocks(w) == 24 * kept + 24 * LayerActivationBytes(w, inner) +
                               4 * LayerActivationBytes(w, attention));
  CHECK(KeptByBlock(w, 0) == kept);
  // Megatron-LM has the norm and the last product as modules of their own.
  w.stack.fusion = Fusion::kMegatron;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  CHECK(LayerActivationBytes(w, mamba) == kept + 256 * 2 * 2 * kInner);
  w.gradient_checkpointing = true;
  CHECK(KeptByBlocks(w) == 52 * 256 * kHidden * 2);
  // Going back: gradients of what the first product gave, x, B and C and theirs,
  // y and what its norm gave; scores of a chunk and states, each with gradients.
  CHECK(
      BlockGradientBytes(w, mamba) ==
      256 * (2 * (kProjection + 2 * kChannels + 2 * kInner) + 2 * 128 * 8 * 4) +
          2 * kInner * 128 * 2 * (4 + 2));
}

// A rank of 8 has 16 heads and one group.
TEST_CASE("ranks divide the heads of a state space") {
  Workload w = NemotronH(256);
  w.stack.fusion = Fusion::kMegatron;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  w.parallel.tensor = 8;
  CHECK(RefusalOf(w).empty());
  const Workload rank = OfStage(w, 0);
  CHECK(rank.architecture.state_width() == 1024);
  CHECK(rank.architecture.state_channels() == kChannels / 8);
  CHECK(rank.architecture.state_projection_width() == kProjection / 8);
  // One sum a block, and one more of the embeddings; of the logits' gradient.
  const TensorMessages messages = TensorMessagesOf(w, rank);
  CHECK(messages.forward == 52 + 1);
  CHECK(messages.backward == 52 + 1);
  w.parallel.tensor = 16;
  w.architecture.key_value_heads = 16;
  CHECK(RefusalOf(w) ==
        "parallel.tensor: expected a divisor of the 8 groups of state spaces, "
        "got 16");
}

// 52 blocks in 4 stages of 13, of which each sort has its own.
TEST_CASE("stages of a pipeline have the blocks from one to another") {
  Workload w = NemotronH(256);
  w.stack.fusion = Fusion::kMegatron;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  w.parallel.pipeline = 4;
  w.accumulation = 8;
  CHECK(RefusalOf(w).empty());
  int64_t mixes = 0;
  int64_t widens = 0;
  int64_t attends = 0;
  int64_t elements = 0;
  for (int64_t stage = 0; stage < 4; ++stage) {
    const Architecture a = OfStage(w, stage).architecture;
    CHECK(a.layers == 13);
    mixes += a.state_space_layers;
    widens += a.feed_forward_layers;
    attends += a.attention_layers();
    elements += TotalParameters(a);
  }
  CHECK(mixes == 24);
  CHECK(widens == 24);
  CHECK(attends == 4);
  CHECK(elements == 8'100'852'736);
  // A stage of Granite's may have no block of attention.
  Workload granite = Narrow("granite-4.0-h-tiny", 1, 256);
  granite.parallel.pipeline = 20;
  CHECK(OfStage(granite, 0).architecture.attention_layers() == 0);
  CHECK(OfStage(granite, 2).architecture.attention_layers() == 1);
}

TEST_CASE("units of shards are blocks of their parts") {
  Workload w = NemotronH(256);
  w.parallel.shard = Shard::kFsdp;
  w.parallel.data = 8;
  const ShardUnits units = ShardUnitsOf(w);
  int64_t blocks = 0;
  int64_t elements = units.root.elements;
  for (const ShardedBlocks& alike : units.blocks) {
    blocks += alike.count;
    elements += alike.count * alike.unit.elements;
  }
  CHECK(blocks == 52);
  CHECK(elements == 8'100'852'736);
  CHECK(units.root.elements == 2LL * 131072 * kHidden + kHidden);
  CHECK(units.blocks.front().unit.elements == 109'640'064);
  CHECK(units.blocks.back().unit.elements == 2 * kHidden * 21504 + kHidden);
}

TEST_CASE("what is not counted of other blocks is refused by its name") {
  const Workload w = NemotronH(256);
  CHECK(RefusalOf(w).empty());
  const auto refusal = [&](auto change) {
    Workload changed = w;
    change(changed);
    return RefusalOf(changed);
  };
  CHECK(refusal([](Workload& v) { v.parallel.context = 2; }) ==
        "parallel.context: expected 1 of a model with state_space_layers or "
        "single_part_blocks, got 2");
  CHECK(refusal([](Workload& v) { v.trainable.frozen_layers = 8; }) ==
        "trainable.frozen_layers: expected none with model.state_space_layers "
        "or single_part_blocks, where it is not counted");
  CHECK(refusal([](Workload& v) { v.architecture.windowed_layers = 2; }) ==
        "model.window: expected a window of at least 1 for 2 layers, got 0");
  CHECK(refusal([](Workload& v) { v.architecture.state_groups = 3; }) ==
        "model.state_groups: expected a divisor of state_heads = 128, got 3");
  CHECK(refusal([](Workload& v) { v.architecture.state_size = 0; }) ==
        "model.state_size: expected a count of at least 1, got 0");
  CHECK(refusal([](Workload& v) { v.architecture.state_space_layers = 29; }) ==
        "model.state_space_layers: expected a count of at most 28, got 29");
  CHECK(
      refusal([](Workload& v) { v.architecture.single_part_blocks = false; }) ==
      "model.feed_forward_layers: expected a count of at most 0, got 24");
}

}  // namespace trainfare::model
