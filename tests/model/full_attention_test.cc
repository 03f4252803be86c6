// Attention of two shapes: of blocks with a window, and of those that see all.
// docs/models/llm.md works the numbers.

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/activations.h"
#include "model/architecture.h"
#include "model/kernels.h"
#include "model/presets.h"
#include "model/sharding.h"
#include "model/split.h"
#include "model/trainable.h"
#include "tests/model/decoder_workloads.h"
#include "tests/model/refusal.h"
#include "tests/model/step_kernels.h"

namespace trainfare::model {
namespace {

// Gemma 4 31B: 50 blocks with a window of 32 heads of 256, 16 of them keys',
// and 10 of 32 heads of 512, 4 of them keys', which are values, too.
constexpr int64_t kWidth = 5376;
constexpr int64_t kInner = 3 * kWidth * 21504;
constexpr int64_t kWindowedQuery = 32 * 256;
constexpr int64_t kWindowedKey = 16 * 256;
constexpr int64_t kFullQuery = 32 * 512;
constexpr int64_t kFullKey = 4 * 512;
constexpr int64_t kWindowedBlocks = 50;
constexpr int64_t kFullBlocks = 10;

constexpr BlockParts kWindowed{};
constexpr BlockParts kSeesAllOfThem{Mixer::kAttention,
                                    FeedForwardKind::kDense,
                                    /*sees_all=*/true};

Workload Gemma31b(int64_t length) { return Narrow("gemma-4-31b", 1, length); }

int64_t OfName(const Architecture& a, std::string_view module) {
  int64_t tensors = 0;
  for (const ParameterTensor& tensor : ParameterTensorsOf(a)) {
    if (tensor.module == module) ++tensors;
  }
  return tensors;
}

}  // namespace

TEST_CASE("parameters of Gemma 4 31B, by hand") {
  const Architecture& a = FindArchitecture("gemma-4-31b");
  const int64_t norms = 4 * kWidth;
  const int64_t windowed =
      kWidth * 2 * (kWindowedQuery + kWindowedKey) + 2 * 256 + kInner + norms;
  CHECK(windowed == 478'959'104);
  const int64_t full =
      kWidth * (2 * kFullQuery + kFullKey) + 2 * 512 + kInner + norms;
  CHECK(full == 534'009'856);
  CHECK(TotalParameters(a) == kWindowedBlocks * windowed + kFullBlocks * full +
                                  262'144LL * kWidth + kWidth);
  CHECK(TotalParameters(a) == 30'697'345'280);
  int64_t listed = 0;
  for (const ParameterTensor& tensor : ParameterTensorsOf(a)) {
    listed += tensor.elements;
  }
  CHECK(listed == TotalParameters(a));
  CHECK(static_cast<int64_t>(ParameterTensorsOf(a).size()) ==
        ParameterTensorCount(a));
  CHECK(OfName(a, "attention.self.key") == 60);
  CHECK(OfName(a, "attention.self.value") == 50);
}

TEST_CASE("every sixth block of Gemma 4 sees all") {
  const Architecture& a = FindArchitecture("gemma-4-31b");
  CHECK(a.attention_differs());
  for (int64_t block = 0; block < a.layers; ++block) {
    CAPTURE(block);
    CHECK(a.parts_of(block).sees_all == (block % 6 == 5));
  }
  const std::vector<BlocksAlike> sorts = BlocksByParts(a, 0, a.layers);
  REQUIRE(sorts.size() == 2);
  CHECK(sorts[0].parts == kWindowed);
  CHECK(sorts[0].count == kWindowedBlocks);
  CHECK(sorts[1].parts == kSeesAllOfThem);
  CHECK(sorts[1].count == kFullBlocks);
  // A model of one shape has none of them.
  CHECK_FALSE(FindArchitecture("gemma-3-12b").parts_of(5).sees_all);
}

TEST_CASE("FLOPs of Gemma 4 31B, by hand") {
  constexpr int64_t kLength = 8192;
  const Workload w = Gemma31b(kLength);
  const int64_t within = 1024LL * 1025 / 2 + (kLength - 1024) * 1024;
  CHECK(within == 7'864'832);
  const int64_t all = kLength * (kLength + 1) / 2;
  CHECK(all == 33'558'528);
  using enum Phase;
  const int64_t pairs =
      32 * (kWindowedBlocks * 256 * within + kFullBlocks * 512 * all);
  CHECK(SumsOf(w, "flash attention", kForward).matrix_flops == 4 * pairs);
  CHECK(4 * pairs == 34'878'657'658'880);
  CHECK(SumsOf(w, "flash attention gradient", kBackward).matrix_flops ==
        10 * pairs);
  const int64_t token = 2 * kLength * kWidth;
  CHECK(SumsOf(w, "query projection", kForward).matrix_flops ==
        token * (50 * kWindowedQuery + 10 * kFullQuery));
  CHECK(SumsOf(w, "key projection", kForward).matrix_flops ==
        token * (50 * kWindowedKey + 10 * kFullKey));
  CHECK(SumsOf(w, "value projection", kForward).launches == 50);
  CHECK(SumsOf(w, "value projection", kForward).matrix_flops ==
        token * 50 * kWindowedKey);
  // What a model computes, by the pairs that it sees, forward and twice back.
  const int64_t matrices =
      BlockMatrixElements(w.architecture) + 262'144LL * kWidth;
  CHECK(MicroBatchFlopsByPairs(w).seen ==
        3 * (2 * kLength * matrices + 4 * pairs));
}

// Norms of queries, keys and values in each block.
TEST_CASE("norms of the heads of Gemma 4, by hand") {
  const Workload w = Gemma31b(8);
  const int64_t elements = 50 * (kWindowedQuery + 2 * kWindowedKey) +
                           10 * (kFullQuery + 2 * kFullKey) + 60 * 4 * kWidth +
                           kWidth;
  CHECK(SumsOf(w, "rms norm", Phase::kForward).launches == 60 * (3 + 4) + 1);
  CHECK(SumsOf(w, "rms norm", Phase::kForward).bytes == 8 * 2 * 2 * elements);
  Workload without = w;
  without.architecture.value_norm = false;
  CHECK(SumsOf(without, "rms norm", Phase::kForward).launches ==
        60 * (2 + 4) + 1);
}

TEST_CASE("what a block of Gemma 4 keeps, by hand") {
  const Workload w = Gemma31b(512);
  // Queries, keys and values; what their norms took; the context. Where keys
  // are values both norms took one tensor.
  const int64_t windowed =
      2 * (kWindowedQuery + 2 * kWindowedKey) + kWindowedQuery;
  const int64_t full =
      kFullQuery + 2 * kFullKey + kFullQuery + kFullKey + kFullQuery;
  CHECK(windowed == 40'960);
  CHECK(full == 55'296);
  CHECK(LayerActivationBytes(w, kSeesAllOfThem) -
            LayerActivationBytes(w, kWindowed) ==
        512 * 2 * (full - windowed));
  CHECK(KeptByBlocks(w) == 50 * LayerActivationBytes(w, kWindowed) +
                               10 * LayerActivationBytes(w, kSeesAllOfThem));
  CHECK(KeptByBlock(w, 5) == LayerActivationBytes(w, kSeesAllOfThem));
  CHECK(KeptByBlock(w, 6) == LayerActivationBytes(w, kWindowed));
  // Norms of single operations widen each for themselves.
  Workload eager = w;
  eager.stack.fusion = Fusion::kEager;
  Workload apart = eager;
  apart.architecture.keys_are_values = false;
  CHECK(LayerActivationBytes(eager, kSeesAllOfThem) ==
        LayerActivationBytes(apart, kSeesAllOfThem));
}

// PEFT 0.21 on each module of that name: 60 of keys, 50 of values.
TEST_CASE("adapters of Gemma 4 31B are as PEFT's") {
  Workload w = Gemma31b(64);
  w.trainable.lora_rank = 16;
  AddLoraMatrix("all", w.trainable.lora);
  NameAllMatrices(w.architecture, w.stack.fusion, w.trainable);
  const int64_t windowed =
      2 * (kWidth + kWindowedQuery) + 2 * (kWidth + kWindowedKey);
  const int64_t full = 2 * (kWidth + kFullQuery) + (kWidth + kFullKey);
  const int64_t inner = 3 * (kWidth + 21504);
  CHECK(AdapterParameters(w) == 16 * (50 * windowed + 10 * full + 60 * inner));
  CHECK(AdapterParameters(w) == 122'429'440);
  CHECK(AdapterTensorCount(w) == 2 * (50 * 7 + 10 * 6));
  CHECK(static_cast<int64_t>(TrainableTensorsOf(w).size()) ==
        AdapterTensorCount(w));
  int64_t listed = 0;
  for (const ParameterTensor& tensor : TrainableTensorsOf(w)) {
    listed += tensor.elements;
  }
  CHECK(listed == AdapterParameters(w));
  CHECK(SumsOf(w, "adapter up", Phase::kForward).launches == 50 * 7 + 10 * 6);
}

TEST_CASE("ranks of a layer divide attention of both shapes") {
  Workload w = Gemma31b(64);
  w.parallel.tensor = 8;
  const Architecture a = OfStage(w, 0).architecture;
  CHECK(a.heads == 4);
  CHECK(a.key_heads() == 2);
  const Architecture full = WithFullAttention(a);
  // Each of the 4 heads of keys is on two ranks.
  CHECK(full.key_heads() == 1);
  CHECK(full.query_width() == 4 * 512);
  CHECK(full.value_projection_width() == 0);
  w.parallel.tensor = 3;
  CHECK(RefusalOf(w).find("parallel.tensor: expected a divisor of the 32 "
                          "heads, got 3") == 0);
  w.parallel.tensor = 1;
  w.parallel.context = 2;
  const Workload part = OfStage(w, 0);
  CHECK(ContextMessagesOf(w, part).keys ==
        Byte(32.0 * 2 * ((50 * 2 * kWindowedKey + 10 * 2 * kFullKey) / 60)));
}

TEST_CASE("stages of a pipeline have the blocks that are theirs") {
  Workload w = Gemma31b(64);
  w.parallel.pipeline = 4;
  w.parallel.stages = StageCut::kBlocks;
  int64_t windowed = 0;
  int64_t matrices = 0;
  for (int64_t stage = 0; stage < 4; ++stage) {
    const Architecture a = OfStage(w, stage).architecture;
    CHECK(a.layers == 15);
    windowed += a.windowed_layers;
    matrices += BlockMatrixElements(a);
  }
  CHECK(windowed == kWindowedBlocks);
  CHECK(matrices == BlockMatrixElements(w.architecture));
  // One block a stage: the sixth alone sees all.
  w.parallel.pipeline = 60;
  const Architecture sixth = OfStage(w, 5).architecture;
  CHECK(sixth.windowed_layers == 0);
  CHECK(sixth.query_width() == kFullQuery);
  CHECK(sixth.shares_keys());
  CHECK(OfStage(w, 6).architecture.query_width() == kWindowedQuery);
}

TEST_CASE("sharded blocks of two shapes are all of the model") {
  Workload w = Gemma31b(64);
  w.parallel.data = 8;
  w.parallel.shard = Shard::kFsdp;
  const ShardUnits units = ShardUnitsOf(w);
  // Five and one, ten times.
  REQUIRE(units.blocks.size() == 20);
  CHECK(units.blocks[0].count == 5);
  CHECK(units.blocks[0].unit.elements == 478'959'104);
  CHECK(units.blocks[1].count == 1);
  CHECK(units.blocks[1].unit.elements == 534'009'856);
  CHECK(units.root.elements == 262'144LL * kWidth + kWidth);
}

// 26B-A4B: a feed-forward of 2112 beside 128 experts of 704, each with norms.
TEST_CASE("experts with norms of their own, by hand") {
  const Architecture& a = FindArchitecture("gemma-4-26b-a4b");
  constexpr int64_t kHidden26 = 2816;
  const int64_t inner = 3 * kHidden26 * (2112 + 128 * 704) + kHidden26 * 128 +
                        kHidden26 + 128 + 3 * kHidden26;
  const int64_t windowed =
      kHidden26 * 2 * (16 + 8) * 256 + 2 * 256 + 4 * kHidden26;
  const int64_t full = kHidden26 * (2 * 16 + 2) * 512 + 2 * 512 + 4 * kHidden26;
  CHECK(TotalParameters(a) == 25 * windowed + 5 * full + 30 * inner +
                                  262'144 * kHidden26 + kHidden26);
  CHECK(TotalParameters(a) == 25'233'141'760);
  const Workload w = Narrow("gemma-4-26b-a4b", 1, 64);
  // Of queries, keys and values, those of the block, and four more.
  CHECK(SumsOf(w, "rms norm", Phase::kForward).launches ==
        30 * (3 + 4 + 4) + 1);
  CHECK(SumsOf(w, "rms norm gradient", Phase::kBackward).launches ==
        30 * (3 + 4 + 4) + 1);
  Workload without = w;
  without.architecture.expert_norms = false;
  // Each norm took its rows, two of them those that the block's took; the
  // router's are its own.
  CHECK(LayerActivationBytes(w, true) - LayerActivationBytes(without, true) ==
        64 * (2 * kHidden26 * 2 + 4 * 8));
}

TEST_CASE("MiMo-V2-Flash has sinks and more keys in blocks with a window") {
  const Architecture& a = FindArchitecture("mimo-v2-flash");
  CHECK(OfName(a, "attention.self.sinks") == 39);
  const auto attention = [](int64_t keys) {
    return 4096LL * (64 * 192 + keys * (192 + 128) + 64 * 128);
  };
  const int64_t experts = 3LL * 4096 * 2048 * 256 + 4096 * 256;
  CHECK(TotalParameters(a) == 39 * (attention(8) + 64) + 9 * attention(4) +
                                  3LL * 4096 * 16384 + 47 * experts +
                                  48 * 2 * 4096 + 4096 + 2LL * 152'576 * 4096);
  CHECK(TotalParameters(a) == 308'778'768'832);
  const Architecture full = WithFullAttention(a);
  CHECK(full.key_heads() == 4);
  CHECK(full.context_head_size() == 128);
  CHECK_FALSE(full.attention_sinks);
}

TEST_CASE("attention of two shapes that is not counted is refused") {
  const auto refusal = [](std::string_view preset, auto change) {
    Workload w = Narrow(preset, 1, 64);
    change(w.architecture);
    return RefusalOf(w);
  };
  CHECK(refusal("gemma-4-31b", [](Architecture&) {}).empty());
  CHECK(refusal("gemma-4-31b",
                [](Architecture& a) { a.full_key_value_heads = 3; }) ==
        "model.full_key_value_heads: expected a divisor of heads = 32, got 3");
  CHECK(refusal("gemma-4-31b",
                [](Architecture& a) { a.windowed_layers = a.layers; }) ==
        "model.full_head_size: expected 0 unless some blocks have a window and "
        "others none");
  CHECK(refusal("gemma-4-31b",
                [](Architecture& a) { a.next_token_blocks = 1; }) ==
        "model.next_token_blocks: expected 0 beside attention of two shapes");
  CHECK(
      refusal("gemma-4-31b", [](Architecture& a) { a.unrotated_layers = 1; }) ==
      "model.unrotated_layers: expected 0 beside attention of two shapes");
  CHECK(refusal("gemma-4-31b",
                [](Architecture& a) { a.windowed_sinks = true; }) ==
        "model.windowed_sinks: expected attention_sinks beside it, got none");
  CHECK(refusal("mimo-v2-flash",
                [](Architecture& a) { a.keys_are_values = true; }) ==
        "model.keys_are_values: expected values as wide as keys beside "
        "it");
  CHECK(refusal("deepseek-v3", [](Architecture& a) { a.value_norm = true; }) ==
        "model.value_norm: expected none but in a decoder of plain "
        "attention, without latent_key_value, clipped_projections and "
        "other blocks");
  CHECK(
      refusal("llama-3.1-8b", [](Architecture& a) { a.expert_norms = true; }) ==
      "model.expert_norms: expected false in a model without experts, "
      "got true");
  CHECK(refusal("qwen3-30b-a3b",
                [](Architecture& a) { a.expert_norms = true; }) ==
        "model.expert_norms: expected false, or shared_intermediate and "
        "no expert_latent beside it, got true");
  // FlashAttention takes heads of 256 and no wider ones.
  Workload wide = Narrow("gemma-4-31b", 1, 64);
  wide.stack.attention = Attention::kFlash2;
  CHECK(RefusalOf(wide) ==
        "attention: expected flash or materialised of heads of 512, got "
        "flash_2, which takes up to 256; hint: flash");
  wide.architecture.full_head_size = 0;
  CHECK(RefusalOf(wide).empty());
  Workload split = Narrow("gemma-4-26b-a4b", 1, 64);
  split.parallel.tensor = 2;
  CHECK(RefusalOf(split).find(
            "parallel.tensor: expected 1 of a model with expert_norms, which "
            "take sums that are not counted, got 2") == 0);
}

}  // namespace trainfare::model
