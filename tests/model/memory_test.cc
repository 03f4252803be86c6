#include "model/memory.h"

#include <doctest/doctest.h>

#include <array>
#include <string_view>

#include "model/activations.h"
#include "model/frozen_base.h"
#include "model/internal/rank_memory.h"
#include "model/kernels.h"
#include "model/logits.h"
#include "model/presets.h"
#include "model/sharding.h"
#include "model/trainable.h"
#include "model/transients.h"
#include "model/validate.h"
#include "tests/model/refusal.h"
#include "tests/near.h"

namespace trainfare::model {
namespace {

Workload Bert(int64_t batch, int64_t length, Precision precision) {
  Workload w;
  w.architecture = FindArchitecture("bert-base-uncased");
  w.batch = batch;
  w.sequence_length = length;
  w.precision = precision;
  return w;
}

constexpr int64_t kParameters = 109483778;  // BERT-base and two labels

// As scenarios/job/estimate.cc has it for a GPU.
const MemorySurroundings kGpu{MiB(1343.0), MiB(8.0), false};

}  // namespace

// BERT-base, batch 8, length 128, fp32, eager: T = 1024 tokens, h = 768,
// T h = 786432, T i = 4 T h, scores = 8 x 12 x 128 x 128 = 1572864.
//   attention: input 4, q k v 12, context 4, mask 1, LayerNorm input 4 -> 25 Th
//              scores (4 + 1 + 4) = 9 a score; LayerNorm statistics 8 T
//   feed-forward: input 4, in and out of GELU 32, mask 1, LayerNorm input 4
//              -> 41 Th; statistics 8 T
//   66 x 786432 + 9 x 1572864 + 16 x 1024 = 66,076,672 bytes
TEST_CASE("activations of one block of BERT-base, by hand") {
  CHECK(LayerActivationBytes(Bert(8, 128, Precision::kFp32)) == 66076672);
}

// Under autocast (bf16): input three narrow copies 6, q k v 6, context 2, mask
// 1, LayerNorm input 4 -> 19 Th; scores (4 + 1 + 2); feed-forward: input 2, in
// and out of GELU 16, mask 1, LayerNorm input 4 -> 23 Th.
//   42 x 786432 + 7 x 1572864 + 16384 = 44,056,576
TEST_CASE("activations under autocast, by hand") {
  CHECK(LayerActivationBytes(Bert(8, 128, Precision::kBf16)) == 44056576);
}

// A token of Llama 3.1 8B in bf16, operation by operation, flash attention: of
// both norms what they take in fp32 and their scaled form, 2 (4 + 2) 4096, and
// statistics, 2 x 8; the input of query, key and value, 2 x 4096, they, 2 (4096 +
// 2 x 1024), a number a row of scores, 4 x 32, and the context, 2 x 4096; the
// input of the feed-forward, 2 x 4096, and four tensors of its width, 8 x 14336.
//   49152 + 16 + 8192 + 12288 + 128 + 8192 + 8192 + 114688 = 200,848
// Of the whole model, 4 x 2048 tokens, an H200 held 105.96 GiB, 0.1 % more than
// counted (docs/results/h200.md).
TEST_CASE("activations of a block of Llama 3.1 8B, by hand") {
  Workload w;
  w.architecture = FindArchitecture("llama-3.1-8b");
  w.batch = 2;
  w.sequence_length = 64;
  w.precision = Precision::kBf16;
  w.stack.narrow_weights = true;
  w.stack.attention = Attention::kFlash;
  CHECK(LayerActivationBytes(w) == 128 * 200848);
  // Qwen3 norms queries and keys, too: 16 and 8 heads of 128, (4 + 2) each.
  Workload with = w;
  with.architecture = FindArchitecture("qwen3-0.6b");
  Workload without = with;
  without.architecture.query_key_norm = QueryKeyNorm::kNone;
  CHECK(LayerActivationBytes(with) - LayerActivationBytes(without) ==
        128 * 6 * (16 + 8) * 128);
}

// Of each score of models with RMSNorm the probability in fp32 and narrowed, and
// of grouped keys and values one a head: PyTorch kept so many bytes of a sequence
// of 96 tokens (tests/model/kept_by_adapters.py), and 4 less of a row of a norm.
TEST_CASE("scores in fp32 behind RMSNorm, by hand") {
  Workload w;
  w.architecture = FindArchitecture("llama-3.1-8b");
  w.architecture.hidden = 512;
  w.architecture.heads = 8;
  w.architecture.key_value_heads = 2;
  w.architecture.head_size = 64;
  w.architecture.intermediate = 1408;
  w.batch = 1;
  w.sequence_length = 96;
  w.precision = Precision::kBf16;
  w.stack.narrow_weights = true;
  const int64_t norms = 2 * (6 * 512 + 8);
  const int64_t products = 2 * (4 * 512 + 4 * 1408);
  CHECK(LayerActivationBytes(w) ==
        96 * (norms + products + 2 * 2 * 512 + 8 * 96 * (4 + 2)));
  CHECK(LayerActivationBytes(w) == 96 * (28'168 + 2 * 4));
  // Each pass widens and narrows once; LibTorch's softmax reads fp16 itself, and
  // autocast's is in fp32 anyway.
  const auto casts = [&] {
    int64_t launches = 0;
    for (const Kernel& kernel : ExpandKernels(w).kernels) {
      if (kernel.name == "cast scores") launches += kernel.launches;
    }
    return launches;
  };
  w.architecture.layers = 1;
  CHECK(casts() == 4);
  w.precision = Precision::kFp16;
  CHECK(casts() == 2);
  w.stack.narrow_weights = false;
  CHECK(casts() == 0);
  // Gradients are in fp32, too: of the probabilities and of the scores.
  w.stack.narrow_weights = true;
  w.sequence_length = 2048;
  CHECK(BlockGradientBytes(w, false) == 2 * 2048 * (512 + 2 * 128) +
                                            2 * 4 * 8 * 2048 * 2048 -
                                            2 * 2048 * 4 * 1408);
}

// GPT-2's activation keeps three tensors more, operation by operation: what tanh
// gave, that and one, and half of what it took.
TEST_CASE("GPT-2's activation by operations keeps what it makes") {
  Workload w = Bert(8, 128, Precision::kFp32);
  w.architecture = FindArchitecture("gpt2");
  Workload one_kernel = w;
  one_kernel.architecture.activation = Activation::kGeluTanh;
  CHECK(LayerActivationBytes(w) - LayerActivationBytes(one_kernel) ==
        3 * 4 * 1024 * 3072);
}

// ReLU keeps what it gives, which its square takes: as GELU what it takes, but
// for a wide copy under autocast.
TEST_CASE("a square of ReLU keeps a wide copy under autocast alone") {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    Workload w = Bert(8, 128, precision);
    w.architecture = FindArchitecture("gpt2");
    w.architecture.activation = Activation::kReluSquared;
    Workload one_kernel = w;
    one_kernel.architecture.activation = Activation::kGeluTanh;
    CHECK(LayerActivationBytes(w) - LayerActivationBytes(one_kernel) ==
          (precision == Precision::kBf16 ? 4 * 1024 * 3072 : 0));
  }
}

// xIELU keeps the product by one weight, and what it makes of what is below 0
// before and after it takes off that; the last for the other weight's gradient.
TEST_CASE("xIELU by operations keeps what it makes") {
  Workload w = Bert(8, 128, Precision::kBf16);
  w.architecture = FindArchitecture("gpt2");
  const auto kept = [&](Activation activation) {
    Workload of = w;
    of.architecture.activation = activation;
    return LayerActivationBytes(of);
  };
  const auto more = [&] {
    return kept(Activation::kXielu) - kept(Activation::kGeluTanh);
  };
  CHECK(more() == (3 * 4 + 1) * 1024 * 3072);
  w.stack.narrow_weights = true;
  CHECK(more() == (3 * 2 + 1) * 1024 * 3072);
  w.trainable.lora_rank = 4;
  w.trainable.lora.query = true;
  CHECK(more() == (2 * 2 + 1) * 1024 * 3072);
  w.stack.fusion = Fusion::kCompiled;
  CHECK(more() == 0);
}

// With everything in two bytes a block keeps 34 T h and, less the second copy
// of the probabilities, 3 a score: Korthikanti et al. 2022, equation 1, has
// 34 s b h + 5 a s^2 b.
TEST_CASE("a narrow stack keeps the published 34 bytes a hidden element") {
  Workload w = Bert(8, 128, Precision::kBf16);
  w.stack.fusion = Fusion::kCompiled;
  CHECK(LayerActivationBytes(w) == 34 * 786432 + 3 * 1572864 + 16384);
  // The fused stack also drops out after the activation: + 1 byte of 4 h.
  w.stack.fusion = Fusion::kLightSeq;
  CHECK(LayerActivationBytes(w) == 38 * 786432 + 5 * 1572864 + 16384);
}

TEST_CASE("flash attention keeps one number a row, not the scores") {
  Workload w = Bert(8, 128, Precision::kFp32);
  w.stack.attention = Attention::kFlash;
  // 8 x 12 x 128 rows of 4 bytes.
  CHECK(LayerActivationBytes(w) == 66 * 786432 + 8 * 12 * 128 * 4 + 16384);
}

TEST_CASE("without dropout there are no masks and no second probabilities") {
  Workload w = Bert(8, 128, Precision::kFp32);
  w.architecture.dropout = 0.0;
  CHECK(LayerActivationBytes(w) == 64 * 786432 + 4 * 1572864 + 16384);
}

TEST_CASE("parameters, gradients and state of AdamW in fp32") {
  Workload w = Bert(1, 16, Precision::kFp32);
  w.optimizer.implementation = OptimizerImplementation::kMultiTensor;
  const MemoryEstimate m = EstimateMemory(w, {});
  // So few tokens: the update is the worst moment, with one list of roots.
  CHECK(m.moment == MemoryMoment::kOptimizerStep);
  CHECK(m.Of("parameters") == Byte(4.0 * kParameters));
  CHECK(m.Of("gradients") == Byte(4.0 * kParameters));
  CHECK(m.Of("optimizer state") == Byte(8.0 * kParameters));
  CHECK(m.Of("optimizer temporaries") == Byte(4.0 * kParameters));
  CHECK(m.total() == Byte(20.0 * kParameters));

  w.optimizer.implementation = OptimizerImplementation::kFused;
  const MemoryEstimate fused = EstimateMemory(w, {});
  CHECK(fused.Of("optimizer temporaries") == Bytes<>());
  CHECK(fused.total() < m.total());
}

TEST_CASE("mixed precision: 4 + 2 bytes of a matrix eager, 2 + 2 fused") {
  // published/s003_mixed_precision_bytes_per_parameter; tables are looked up, and
  // the head is through where most is held.
  Workload w = Bert(32, 128, Precision::kFp16);
  const MemoryEstimate eager = EstimateMemory(w, {});
  CHECK(eager.Of("parameters") == Byte(4.0 * kParameters));
  constexpr double kBlock = 4.0 * 768 * 768 + 2.0 * 768 * 3072;
  CHECK(eager.Of("weight copies") == Byte(2.0 * 12 * kBlock));
  w.stack.fusion = Fusion::kLightSeq;
  w.accumulation = 2;  // gradients stand from the first micro-batch on
  const MemoryEstimate fused = EstimateMemory(w, {});
  CHECK(fused.Of("parameters") == Byte(2.0 * kParameters));
  CHECK(fused.Of("gradients") == Byte(2.0 * kParameters));
  CHECK(fused.Of("weight copies") == Bytes<>());
}

// docs/models/memory.md, "Per parameter".
TEST_CASE("narrow copies of blocks that run again end with the pass forward") {
  Workload w = Bert(1, 8, Precision::kBf16);
  w.gradient_checkpointing = true;
  w.optimizer.kind = OptimizerKind::kNone;
  const MemorySurroundings none;
  const ActivationBytes kept = Activations(w);
  const internal::RankMemory rank(w, none);
  const auto copies = [](const internal::Moment& moment) {
    return moment.Estimate().Of("weight copies");
  };
  constexpr double kBlock = 2.0 * (4.0 * 768 * 768 + 2.0 * 768 * 3072);
  CHECK(copies(rank.ForwardEnd(kept)) == Byte(12 * kBlock + 1182720.0));
  CHECK(copies(rank.Loss(kept)) == Byte(1182720.0));
  CHECK(copies(rank.LastBlock(kept)) == Byte(kBlock));
  CHECK(copies(rank.LowestBlock(kept.lowest)) == Byte(kBlock));

  // What does not train has no copy but where a pass backward asks for it.
  w.trainable.lora_rank = 8;
  const internal::RankMemory adapters(w, none);
  CHECK(copies(adapters.ForwardEnd(kept)) == copies(adapters.Loss(kept)));

  // All of them stay for it, each block's until that is through.
  w = Bert(1, 8, Precision::kBf16);
  const internal::RankMemory whole(w, none);
  const auto all = Byte(12 * kBlock + 1182720.0);
  CHECK(copies(whole.ForwardEnd(kept)) == all);
  CHECK(copies(whole.Loss(kept)) == all);
  CHECK(copies(whole.LastBlock(kept)) == Byte(12 * kBlock));
  CHECK(copies(whole.LowestBlock(kept.lowest)) == Byte(kBlock));
}

TEST_CASE("terms add up and grow with batch and length") {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    Bytes<> last;
    for (const int64_t batch : {1, 2, 4, 8, 16, 32, 64}) {
      const MemoryEstimate m =
          EstimateMemory(Bert(batch, 128, precision), kGpu);
      Bytes<> sum;
      for (const MemoryTerm& term : m.terms) {
        CHECK(term.size.base() > 0);
        sum += term.size;
      }
      CHECK(sum == m.total());
      CHECK(m.total() >= last);
      CHECK(EstimateMemory(Bert(batch, 256, precision), kGpu).total() >=
            m.total());
      last = m.total();
    }
  }
}

// Twelve inputs, and what the block that has run again gives and its gradient.
TEST_CASE("checkpointing keeps block inputs and one block") {
  Workload w = Bert(32, 512, Precision::kFp32);
  const Bytes<> full = EstimateMemory(w, {}).Of("activations");
  w.gradient_checkpointing = true;
  const Bytes<> checkpointed = EstimateMemory(w, {}).Of("activations");
  const double tokens_hidden = 32.0 * 512.0 * 768.0;
  const double layer = static_cast<double>(LayerActivationBytes(w));
  CHECK(full.base() - checkpointed.base() ==
        Near(11 * layer - 14 * 4 * tokens_hidden, 1e-12));
}

// BERT-base at 32 x 512: each block computed again keeps its input instead of
// its activations, whatever the others do; one is there whole at the lowest.
TEST_CASE("checkpointing of some blocks keeps the inputs of these") {
  Workload w = Bert(32, 512, Precision::kFp32);
  const int64_t layer = LayerActivationBytes(w);
  const int64_t input = 32 * 512 * 768 * 4;
  const auto at_start = [](const Workload& of) {
    return EstimateMemory(of, {}).Of("activations").base();
  };
  const double kept = at_start(w);
  w.gradient_checkpointing = true;
  for (const int64_t blocks : {1, 5, 11}) {
    CAPTURE(blocks);
    w.checkpointed_blocks = blocks;
    CHECK(kept - at_start(w) ==
          Near(static_cast<double>(blocks * (layer - input)), 1e-12));
  }
  // All of them, by number or without.
  w.checkpointed_blocks = 12;
  const Bytes<> by_number = EstimateMemory(w, {}).total();
  w.checkpointed_blocks = 0;
  CHECK(EstimateMemory(w, {}).total() == by_number);
}

TEST_CASE("inference keeps nothing for a backward pass") {
  Workload w = Bert(32, 128, Precision::kFp32);
  w.work = Work::kForward;
  const MemoryEstimate m = EstimateMemory(w, {});
  CHECK(m.moment == MemoryMoment::kForward);
  CHECK(m.Of("gradients") == Bytes<>());
  CHECK(m.Of("optimizer state") == Bytes<>());
}

TEST_CASE("inference has a block's tensors or logits, and never both") {
  Workload w;
  w.architecture = FindArchitecture("llama-3.1-8b");
  w.batch = 1;
  w.sequence_length = 8192;
  w.precision = Precision::kBf16;
  w.stack.narrow_weights = true;
  w.work = Work::kForward;
  const auto held = [&](std::string_view term) {
    return EstimateMemory(w, {}).Of(term).base();
  };
  // Scores of 32 heads, twice in fp32; beside them two results of 4096 in bf16
  // and 2 x 4096 + 2 x 1024 of queries, keys, values and context.
  CHECK(held("activations") ==
        2.0 * 32 * 8192 * 8192 * 4 + 8192.0 * (2 * 4096 + 10240) * 2);
  CHECK(held("logits") == 0.0);
  w.stack.attention = Attention::kFlash;
  CHECK(held("activations") == 8192.0 * 4096 * 2);
  CHECK(held("logits") == static_cast<double>(ForwardLogitBytes(w)));
}

// Llama 3.2 1B, whose table is both: 128,256 x 2048 parameters.
TEST_CASE("the output layer's gradient stands from its product on") {
  Workload w;
  w.architecture = FindArchitecture("llama-3.2-1b");
  w.sequence_length = 2048;
  w.precision = Precision::kBf16;
  w.stack.narrow_weights = true;
  w.gradient_checkpointing = true;
  const double table = 128'256.0 * 2048 * 2;
  const MemorySurroundings alone;
  const auto gradients = [&](auto moment) {
    const internal::RankMemory rank(w, alone);
    const ActivationBytes activations = Activations(w);
    const MemoryEstimate held = (rank.*moment)(activations).Estimate();
    return held.Of("gradients").base() + held.Of("gathered gradients").base();
  };
  using internal::RankMemory;
  CHECK(gradients(&RankMemory::Loss) == 0.0);
  CHECK(gradients(&RankMemory::OutputProduct) == table);
  CHECK(gradients(&RankMemory::LastBlock) == table);
  w.stack.fusion = Fusion::kLiger;
  CHECK(gradients(&RankMemory::ForwardEnd) == table);
  CHECK(gradients(&RankMemory::Loss) == table);
  // Beside adapters it has none.
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = true;
  CHECK(gradients(&RankMemory::Loss) == 0.0);
  w.trainable = {};
  // Over ranks it is whole beside a block's until all are done.
  w.parallel.shard = Shard::kFsdp;
  w.parallel.data = 8;
  CHECK(gradients(&RankMemory::LastBlock) ==
        table + static_cast<double>(
                    2 * ShardUnitsOf(w).blocks.front().unit.trained));
}

TEST_CASE("vocabulary logits count at every predicted position") {
  Workload w;
  w.architecture = FindArchitecture("gpt2");
  w.batch = 4;
  w.sequence_length = 1024;
  // 4096 rows x 50257 x (4 + 4 + 4) bytes.
  CHECK(EstimateMemory(w, {}).Of("logits") == Byte(4096.0 * 50257.0 * 12.0));
  CHECK(EstimateMemory(w, {}).Of("backward transients") == Bytes<>());
  w.predictions_per_sequence = 20;
  CHECK(LogitBytes(w) == 80 * 50257 * 12);
  // Less than what the last block makes once they are gone.
  CHECK(EstimateMemory(w, {}).Of("logits") == Bytes<>());
}

// As fms-acceleration's runs of gpt_bigcode-santacoder: 8.3 and, of a loss in
// one kernel, 6.3 bytes a logit; under autocast 18.5 and 14.5.
TEST_CASE("logits of a model that does not widen them") {
  Workload w;
  w.architecture = FindArchitecture("santacoder");
  w.precision = Precision::kBf16;
  w.batch = 4;
  w.sequence_length = 2048;
  const int64_t logits = int64_t{8192} * 49280;
  w.stack.narrow_weights = true;
  CHECK(LogitBytes(w) == 8 * logits);
  w.stack.loss = LossKernels::kFusedWidened;
  CHECK(LogitBytes(w) == 6 * logits);
  w.stack.narrow_weights = false;
  CHECK(LogitBytes(w) == 14 * logits);
  w.stack.loss = LossKernels::kOfStack;
  CHECK(LogitBytes(w) == 18 * logits);
  // As beside a base of few bits.
  w.stack.narrow_weights = true;
  w.trainable.lora_rank = 16;
  w.trainable.base_bits = 4;
  CHECK(LogitBytes(w) == 18 * logits);
  w.architecture.narrow_logits = false;
  CHECK(LogitBytes(w) == 12 * logits);
}

// docs/models/memory.md: what PyTorch allocated of a cross entropy.
TEST_CASE("logits that no model widens") {
  Workload w = Bert(4, 128, Precision::kFp32);
  w.architecture.head = Head::kMaskedLanguageModel;
  const int64_t logits = int64_t{4} * 128 * 30522;
  CHECK(LogitBytes(w) == 12 * logits);
  CHECK(ForwardLogitBytes(w) == 8 * logits);
  w.precision = Precision::kBf16;
  CHECK(LogitBytes(w) == 12 * logits);
  CHECK(ForwardLogitBytes(w) == 10 * logits);
  // A pass forward alone never holds more than training does.
  for (const Fusion fusion :
       {Fusion::kEager, Fusion::kCompiled, Fusion::kXla, Fusion::kLiger}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      w.stack.fusion = fusion;
      w.precision = precision;
      CHECK(ForwardLogitBytes(w) <= LogitBytes(w));
    }
  }
}

