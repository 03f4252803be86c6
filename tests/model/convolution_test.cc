// Short convolutions between two gates in the place of attention (LFM2).
// docs/models/convolutions.md works the numbers.

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

// LFM2 1.2B: 10 of 16 blocks are convolutions over 3 tokens.
constexpr int64_t kLfmHidden = 2048;
constexpr int64_t kLfmInner = 8192;
constexpr int64_t kLfmBlocks = 10;
constexpr int64_t kLfmTokens = 128;
constexpr int64_t kLfmElements = kLfmTokens * kLfmHidden;

constexpr BlockParts kConvolution{Mixer::kConvolution, FeedForwardKind::kDense};
constexpr BlockParts kConvolutionAlone{Mixer::kConvolution,
                                       FeedForwardKind::kNone};

Workload OfLfm2() { return Narrow("lfm2-1.2b", 1, kLfmTokens); }

KernelSums LfmBlockSums(const Workload& w, KernelName name, Phase phase) {
  KernelSums sums = SumsOf(w, name, phase);
  sums.matrix_flops /= kLfmBlocks;
  sums.bytes /= kLfmBlocks;
  sums.launches /= kLfmBlocks;
  return sums;
}

}  // namespace

TEST_CASE("parameters of LFM2 1.2B, by hand") {
  const int64_t convolution = kLfmHidden * 3 * kLfmHidden + 3 * kLfmHidden +
                              kLfmHidden * kLfmHidden + kLfmHidden;
  CHECK(convolution == 16'785'408);
  const int64_t attention = kLfmHidden * (kLfmHidden + 2 * 512) +
                            kLfmHidden * kLfmHidden + 2 * 64 + kLfmHidden;
  CHECK(attention == 10'487'936);
  const int64_t feed_forward = 3 * kLfmHidden * kLfmInner + kLfmHidden;
  CHECK(feed_forward == 50'333'696);
  const int64_t table = 65'536 * kLfmHidden + kLfmHidden;
  const Architecture& a = FindArchitecture("lfm2-1.2b");
  CHECK(TotalParameters(a) ==
        10 * convolution + 6 * attention + 16 * feed_forward + table);
  CHECK(TotalParameters(a) == 1'170'340'608);
}

// Blocks without experts are the lowest, whichever mixes tokens there.
TEST_CASE("convolutions and experts stand among a model's blocks") {
  const Architecture& a = FindArchitecture("lfm2-8b-a1b");
  CHECK(a.attention_layers() == 6);
  CHECK(a.expert_layers() == 22);
  int64_t attends = 0;
  int64_t count = 0;
  for (int64_t block = 0; block < a.layers; ++block) {
    const BlockParts parts = a.parts_of(block);
    CHECK(parts.experts() == (block >= 2));
    if (parts.mixer == Mixer::kAttention) ++attends;
  }
  CHECK(attends == 6);
  for (const BlocksAlike& sort : BlocksByParts(a, 0, a.layers)) {
    int64_t alike = 0;
    for (int64_t block = 0; block < a.layers; ++block) {
      if (a.parts_of(block) == sort.parts) ++alike;
    }
    CHECK(sort.count == alike);
    count += sort.count;
  }
  CHECK(count == a.layers);
  CHECK(BlocksByParts(a, 0, 1).front().parts == kConvolution);
}

// Of a token and channel a filter of three multiplies and adds 6 FLOPs, and 12
// going back; gates are a product each.
TEST_CASE("kernels of a short convolution, by hand") {
  using enum Phase;
  Workload w = OfLfm2();
  CHECK(
      LfmBlockSums(w, "convolution input projection", kForward).matrix_flops ==
      2 * kLfmElements * 3 * kLfmHidden);
  CHECK(
      LfmBlockSums(w, "convolution output projection", kForward).matrix_flops ==
      2 * kLfmElements * kLfmHidden);
  const KernelSums filters = LfmBlockSums(w, "causal convolution", kForward);
  CHECK(filters.bytes == kLfmElements * (2 + 2));
  CHECK(filters.launches == 1);
  const KernelSums gates = LfmBlockSums(w, "convolution gate", kForward);
  CHECK(gates.bytes == 2 * kLfmElements * (2 + 2 + 2));
  CHECK(gates.launches == 2);
  for (const Kernel& kernel : ExpandKernels(w).kernels) {
    if (kernel.name == "causal convolution") {
      CHECK(kernel.vector_flops == 6 * kLfmElements);
      CHECK(kernel.special_ops == 0);
    }
    if (kernel.name == "causal convolution gradient") {
      CHECK(kernel.vector_flops == 12 * kLfmElements);
      CHECK(kernel.special_ops == 0);
    }
  }
  CHECK(LfmBlockSums(w, "causal convolution gradient", kBackward).bytes ==
        kLfmElements * (4 + 2));
  // By operations a product for each of both factors of both gates.
  const KernelSums back =
      LfmBlockSums(w, "convolution gate gradient", kBackward);
  CHECK(back.bytes == 4 * kLfmElements * (4 + 2));
  CHECK(back.launches == 4);
  w.stack.fusion = Fusion::kMegatron;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  const KernelSums fused =
      LfmBlockSums(w, "convolution gate gradient", kBackward);
  CHECK(fused.bytes == 2 * kLfmElements * (6 + 4));
  CHECK(fused.launches == 2);
}

// In bf16: what the norm gave, three of the product, what the filters took and
// gave, and that behind the gate.
TEST_CASE("what a short convolution keeps and makes, by hand") {
  Workload w = OfLfm2();
  const int64_t feed_forward = LayerActivationBytes(
      w, BlockParts{Mixer::kNone, FeedForwardKind::kDense});
  const int64_t of_token = 7 * 2 * kLfmHidden + 2 * kLfmHidden + 8;
  CHECK(of_token == 32'776);
  CHECK(LayerActivationBytes(w, kConvolution) ==
        kLfmTokens * 32'776 + feed_forward);
  CHECK(KeptByBlock(w, 0) == LayerActivationBytes(w, kConvolution));
  CHECK(BlockGradientBytes(w, kConvolutionAlone) == kLfmElements * 6 * 2);
  w.gradient_checkpointing = true;
  CHECK(KeptByBlocks(w) == 16 * kLfmElements * 2);
}

// A rank of 4 has 512 channels.
TEST_CASE("ranks divide the channels of short convolutions") {
  Workload w = OfLfm2();
  w.stack.fusion = Fusion::kMegatron;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  w.parallel.tensor = 4;
  CHECK(RefusalOf(w).empty());
  const Workload rank = OfStage(w, 0);
  CHECK(rank.architecture.convolution_width() == kLfmHidden / 4);
  CHECK(SumsOf(rank, "convolution input projection", Phase::kForward)
            .matrix_flops ==
        kLfmBlocks * 2 * kLfmElements * 3 * kLfmHidden / 4);
  const TensorMessages messages = TensorMessagesOf(w, rank);
  CHECK(messages.forward == 32 + 1);
  w.architecture.convolution_channels = 2046;
  CHECK(RefusalOf(w) ==
        "parallel.tensor: expected a divisor of the 2046 channels of "
        "convolutions, got 4");
}

TEST_CASE("stages of LFM2 8B-A1B have all of its blocks") {
  Workload w = Narrow("lfm2-8b-a1b", 1, kLfmTokens);
  w.parallel.pipeline = 4;
  w.accumulation = 4;
  CHECK(RefusalOf(w).empty());
  int64_t convolutions = 0;
  int64_t experts = 0;
  for (int64_t stage = 0; stage < 4; ++stage) {
    const Architecture a = OfStage(w, stage).architecture;
    convolutions += a.convolution_layers;
    experts += a.expert_layers();
  }
  CHECK(convolutions == 18);
  CHECK(experts == 22);
}

TEST_CASE("units of shards are blocks by what mixes and widens") {
  Workload w = Narrow("lfm2-8b-a1b", 1, kLfmTokens);
  w.parallel.shard = Shard::kFsdp;
  w.parallel.data = 8;
  const ShardUnits units = ShardUnitsOf(w);
  int64_t blocks = 0;
  int64_t elements = units.root.elements;
  for (const ShardedBlocks& alike : units.blocks) {
    blocks += alike.count;
    elements += alike.count * alike.unit.elements;
  }
  CHECK(blocks == 24);
  CHECK(elements == 8'339'929'856);
  CHECK(units.root.elements == 65'536LL * kLfmHidden + kLfmHidden);
  CHECK(units.blocks.front().unit.elements ==
        16'785'408 + 3 * kLfmHidden * 7168 + kLfmHidden);
}

// docs/models/convolutions.md, "Adapters"; PEFT 0.21 counts as many of in_proj,
// of both names and of all-linear.
TEST_CASE("adapters beside short convolutions, by hand") {
  const auto count = [](std::initializer_list<std::string_view> modules) {
    Workload w = OfLfm2();
    w.trainable.lora_rank = 16;
    for (const std::string_view module : modules) {
      AddLoraMatrix(module, w.trainable.lora);
    }
    NameUsualMatrices(w.architecture, w.trainable);
    NameAllMatrices(w.architecture, Fusion::kEager, w.trainable);
    CHECK(RefusalOf(w).empty());
    int64_t listed = 0;
    for (const ParameterTensor& tensor : TrainableTensorsOf(w)) {
      listed += tensor.elements;
    }
    CHECK(listed == TrainableParameters(w));
    return TrainableParameters(w);
  };
  const int64_t in = 10 * 16 * (kLfmHidden + 3 * kLfmHidden);
  const int64_t out = 10 * 16 * (kLfmHidden + kLfmHidden);
  const int64_t output = 6 * 16 * (kLfmHidden + kLfmHidden);
  CHECK(in + out == 1'966'080);
  CHECK(count({"in_proj"}) == in);
  // Attention's last product is called the same.
  CHECK(count({"in_proj", "out_proj"}) == in + out + output);
  CHECK(count({"convolution_out"}) == out);
  const int64_t attention =
      6 * 16 * (2 * (kLfmHidden + kLfmHidden) + 2 * (kLfmHidden + 512));
  const int64_t feed_forward = 16 * 3 * 16 * (kLfmHidden + kLfmInner);
  CHECK(count({"in_proj",
               "out_proj",
               "q_proj",
               "k_proj",
               "v_proj",
               "w1",
               "w2",
               "w3"}) == in + out + attention + feed_forward);
  CHECK(count({"all-linear"}) == in + out + attention + feed_forward);
  CHECK(in + out + attention + feed_forward == 11'108'352);
}

TEST_CASE("what short convolutions are not counted beside") {
  const auto refusal = [](auto&& change) {
    Workload w = OfLfm2();
    change(w);
    return RefusalOf(w);
  };
  CHECK(refusal([](Workload& w) { w.parallel.context = 2; }) ==
        "parallel.context: expected 1 of a model with convolution_layers, got "
        "2");
  CHECK(refusal([](Workload& w) { w.trainable.frozen_layers = 2; }) ==
        "trainable.frozen_layers: expected none with model.convolution_layers, "
        "where it is not counted");
  CHECK(refusal([](Workload& w) {
          w.architecture.window = 8;
          w.architecture.windowed_layers = 2;
        }) == "model.convolution_layers: expected 0 beside windowed_layers");
  CHECK(refusal([](Workload& w) {
          w.architecture.delta_rule_layers = 2;
          w.architecture.delta_key_heads = 2;
          w.architecture.delta_value_heads = 2;
          w.architecture.delta_key_size = 8;
          w.architecture.delta_value_size = 8;
        }) == "model.convolution_layers: expected 0 beside delta_rule_layers");
  CHECK(refusal([](Workload& w) { w.architecture.convolution_layers = 17; }) ==
        "model.convolution_layers: expected a count of at most 16, got 17");
  CHECK(refusal([](Workload& w) {
          w.trainable.lora_rank = 8;
          w.trainable.lora.delta_rule_in = true;
        }).ends_with("beside short convolutions, got delta_rule_in"));
}

}  // namespace trainfare::model
