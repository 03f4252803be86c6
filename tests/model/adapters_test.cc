// Adapters beside frozen matrices: what of them trains, runs and is kept.

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/activations.h"
#include "model/architecture.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/memory.h"
#include "model/presets.h"
#include "model/trainable.h"
#include "model/validate.h"
#include "tests/model/step_kernels.h"
#include "tests/model/trained_parts.h"

namespace trainfare::model {
namespace {

// Rank 8 beside query and value: 12 x 2 x 8 x (768 + 768) = 294,912, which is
// what Hugging Face PEFT prints for this model, and the classifier.
TEST_CASE("adapters train two thin matrices a matrix, and the classifier") {
  const Workload w = BertLora(8);
  CHECK(AdapterParameters(w) == 294'912);
  CHECK(TrainableParameters(w) == 294'912 + 1'538);
  CHECK(TrainableTensorCount(w) == 12 * 4 + 2);
  // A vocabulary head stays as it was trained.
  Workload decoder = w;
  decoder.architecture = FindArchitecture("gpt2");
  CHECK(TrainableParameters(decoder) == AdapterParameters(decoder));
}

// What Hugging Face PEFT prints of GPT-2 with target_modules c_attn and rank 8:
// one adapter of 768 to 2304 a block, 12 x 8 x (768 + 2304) = 294,912.
TEST_CASE("one adapter stands beside all that a joint matrix makes") {
  Workload w = BertLora(8);
  w.architecture = FindArchitecture("gpt2");
  w.trainable.lora = {};
  AddLoraMatrix("c_attn", w.trainable.lora);
  CHECK(AdapterParameters(w) == 294'912);
  CHECK(AdapterTensorCount(w) == 12 * 2);
  CHECK(TrainableTensorsOf(w).size() == 12 * 2);
  const auto up = [&] {
    const KernelSums sums = SumsOf(w, "adapter up", Phase::kForward);
    return std::pair(sums.launches, sums.matrix_flops);
  };
  const int64_t rows = w.batch * w.sequence_length;
  CHECK(up() == std::pair<int64_t, int64_t>(12, 12 * 2 * rows * 8 * 2304));
  // Beside some of its parts each has its own.
  w.trainable.lora.key = false;
  CHECK(AdapterParameters(w) == 12LL * 2 * 8 * (768 + 768));
  CHECK(up() == std::pair<int64_t, int64_t>(24, 24 * 2 * rows * 8 * 768));
}

// Phi-3 mini's gate_up_proj: 3072 to 2 x 8192, of 32 blocks, by rank 16.
TEST_CASE("one adapter stands beside a gate and what it gates") {
  Workload w = BertLora(16);
  w.architecture = FindArchitecture("phi-3-mini");
  w.architecture.joint_gate = true;
  w.trainable.lora = {};
  AddLoraMatrix("feed_forward_gate", w.trainable.lora);
  AddLoraMatrix("feed_forward_in", w.trainable.lora);
  CHECK(AdapterParameters(w) == 32LL * 16 * (3072 + 2 * 8192));
  CHECK(SumsOf(w, "adapter down", Phase::kForward).launches == 32);
}

TEST_CASE("adapters are no wider than the matrix beside them") {
  Workload w;
  w.architecture = FindArchitecture("llama-3.1-8b");
  w.trainable.lora_rank = 1024;
  w.trainable.lora.key = true;  // 4096 to 8 heads of 128
  CHECK_NOTHROW(Validate(w));
  w.trainable.lora_rank = 1025;
  CHECK_THROWS_WITH_AS(Validate(w),
                       "trainable.lora.rank: expected a count of at most 1024, "
                       "the smaller side of key (4096 x 1024), got 1025",
                       InputError);
  w.trainable.lora = {};
  w.trainable.lora.query = true;
  CHECK_NOTHROW(Validate(w));
}

// docs/models/llm.md, by hand: rank 16 beside the three matrices of the 8
// experts of 32 blocks, 16 (4096 + 14336) each.
TEST_CASE("each expert has adapters of its own") {
  Workload w = LoraOfExperts("mixtral-8x7b", 16);
  CHECK_NOTHROW(Validate(w));
  CHECK(AdapterParameters(w) == 32LL * 8 * 3 * 16 * (4096 + 14336));
  CHECK(AdapterParameters(w) == 226'492'416);
  CHECK(TrainableParameters(w) == 226'492'416);
  CHECK(TrainableTensorCount(w) == 32 * 8 * 3 * 2);
  // 26 of 27 blocks: 64 experts of 1408, and both shared ones of every token
  // together; the first block has a feed-forward of 10944.
  w = LoraOfExperts("deepseek-v2-lite", 16);
  CHECK(AdapterParameters(w) ==
        3LL * 16 *
            (26 * (64 * (2048 + 1408) + (2048 + 2816)) + (2048 + 10'944)));
  CHECK(TrainableTensorCount(w) == 2 * 3 * (26 * 65 + 1));
  w = LoraOfExperts("qwen3-30b-a3b", 769);
  CHECK_THROWS_WITH_AS(
      Validate(w),
      "trainable.lora.rank: expected a count of at most 768, the smaller side "
      "of feed_forward_gate (2048 x 768), got 769",
      InputError);
}

// A block of Mixtral, 128 tokens to 2 of 8 experts: 256 rows, 32 of each.
TEST_CASE("adapters run for the rows of the experts that are chosen") {
  Workload w = LoraOfExperts("mixtral-8x7b", 16);
  w.architecture.layers = 1;
  w.batch = 1;
  w.sequence_length = 128;
  w.precision = Precision::kBf16;
  Workload frozen = w;  // adapters elsewhere
  frozen.trainable.lora = {};
  frozen.trainable.lora.output = true;
  const int64_t elsewhere = 2LL * 128 * 16 * (4096 + 4096);
  const int64_t adapters = 3LL * 2 * 256 * 16 * (4096 + 14'336);
  const auto launches = [](const Workload& of, Phase phase) {
    return ExpandKernels(of).Counts(phase).launches;
  };
  // Down, up and their sum; back four products and a sum.
  for (const auto& row : {std::pair{Fusion::kEager, 8},
                          {Fusion::kFused, 8},
                          {Fusion::kCompiled, 1}}) {
    const auto [fusion, times] = row;
    CAPTURE(ToText(row.first));
    w.stack.fusion = frozen.stack.fusion = fusion;
    CHECK(MatrixFlops(w, Phase::kForward) -
              MatrixFlops(frozen, Phase::kForward) ==
          adapters - elsewhere);
    CHECK(MatrixFlops(w, Phase::kBackward) -
              MatrixFlops(frozen, Phase::kBackward) ==
          2 * (adapters - elsewhere));
    const int sums = fusion == Fusion::kCompiled ? 0 : 1;
    CHECK(launches(w, Phase::kForward) - launches(frozen, Phase::kForward) ==
          (3 * times - 1) * (2 + sums));
    CHECK(launches(w, Phase::kBackward) - launches(frozen, Phase::kBackward) ==
          (3 * times - 1) * (4 + sums));
  }
  for (const Kernel& kernel : ExpandKernels(w).kernels) {
    CHECK(kernel.name.text() != "expert weight gradient");
    if (kernel.name.text() != "adapter down") continue;
    CHECK(kernel.gemm.batch == 8);
    CHECK(kernel.gemm.m == 32);
    CHECK(kernel.gemm.n == 16);
    CHECK(kernel.parameter_bytes == 8 * kernel.gemm.k * 16 * 2);
  }
}

// What 128 tokens keep in bf16: X A of 256 rows and three matrices, and what
// they take: the rows side by side, and what the last does.
TEST_CASE("adapters of experts keep what their rows need") {
  const auto kept = [](const char* model, bool adapted) {
    Workload w = LoraOfExperts(model, 16);
    w.batch = 1;
    w.sequence_length = 128;
    w.precision = Precision::kBf16;
    w.stack.narrow_weights = true;
    if (!adapted) w.trainable.lora = {};
    return LayerActivationBytes(w, /*experts=*/true);
  };
  CHECK(kept("mixtral-8x7b", true) - kept("mixtral-8x7b", false) ==
        2 * 256 * (3 * 16 + 4096 + 14'336));
  // 6 experts a token of 1408; the shared ones take the tokens as they come.
  CHECK(kept("deepseek-v2-lite", true) - kept("deepseek-v2-lite", false) ==
        2 * (768 * (3 * 16 + 2048 + 1408) + 128 * (3 * 16 + 2816 + 2048)));
}

// docs/models/llm.md, by hand: DeepSeek-V3's five matrices of attention.
TEST_CASE("adapters of latent attention") {
  Workload w = LoraOf(
      "deepseek-v3",
      {"query_down", "query_up", "key_value_down", "key_value_up", "output"},
      16);
  CHECK_NOTHROW(Validate(w));
  const int64_t block =
      16 * ((7168 + 1536) + (1536 + 128 * 192) + (7168 + 512 + 64) +
            (512 + 128 * (128 + 128)) + (128 * 128 + 7168));
  CHECK(block == 16 * 99'392);
  CHECK(AdapterParameters(w) == 61 * block);
  CHECK(AdapterParameters(w) == 97'006'592);
  CHECK(TrainableTensorCount(w) == 61 * 5 * 2);

  // Two products of each forward, four back, for 128 tokens of a dense block.
  w.architecture.layers = w.architecture.dense_layers = 1;
  w.work = Work::kForwardBackward;
  w.batch = 1;
  w.sequence_length = 128;
  Workload frozen = w;
  frozen.trainable.lora = {};
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    const int64_t times = phase == Phase::kForward ? 1 : 2;
    CHECK(MatrixFlops(w, phase) - MatrixFlops(frozen, phase) ==
          times * 2 * 128 * block);
  }
  // What they keep in bf16: X A, the block's input, which both lower products
  // take, the latents, and the context.
  w.precision = frozen.precision = Precision::kBf16;
  w.stack.narrow_weights = frozen.stack.narrow_weights = true;
  CHECK(LayerActivationBytes(w) - LayerActivationBytes(frozen) ==
        2 * 128 * (5 * 16 + 7168 + 1536 + 512 + 128 * 128));
  // Without a low-rank query there is one product of queries.
  w = LoraOf("deepseek-v2-lite", {"query", "key_value_up"}, 8);
  CHECK_NOTHROW(Validate(w));
  CHECK(AdapterParameters(w) ==
        27 * 8 * ((2048 + 16 * 192) + (512 + 16 * (128 + 128))));
}

Workload DroppingLlama(Fusion fusion) {
  Workload w = LoraOf("llama-3.1-8b",
                      {"query",
                       "key",
                       "value",
                       "output",
                       "feed_forward_gate",
                       "feed_forward_in",
                       "feed_forward_out"},
                      16);
  w.architecture.head = Head::kCausalLanguageModel;
  w.batch = 1;
  w.sequence_length = 1;
  w.precision = Precision::kBf16;
  w.stack.fusion = fusion;
  w.stack.attention = Attention::kFlash;
  w.stack.narrow_weights = true;
  w.trainable.lora_dropout = 0.05;
  return w;
}

int64_t KeptByDropout(Workload w) {
  const int64_t with = LayerActivationBytes(w);
  w.trainable.lora_dropout = 0;
  return with - LayerActivationBytes(w);
}

// docs/models/memory.md, by hand: a token of a block of Llama 3.1 8B.
TEST_CASE("dropout of adapters keeps a mask and a copy each") {
  Workload w = DroppingLlama(Fusion::kEager);
  CHECK_NOTHROW(Validate(w));
  const int64_t inputs = 6 * 4096 + 14'336;
  CHECK(LayerActivationBytes(w) == 256'368);
  CHECK(KeptByDropout(w) == 3 * inputs - 2 * (2 * 4096 + 14'336));
  CHECK(KeptByDropout(w) == 71'680);
  // In fp32 copies have four bytes; where scores leave the chip nobody keeps
  // the context.
  w.precision = Precision::kFp32;
  CHECK(KeptByDropout(w) == 5 * inputs - 4 * (2 * 4096 + 14'336));
  w.stack.attention = Attention::kMaterialised;
  CHECK(KeptByDropout(w) == 5 * inputs - 4 * (3 * 4096 + 14'336));
  // Under autocast each product has a narrow copy of its own as it is; the
  // result of the gate, and the context, had one.
  w = DroppingLlama(Fusion::kEager);
  w.stack.narrow_weights = false;
  CHECK(KeptByDropout(w) == inputs + 2 * 4096);
  // A compiler keeps what matrices take, and a mask each.
  CHECK(KeptByDropout(DroppingLlama(Fusion::kCompiled)) == inputs);
  // Adapters in fp32 keep the same narrow copies.
  w = DroppingLlama(Fusion::kEager);
  w.trainable.wide_adapters = true;
  CHECK(LayerActivationBytes(w) == 256'368);
  // A pass of inference drops nothing out.
  w.work = Work::kForward;
  CHECK(KeptByDropout(w) == 0);
  // GPT-2's queries, keys and values have one adapter, which takes one copy.
  w = LoraOf("gpt2", {"query", "key", "value"}, 8);
  w.batch = w.sequence_length = 1;
  w.trainable.lora_dropout = 0.1;
  CHECK(KeptByDropout(w) == 768);
  // Under autocast that product has one narrow copy, too, dropped out or not.
  w.precision = Precision::kFp16;
  CHECK(KeptByDropout(w) == 768);
}

TEST_CASE("adapters in fp32 copy nothing of a model in fp32") {
  Workload w = DroppingLlama(Fusion::kEager);
  w.trainable.lora_dropout = 0;
  w.stack.narrow_weights = false;
  w.precision = Precision::kFp32;
  const int64_t narrow = LayerActivationBytes(w);
  w.trainable.wide_adapters = true;
  CHECK(LayerActivationBytes(w) == narrow);
}

// A token of a block of which PyTorch was asked what it keeps
// (tests/model/kept_by_adapters.py): LlamaDecoderLayer below PEFT's adapters of
// rank 16, hidden 512, 8 heads and 2 of keys, 1408 inside, in bf16, with
// F.scaled_dot_product_attention.
TEST_CASE("adapters keep what PyTorch keeps for them") {
  using namespace std::string_view_literals;
  const auto kept = [](std::initializer_list<std::string_view> matrices,
                       bool wide) {
    Workload w = LoraOf("llama-3.1-8b", matrices, 16);
    w.architecture.hidden = 512;
    w.architecture.heads = 8;
    w.architecture.key_value_heads = 2;
    w.architecture.head_size = 64;
    w.architecture.intermediate = 1408;
    w.batch = w.sequence_length = 1;
    w.precision = Precision::kBf16;
    w.stack.attention = Attention::kFlash;
    w.stack.narrow_weights = true;
    w.trainable.wide_adapters = wide;
    NameAllMatrices(w.architecture, w.stack.fusion, w.trainable);
    // An RMSNorm keeps one number of a row, where 8 bytes are counted.
    return LayerActivationBytes(w) - 2 * 4;
  };
  // In any case what both norms take, in fp32; queries, keys, values, context
  // and log-sum-exp; gate, its activation and the product beside it.
  const int64_t always =
      2 * (4 * 512 + 4) + 2 * (2 * 512 + 2 * 128) + 4 * 8 + 2 * 3 * 1408;
  // X A; what q, k and v share; the context is there; what gate and in share;
  // what out takes.
  const auto all = {"all"sv};
  CHECK(kept(all, false) == always + 2 * (7 * 16 + 512 + 512 + 1408));
  CHECK(kept(all, false) == 20'232);
  const auto some = {"query"sv, "value"sv};
  CHECK(kept(some, false) == always + 2 * (2 * 16 + 512));
  CHECK(kept(some, false) == 16'232);
  const auto attention = {"query"sv, "key"sv, "value"sv, "output"sv};
  CHECK(kept(attention, false) == 16'296);
  const auto feed_forward = {
      "feed_forward_gate"sv, "feed_forward_in"sv, "feed_forward_out"sv};
  CHECK(kept(feed_forward, false) == 19'080);
  // In fp32, narrowed by autocast: a copy each.
  CHECK(kept(all, true) == always + 2 * (7 * 16 + 6 * 512 + 1408));
  CHECK(kept(all, true) == 24'328);
  CHECK(kept(some, true) == 17'256);
  CHECK(kept(attention, true) == 19'368);
  CHECK(kept(feed_forward, true) == 20'104);
}

// GPT-2's adapters of one product widen what it takes once; a compiler makes
// nothing of a copy that is narrowed again.
TEST_CASE("one copy of what one product takes") {
  Workload w = LoraOf("gpt2", {"query", "key", "value"}, 8);
  w.architecture.layers = 1;
  w.batch = w.sequence_length = 1;
  w.precision = Precision::kBf16;
  w.stack.narrow_weights = true;
  const auto casts = [&] {
    int64_t launches = 0;
    for (const Kernel& k : ExpandKernels(w).kernels) {
      if (k.name.text() == "cast adapter input") launches += k.launches;
    }
    return launches;
  };
  const int64_t narrow = LayerActivationBytes(w);
  CHECK(casts() == 0);
  w.trainable.wide_adapters = true;
  CHECK(LayerActivationBytes(w) == narrow);
  CHECK(casts() == 4);
  w.stack.fusion = Fusion::kCompiled;
  CHECK(casts() == 0);
}

// Of Mixtral's 128 tokens: a loop adds 256 weighted rows to the sum, each kept.
TEST_CASE("a loop of experts keeps what it adds up") {
  Workload w = LoraOf("mixtral-8x7b", {"query"}, 16);
  w.batch = 1;
  w.sequence_length = 128;
  w.precision = Precision::kBf16;
  w.stack.narrow_weights = true;
  const int64_t loop = LayerActivationBytes(w, /*experts=*/true);
  w.stack.experts = ExpertKernels::kSplit;
  CHECK(loop - LayerActivationBytes(w, /*experts=*/true) == 2 * 256 * 4096);
}

// Of the block of docs/models/memory.md, what dropout moves for a token, and in
// how many launches.
TEST_CASE("dropout of adapters is a kernel each, forward and back") {
  const int64_t inputs = 6 * 4096 + 14'336;
  struct Moved {
    int64_t forward;
    int64_t backward;
    int64_t draws;
    int64_t launches;
  };
  const auto moved = [](Workload w) {
    w.architecture.layers = 1;
    Moved sum = {};
    for (const Kernel& k : ExpandKernels(w).kernels) {
      if (k.name.text() == "dropout") {
        sum.forward += k.bytes();
        sum.draws += k.random_draws;
        sum.launches += k.launches;
      } else if (k.name.text() == "dropout gradient") {
        sum.backward += k.bytes();
        CHECK(k.random_draws == 0);
        sum.launches += k.launches;
      }
    }
    return sum;
  };
  const auto check = [&](const Workload& w, int64_t forward, int64_t backward) {
    const Moved sum = moved(w);
    CHECK(sum.forward == forward * inputs);
    CHECK(sum.backward == backward * inputs);
    CHECK(sum.draws == inputs);
    CHECK(sum.launches == 2 * 7);
  };
  Workload w = DroppingLlama(Fusion::kEager);
  check(w, 2 + 2 + 1, 2 + 1 + 2);
  w.trainable.wide_adapters = true;
  check(w, 4 + 4 + 1, 4 + 1 + 4);
  w.trainable.wide_adapters = false;
  w.stack.narrow_weights = false;  // autocast
  check(w, 4 + 4 + 1, 4 + 1 + 4);
  check(DroppingLlama(Fusion::kUnsloth), 5, 5);
  // Written by what makes the tensor, with the mask; dropped out again, and the
  // gradient by the pass that adds it up.
  check(DroppingLlama(Fusion::kCompiled), 2 + 1, 2 + 2 + 1 + 1);
  // Blocks that are computed again drop out again.
  w = DroppingLlama(Fusion::kEager);
  w.gradient_checkpointing = true;
  CHECK(moved(w).draws == 2 * inputs);
  w.gradient_checkpointing = false;
  w.work = Work::kForward;
  CHECK(moved(w).launches == 0);
  w = DroppingLlama(Fusion::kEager);
  w.trainable.lora_dropout = 0;
  CHECK(moved(w).launches == 0);
}

TEST_CASE("dropout of adapters is checked") {
  Workload w = DroppingLlama(Fusion::kEager);
  w.trainable.lora_dropout = 1;
  CHECK_THROWS_WITH_AS(
      Validate(w),
      "trainable.lora.dropout: expected 0 to below 1 beside adapters, got 1",
      InputError);
  w.trainable = {};
  w.trainable.lora_dropout = 0.1;
  CHECK_THROWS_AS(Validate(w), InputError);
}

TEST_CASE("adapters that no matrix is named for stand beside query and value") {
  const Architecture& gpt2 = FindArchitecture("gpt2");
  Trainable none;
  NameUsualMatrices(gpt2, none);
  CHECK(none == Trainable{});
  Trainable adapters;
  adapters.lora_rank = 4;
  NameUsualMatrices(gpt2, adapters);
  CHECK(ToWords(adapters.lora) == std::vector<std::string>{"query", "value"});
  adapters.lora = {};
  adapters.lora.output = true;
  NameUsualMatrices(gpt2, adapters);
  CHECK(ToWords(adapters.lora) == std::vector<std::string>{"output"});
}

TEST_CASE("adapters stand beside what an attention has") {
  const auto message = [](const char* model, const char* matrix) {
    try {
      Validate(LoraOf(model, {matrix}, 8));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string feed_forward =
      "output, feed_forward_gate, feed_forward_in, feed_forward_out";
  const std::string expected = "trainable.lora.matrices: expected some of ";
  CHECK(message("deepseek-v3", "query") ==
        expected + feed_forward +
            ", query_down, query_up, key_value_down, key_value_up in latent "
            "attention, got query");
  CHECK(message("deepseek-v2-lite", "query_up") ==
        expected + "query, " + feed_forward +
            ", key_value_down, key_value_up in latent attention, got "
            "query_up");
  CHECK(message("llama-3.1-8b", "key_value_down") ==
        expected + "query, key, value, " + feed_forward +
            " without latent attention, got key_value_down");
  CHECK(message("deepseek-v2-lite", "value") ==
        expected + "query, " + feed_forward +
            ", key_value_down, key_value_up in latent attention, got value");
  // Where nobody names any, it has those that are meant.
  for (const char* model : {"llama-3.1-8b", "deepseek-v2-lite"}) {
    Workload unnamed = LoraOf(model, {"output"}, 8);
    unnamed.trainable.lora = {};
    NameUsualMatrices(unnamed.architecture, unnamed.trainable);
    CHECK_NOTHROW(Validate(unnamed));
    CHECK(ToWords(unnamed.trainable.lora) ==
          (unnamed.architecture.latent()
               ? std::vector<std::string>{"output", "key_value_down"}
               : std::vector<std::string>{"query", "value"}));
  }
  CHECK_THROWS_WITH_AS(
      Validate(LoraOf("deepseek-v3", {"key_value_up"}, 513)),
      "trainable.lora.rank: expected a count of at most 512, the smaller side "
      "of key_value_up (512 x 32768), got 513",
      InputError);
}

TEST_CASE("an encoder-decoder has adapters in its cross-attention too") {
  Workload w = BertLora(4);
  w.architecture = FindArchitecture("transformer-base");
  // 6 encoder blocks with one attention, 6 decoder blocks with two, hidden 512.
  CHECK(AdapterParameters(w) == (6 + 12) * 2 * 4 * (512 + 512));
}

// With adapters: the input gradient of every frozen map (once its forward), all
// of attention's, no weight gradient; and of an adapter forward two thin
// products, backward four: 2 and 4 times r (k + n) tokens each way.
TEST_CASE("adapters cost thin products and save the weight gradients") {
  const int64_t linear = int64_t{2} * 1024 * (4 * 768 * 768 + 2 * 768 * 3072);
  const int64_t attention = 4 * 8 * 12 * 128 * 128 * 64;
  const int64_t adapter = 2 * 1024 * 8 * (768 + 768);
  const Workload w = BertLora(8);
  CHECK(MatrixFlops(w, Phase::kForward) -
            MatrixFlops(BertToTrain(), Phase::kForward) ==
        12 * 2 * adapter);
  // Pooler: input gradient alone; classifier: both.
  const int64_t head = 2 * 8 * 768 * 768 + 2 * 2 * 8 * 2 * 768;
  CHECK(MatrixFlops(w, Phase::kBackward) ==
        12 * (linear + 2 * attention + 2 * 2 * adapter) + head);
  // A merged projection saves the same.
  Workload fused = w;
  fused.stack.fusion = Fusion::kLightSeq;
  CHECK(MatrixFlops(fused, Phase::kBackward) ==
        MatrixFlops(w, Phase::kBackward));
}

TEST_CASE("all matrices are those that the model has") {
  for (const char* name : {"llama-3.1-8b", "deepseek-v3", "gpt2"}) {
    CAPTURE(name);
    const Architecture& a = FindArchitecture(name);
    Trainable trainable;
    trainable.lora_rank = 8;
    AddLoraMatrix("all", trainable.lora);
    NameAllMatrices(a, Fusion::kEager, trainable);
    CHECK(trainable.lora == LoraMatricesOf(a));
    Trainable one;
    AddLoraMatrix("query", one.lora);
    const LoraMatrices before = one.lora;
    NameAllMatrices(a, Fusion::kEager, one);
    CHECK(one.lora == before);
  }
}

}  // namespace
}  // namespace trainfare::model
