// Gates of attention's result by a product of their own (AFMoE); those that
// come with the queries are in tests/model/delta_rule_test.cc.
// docs/models/llm.md works the numbers.

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/activations.h"
#include "model/architecture.h"
#include "model/kernels.h"
#include "model/presets.h"
#include "model/split.h"
#include "model/trainable.h"
#include "tests/model/decoder_workloads.h"
#include "tests/model/refusal.h"
#include "tests/model/step_kernels.h"

namespace trainfare::model {
namespace {

// Trinity Mini: 32 heads of 128.
constexpr int64_t kTrinityHidden = 2048;
constexpr int64_t kTrinityContext = 4096;
constexpr int64_t kTrinityBlocks = 32;
constexpr int64_t kTrinityTokens = 128;
constexpr int64_t kTrinityGates =
    kTrinityBlocks * kTrinityTokens * kTrinityContext;

Workload OfTrinity() { return Narrow("trinity-mini", 1, kTrinityTokens); }

}  // namespace

TEST_CASE("parameters of Trinity Mini, by hand") {
  const int64_t attention = kTrinityHidden * (3 * kTrinityContext + 2 * 512) +
                            2 * 128 + 4 * kTrinityHidden;
  CHECK(attention == 27'271'424);
  const int64_t experts =
      129LL * 3 * kTrinityHidden * 1024 + 128 * kTrinityHidden;
  CHECK(experts == 811'859'968);
  const int64_t dense = 3LL * kTrinityHidden * 6144;
  CHECK(dense == 37'748'736);
  const int64_t tables = 2LL * 200'192 * kTrinityHidden + kTrinityHidden;
  const Architecture& a = FindArchitecture("trinity-mini");
  CHECK(TotalParameters(a) ==
        32 * attention + 30 * experts + 2 * dense + tables);
  CHECK(TotalParameters(a) == 26'123'970'560);
}

TEST_CASE("a gate's product of its own, by hand") {
  using enum Phase;
  Workload w = OfTrinity();
  CHECK(SumsOf(w, "query projection", kForward).matrix_flops ==
        2 * kTrinityGates * kTrinityHidden);
  CHECK(SumsOf(w, "attention gate projection", kForward).matrix_flops ==
        2 * kTrinityGates * kTrinityHidden);
  // By operations the sigmoid and the product, and back two products and the
  // sigmoid's; nothing is laid out anew.
  CHECK(SumsOf(w, "attention gate", kForward).bytes == kTrinityGates * (4 + 6));
  CHECK(SumsOf(w, "attention gate gradient", kBackward).bytes ==
        kTrinityGates * (2 * 6 + 6));
  const BlockParts block = TransformerBlock(/*experts=*/true);
  const auto kept = [&](bool narrow_weights, bool gated) {
    Workload of = w;
    of.stack.narrow_weights = narrow_weights;
    of.architecture.gated_attention = gated;
    of.architecture.separate_attention_gate = gated;
    return LayerActivationBytes(of, block);
  };
  // The gate and what it made; under autocast a copy of its product's input,
  // too.
  CHECK(kept(true, true) - kept(true, false) ==
        kTrinityTokens * 2 * kTrinityContext * 2);
  CHECK(kept(false, true) - kept(false, false) ==
        kTrinityTokens * (2 * kTrinityContext + kTrinityHidden) * 2);
  w.stack.fusion = Fusion::kMegatron;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  CHECK(SumsOf(w, "attention gate projection", kForward).matrix_flops ==
        2 * kTrinityGates * kTrinityHidden);
  CHECK(SumsOf(w, "attention gate", kForward).bytes == kTrinityGates * 6);
  CHECK(SumsOf(w, "attention gate gradient", kBackward).bytes ==
        kTrinityGates * (6 + 4));
  w.parallel.tensor = 4;
  CHECK(RefusalOf(w).empty());
  CHECK(OfStage(w, 0).architecture.attention_gate_width() ==
        kTrinityContext / 4);
}

// PEFT adapts both by the name of one: gates of attention and feed-forwards.
TEST_CASE("gate_proj is what the model calls so") {
  const auto named = [](std::string_view preset, std::string_view module) {
    Workload w = Narrow(preset, 1, kTrinityTokens);
    w.trainable.lora_rank = 16;
    AddLoraMatrix(module, w.trainable.lora);
    NameUsualMatrices(w.architecture, w.trainable);
    return w;
  };
  using Words = std::vector<std::string>;
  CHECK(ToWords(named("trinity-mini", "gate_proj").trainable.lora) ==
        Words{"attention_gate", "feed_forward_gate"});
  CHECK(ToWords(named("llama-3.1-8b", "gate_proj").trainable.lora) ==
        Words{"feed_forward_gate"});
  const Workload gate = named("trinity-mini", "attention_gate");
  CHECK(TrainableParameters(gate) ==
        kTrinityBlocks * 16 * (kTrinityHidden + kTrinityContext));
  CHECK(RefusalOf(gate).empty());
  CHECK(RefusalOf(named("qwen3.5-0.8b", "attention_gate"))
            .ends_with(", got attention_gate"));
}

TEST_CASE("a separate gate is of gated attention") {
  Workload w = OfTrinity();
  w.architecture.gated_attention = false;
  CHECK(RefusalOf(w) ==
        "model.separate_attention_gate: expected gated_attention beside it, "
        "got false");
}

}  // namespace trainfare::model
