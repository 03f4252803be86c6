#include "model/decoder_presets.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
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
#include "tests/model/decoder_workloads.h"
#include "tests/model/step_kernels.h"

namespace trainfare::model {
namespace {

#include "tests/model/parameter_counts.inc"
#include "tests/model/parameter_counts_5.inc"
#include "tests/near.h"

TEST_CASE("parameters of the presets") {
  using Counts = std::span<const std::pair<std::string_view, int64_t>>;
  for (const Counts counts :
       {Counts(kParameterCounts), Counts(kParameterCountsOf5)}) {
    for (const auto& [preset, parameters] : counts) {
      const std::string_view name = preset;
      CAPTURE(name);
      CHECK(TotalParameters(FindArchitecture(name)) == parameters);
    }
  }
}

// By hand, docs/models/llm.md and docs/models/encoders.md.
TEST_CASE("MiniMax-M2, nanochat and Nomic Embed by hand") {
  const int64_t attention = 3072LL * 128 * (2 * 48 + 2 * 8);
  const int64_t norms = 6144 + 1024 + 2 * 3072;
  const int64_t experts = 256LL * 3 * 3072 * 1536 + 256LL * 3072;
  CHECK(attention == 44'040'192);
  CHECK(norms == 13'312);
  CHECK(experts == 3'624'665'088);
  const int64_t minimax =
      62 * (attention + norms + experts) + 2LL * 200'064 * 3072 + 3072;
  CHECK(minimax == 228'689'748'992);
  CHECK(TotalParameters(FindArchitecture("minimax-m2")) == minimax);
  const int64_t nanochat =
      20LL * (4 * 1280 * 1280 + 2 * 1280 * 5120) + 2LL * 65'536 * 1280;
  CHECK(nanochat == 560'988'160);
  CHECK(TotalParameters(FindArchitecture("nanochat-d20")) == nanochat);
  const int64_t h = 768;
  const int64_t tables = (30'528 + 2 + 2) * h;
  const int64_t block = 4 * h * h + 3 * h * 3072 + 4 * h;
  CHECK(tables == 23'448'576);
  CHECK(block == 9'440'256);
  const int64_t nomic = tables + 12 * block + 590'592 + 1'538;
  CHECK(nomic == 137'323'778);
  CHECK(TotalParameters(FindArchitecture("nomic-embed-text-v1.5")) == nomic);
}

// By hand, docs/models/llm.md: two numbers of 218,112,258 in a block are xIELU's.
TEST_CASE("Apertus 8B by hand") {
  const int64_t attention = 4096LL * (2 * 4096 + 2 * 1024) + 2 * 128;
  const int64_t feed_forward = 2LL * 4096 * 21504 + 2;
  const int64_t block = attention + feed_forward + 2 * 4096;
  CHECK(block == 218'112'258);
  const int64_t apertus = 32 * block + 2LL * 131'072 * 4096 + 4096;
  CHECK(apertus == 8'053'338'176);
  const Architecture& a = FindArchitecture("apertus-8b");
  CHECK(TotalParameters(a) == apertus);
  CHECK(BlockMatrixElements(a) == 32 * (block - 2 * 4096 - 2 * 128 - 2));
  Workload w = Llama8b(1, 16);
  w.architecture.activation = Activation::kXielu;
  CHECK_NOTHROW(Validate(w));
  w.architecture = FindArchitecture("mixtral-8x7b");
  w.architecture.activation = Activation::kXielu;
  CHECK_THROWS_WITH(Validate(w),
                    "model.activation: expected one without weights of its own "
                    "beside experts, got xielu");
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
  // Each of 32 chunks of 64 rows adds to the weights' gradient, read and
  // written, which zeros fill once: 1,050,673,152 bytes each.
  constexpr int64_t kTable = 525'336'576LL * 2;
  CHECK(SumsOf(w, "zero table gradient", Phase::kForward).bytes == kTable);
  CHECK(SumsOf(w, "weight gradient", Phase::kForward).bytes ==
        32 * (2 * kTable + 64 * (4096 + 128'256) * 2));
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

// Not of Transformers. Grok-1: a block has 6144 x 128 x (2 x 48 + 2 x 8) =
// 88,080,384 weights of attention, a router of 6144 x 8, 8 x 3 x 6144 x 32768 =
// 4,831,838,208 of experts and four norms; tables of 131072 x 6144 once. Its
// conversions that count them twice have 316,490,127,360. ChatGLM3-6B has
// 6,243,584,000 in its own card.
TEST_CASE("parameters of presets whose code is their own") {
  const Architecture grok = FindArchitecture("grok-1");
  const int64_t words = int64_t{131'072} * 6144;
  const int64_t block = 88'080'384 + 6144 * 8 + 4'831'838'208 + 4 * 6144;
  CHECK(TotalParameters(grok) == 64 * block + words + 6144);
  CHECK(TotalParameters(grok) + words == 316'490'127'360);
  CHECK(TotalParameters(FindArchitecture("chatglm3-6b")) == 6'243'584'000);
}

// Nemotron-4 15B: 3.1 B of embeddings and logits, 12.5 B of others (Parmar et
// al. 2024, table 1); a block has 6144 x 128 x (2 x 48 + 2 x 8) of attention
// and 2 x 6144 x 24576 of the feed-forward, without a gate.
TEST_CASE("a decoder with a square of ReLU by hand") {
  const Architecture a = FindArchitecture("nemotron4-15b");
  CHECK(a.rotary_head_size == 64);
  const int64_t block = 88'080'384 + int64_t{2} * 6144 * 24576;
  CHECK(BlockMatrixElements(a) == 32 * block);
  const int64_t norms = (int64_t{2} * 32 + 1) * 2 * 6144;
  const int64_t words = int64_t{2} * 256'000 * 6144;
  CHECK(TotalParameters(a) == 32 * block + norms + words);
  CHECK(words == 3'145'728'000);
  CHECK(TotalParameters(a) - words == 12'483'047'424);
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
  CHECK(state() == Near(8, 1e-5));
  const double whole = update();
  w.optimizer.state_bits = 8;
  CHECK_NOTHROW(Validate(w));
  // Two numbers of a byte, and 4 bytes for 256; read and written.
  CHECK(state() == Near(2 * (1 + 4.0 / 256), 1e-5));
  CHECK(whole - update() == Near(2 * (8 - 2 * (1 + 4.0 / 256)), 1e-4));
  w.optimizer.state_bits = 16;
  CHECK_NOTHROW(Validate(w));
  CHECK(state() == Near(4, 1e-5));
  CHECK(whole - update() == Near(2 * 4, 1e-4));
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
  CHECK(state() == Near(4, 1e-5));
  // Parameters and momentum read and written, gradients read: a number more
  // each way than AdamW has not.
  CHECK(whole - update() == Near(2 * 4, 1e-4));
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
        "that products do not take as they are, without experts, blocks that "
        "are no Transformer's or a second side, got true");
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