// One copy, log-softmax and its gradient of two bytes each; none is cast.
TEST_CASE("the loss over narrow logits") {
  Workload w;
  w.architecture = FindArchitecture("santacoder");
  w.precision = Precision::kBf16;
  w.stack.narrow_weights = true;
  const auto bytes = [&](Phase phase) {
    const PhaseCounts counts = ExpandKernels(w).Counts(phase);
    return counts.bytes_read + counts.bytes_written;
  };
  const int64_t forward = bytes(Phase::kForward);
  const int64_t backward = bytes(Phase::kBackward);
  w.architecture.narrow_logits = false;
  const int64_t logits = w.tokens() * 49280;
  // Read and written: 2 + 2, 2 + 2 for 2 + 4, 4 + 4.
  CHECK(bytes(Phase::kForward) - forward == 6 * logits);
  // Zeros 2, gradient 4 + 2, copy 2 + 2 for 4, 8 + 4, 4 + 2.
  CHECK(bytes(Phase::kBackward) - backward == 10 * logits + w.tokens() * 2);
}

TEST_CASE("gradients inside a block, by hand") {
  Workload w;
  w.architecture = FindArchitecture("mistral-7b");
  w.precision = Precision::kBf16;
  w.stack.narrow_weights = true;
  w.stack.attention = Attention::kFlash;
  w.sequence_length = 4096;
  const int64_t one = int64_t{4096} * 14336 * 2;
  // Trained, what the gate gave is gone when its three have gradients.
  CHECK(BlockGradientBytes(w, false) == 2 * one);
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = true;
  CHECK(BlockGradientBytes(w, false) == 3 * one);
  w.trainable.lora.feed_forward_out = true;
  CHECK(BlockGradientBytes(w, false) == 2 * one);
  // A matrix in 4 bits is widened; in 8 it is what products in 8 take.
  CHECK(WidenedMatrixBytes(w) == 0);
  w.trainable.base_bits = 4;
  CHECK(WidenedMatrixBytes(w) == 117'440'512);
  w.trainable.base_bits = 8;
  CHECK(WidenedMatrixBytes(w) == 117'440'512);
  w.precision = Precision::kFp8;
  CHECK(WidenedMatrixBytes(w) == 0);
  // Qwen3-Next: queries, keys, values and their gate are one matrix of 12,288
  // columns, Qwen3.5 9B's gate is one of its own.
  w.precision = Precision::kBf16;
  w.trainable.base_bits = 4;
  w.architecture = FindArchitecture("qwen3-next-80b-a3b");
  CHECK(WidenedMatrixBytes(w) == 2048LL * 12288 * 2);
  w.architecture = FindArchitecture("qwen3.5-9b");
  CHECK(WidenedMatrixBytes(w) == 4096LL * 12288 * 2);

  // Two experts of eight a token: single ones have a quarter of the tokens.
  w.trainable = {};
  w.architecture = FindArchitecture("mixtral-8x7b");
  w.precision = Precision::kBf16;
  w.stack.fusion = Fusion::kEager;
  CHECK(BlockGradientBytes(w, true) == 2 * one / 4);
  w.stack.fusion = Fusion::kLightSeq;
  CHECK(BlockGradientBytes(w, true) == 2 * 2 * one);
}

