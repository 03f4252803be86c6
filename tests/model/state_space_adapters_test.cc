// Adapters beside the products of state spaces. docs/models/state_spaces.md
// works the numbers.

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "model/activations.h"
#include "model/architecture.h"
#include "model/kernels.h"
#include "model/presets.h"
#include "model/sharding.h"
#include "model/trainable.h"
#include "model/transients.h"
#include "tests/model/decoder_workloads.h"
#include "tests/model/refusal.h"
#include "tests/model/step_kernels.h"

namespace trainfare::model {
namespace {

constexpr int64_t kTokenWidth = 4096;
constexpr int64_t kScanWidth = 8192;
constexpr int64_t kInProjection = 18'560;
constexpr BlockParts kMambaAlone{Mixer::kStateSpace, FeedForwardKind::kNone};

// By names of modules, or all; of rank 16.
Workload AdaptedHybrid(std::string_view preset,
                       std::initializer_list<std::string_view> modules,
                       Fusion fusion = Fusion::kEager) {
  Workload w = Narrow(preset, 1, 256);
  w.stack.fusion = fusion;
  w.trainable.lora_rank = 16;
  for (const std::string_view module : modules) {
    AddLoraMatrix(module, w.trainable.lora);
  }
  NameUsualMatrices(w.architecture, w.trainable);
  NameAllMatrices(w.architecture, fusion, w.trainable);
  return w;
}

int64_t ListedAdapters(const Workload& w) {
  int64_t listed = 0;
  for (const ParameterTensor& tensor : TrainableTensorsOf(w)) {
    listed += tensor.elements;
  }
  return listed;
}

}  // namespace

// As PEFT 0.21.2 has them on Transformers 5.24's classes, with all-linear but
// out_proj, which it refuses of nemotron_h.
TEST_CASE("adapters beside state spaces are PEFT's") {
  const auto of = [](std::string_view preset,
                     std::initializer_list<std::string_view> modules) {
    const Workload w = AdaptedHybrid(preset, modules);
    CHECK(RefusalOf(w).empty());
    CHECK(ListedAdapters(w) == AdapterParameters(w));
    CHECK(static_cast<int64_t>(TrainableTensorsOf(w).size()) ==
          AdapterTensorCount(w));
    return AdapterParameters(w);
  };
  CHECK(of("nemotron-h-8b", {"in_proj", "q_proj", "v_proj"}) == 9'551'872);
  CHECK(of("nemotron-h-8b", {"all-linear"}) == 30'064'640);
  CHECK(of("granite-4.0-h-micro",
           {"in_proj", "q_proj", "k_proj", "v_proj", "o_proj"}) == 6'934'528);
  CHECK(of("granite-4.0-h-micro", {"all-linear"}) == 25'284'608);
  CHECK(of("granite-4.0-h-micro",
           {"in_proj",
            "q_proj",
            "k_proj",
            "v_proj",
            "o_proj",
            "input_linear",
            "output_linear"}) == 25'284'608);
  CHECK(of("bamba-9b", {"all-linear"}) == 39'270'400);
  CHECK(of("nemotron-3-super-120b-a12b",
           {"in_proj",
            "fc1_latent_proj",
            "fc2_latent_proj",
            "q_proj",
            "k_proj",
            "v_proj",
            "o_proj"}) == 24'264'704);
  // By hand, Nemotron-H 8B: 24 of in_proj, 4 of attention, 24 feed-forwards.
  CHECK(16 * (24 * (kTokenWidth + kInProjection) +
              4 * (4 * kTokenWidth + 2 * (kTokenWidth + 1024)) +
              24 * 2 * (kTokenWidth + 21'504)) ==
        30'064'640);
}

TEST_CASE("out_proj is what the model calls so") {
  const auto words = [](std::string_view preset, Fusion fusion) {
    return ToWords(AdaptedHybrid(preset, {"out_proj"}, fusion).trainable.lora);
  };
  using Words = std::vector<std::string>;
  CHECK(words("opt-125m", Fusion::kEager) == Words{"output"});
  CHECK(words("bamba-9b", Fusion::kMegatron) == Words{"state_space_out"});
  // Where its weight goes to the scan's kernel nothing runs an adapter.
  CHECK(RefusalOf(AdaptedHybrid("bamba-9b", {"out_proj"})) ==
        "trainable.lora.matrices: expected no state_space_out (out_proj) in "
        "stack eager, where the scan's kernel takes that weight and runs no "
        "adapter; hint: state_space_in, or stack megatron");
  const Workload library = AdaptedHybrid(
      "bamba-9b",
      {"in_proj", "out_proj", "gate_proj", "up_proj", "down_proj"},
      Fusion::kMegatron);
  CHECK(RefusalOf(library).empty());
  CHECK(AdapterParameters(library) == 43'694'080);
  // "all" are those that run.
  CHECK(AdaptedHybrid("bamba-9b", {"all"}, Fusion::kMegatron)
            .trainable.lora.state_space_out);
  CHECK(!AdaptedHybrid("bamba-9b", {"all"}).trainable.lora.state_space_out);
}

TEST_CASE("adapters stand beside what a model of state spaces has") {
  CHECK(RefusalOf(AdaptedHybrid("llama-3.1-8b", {"in_proj"})) ==
        "trainable.lora.matrices: expected some of query, key, value, output, "
        "feed_forward_gate, feed_forward_in, feed_forward_out without latent "
        "attention, got state_space_in");
  CHECK(RefusalOf(AdaptedHybrid("nemotron-h-8b", {"fc1_latent_proj"})) ==
        "trainable.lora.matrices: expected some of query, key, value, output, "
        "feed_forward_in, feed_forward_out, state_space_in, state_space_out "
        "beside state spaces, got expert_latent_in");
  // Where there is no attention those that none is named for begin each block.
  Workload mamba = Narrow("nemotron-h-8b", 1, 256);
  mamba.architecture.state_space_layers = mamba.architecture.layers;
  mamba.architecture.feed_forward_layers = 0;
  mamba.trainable.lora_rank = 8;
  NameUsualMatrices(mamba.architecture, mamba.trainable);
  CHECK(ToWords(mamba.trainable.lora) ==
        std::vector<std::string>{"state_space_in"});
  CHECK(RefusalOf(mamba).empty());
  CHECK(AdapterParameters(mamba) == 52 * 8 * (kTokenWidth + kInProjection));
}

// Of 24 blocks, 256 tokens: what an adapter computes, and that the first
// product's weight has no gradient, where the scan's kernel makes the last one's
// all the same.
TEST_CASE("FLOPs of frozen state spaces, by hand") {
  using enum Phase;
  const Workload w = AdaptedHybrid("nemotron-h-8b", {"in_proj"});
  const Workload q = AdaptedHybrid("nemotron-h-8b", {"q_proj"});
  const int64_t adapter = 2LL * 256 * 16 * (kTokenWidth + kInProjection);
  const int64_t of_query = 2LL * 256 * 16 * (kTokenWidth + kTokenWidth);
  const auto flops = [](const Workload& of, Phase phase) {
    return ExpandKernels(of).Counts(phase).matrix_flops;
  };
  CHECK(flops(w, kForward) - flops(q, kForward) == 24 * adapter - 4 * of_query);
  CHECK(flops(w, kBackward) - flops(q, kBackward) ==
        2 * (24 * adapter - 4 * of_query));
  CHECK(SumsOf(w, "weight gradient", kBackward).matrix_flops ==
        24 * 2LL * 256 * kScanWidth * kTokenWidth);
  // Layers of a library leave it out.
  const Workload library =
      AdaptedHybrid("nemotron-h-8b", {"in_proj"}, Fusion::kMegatron);
  CHECK(SumsOf(library, "weight gradient", kBackward).matrix_flops == 0);
}

// Mamba-2 alone.
TEST_CASE("MFU of adapters counts nothing that is made anew or unasked") {
  Workload w = AdaptedHybrid("nemotron-h-8b", {"in_proj"});
  w.architecture.state_space_layers = w.architecture.layers;
  w.architecture.feed_forward_layers = 0;
  w.work = Work::kForwardBackward;
  using enum Phase;
  const KernelList list = ExpandKernels(w);
  const int64_t made =
      list.Counts(kForward).matrix_flops + list.Counts(kBackward).matrix_flops;
  const int64_t states = 2LL * 256 * kScanWidth * 128;
  const int64_t scores = 2LL * 256 * 8 * 128 * 128;
  const int64_t unasked = 2LL * 256 * kScanWidth * kTokenWidth;
  CHECK(MicroBatchModelFlops(w) == made - 52 * (states + scores + unasked));
}

// In bf16, a token: without an adapter what its first product made, what the
// scan gave, a root a group and the norm before; with one what that took, and X
// A. PEFT's adapters in fp32 have a narrow copy in place of it.
TEST_CASE("what frozen state spaces keep, by hand") {
  const auto kept = [](Workload w) {
    w.stack.fusion = Fusion::kLiger;  // its norm is one kernel
    return LayerActivationBytes(w, kMambaAlone);
  };
  const int64_t frozen =
      256 * (2 * (kInProjection + kScanWidth) + 8 * 4 + 2 * kTokenWidth + 8);
  CHECK(kept(AdaptedHybrid("nemotron-h-8b", {"q_proj"})) == frozen);
  CHECK(kept(AdaptedHybrid("nemotron-h-8b", {"in_proj"})) ==
        frozen + 256 * 2 * (kTokenWidth + 16));
  // The library's norm keeps its input, its last product what an adapter takes.
  Workload w = AdaptedHybrid("nemotron-h-8b", {"in_proj"}, Fusion::kMegatron);
  const int64_t norm_alone = LayerActivationBytes(w, kMambaAlone);
  CHECK(norm_alone == frozen + 256 * 2 * (kTokenWidth + 16 + kScanWidth));
  w = AdaptedHybrid(
      "nemotron-h-8b", {"in_proj", "out_proj"}, Fusion::kMegatron);
  CHECK(LayerActivationBytes(w, kMambaAlone) ==
        norm_alone + 256 * 2 * (kScanWidth + 16));
}

TEST_CASE("the gradient that nobody asked for is there for a moment") {
  const Workload w = AdaptedHybrid("nemotron-h-8b", {"in_proj"});
  Workload all = w;
  all.trainable = {};
  CHECK(BlockGradientBytes(w, kMambaAlone) -
            BlockGradientBytes(all, kMambaAlone) ==
        2 * kScanWidth * kTokenWidth);
}

// bitsandbytes leaves out what the scan's kernel takes as it is.
TEST_CASE("the base in four bits is without last products") {
  Workload w = AdaptedHybrid("nemotron-h-8b", {"in_proj"});
  const int64_t all = BlockMatrixElements(w.architecture);
  CHECK(QuantisedElements(w) == 0);
  w.trainable.base_bits = 4;
  CHECK(RefusalOf(w).empty());
  CHECK(QuantisedElements(w) == all - 24 * kScanWidth * kTokenWidth);
  const auto widened = [](const Workload& of) {
    return SumsOf(of, "dequantise weights", Phase::kForward).launches;
  };
  // A product each of 24 state spaces, two of 24 feed-forwards, four of 4.
  CHECK(widened(w) == 24 + 2 * 24 + 4 * 4);
  w.stack.fusion = Fusion::kMegatron;
  CHECK(QuantisedElements(w) == all);
  // Its queries, keys and values are one product.
  CHECK(widened(w) == 2 * 24 + 2 * 24 + 2 * 4);
}

TEST_CASE("units of shards have the adapters of their blocks") {
  Workload w = AdaptedHybrid("nemotron-h-8b", {"all-linear"});
  w.parallel.shard = Shard::kFsdp;
  w.parallel.data = 8;
  const ShardUnits units = ShardUnitsOf(w);
  int64_t trained = units.root.trained;
  for (const ShardedBlocks& alike : units.blocks) {
    trained += alike.count * alike.unit.trained;
  }
  CHECK(trained == 30'064'640);
  CHECK(units.blocks.front().unit.trained ==
        16 * (kTokenWidth + kInProjection));
  CHECK(units.blocks.back().unit.trained == 16 * 2 * (kTokenWidth + 21'504));
}

}  // namespace trainfare::model
