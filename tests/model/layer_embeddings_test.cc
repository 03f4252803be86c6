// Embeddings of each block, and blocks that share keys and values.
// docs/models/llm.md works the numbers.

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "model/activations.h"
#include "model/architecture.h"
#include "model/element_widths.h"
#include "model/kernels.h"
#include "model/memory.h"
#include "model/presets.h"
#include "model/sharding.h"
#include "model/split.h"
#include "model/trainable.h"
#include "tests/model/decoder_workloads.h"
#include "tests/model/refusal.h"
#include "tests/model/step_kernels.h"

namespace trainfare::model {
namespace {

// Gemma 4 E2B: 35 blocks, of which every fifth sees all and the highest 20 share
// keys and values; 8 heads of 256 or 512, of which one is keys'.
constexpr int64_t kSmallWidth = 1536;
constexpr int64_t kSmallInner = 6144;
constexpr int64_t kOwn = 256;
constexpr int64_t kAllOwn = 35 * kOwn;
constexpr int64_t kSmallWords = 262'144;

constexpr BlockParts kLowerWindow{};
constexpr BlockParts kLowerFull{Mixer::kAttention,
                                FeedForwardKind::kDense,
                                /*sees_all=*/true};
constexpr BlockParts kUpperWindow{Mixer::kAttention,
                                  FeedForwardKind::kDense,
                                  /*sees_all=*/false,
                                  /*borrows_keys=*/true};
constexpr BlockParts kUpperFull{Mixer::kAttention,
                                FeedForwardKind::kDense,
                                /*sees_all=*/true,
                                /*borrows_keys=*/true};

Workload SmallGemma(int64_t length) { return Narrow("gemma-4-e2b", 1, length); }

// Matrices of attention in a block of so wide heads, without those of keys and
// values where it shares them.
int64_t AttentionOf(int64_t head, bool shares) {
  return kSmallWidth * head * (2 * 8 + (shares ? 0 : 2));
}
// Norms of queries and keys, four of the block, and one more behind its own
// embeddings; both products around these.
int64_t BesideMatricesOf(int64_t head, bool shares) {
  return (shares ? 1 : 2) * head + 5 * kSmallWidth;
}
constexpr int64_t kOwnProducts = 2 * kSmallWidth * kOwn;

int64_t BlockOf(int64_t head, bool shares) {
  const int64_t inner = shares ? 2 * kSmallInner : kSmallInner;
  return AttentionOf(head, shares) + BesideMatricesOf(head, shares) +
         3 * kSmallWidth * inner + kOwnProducts;
}

Workload WithAdapters(Workload w, std::initializer_list<const char*> names) {
  w.trainable.lora_rank = 16;
  for (const char* name : names) AddLoraMatrix(name, w.trainable.lora);
  NameAllMatrices(w.architecture, w.stack.fusion, w.trainable);
  return w;
}

}  // namespace

TEST_CASE("parameters of Gemma 4 E2B, by hand") {
  const Architecture& a = FindArchitecture("gemma-4-e2b");
  CHECK(BlockOf(256, false) == 36'184'064);
  CHECK(BlockOf(512, false) == 43'262'464);
  CHECK(BlockOf(256, true) == 63'708'928);
  CHECK(BlockOf(512, true) == 70'000'640);
  const int64_t blocks = 12 * BlockOf(256, false) + 3 * BlockOf(512, false) +
                         16 * BlockOf(256, true) + 4 * BlockOf(512, true);
  const int64_t table = kSmallWords * kAllOwn;
  CHECK(table == 2'348'810'240);
  const int64_t beside = kSmallWidth * kAllOwn + kOwn;
  CHECK(beside == 13'762'816);
  CHECK(LayerEmbeddingParameters(a) == table + beside);
  CHECK(TotalParameters(a) ==
        blocks + table + beside + kSmallWords * kSmallWidth + kSmallWidth);
  CHECK(TotalParameters(a) == 4'628'569'344);
  int64_t listed = 0;
  for (const ParameterTensor& tensor : ParameterTensorsOf(a)) {
    listed += tensor.elements;
  }
  CHECK(listed == TotalParameters(a));
  CHECK(ParameterTensorCount(a) == 505);
  CHECK(static_cast<int64_t>(ParameterTensorsOf(a).size()) == 505);
  CHECK(ParameterTensorCount(FindArchitecture("gemma-4-e4b")) == 623);
}

TEST_CASE("the highest blocks share keys and values") {
  const Architecture& a = FindArchitecture("gemma-4-e2b");
  for (int64_t block = 0; block < a.layers; ++block) {
    CAPTURE(block);
    CHECK(a.parts_of(block).sees_all == (block % 5 == 4));
    CHECK(a.parts_of(block).borrows_keys == (block >= 15));
  }
  const std::vector<BlocksAlike> sorts = BlocksByParts(a, 0, a.layers);
  REQUIRE(sorts.size() == 4);
  CHECK(sorts[0].parts == kLowerWindow);
  CHECK(sorts[0].count == 12);
  CHECK(sorts[1].parts == kLowerFull);
  CHECK(sorts[1].count == 3);
  CHECK(sorts[2].parts == kUpperWindow);
  CHECK(sorts[2].count == 16);
  CHECK(sorts[3].parts == kUpperFull);
  CHECK(sorts[3].count == 4);
}

TEST_CASE("FLOPs of Gemma 4 E2B, by hand") {
  constexpr int64_t kLength = 8192;
  const Workload w = SmallGemma(kLength);
  const int64_t token = 2 * kLength;
  using enum Phase;
  const auto flops = [&](KernelName name) {
    return SumsOf(w, name, kForward).matrix_flops;
  };
  CHECK(flops("query projection") ==
        token * kSmallWidth * 8 * (28 * 256 + 7 * 512));
  CHECK(flops("key projection") == token * kSmallWidth * (12 * 256 + 3 * 512));
  CHECK(flops("value projection") == flops("key projection"));
  CHECK(SumsOf(w, "key projection", kForward).launches == 15);
  CHECK(flops("feed-forward in") ==
        token * kSmallWidth * kSmallInner * (15 + 2 * 20));
  CHECK(flops("layer gate") == token * 35 * kSmallWidth * kOwn);
  CHECK(flops("layer projection") == flops("layer gate"));
  CHECK(flops("layer embedding projection") == token * kSmallWidth * kAllOwn);
  // Each of the 35 sees its pairs, whoever made the keys.
  const int64_t within = 512LL * 513 / 2 + (kLength - 512) * 512;
  const int64_t all = kLength * (kLength + 1) / 2;
  CHECK(flops("flash attention") ==
        4 * 8 * (28 * 256 * within + 7 * 512 * all));
  // Tables are read, and multiply nothing, but the words' for logits.
  const int64_t matrices = BlockMatrixElements(w.architecture) +
                           kSmallWidth * kAllOwn + kSmallWords * kSmallWidth;
  CHECK(matrices == 2'279'473'152);
  CHECK(MicroBatchFlopsByPairs(w).seen ==
        3 * (token * matrices + flops("flash attention")));
}

// Rows of the table, and its gradient, which is dense.
TEST_CASE("the table of embeddings of blocks, by hand") {
  const Workload w = SmallGemma(64);
  using enum Phase;
  CHECK(SumsOf(w, "embedding gather", kForward).launches == 2);
  Workload without = w;
  without.architecture.layer_embedding_size = 0;
  const auto more = [&](KernelName name, Phase phase) {
    return SumsOf(w, name, phase).bytes - SumsOf(without, name, phase).bytes;
  };
  CHECK(more("embedding gather", kForward) ==
        64 * kAllOwn * (2 + 2) + 64 * kIndexBytes);
  CHECK(more("zero table gradient", kBackward) == 2 * kSmallWords * kAllOwn);
  CHECK(more("table gradient", kBackward) ==
        64 * kAllOwn * 3 * 2 + 64 * kIndexBytes);
  // Beside adapters on attention it has none, and blocks give none.
  const Workload adapters = WithAdapters(w, {"query", "value"});
  CHECK_FALSE(LayerEmbeddingsTrain(adapters));
  CHECK(SumsOf(adapters, "layer embedding gradient", kBackward).launches == 0);
  CHECK(SumsOf(adapters, "zero table gradient", kBackward).launches == 0);
  // Beside one on the product that makes a part of them each block lays its
  // gradient into zeros of all, copies its own and adds.
  const Workload all = WithAdapters(w, {"layer_embeddings"});
  CHECK(LayerEmbeddingsTrain(all));
  const KernelSums sums = SumsOf(all, "layer embedding gradient", kBackward);
  CHECK(sums.launches == 35 * 3 + 2);
  CHECK(sums.bytes ==
        35 * 64 * 2 * (4 * kAllOwn + 2 * kOwn) + 2 * 64 * kAllOwn * 2 * 2);
}

// Behind each block's feed-forward: a gate, its activation, the product with the
// block's own, a product and a norm; queries alone are normed where keys are
// another block's.
TEST_CASE("norms and gates of Gemma 4 E2B, by hand") {
  const Workload w = SmallGemma(8);
  using enum Phase;
  CHECK(SumsOf(w, "layer gate", kForward).launches == 35);
  CHECK(SumsOf(w, "activation product", kForward).bytes ==
        35 * 8 * kOwn * 3 * 2);
  CHECK(SumsOf(w, "rms norm", kForward).launches ==
        15 * 3 + 20 + 35 * (4 + 1) + 1 + 1);
  const int64_t normed = 12 * (8 + 2) * 256 + 3 * (8 + 2) * 512 + 16 * 8 * 256 +
                         4 * 8 * 512 + 35 * 5 * kSmallWidth + kAllOwn +
                         kSmallWidth;
  CHECK(SumsOf(w, "rms norm", kForward).bytes == 8 * 2 * 2 * normed);
  // Gradients of keys and values are added to those of the block that made them.
  CHECK(SumsOf(w, "input gradient add", kBackward).launches ==
        15 * 2 + 20 * 2 + 35);
}

TEST_CASE("what blocks of Gemma 4 E2B keep, by hand") {
  constexpr int64_t kLength = 512;
  const Workload w = SmallGemma(kLength);
  // Queries, keys, values, what their norms took and the context, in both.
  const auto kept = [](int64_t head, bool shares) {
    return 8 * head * 3 + (shares ? 0 : 4 * head);
  };
  const auto more = [&](const BlockParts& upper, const BlockParts& lower) {
    return LayerActivationBytes(w, upper) - LayerActivationBytes(w, lower);
  };
  // Gate, what it gates and their product, as wide again.
  const int64_t inner = 3 * kSmallInner;
  CHECK(more(kUpperWindow, kLowerWindow) ==
        kLength * 2 * (kept(256, true) - kept(256, false) + inner));
  CHECK(more(kUpperFull, kUpperWindow) ==
        kLength * 2 * (kept(512, true) - kept(256, true)));
  // Its embeddings: what the gate is made of, the gate and its activation, the
  // product, the norm's input and its root.
  Workload without = w;
  without.architecture.layer_embedding_size = 0;
  CHECK(LayerActivationBytes(w, kLowerWindow) -
            LayerActivationBytes(without, kLowerWindow) ==
        kLength * (2 * (2 * kSmallWidth + 3 * kOwn) + 8));
  // Those of all blocks; what their norm took and its roots; what the product
  // took.
  CHECK(LayerEmbeddingBytes(w) ==
        kLength * (2 * 2 * kAllOwn + 35 * 8 + 2 * kSmallWidth));
  CHECK(LayerEmbeddingBytes(WithAdapters(w, {"query"})) ==
        kLength * 2 * kAllOwn);
  // Blocks that run again keep their input, and keys and values that others
  // attend by stay: of a window, and of all.
  Workload again = w;
  again.gradient_checkpointing = true;
  CHECK(KeptByBlocks(again) ==
        kLength * 2 * (35 * kSmallWidth + 2 * 256 + 2 * 512));
}

// PEFT 0.21 with Transformers 5.24 on the meta device.
TEST_CASE("adapters of Gemma 4 E2B and E4B are as PEFT's") {
  struct Case {
    std::string_view preset;
    std::initializer_list<const char*> names;
    int64_t parameters;
    int64_t tensors;
  };
  for (const Case& one :
       {Case{"gemma-4-e2b", {"q_proj", "v_proj"}, 2'678'784, 100},
        Case{"gemma-4-e2b",
             {"q_proj",
              "k_proj",
              "v_proj",
              "o_proj",
              "gate_proj",
              "up_proj",
              "down_proj"},
             24'158'208,
             410},
        Case{"gemma-4-e2b", {"all"}, 26'333'184, 552},
        Case{"gemma-4-e4b", {"q_proj", "v_proj"}, 4'538'368, 132},
        Case{"gemma-4-e4b", {"all"}, 38'879'232, 686}}) {
    CAPTURE(one.preset);
    Workload w = Narrow(one.preset, 1, 64);
    w.trainable.lora_rank = 16;
    for (const char* name : one.names) AddLoraMatrix(name, w.trainable.lora);
    NameUsualMatrices(w.architecture, w.trainable);
    NameAllMatrices(w.architecture, w.stack.fusion, w.trainable);
    CHECK(AdapterParameters(w) == one.parameters);
    CHECK(AdapterTensorCount(w) == one.tensors);
    int64_t listed = 0;
    for (const ParameterTensor& tensor : TrainableTensorsOf(w)) {
      listed += tensor.elements;
    }
    CHECK(listed == one.parameters);
    CHECK(static_cast<int64_t>(TrainableTensorsOf(w).size()) == one.tensors);
  }
}

TEST_CASE("sharded blocks of E2B are all of the model") {
  Workload w = SmallGemma(64);
  w.parallel.data = 8;
  w.parallel.shard = Shard::kFsdp;
  const ShardUnits units = ShardUnitsOf(w);
  // Four and one, seven times.
  REQUIRE(units.blocks.size() == 14);
  CHECK(units.blocks[0].count == 4);
  CHECK(units.blocks[0].unit.elements == BlockOf(256, false));
  CHECK(units.blocks[1].unit.elements == BlockOf(512, false));
  CHECK(units.blocks[6].unit.elements == BlockOf(256, true));
  CHECK(units.blocks[7].unit.elements == BlockOf(512, true));
  // Both tables and what stands beside that of the blocks are the root's.
  CHECK(units.root.elements == LayerEmbeddingParameters(w.architecture) +
                                   kSmallWords * kSmallWidth + kSmallWidth);
  const Workload adapters = WithAdapters(w, {"all"});
  const ShardUnits adapted = ShardUnitsOf(adapters);
  CHECK(adapted.root.trained == 16 * (kSmallWidth + kAllOwn));
}

TEST_CASE("what of shared keys and blocks' embeddings is not counted") {
  const auto refusal = [](auto change) {
    Workload w = SmallGemma(64);
    change(w);
    return RefusalOf(w);
  };
  CHECK(refusal([](Workload&) {}).empty());
  CHECK(
      refusal([](Workload& w) { w.architecture.shared_key_value_layers = 35; })
          .find("model.shared_key_value_layers: expected a count of at most "
                "34, got 35") == 0);
  CHECK(
      refusal([](Workload& w) { w.architecture.shared_key_value_layers = 32; })
          .find("model.shared_key_value_layers: expected blocks of both "
                "sorts of attention below the 32 that share keys and values, "
                "got 0 of 3 that see all") == 0);
  CHECK(refusal([](Workload& w) {
          w.architecture.shared_key_value_layers = 0;
        }).find("model.upper_intermediate: expected") == 0);
  CHECK(refusal([](Workload& w) {
          w.architecture.next_token_blocks = 1;
        }).find("model.") == 0);
  CHECK(refusal([](Workload& w) { w.architecture.embedding_size = 512; })
            .find("model.layer_embedding_size: expected 0, or a decoder of "
                  "attention and feed-forwards, without embedding_size") == 0);
  CHECK(refusal([](Workload& w) {
          w.architecture.layer_embedding_size = 0;
          w.architecture.layer_vocabulary = 9;
        }).find("model.layer_vocabulary: expected") == 0);
  CHECK(refusal([](Workload& w) { w.parallel.tensor = 2; }) ==
        "parallel.tensor: expected 1 of a model with layer_embedding_size, "
        "whose embeddings of blocks no rank divides, got 2");
  CHECK(refusal([](Workload& w) { w.parallel.pipeline = 5; }) ==
        "parallel.pipeline: expected 1 of a model with "
        "shared_key_value_layers, which stages would send each other, got 5");
}

// Of blocks with windows alone there is one sort, and the highest borrow of the
// last below them.
TEST_CASE("keys and values are shared in a model of one sort of attention") {
  Workload w = Narrow("llama-3.1-8b", 1, 64);
  const int64_t all = TotalParameters(w.architecture);
  w.architecture.shared_key_value_layers = 8;
  CHECK(RefusalOf(w).empty());
  CHECK(TotalParameters(w.architecture) == all - 8 * 2 * 4096 * 1024);
  CHECK(SumsOf(w, "key projection", Phase::kForward).launches == 24);
  CHECK(SumsOf(w, "flash attention", Phase::kForward).launches == 32);
  const std::vector<BlocksAlike> sorts =
      BlocksByParts(w.architecture, 0, w.architecture.layers);
  REQUIRE(sorts.size() == 2);
  CHECK(sorts[1].count == 8);
  // Ranks of a layer divide what is left.
  w.parallel.tensor = 4;
  CHECK(RefusalOf(w).empty());
  CHECK(TotalParameters(OfStage(w, 0).architecture) > 0);
}

}  // namespace trainfare::model
