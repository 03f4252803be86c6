#include "model/decoder_presets.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "model/activations.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/memory.h"
#include "model/presets.h"
#include "model/sharding.h"
#include "model/stack_rules.h"
#include "model/trainable.h"
#include "model/transients.h"
#include "model/validate.h"

namespace trainfare::model {
namespace {

int64_t BytesOf(const KernelList& list, Phase phase) {
  const PhaseCounts counts = list.Counts(phase);
  return counts.bytes_read + counts.bytes_written;
}

Workload Llama8b(int64_t batch, int64_t length) {
  Workload w;
  w.architecture = FindArchitecture("llama-3.1-8b");
  w.batch = batch;
  w.sequence_length = length;
  w.precision = Precision::kBf16;
  w.stack.narrow_weights = true;
  w.stack.attention = Attention::kFlash;
  w.stack.fusion = Fusion::kLiger;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  return w;
}

#include "tests/model/parameter_counts.inc"

TEST_CASE("parameters of the presets") {
  for (const auto& [preset, parameters] : kParameterCounts) {
    const std::string_view name = preset;
    CAPTURE(name);
    CHECK(TotalParameters(FindArchitecture(name)) == parameters);
  }
}

// By hand, docs/models/llm.md: a block has 4096 x 128 x (2 x 32 + 2 x 8) =
// 41,943,040 weights of attention and 3 x 4096 x 14336 = 176,160,768 of the
// feed-forward; 32 of them, and logits of 4096 x 128256 = 525,336,576.
constexpr int64_t kMatrices = 32 * (41'943'040LL + 176'160'768) + 525'336'576;

TEST_CASE("the FLOPs of Llama 3.1 8B by hand") {
  CHECK(2 * kMatrices == 15'009'316'864);  // a token
  const int64_t s = 2048;
  const Workload w = Llama8b(1, s);
  // Causal: each query sees itself and what is before it.
  const int64_t pairs = s * (s + 1) / 2;
  const int64_t core = 32LL * 32 * pairs * 2 * (128 + 128);
  const KernelList list = ExpandKernels(w);
  // The chunked loss makes the logits' two gradients with them.
  const int64_t logits = 2 * s * 525'336'576LL;
  CHECK(list.Counts(Phase::kForward).matrix_flops ==
        2 * s * kMatrices + core + 2 * logits);
  // Flash computes scores anew: five products instead of two.
  CHECK(list.Counts(Phase::kBackward).matrix_flops ==
        4 * s * (kMatrices - 525'336'576) + core / 2 * 5);
  // Model FLOPs count all pairs, as PaLM's rule does.
  const int64_t all = 32LL * 32 * s * s * 2 * (128 + 128);
  CHECK(ForwardModelFlops(w) == 2 * s * kMatrices + all);
  // Megatron-LM's rule: the pairs that causal attention sees.
  CHECK(ForwardModelFlops(w, CountedPairs::kSeen) == s * 15'546'449'920);
  CHECK(MicroBatchModelFlops(w, CountedPairs::kSeen) ==
        3 * ForwardModelFlops(w, CountedPairs::kSeen));
  // Adapters alone: gradients pass all of attention, and scores that flash
  // computes anew do not count.
  Workload adapters = w;
  adapters.trainable.lora_rank = 16;
  adapters.trainable.lora.query = adapters.trainable.lora.value = true;
  CHECK(MicroBatchModelFlops(adapters) -
            MicroBatchModelFlops(adapters, CountedPairs::kSeen) ==
        3 * (all - core));
}

TEST_CASE("rules of model FLOPs differ where masks hide pairs alone") {
  Workload bert;
  bert.architecture = FindArchitecture("bert-base-uncased");
  bert.sequence_length = 128;
  CHECK(ForwardModelFlops(bert) ==
        ForwardModelFlops(bert, CountedPairs::kSeen));
}

TEST_CASE("a window and experts by hand") {
  Workload w = Llama8b(1, 10);
  w.architecture.layers = 2;
  w.architecture.window = 4;
  w.architecture.windowed_layers = 1;
  const auto core = [&](const Workload& of) {
    int64_t flops = 0;
    const KernelList list = ExpandKernels(of);
    for (const Segment& segment : list.segments) {
      if (segment.phase != Phase::kForward) continue;
      for (int64_t i = segment.begin; i < segment.end; ++i) {
        const Kernel& kernel = list.kernels[static_cast<size_t>(i)];
        if (kernel.name == "flash attention") {
          flops += segment.repeat * kernel.matrix_flops;
        }
      }
    }
    return flops;
  };
  // 4 x 5 / 2 + 6 x 4 = 34 pairs beside 55.
  CHECK(core(w) == 32LL * (34 + 55) * 2 * 256);

  // Mixtral: 46.7 B parameters.
  const Architecture mixtral = FindArchitecture("mixtral-8x7b");
  CHECK(TotalParameters(mixtral) == 46'702'792'704);
  Workload m = Llama8b(1, 16);
  m.architecture = mixtral;
  // 16 tokens to 2 experts each: 32 rows, 4 of each of the 8.
  int64_t rows = 0;
  for (const Kernel& kernel : ExpandKernels(m).kernels) {
    if (kernel.name != "expert in") continue;
    CHECK(kernel.gemm.m == 4);
    CHECK(kernel.launches == 8);
    rows += kernel.gemm.m * kernel.launches;
  }
  CHECK(rows == 32);
}

// By hand, docs/models/llm.md: a loop of 8 experts over 2 of them a token.
TEST_CASE("launches of experts by how a stack runs them") {
  const auto launches = [](Fusion fusion, Phase phase, int64_t experts) {
    Workload w = Llama8b(1, 64);
    w.architecture = FindArchitecture("mixtral-8x7b");
    w.architecture.experts = experts;
    w.architecture.layers = 1;
    w.stack.fusion = fusion;
    return ExpandKernels(w).Counts(phase).launches;
  };
  // One expert more adds: where, rows, three products, activation and product,
  // weights of the rows, their product and sum.
  const auto of_one = [&](Fusion fusion, Phase phase) {
    return launches(fusion, phase, 9) - launches(fusion, phase, 8);
  };
  CHECK(of_one(Fusion::kEager, Phase::kForward) == 5 + 1 + 3 + 2 + 3);
  // Rows of the gradient, two products and a sum, the weights' index; six
  // products, three of the gate and one sum; zeros, an index, a sum.
  CHECK(of_one(Fusion::kEager, Phase::kBackward) ==
        4 + 10 + 6 + 3 + 1 + 1 + 10 + 1);
  // Liger's gate is one kernel, in both passes.
  CHECK(of_one(Fusion::kLiger, Phase::kForward) == 13);
  CHECK(of_one(Fusion::kLiger, Phase::kBackward) == 34);
  // Rows side by side: products and gate alone.
  CHECK(of_one(Fusion::kFused, Phase::kForward) == 4);
  CHECK(of_one(Fusion::kFused, Phase::kBackward) == 8);
  for (const Fusion fusion : {Fusion::kCompiled, Fusion::kGraphs}) {
    CHECK(of_one(fusion, Phase::kForward) == 0);
    CHECK(of_one(fusion, Phase::kBackward) == 0);
  }
}

// A block of Mixtral under an eager stack, its experts as another runs them.
Workload RunAs(ExpertKernels experts, int64_t count = 8) {
  Workload w = Llama8b(1, 64);
  w.architecture = FindArchitecture("mixtral-8x7b");
  w.architecture.experts = count;
  w.architecture.layers = 1;
  w.stack.fusion = Fusion::kEager;
  w.stack.experts = experts;
  return w;
}
int64_t LaunchesOf(const Workload& w, Phase phase) {
  return ExpandKernels(w).Counts(phase).launches;
}

// By hand, docs/models/llm.md: grouped_mm_experts_forward() of Transformers 5.
TEST_CASE("grouped experts of an eager stack") {
  using enum ExpertKernels;
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    CHECK(LaunchesOf(RunAs(kGrouped, 9), phase) ==
          LaunchesOf(RunAs(kGrouped), phase));
    CHECK(LaunchesOf(RunAs(kLoop), phase) ==
          LaunchesOf(RunAs(kOfStack), phase));
  }
  // The loop: a mask of all pairs (2), zeros, 14 and 36 an expert. Grouped: rows
  // numbered (2), ordered there and back (20), experts and weights in this order
  // (2), where they begin (4); two copies; three products, two of the gate;
  // weights, back in order, sums.
  CHECK(LaunchesOf(RunAs(kLoop), Phase::kForward) -
            LaunchesOf(RunAs(kGrouped), Phase::kForward) ==
        (3 + 8 * 14) - (28 + 2 + 5 + 3));
  // Rows laid back (11), both gradients of a product and its sum, the weights'
  // (10); six products, three of the gate, a sum; rows laid back twice.
  CHECK(LaunchesOf(RunAs(kLoop), Phase::kBackward) -
            LaunchesOf(RunAs(kGrouped), Phase::kBackward) ==
        8 * 36 - (11 + 3 + 10 + 10 + 22));
  // Each of 128 rows of 4096 in bf16 is read and written by both copies, the
  // weights and the order back, and read once more; sums are of 64 tokens.
  int64_t bytes = 0;
  for (const Kernel& kernel : ExpandKernels(RunAs(kGrouped)).kernels) {
    const std::string_view name = kernel.name.text();
    if (name == "permute tokens" || name == "unpermute tokens") {
      bytes += kernel.bytes() * kernel.launches;
    }
  }
  CHECK(bytes == (9 * 128 + 64) * 4096 * 2);
  // What is kept and stands meanwhile is as a graph's of grouped products; a loop
  // keeps 128 weighted rows besides, which it adds to the sum.
  CHECK(LayerActivationBytes(RunAs(kGrouped), true) + 128 * 4096 * 2 ==
        LayerActivationBytes(RunAs(kLoop), true));
  Workload graph = RunAs(kOfStack);
  graph.stack.fusion = Fusion::kCompiled;
  CHECK(BlockGradientBytes(RunAs(kGrouped), true) ==
        BlockGradientBytes(graph, true));
}

TEST_CASE("experts asked for as the stack has them are the same kernels") {
  for (const Word<Fusion>& stack : kWords<Fusion>.words) {
    CAPTURE(stack.text);
    Workload w = RunAs(ExpertKernels::kOfStack);
    w.stack.fusion = stack.value;
    const KernelList before = ExpandKernels(w);
    w.stack.experts = RulesOf(w).experts;
    CHECK_NOTHROW(Validate(w));
    CHECK(ExpandKernels(w).kernels.size() == before.kernels.size());
    for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
      CHECK(BytesOf(ExpandKernels(w), phase) == BytesOf(before, phase));
    }
  }
}

// By hand, docs/models/llm.md: DeepSeekV2MoE.forward() of its own code, and
// XTuner's DeepseekV2MoEShard.
TEST_CASE("experts that mask their rows out of all") {
  using enum ExpertKernels;
  const auto of_one = [](ExpertKernels experts, Phase phase) {
    return LaunchesOf(RunAs(experts, 9), phase) -
           LaunchesOf(RunAs(experts), phase);
  };
  // A mask and where it holds, twice; rows there and back, products, the gate.
  CHECK(of_one(kMaskedLoop, Phase::kForward) == 2 * (1 + 5 + 1) + 3 + 2);
  // A copy of all gradients, zeros and rows of it, each with where; six products,
  // three of the gate, a sum; where, rows laid back and all that was before.
  CHECK(of_one(kMaskedLoop, Phase::kBackward) ==
        1 + 2 * (5 + 1) + 10 + 5 + 11 + 1);
  // Gradients of three matrices laid into a shard's.
  CHECK(of_one(kShardLoop, Phase::kForward) ==
        of_one(kMaskedLoop, Phase::kForward));
  CHECK(of_one(kShardLoop, Phase::kBackward) ==
        of_one(kMaskedLoop, Phase::kBackward) + 3 * 3);
  // 128 rows of 4096 in bf16 on both sides, and zeros.
  CHECK(BlockGradientBytes(RunAs(kMaskedLoop), true) -
            BlockGradientBytes(RunAs(kLoop), true) ==
        3 * 128 * 4096 * 2);
}

TEST_CASE("experts are asked for in models that have them") {
  const auto message = [](const Workload& w) {
    try {
      Validate(w);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  Workload w = RunAs(ExpertKernels::kGrouped);
  CHECK(message(w).empty());
  w.stack.fusion = Fusion::kGraphs;
  CHECK(message(w).empty());
  w.stack.experts = ExpertKernels::kLoop;
  CHECK(message(w) ==
        "experts: expected grouped or split in stack graphs, whose shapes are "
        "fixed, got loop");
  w = Llama8b(1, 16);
  w.stack.experts = ExpertKernels::kGrouped;
  CHECK(message(w) ==
        "experts: expected of_stack in a model without experts, got grouped; "
        "hint: model.experts");
}

// 4096 tokens to 2 of Mixtral's 8 experts: 1024 rows of each. Of one at a time
// two gradients of 14336 a row stand in bf16.
TEST_CASE("the busiest expert's rows stand at once") {
  Workload w = Llama8b(1, 4096);
  w.architecture = FindArchitecture("mixtral-8x7b");
  w.stack.fusion = Fusion::kLiger;
  const auto made = [&](double load_factor) {
    w.load_factor = load_factor;
    CHECK_NOTHROW(Validate(w));
    return BlockGradientBytes(w, /*experts=*/true);
  };
  CHECK(made(1) == 2LL * 1024 * 14'336 * 2);
  CHECK(made(1) == 58'720'256);
  CHECK(made(1.5) == 2LL * 1536 * 14'336 * 2);
  CHECK(made(4) == 2LL * 4096 * 14'336 * 2);  // each token's first choice
  // All experts are here: what is computed, kept and grouped is as much.
  const Workload uneven = w;
  w.load_factor = 1;
  CHECK(LayerActivationBytes(uneven, true) == LayerActivationBytes(w, true));
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    CHECK(BytesOf(ExpandKernels(uneven), phase) ==
          BytesOf(ExpandKernels(w), phase));
  }
  w.stack.fusion = Fusion::kCompiled;
  CHECK(made(4) == made(1));
}

TEST_CASE("a load factor is of experts and between even and all") {
  const auto message = [](const char* model, double load_factor) {
    Workload w = Llama8b(1, 16);
    w.architecture = FindArchitecture(model);
    w.load_factor = load_factor;
    try {
      Validate(w);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message("mixtral-8x7b", 4).empty());
  CHECK(message("mixtral-8x7b", 5) ==
        "load_factor: expected 1 to 4, where one of 8 experts gets all tokens "
        "that go to 2 each, got 5");
  CHECK(message("mixtral-8x7b", 0.5).ends_with("got 0.5"));
  CHECK(message("mixtral-8x7b", std::nan("")).ends_with("got nan"));
  CHECK(message("llama-3.1-8b", 2) ==
        "load_factor: expected 1 in a model without experts, got 2; hint: "
        "model.experts");
}

// By hand, docs/models/llm.md: DeepSeek-V3's module has 11.6 B parameters
// besides the tables that it shares ("11.5B unique" in README_WEIGHTS.md).
TEST_CASE("a block that predicts one token further") {
  Architecture v3 = FindArchitecture("deepseek-v3");
  const int64_t main_model = TotalParameters(v3);
  v3.next_token_blocks = 1;
  const int64_t attention = 187'105'280 + 2'048;
  const int64_t experts = 257LL * 3 * 7168 * 2048 + 7168LL * 256;
  const int64_t joined = 2LL * 7168 * 7168 + 5LL * 7168;
  CHECK(TotalParameters(v3) - main_model == attention + experts + joined);
  CHECK(TotalParameters(v3) - main_model == 11'610'067'968);

  // Of Llama: a block, the product of both inputs, logits once more.
  const int64_t s = 2048;
  Workload w = Llama8b(1, s);
  const KernelList before = ExpandKernels(w);
  const double memory = ToBytes(EstimateMemory(w, {}).total());
  w.architecture.next_token_blocks = 1;
  CHECK_NOTHROW(Validate(w));
  const KernelList after = ExpandKernels(w);
  const auto added = [&](Phase phase) {
    return after.Counts(phase).matrix_flops - before.Counts(phase).matrix_flops;
  };
  const int64_t matrices = 41'943'040LL + 176'160'768 + 2 * 4096 * 4096;
  const int64_t core = 32LL * s * (s + 1) / 2 * 2 * (128 + 128);
  const int64_t logits = 2 * s * 525'336'576LL;
  CHECK(added(Phase::kForward) == 2 * s * matrices + core + 3 * logits);
  CHECK(added(Phase::kBackward) == 4 * s * matrices + core / 2 * 5);
  CHECK(ToBytes(EstimateMemory(w, {}).total()) > memory);
  // Its unit of a sharded model is its own.
  const ShardUnits units = ShardUnitsOf(w);
  REQUIRE(units.blocks.size() == 2);
  CHECK(units.blocks.back().count == 1);
  CHECK(units.blocks.back().unit.elements ==
        218'112'000 + 2LL * 4096 * 4096 + 3 * 4096);
  CHECK(units.root.elements == 1'050'677'248);
}

// Korthikanti et al. 2022: 5 q s / h of 34 + 5 q s / h bytes go, and the core
// runs once more.
TEST_CASE("attention's core computed again by itself") {
  Workload w = Llama8b(1, 512);
  w.architecture = FindArchitecture("gpt2");
  w.stack.attention = Attention::kMaterialised;
  w.stack.fusion = Fusion::kLightSeq;
  const int64_t kept = LayerActivationBytes(w);
  const KernelList before = ExpandKernels(w);
  w.attention_checkpointing = true;
  CHECK_NOTHROW(Validate(w));
  const int64_t scores = 12LL * 512 * 512;
  CHECK(kept - LayerActivationBytes(w) == 5 * scores);
  const KernelList after = ExpandKernels(w);
  CHECK(after.Counts(Phase::kBackward).matrix_flops -
            before.Counts(Phase::kBackward).matrix_flops ==
        12 * 2 * 2 * scores * 64);
  CHECK(after.Counts(Phase::kForward).matrix_flops ==
        before.Counts(Phase::kForward).matrix_flops);
  // Under flash attention there is next to nothing to gain.
  w.stack.attention = Attention::kFlash;
  const int64_t without = LayerActivationBytes(w);
  w.attention_checkpointing = false;
  CHECK(LayerActivationBytes(w) - without == 12 * 512 * 4);
}

// torchtitan's "selective op": of seven products of a block those of keys, the
// output and the feed-forward's input run again, attention's core does not.
TEST_CASE("every second operation computed again, by hand") {
  Workload w = Llama8b(1, 512);
  const KernelList before = ExpandKernels(w);
  w.operation_checkpointing = true;
  CHECK_NOTHROW(Validate(w));
  const KernelList after = ExpandKernels(w);
  CHECK(after.Counts(Phase::kBackward).matrix_flops -
            before.Counts(Phase::kBackward).matrix_flops ==
        32 * 512 * 159'383'552LL);
  CHECK(after.Counts(Phase::kForward).matrix_flops ==
        before.Counts(Phase::kForward).matrix_flops);
  // The block's input, queries, values, gate and output, attention's result
  // and a number a row of it.
  CHECK(LayerActivationBytes(w) ==
        512 * (2 * (4096 + 4096 + 1024 + 14336 + 4096 + 4096) + 4 * 32));
  w.gradient_checkpointing = true;
  CHECK_THROWS_AS(Validate(w), InputError);
  w.checkpointed_blocks = 16;
  CHECK_NOTHROW(Validate(w));
}

// FLOPs a token that run again of a workload's blocks, and bytes a token that
// its uppermost keeps.
struct SelectiveCounts {
  double flops;
  int64_t kept;
};
SelectiveCounts SelectiveOf(Workload w) {
  const auto backward = [&] {
    return ExpandKernels(w).Counts(Phase::kBackward).matrix_flops;
  };
  const int64_t tokens = w.tokens();
  const int64_t before = backward();
  w.operation_checkpointing = true;
  CHECK_NOTHROW(Validate(w));
  const bool experts = w.architecture.expert_layers() > 0;
  return {
      static_cast<double>(backward() - before) / static_cast<double>(tokens),
      LayerActivationBytes(w, experts) / tokens};
}

// Grouped products of experts run again, as does the router's, which is not
// counted: keys and the output, 4096 x (1024 + 4096), the router, and two
// experts. The block's input, queries, values, context and its sums are kept.
TEST_CASE("every second operation of experts, by hand") {
  Workload w = Llama8b(1, 512);
  w.architecture = FindArchitecture("mixtral-8x7b");
  w.architecture.layers = 1;
  w.stack.experts = ExpertKernels::kGrouped;
  const SelectiveCounts grouped = SelectiveOf(w);
  CHECK(grouped.flops ==
        2 * (4096.0 * (1024 + 4096 + 8) + 2 * 3 * 4096.0 * 14'336));
  CHECK(grouped.kept == 2 * (4096 + 4096 + 1024 + 4096) + 4 * 32);
  // Of experts in turn, 128 rows each, three products behind the fourth: the
  // first's gate and last, the second's input, and so on: half of 2 rows a token.
  w.stack.experts = ExpertKernels::kSplit;
  const SelectiveCounts turns = SelectiveOf(w);
  CHECK(turns.flops == 2 * (4096.0 * (1024 + 4096 + 8) + 3 * 4096.0 * 14'336));
  CHECK(turns.kept == grouped.kept + 2 * (14'336 + 14'336 + 4096));
}

// DeepSeek-V2-Lite: queries, the latent's upper product, which makes keys and
// values, and then gate and output of what all tokens share are kept.
TEST_CASE("every second operation of latent attention, by hand") {
  Workload w = Llama8b(1, 512);
  w.architecture = FindArchitecture("deepseek-v2-lite");
  w.architecture.layers = 1;
  w.architecture.dense_layers = 0;
  w.stack.experts = ExpertKernels::kGrouped;
  const SelectiveCounts counts = SelectiveOf(w);
  CHECK(counts.kept ==
        2 * (2048 + 16 * 192 + 16 * (128 + 128) + 16 * 128 + 2816 + 2048) +
            4 * 16);
  CHECK(counts.flops ==
        2 * (2048.0 * (512 + 64) + 16 * 128 * 2048.0 + 2048 * 64.0 +
             6 * 3 * 2048.0 * 1408 + 2048 * 2816.0));
}

// Three products of an adapted matrix, itself, A and B, run one after another.
// Of 8B with rank 16 on queries and values, the queries' own and B, the values'
// own and B, gate and the last are kept.
TEST_CASE("every second operation beside adapters, by hand") {
  Workload w = Llama8b(1, 512);
  w.architecture.layers = 1;
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = w.trainable.lora.value = true;
  const SelectiveCounts counts = SelectiveOf(w);
  CHECK(counts.kept ==
        2 * (4096 + 4096 + 4096 + 1024 + 1024 + 14'336 + 4096 + 4096) + 4 * 32);
  CHECK(counts.flops == 2 * (16 * 4096.0 + 4096 * 1024.0 + 16 * 4096.0 +
                             4096 * 4096.0 + 4096 * 14'336.0));
  // What is at work has all that it keeps otherwise.
  Workload whole = w;
  w.operation_checkpointing = true;
  CHECK(Activations(w).anew + LayerActivationBytes(w) ==
        LayerActivationBytes(whole));
}

TEST_CASE("operations computed again where nobody says which") {
  Workload w = Llama8b(1, 512);
  w.operation_checkpointing = true;
  w.architecture.next_token_blocks = 1;
  CHECK_THROWS_WITH_AS(Validate(w),
                       "operation_checkpointing: expected false with "
                       "next-token blocks, got true; hint: "
                       "gradient_checkpointing",
                       InputError);
}

// flash-attn's cross entropy reads and writes logits of two bytes; eager
// operations widen and copy them.
TEST_CASE("a loss of its own kernels") {
  Workload w = Llama8b(1, 512);
  w.stack.fusion = Fusion::kEager;
  const auto bytes = [&](LossKernels loss) {
    w.stack.loss = loss;
    const KernelList list = ExpandKernels(w);
    return BytesOf(list, Phase::kForward) + BytesOf(list, Phase::kBackward);
  };
  CHECK(bytes(LossKernels::kPlain) == bytes(LossKernels::kOfStack));
  const int64_t logits = 512LL * 128'256;
  // Widened (2 + 4), log-softmax (4 + 4); zeros (4), the gradient (8 + 4), its
  // cast (4 + 2); against a pass over them (2) and their replacement (2 + 2).
  const int64_t rows = bytes(LossKernels::kPlain) - bytes(LossKernels::kFused) -
                       logits * (36 - 6);
  CHECK(rows >= 0);
  CHECK(rows < 512 * 64);
  w.trainable.lora_rank = 8;  // the update is not the peak then
  w.trainable.lora.query = true;
  w.stack.loss = LossKernels::kFused;
  const double fused = EstimateMemory(w, {}).Of("logits").base();
  CHECK(fused == 2.0 * static_cast<double>(logits));
  // Behind the casts of eager models: (2 + 4), (4); (4 + 4), (4 + 2).
  CHECK(bytes(LossKernels::kFusedWidened) - bytes(LossKernels::kFused) ==
        logits * (24 - 6));
  w.stack.loss = LossKernels::kFusedWidened;
  CHECK(EstimateMemory(w, {}).Of("logits").base() ==
        8.0 * static_cast<double>(logits));
  // Eager: log-probabilities, their gradient and the logits'; in place without
  // the one in the middle. The same behind compiled blocks.
  for (const Fusion fusion : {Fusion::kEager, Fusion::kCompiled}) {
    w.stack.fusion = fusion;
    w.stack.loss = LossKernels::kPlain;
    CHECK(EstimateMemory(w, {}).Of("logits").base() ==
          12.0 * static_cast<double>(logits));
    w.stack.loss = LossKernels::kInPlace;
    CHECK(EstimateMemory(w, {}).Of("logits").base() ==
          8.0 * static_cast<double>(logits));
  }
  w.stack.fusion = Fusion::kEager;
  CHECK(bytes(LossKernels::kInPlace) == bytes(LossKernels::kPlain));
  // The same kernels without a copy: 2 stay until 4 are the gradient.
  const int64_t copied = bytes(LossKernels::kFusedWidened);
  CHECK(bytes(LossKernels::kFusedCast) == copied);
  CHECK(EstimateMemory(w, {}).Of("logits").base() ==
        6.0 * static_cast<double>(logits));
  // Also of a model that would not widen them.
  w.architecture.narrow_logits = true;
  CHECK(bytes(LossKernels::kFusedCast) == copied);
  CHECK(EstimateMemory(w, {}).Of("logits").base() ==
        6.0 * static_cast<double>(logits));
}

// PEFT: what query's and value's adapters take is widened and narrowed, forward
// and of its gradient.
TEST_CASE("adapters in fp32 cast what they take, by hand") {
  Workload w = Llama8b(1, 128);
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = w.trainable.lora.value = true;
  const KernelList narrow = ExpandKernels(w);
  const int64_t kept = LayerActivationBytes(w);
  w.trainable.wide_adapters = true;
  const KernelList wide = ExpandKernels(w);
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    CHECK(BytesOf(wide, phase) - BytesOf(narrow, phase) ==
          32 * 2 * (6 + 6) * 128 * 4096LL);
  }
  // Each keeps a copy of its own, narrowed again, in place of what both share.
  CHECK(LayerActivationBytes(w) - kept == (2 - 1) * 128 * 4096 * 2);
}

TEST_CASE("state of 8 bits and Lion's, by hand") {
  Workload w = Llama8b(1, 128);
  w.optimizer.implementation = OptimizerImplementation::kFused;
  const auto parameters = static_cast<double>(TotalParameters(w.architecture));
  const auto state = [&] {
    return EstimateMemory(w, {}).Of("optimizer state").base() / parameters;
  };
  const auto update = [&] {
    return static_cast<double>(BytesOf(ExpandKernels(w), Phase::kOptimizer)) /
           parameters;
  };
  CHECK(state() == doctest::Approx(8));
  const double whole = update();
  w.optimizer.state_bits = 8;
  CHECK_NOTHROW(Validate(w));
  // Two numbers of a byte, and 4 bytes for 256; read and written.
  CHECK(state() == doctest::Approx(2 * (1 + 4.0 / 256)));
  CHECK(whole - update() ==
        doctest::Approx(2 * (8 - 2 * (1 + 4.0 / 256))).epsilon(1e-4));
  w.optimizer.state_bits = 16;
  CHECK_NOTHROW(Validate(w));
  CHECK(state() == doctest::Approx(4));
  CHECK(whole - update() == doctest::Approx(2 * 4).epsilon(1e-4));
  w.optimizer.implementation = OptimizerImplementation::kForLoop;
  CHECK_THROWS_WITH_AS(Validate(w),
                       "optimizer.state_bits: expected 0 or 8 beside "
                       "implementation for_loop, got 16; hint: fused",
                       InputError);
  w.optimizer.implementation = OptimizerImplementation::kFused;
  w.optimizer.state_bits = 4;
  CHECK_THROWS_AS(Validate(w), InputError);
  w.optimizer.state_bits = 0;
  w.optimizer.kind = OptimizerKind::kLion;
  CHECK(state() == doctest::Approx(4));
  // Parameters and momentum read and written, gradients read: a number more
  // each way than AdamW has not.
  CHECK(whole - update() == doctest::Approx(2 * 4).epsilon(1e-4));
}

// s b [8 h + 4 d (q + g) + 6 i] + 4 s b q bytes, and 16 a row and norm pair of
// statistics: inputs and outputs of two norms, heads, gate, up and product.
TEST_CASE("what a block of Llama keeps, by hand") {
  const Workload w = Llama8b(2, 512);
  const int64_t tokens = 2 * 512;
  CHECK(LayerActivationBytes(w) ==
        tokens * (8 * 4096 + 4 * 128 * (32 + 8) + 6 * 14336) + 4 * tokens * 32 +
            16 * tokens);
}

TEST_CASE("adapters of Llama 3.1 8B by hand") {
  Workload w = Llama8b(1, 128);
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = w.trainable.lora.value = true;
  // 16 (4096 + 4096) of queries, 16 (4096 + 1024) of values, 32 blocks.
  CHECK(AdapterParameters(w) == 6'815'744);
  CHECK(TrainableParameters(w) == 6'815'744);
  // Frozen products have no weight gradient.
  for (const Kernel& kernel : ExpandKernels(w).kernels) {
    CHECK(kernel.name.text() != "weight gradient");
  }
  // 4 bits and 4 bytes a group of 64: 36 bytes. Twice quantised, 256 groups:
  // 8192 bytes, a byte a group, and 4.
  Trainable once;
  once.base_bits = 4;
  once.double_quantised = false;
  CHECK(QuantisedBytes(64, once) == 36);
  once.double_quantised = true;
  CHECK(QuantisedBytes(16'384, once) == 8192 + 256 + 4);
  const double whole = ToBytes(EstimateMemory(w, {}).Of("parameters"));
  w.trainable.base_bits = 4;
  const double packed = ToBytes(EstimateMemory(w, {}).Of("parameters"));
  const double block = 32.0 * (41'943'040 + 176'160'768);
  CHECK(whole - packed == block * (2.0 - 8452.0 / 16'384));
  bool widened = false;
  for (const Kernel& kernel : ExpandKernels(w).kernels) {
    widened = widened || kernel.name == "dequantise weights";
  }
  CHECK(widened);
}

// Llama 3.1's tables are untied: 128,256 x 4096 each, copied, and trained.
TEST_CASE("embeddings that train beside adapters, by hand") {
  Workload w = Llama8b(1, 128);
  w.stack.narrow_weights = true;
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = w.trainable.lora.value = true;
  const Workload frozen = w;
  w.trainable.embeddings_beside_adapters = true;
  const int64_t table = int64_t{128'256} * 4096;
  CHECK(EmbeddingCopies(frozen) == 0);
  CHECK(EmbeddingCopies(w) == 2 * table);
  CHECK(TrainableParameters(w) == 6'815'744 + 2 * table);
  CHECK(TrainableTensorCount(w) == TrainableTensorCount(frozen) + 2);
  const std::vector<ParameterTensor> tensors = TrainableTensorsOf(w);
  CHECK(static_cast<int64_t>(tensors.size()) == TrainableTensorCount(w));
  CHECK(tensors.front().elements == table);
  CHECK(tensors.back().elements == table);
  // The logits' product has a weight gradient: 2 FLOPs a token and weight.
  CHECK(StepModelFlops(w) - StepModelFlops(frozen) == 2 * 128 * table);
  const MemoryEstimate before = EstimateMemory(frozen, {});
  const MemoryEstimate after = EstimateMemory(w, {});
  CHECK(ToBytes(after.Of("parameters") - before.Of("parameters")) ==
        doctest::Approx(4.0 * table));
  const auto count = [](const Workload& of, std::string_view name) {
    int64_t kernels = 0;
    for (const Kernel& kernel : ExpandKernels(of).kernels) {
      if (kernel.name.text() == name) ++kernels;
    }
    return kernels;
  };
  CHECK(count(w, "table gradient") == count(frozen, "table gradient") + 1);
  CHECK(count(w, "weight gradient") == count(frozen, "weight gradient") + 1);
  CHECK(count(w, "tied gradient add") == 0);
  // The peak is at the update, with the gradients of all that trains.
  CHECK(ToBytes(after.Of("gradients")) ==
        doctest::Approx(2.0 * (2 * table + 6'815'744)));
  const ShardUnits units = ShardUnitsOf(w);
  const ShardUnits frozen_units = ShardUnitsOf(frozen);
  CHECK(units.root.trained == frozen_units.root.trained + 2 * table);
  CHECK(units.root.elements == frozen_units.root.elements + 2 * table);
  CHECK(units.blocks.front().unit.trained ==
        frozen_units.blocks.front().unit.trained);
  // Of a tied table both gradients are one.
  w.architecture.untied_output = false;
  CHECK(EmbeddingCopies(w) == table);
  CHECK(count(w, "tied gradient add") == 1);
  CHECK(static_cast<int64_t>(TrainableTensorsOf(w).size()) ==
        TrainableTensorCount(w));
}

// A weight of 4 bits read as a word of 8, written as one of its own; narrowed 4
// + 1, masked 1 + 1, less its zero 1 + 1, times its scale 1 + 2: 16.5 bytes. A
// zero of 128 weights: 0.5 + 4, 4 + 1, 1 + 1, 1 + 1: 13.5.
TEST_CASE("a base widened by operations, by hand") {
  Workload w = Llama8b(1, 128);
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = w.trainable.lora.value = true;
  w.trainable.base_bits = 4;
  w.trainable.base_by_operations = true;
  const double block = 41'943'040 + 176'160'768;
  double bytes = 0;
  int64_t kernels = 0;
  const KernelList list = ExpandKernels(w);
  for (const Segment& segment : list.segments) {
    for (int64_t i = segment.begin; i < segment.end; ++i) {
      const Kernel& kernel = list.kernels[static_cast<size_t>(i)];
      if (kernel.name != "dequantise weights") continue;
      bytes += static_cast<double>(kernel.bytes() * segment.repeat);
      kernels += segment.repeat;
    }
  }
  // Of seven matrices a block; backward has what the forward pass kept.
  CHECK(bytes == 32 * block * (16.5 + 13.5 / 128));
  CHECK(kernels == 32 * 7 * 9);
  CHECK(WidenedMatrixBytes(w) == 0);
  CHECK(WidenedBlockBytes(w) == static_cast<int64_t>(2 * block));

  // Every block keeps its own; of blocks computed again one has it.
  const auto activations = [](const Workload& of) {
    const ActivationBytes kept = Activations(of);
    return kept.kept + kept.anew;
  };
  Workload again = w;
  again.gradient_checkpointing = true;
  Workload kernel = w;
  kernel.trainable.base_by_operations = false;
  CHECK(activations(w) - activations(kernel) == 32 * WidenedBlockBytes(w));
  kernel.gradient_checkpointing = true;
  CHECK(activations(again) - activations(kernel) == WidenedBlockBytes(w));
}

TEST_CASE("a stack is a row: what it fuses decides its launches") {
  for (const StackRules& rules : kStackRules) {
    CHECK(FromText<Fusion>(ToText(rules.fusion)) == rules.fusion);
  }
  for (const Fusion fusion : {Fusion::kEager,
                              Fusion::kFairseq,
                              Fusion::kFused,
                              Fusion::kLightSeq,
                              Fusion::kCompiled,
                              Fusion::kLiger}) {
    CHECK(RulesOf(fusion).fusion == fusion);
  }
  Workload w = Llama8b(1, 64);
  const auto launches = [&](KernelName name) {
    int64_t count = 0;
    for (const Kernel& kernel : ExpandKernels(w).kernels) {
      if (kernel.name == name) ++count;
    }
    return count;
  };
  // Two norms of the block and the last one.
  CHECK(launches("rms norm") == 3);
  CHECK(launches("rotary positions") == 1);
  CHECK(launches("vocabulary logits") == 0);
  w.stack.fusion = Fusion::kEager;
  // In bf16, narrow throughout: with casts to fp32 and back.
  CHECK(launches("rms norm") == 3 * 8);
  CHECK(launches("rms norm gradient") == 3 * 15);
  CHECK(launches("rms norm weight gradient") == 3);
  CHECK(launches("rotary positions") == 2 * 5);
  CHECK(launches("rotary gradient") == 2 * 9);
  CHECK(launches("repeated head gradients") == 2);
  CHECK(launches("cast activation") == 0);
  CHECK(launches("vocabulary logits") == 1);
  // Autocast: fp32 between the products, and what the six products of a block
  // and that of the logits read is narrowed; so are rotated queries and keys.
  w.stack.narrow_weights = false;
  CHECK(launches("rms norm") == 3 * 6);
  CHECK(launches("rms norm gradient") == 3 * 13);
  CHECK(launches("cast activation") == 3 + 2 + 2 + 1);
  for (const Kernel& kernel : ExpandKernels(w).kernels) {
    // The last addition of the rotation, of 64 tokens.
    const bool rotated = kernel.name == "rotary positions";
    if (rotated) CHECK(kernel.bytes_written >= 64 * 128 * 8);
  }
}

TEST_CASE("every preset has kernels, memory and a valid block") {
  for (const Architecture& a : DecoderPresets()) {
    CAPTURE(a.name);
    Workload w = Llama8b(1, 64);
    w.architecture = a;
    CHECK_NOTHROW(Validate(w));
    CHECK(ExpandKernels(w).Counts(Phase::kBackward).matrix_flops > 0);
    CHECK(EstimateMemory(w, {}).total().base() > 0);
    for (const Fusion fusion : {Fusion::kEager, Fusion::kCompiled}) {
      w.stack.fusion = fusion;
      CHECK(ExpandKernels(w).Counts(Phase::kForward).launches > 0);
    }
  }
}

TEST_CASE("blocks whose parts do not go together") {
  const auto message = [](auto change) {
    Workload w = Llama8b(1, 64);
    change(w);
    try {
      Validate(w);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message([](Workload& w) { w.architecture.key_value_heads = 5; }) ==
        "model.key_value_heads: expected a divisor of heads = 32, got 5");
  CHECK(message([](Workload& w) {
          w.architecture.window = 200'000;
          w.architecture.windowed_layers = 1;
        }) ==
        "model.window: expected at most 131072, the positions of llama-3.1-8b, "
        "got 200000");
  CHECK(message([](Workload& w) { w.trainable.base_bits = 4; }) ==
        "trainable.lora.base_bits: expected 4 or 8 beside adapters, got 4");
  CHECK(message([](Workload& w) {
          w.trainable.embeddings_beside_adapters = true;
        }) ==
        "trainable.lora.embeddings: expected false but beside adapters of a "
        "causal language model whose embeddings have no norm or projection, "
        "got true");
  CHECK(message([](Workload& w) { w.trainable.base_by_operations = true; }) ==
        "trainable.lora.base_by_operations: expected false but over base_bits "
        "that products do not take as they are, without experts or a second "
        "side, got true");
  CHECK(message([](Workload& w) {
          w.architecture = FindArchitecture("gpt2");
          w.trainable.lora_rank = 4;
          w.trainable.lora.feed_forward_gate = true;
        }) ==
        "trainable.lora.matrices: expected a gated feed-forward for "
        "feed_forward_gate");
  CHECK(message([](Workload& w) {
          w.architecture.next_token_blocks = 1;
          w.trainable.lora_rank = 4;
          w.trainable.lora.query = true;
        }) == "model.next_token_blocks: expected 0 beside adapters, got 1");
  CHECK(message([](Workload& w) {
          w.architecture.next_token_blocks = 1;
          w.architecture.head = Head::kSequenceClassification;
        }) ==
        "model.next_token_blocks: expected 0, or a decoder that predicts "
        "tokens, got 1 in a decoder for sequence-classification");
  CHECK(message([](Workload& w) {
          w.gradient_checkpointing = w.attention_checkpointing = true;
        }).starts_with("attention_checkpointing: expected false where"));
}

}  // namespace
}  // namespace trainfare::model