// docs/models/counts.md, "8 and 4 bits": 6,979,321,856 numbers of Llama 3.1 8B's
// blocks with a byte for 16 of them; bitsandbytes has two constants.
TEST_CASE("a frozen base in 4 bits is as products in 4 bits take it, by hand") {
  Workload w;
  w.architecture = FindArchitecture("llama-3.1-8b");
  w.precision = Precision::kFp4;
  w.stack = {Fusion::kMegatron, Attention::kFlash};
  w.stack.narrow_weights = true;
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = true;
  w.trainable.base_bits = 4;
  Validate(w);
  const int64_t base = BlockMatrixElements(w.architecture);
  CHECK(base == 6'979'321'856);
  CHECK(BaseBytes(w, base) == 3'925'868'544);
  w.precision = Precision::kBf16;
  // Half a byte each, a byte for 64 and 4 for 64 x 256 of them.
  CHECK(BaseBytes(w, base) == 3'489'660'928 + 109'051'904 + 4 * 425'984);
}

TEST_CASE("a frozen base in 8 bits is neither cast nor widened for fp8") {
  Workload w;
  w.architecture = FindArchitecture("llama-2-70b");
  w.precision = Precision::kFp8;
  w.stack.fusion = Fusion::kLightSeq;
  w.stack.narrow_weights = true;
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = true;
  const auto casts = [&w] {
    int64_t weights = 0;
    for (const Kernel& kernel : ExpandKernels(w).kernels) {
      const std::string_view name = kernel.name.text();
      if (name == "cast weights" || name == "dequantise weights") ++weights;
    }
    return weights;
  };
  CHECK(casts() > 0);
  w.trainable.base_bits = 8;
  CHECK(BaseAsProducts(w));
  CHECK(casts() == 0);
  CHECK(BaseBytes(w, 1000) == 1000);
}

TEST_CASE("narrow weights with masters: 2 + 2 + 4 bytes, and 4 to unscale") {
  Workload w = Bert(8, 128, Precision::kFp16);
  w.stack.narrow_weights = true;
  // Everything in two bytes: 34 T h; probabilities, mask, dropped ones.
  CHECK(LayerActivationBytes(w) == 34 * 786432 + 5 * 1572864 + 16384);
  w.batch = 1;
  w.sequence_length = 16;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  const MemoryEstimate m = EstimateMemory(w, {});
  CHECK(m.moment == MemoryMoment::kOptimizerStep);
  CHECK(m.Of("parameters") == Byte(2.0 * kParameters));
  CHECK(m.Of("gradients") == Byte(2.0 * kParameters));
  CHECK(m.Of("master weights") == Byte(4.0 * kParameters));
  CHECK(m.Of("unscaled gradients") == Byte(4.0 * kParameters));
  CHECK(m.total() == Byte((2 + 2 + 4 + 4 + 8) * 1.0 * kParameters));
  // Without a narrow precision there is nothing to master.
  w.precision = Precision::kFp32;
  CHECK(EstimateMemory(w, {}).Of("master weights") == Bytes<>());
}

// docs/models/memory.md, "Per parameter": Llama 3.2 3B in bf16 without masters.
// Its largest tensor is its table, 128,256 x 3072; its 254 tensors are a launch
// each.
TEST_CASE("an update in the pass backward keeps one gradient, by hand") {
  Workload w;
  w.architecture = FindArchitecture("llama-3.2-3b");
  w.sequence_length = 4096;
  w.precision = Precision::kBf16;
  w.stack = {Fusion::kCompiled, Attention::kFlash};
  w.stack.narrow_weights = true;
  w.optimizer.masters = Masters::kNone;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  w.gradient_checkpointing = true;
  const auto gradients = [&](const internal::Moment& moment) {
    return moment.Estimate().Of("gradients");
  };
  const auto launches = [&] {
    return ExpandKernels(w).Counts(Phase::kOptimizer).launches;
  };
  const int64_t behind = launches();
  {
    const internal::RankMemory rank(w, kGpu);
    CHECK(gradients(rank.OptimizerStep()) == Byte(2.0 * 3'212'749'824));
  }
  w.optimizer.in_backward = true;
  Validate(w);
  const internal::RankMemory rank(w, kGpu);
  CHECK(gradients(rank.OptimizerStep()) == Byte(788'004'864.0));
  // The table's gradient by the logits waits for that by the tokens.
  CHECK(gradients(rank.Loss(Activations(w))) == Byte(0.0));
  CHECK(gradients(rank.OutputProduct(Activations(w))) == Byte(788'004'864.0));
  CHECK(gradients(rank.LowestBlock(Activations(w).lowest)) ==
        Byte(788'004'864.0));
  {
    Workload untied = w;
    untied.architecture.untied_output = true;
    const internal::RankMemory of_untied(untied, kGpu);
    CHECK(gradients(of_untied.LastBlock(Activations(untied))) == Byte(0.0));
    CHECK(gradients(of_untied.LowestBlock(Activations(untied).lowest)) ==
          Byte(0.0));
  }
  CHECK(behind < launches());
  for (const int64_t length : {128, 1024, 4096}) {
    for (const bool again : {false, true}) {
      Workload within = w;
      within.sequence_length = length;
      within.gradient_checkpointing = again;
      Workload after = within;
      after.optimizer.in_backward = false;
      CAPTURE(length);
      CAPTURE(again);
      CHECK(EstimateMemory(within, kGpu).total() <=
            EstimateMemory(after, kGpu).total());
    }
  }
  CHECK(launches() == 254);
  // Operation by operation each tensor takes AdamW's eight.
  w.optimizer.implementation = OptimizerImplementation::kMultiTensor;
  CHECK(launches() == 8 * 254);
  w.accumulation = 2;
  CHECK(RefusalOf(w) ==
        "optimizer.in_backward: expected false where micro-batches add up "
        "gradients (accumulation: 1), got true");
  w.accumulation = 1;
  w.parallel.data = 2;
  CHECK(RefusalOf(w).starts_with(
      "optimizer.in_backward: expected false where ranks sum gradients"));
  w.parallel.data = 1;
  w.parallel.context = 2;
  CHECK(RefusalOf(w).starts_with(
      "optimizer.in_backward: expected false where ranks sum gradients"));
  w.parallel = {.data = 2, .shard = Shard::kFsdp};
  CHECK(RefusalOf(w).empty());
  w.optimizer.masters = Masters::kApart;
  CHECK(RefusalOf(w).starts_with(
      "optimizer.in_backward: expected false beside masters"));
}

// docs/models/memory.md, by hand: Gemma 3 270M in bf16 has 262,144 words of 640,
// of which the logits' gradient and the embeddings' stand beside their sum:
// 2 x 262,144 x 640 x 2 = 671,088,640 bytes besides all gradients.
TEST_CASE("a table that is the output layer, too, has three gradients") {
  Workload w;
  w.architecture = FindArchitecture("gemma-3-270m");
  w.batch = 1;
  w.sequence_length = 64;
  w.precision = Precision::kBf16;
  w.stack.narrow_weights = true;
  w.optimizer.masters = Masters::kNone;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  const MemorySurroundings none;
  const auto tables = [&] {
    const internal::RankMemory rank(w, none);
    for (const MemoryTerm& term : rank.BackwardEnd().terms) {
      if (term.name == "embedding gradient") return term.size;
    }
    return Bytes<>();
  };
  CHECK(tables() == Byte(671'088'640.0));
  CHECK(EstimateMemory(w, {}).moment == MemoryMoment::kBackwardEnd);
  // What is added to a gradient that stands is one table more.
  w.accumulation = 2;
  CHECK(tables() == Byte(1.5 * 671'088'640.0));
  w.architecture.untied_output = true;
  CHECK(tables() == Byte(0.5 * 671'088'640.0));
  w.accumulation = 1;
  CHECK(tables() == Bytes<>());
}

// Gradients that come with their buckets come layer by layer all the same.
TEST_CASE("buckets stand before the gradients that go into them") {
  Workload w = Bert(8, 128, Precision::kFp32);
  const MemorySurroundings alone{{}, {}, false};
  const MemorySurroundings several{{}, {}, true};
  const ActivationBytes kept = Activations(w);
  const auto total = [&](const MemorySurroundings& surroundings) {
    return internal::RankMemory(w, surroundings).Loss(kept).total();
  };
  CHECK(total(several) - total(alone) == Byte(4.0 * kParameters));
}

// Batches that Lambda's benchmark ran (SQuAD, length 384, Apex O2, Adam:
// lambdal/deeplearning-benchmark@aa5addb6, pytorch/results), chosen by hand to
// fill each memory: the estimate must let them pass, and not by far.
TEST_CASE("batches that ran on known memories fit, and fill them") {
  struct Ran {
    const char* model;
    int64_t batch;
    double gib;
  };
  constexpr std::array kRuns = {Ran{"bert-base-uncased", 48, 16},
                                Ran{"bert-large-uncased", 16, 16},
                                Ran{"bert-base-uncased", 96, 24},
                                Ran{"bert-large-uncased", 28, 24},
                                Ran{"bert-base-uncased", 160, 40},
                                Ran{"bert-large-uncased", 48, 40},
                                Ran{"bert-base-uncased", 192, 48},
                                Ran{"bert-large-uncased", 64, 48},
                                Ran{"bert-base-uncased", 320, 80},
                                Ran{"bert-large-uncased", 112, 80}};
  for (const Ran& ran : kRuns) {
    CAPTURE(ran.model);
    CAPTURE(ran.batch);
    Workload w = Bert(ran.batch, 384, Precision::kFp16);
    w.architecture = FindArchitecture(ran.model);
    w.architecture.head = Head::kQuestionAnswering;
    w.stack.narrow_weights = true;
    w.optimizer.implementation = OptimizerImplementation::kFused;
    const double share = EstimateMemory(w, kGpu).total() / GiB(ran.gib);
    CHECK(share <= 1.0);
    CHECK(share >= 0.7);
  }
}

TEST_CASE("batches that follow each other are counted as each alone") {
  MemoryOfBatches memory;
  const auto expect_same = [&](const Workload& w,
                               const MemorySurroundings& surroundings) {
    const MemoryEstimate together = memory.Estimate(w, surroundings);
    const MemoryEstimate alone = EstimateMemory(w, surroundings);
    CHECK(together.moment == alone.moment);
    CHECK(together.total() == alone.total());
    CHECK(together.terms.size() == alone.terms.size());
    CHECK(together.of_other_streams == alone.of_other_streams);
  };
  Workload sharded;
  sharded.architecture = FindArchitecture("llama-3.1-8b");
  sharded.precision = Precision::kBf16;
  sharded.parallel = {.data = 8, .shard = Shard::kFsdp};
  for (Workload w : {Bert(1, 128, Precision::kFp32), sharded}) {
    for (const int64_t batch : {1, 64, 2}) {
      w.batch = batch;
      expect_same(w, kGpu);
      expect_same(w, {});
    }
    w.sequence_length *= 2;
    expect_same(w, {});
    w.optimizer.kind = OptimizerKind::kSgd;
    expect_same(w, {});
  }
}

// Runs known to have fitted or failed: published/s003_batch_and_memory_limits
// (IMDb, BERT-base-cased, length 512, Adan). V100 PCIe has 16 GB; a TPU v2
// core 8 GB.
TEST_CASE("known batches fit, known failures do not") {
  Workload w = Bert(16, 512, Precision::kFp16);
  w.architecture = FindArchitecture("bert-base-cased");
  w.optimizer = {OptimizerKind::kAdan, OptimizerImplementation::kFused};
  const auto needs = [&](int64_t batch) {
    w.batch = batch;
    return EstimateMemory(w, kGpu).total();
  };
  const Bytes<> v100 = GiB(16.0);
  CHECK(needs(16) <= v100);
  CHECK(needs(32) > v100);
  w.stack.fusion = Fusion::kLightSeq;
  CHECK(needs(32) <= v100);

  w.stack.fusion = Fusion::kCompiled;
  w.precision = Precision::kBf16;
  w.optimizer.kind = OptimizerKind::kAdamW;
  const auto needs_tpu = [&](int64_t batch) {
    w.batch = batch;
    return EstimateMemory(w, {}).total();
  };
  CHECK(needs_tpu(24) <= GiB(8.0));
  CHECK(needs_tpu(32) > GiB(8.0));
}

}  // namespace trainfare::model
