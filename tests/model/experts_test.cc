// Experts of a mixture: what each way to run them launches and keeps, and how
// evenly tokens go to them.

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <string_view>

#include "model/activations.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/presets.h"
#include "model/stack_rules.h"
#include "model/transients.h"
#include "model/validate.h"
#include "tests/model/decoder_workloads.h"

namespace trainfare::model {
namespace {

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

}  // namespace
}  // namespace trainfare::model
