#include "model/encoder_presets.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "model/activations.h"
#include "model/decoder_presets.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/memory.h"
#include "model/presets.h"
#include "model/sharding.h"
#include "model/stack_rules.h"
#include "model/validate.h"
#include "tests/model/refusal.h"
#include "tests/model/step_kernels.h"
#include "tests/near.h"

namespace trainfare::model {
namespace {

Workload EncoderOf(const Architecture& architecture,
                   int64_t batch,
                   int64_t length) {
  Workload w;
  w.architecture = architecture;
  w.batch = batch;
  w.sequence_length = length;
  w.precision = Precision::kBf16;
  w.stack.fusion = Fusion::kEager;
  w.stack.attention = Attention::kMaterialised;
  return w;
}

// By hand, docs/models/encoders.md.
TEST_CASE("T5, parameters and FLOPs by hand") {
  const Architecture t5 = FindArchitecture("t5-base");
  const int64_t attention = 4LL * 768 * 768;
  const int64_t feed_forward = 2LL * 768 * 3072;
  const int64_t encoder = attention + feed_forward + 2 * 768;
  const int64_t decoder = 2 * attention + feed_forward + 3 * 768;
  const int64_t words = 32'128LL * 768;
  CHECK(words + 12 * (encoder + decoder) + 2 * 768 + 2 * 32 * 12 ==
        222'903'552);
  CHECK(TotalParameters(t5) == 222'903'552);

  // Three attentions of 512 x 512 pairs in a pair of blocks.
  const int64_t s = 512;
  const Workload w = EncoderOf(t5, 1, s);
  const int64_t matrices = 12 * (3 * attention + 2 * feed_forward) + words;
  CHECK(ForwardModelFlops(w) == 2 * s * matrices + 12LL * 3 * 4 * 768 * s * s);
  CHECK(StepModelFlops(w) == 3 * ForwardModelFlops(w));
}

TEST_CASE("relative positions are a bias that is made once a side") {
  const Architecture t5 = FindArchitecture("t5-base");
  const int64_t s = 128;
  Workload w = EncoderOf(t5, 2, s);
  const int64_t scores = 2LL * 12 * s * s;
  // 18 operations from a pair to its bucket, and the mask.
  CHECK(SumsOf(w, "position bias", Phase::kForward).launches == 2 * 19);
  CHECK(SumsOf(w, "scale scores", Phase::kForward).launches == 0);
  CHECK(SumsOf(w, "scale gradient", Phase::kBackward).launches == 0);
  // Scores of self-attention are read with the bias, in fp32; those across the
  // sides are not.
  CHECK(SumsOf(w, "mask scores", Phase::kForward).bytes ==
        24 * scores * (2 + 4 + 4) + 12 * scores * (2 + 4));
  // Each block adds its gradient, and a side's are summed over the sequences.
  CHECK(SumsOf(w, "position bias gradient", Phase::kBackward).launches ==
        24 + 2);
  // Without an update of the table there is none.
  w.trainable.lora_rank = 8;
  w.trainable.lora.query = true;
  CHECK(SumsOf(w, "position bias gradient", Phase::kBackward).launches == 0);
  w.trainable = {};
  // A fused softmax reads it in its own width, and flash attention does.
  w.stack.fusion = Fusion::kCompiled;
  CHECK(SumsOf(w, "mask, softmax and dropout", Phase::kForward).bytes ==
        24 * scores * (2 + 2 + 2 + 1) + 12 * scores * (2 + 2 + 1));
  w.stack.attention = Attention::kFlash;
  const int64_t biased = SumsOf(w, "flash attention", Phase::kForward).bytes;
  w.architecture.position_kind = PositionKind::kNone;
  CHECK(biased - SumsOf(w, "flash attention", Phase::kForward).bytes ==
        24 * scores * 2);
}

// UMT5: each block has a table of its own, and makes a bias of it.
TEST_CASE("relative positions of each block, by hand") {
  const Architecture t5 = FindArchitecture("t5-base");
  Architecture umt5 = t5;
  umt5.relative_bias_each_block = true;
  CHECK(TotalParameters(umt5) - TotalParameters(t5) == 2 * 11 * 32 * 12);
  CHECK(ParameterTensorCount(umt5) - ParameterTensorCount(t5) == 2 * 11);
  const Workload w = EncoderOf(umt5, 2, 128);
  CHECK(SumsOf(w, "position bias", Phase::kForward).launches == 24 * 19);
  // Nobody adds to a gradient that another block has begun.
  CHECK(SumsOf(w, "position bias gradient", Phase::kBackward).launches == 24);
  // Computed again with the block.
  Workload again = w;
  again.gradient_checkpointing = true;
  CHECK(SumsOf(again, "position bias", Phase::kBackward).launches == 24 * 19);
  again.trainable.lora_rank = 8;
  again.trainable.lora.query = true;
  CHECK(SumsOf(again, "position bias gradient", Phase::kBackward).launches ==
        0);
  // Of a fused softmax the gradient is written, and not read before.
  Workload fused = EncoderOf(t5, 2, 128);
  fused.stack.fusion = Fusion::kCompiled;
  const auto bytes = [&] {
    return SumsOf(fused, "dropout and softmax gradient", Phase::kBackward)
        .bytes;
  };
  const int64_t shared = bytes();
  fused.architecture = umt5;
  CHECK(shared - bytes() == 24 * 2 * 12 * 128 * 128 * 2);
}

// ALBERT base, whose twelve blocks are one of 4 (768 x 768 + 768) + 2 x 768 x
// 3072 + 3072 + 768 + 4 x 768 = 7,087,872 parameters; tables of 128 columns.
TEST_CASE("blocks that share their weights, by hand") {
  const Architecture albert = FindArchitecture("albert-base-v2");
  const int64_t block = 7'087'872;
  const int64_t norms = 4 * 768;
  const int64_t tables = 128 * (30'000 + 512 + 2) + 2 * 128;
  const int64_t outside = tables + 128 * 768 + 768 + 768 * 768 + 768 + 2 * 769;
  CHECK(block + outside == 11'685'122);
  CHECK(TotalParameters(albert) == block + outside);
  CHECK(ParameterTensorCount(albert) ==
        static_cast<int64_t>(ParameterTensorsOf(albert).size()));

  Workload w = EncoderOf(albert, 8, 128);
  w.precision = Precision::kFp32;
  w.optimizer.implementation = OptimizerImplementation::kFused;
  Workload apart = w;
  apart.architecture.shared_blocks = false;
  CHECK(TotalParameters(apart.architecture) == 12 * block + outside);
  // The same products, and eleven sums of a block's gradients.
  const KernelList list = ExpandKernels(w);
  const KernelList others = ExpandKernels(apart);
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    CHECK(list.Counts(phase).matrix_flops == others.Counts(phase).matrix_flops);
  }
  CHECK(ForwardModelFlops(w) == ForwardModelFlops(apart));
  CHECK(BytesOf(list, Phase::kForward) == BytesOf(others, Phase::kForward));
  CHECK(BytesOf(list, Phase::kBackward) - BytesOf(others, Phase::kBackward) ==
        11 * block * (4 + 4 + 4));
  CHECK(list.Counts(Phase::kBackward).launches -
            others.Counts(Phase::kBackward).launches ==
        11 * 16);
  // Launches have the mean of their tensors' elements.
  CHECK(static_cast<double>(BytesOf(others, Phase::kOptimizer) -
                            BytesOf(list, Phase::kOptimizer)) ==
        Near(11.0 * block * 7 * 4, 1e-8));
  // Weights, gradients and two states of each parameter, once; gradients of a
  // second micro-batch stand all the time.
  CHECK(Activations(w).kept == Activations(apart).kept);
  w.accumulation = apart.accumulation = 2;
  const auto bytes = [](const Workload& of, std::string_view term) {
    return EstimateMemory(of, {}).Of(term).base();
  };
  for (const std::string_view term :
       {"parameters", "gradients", "optimizer state"}) {
    CAPTURE(term);
    CHECK(bytes(w, term) > 0);
    CHECK(bytes(apart, term) / bytes(w, term) ==
          Near((12.0 * block + outside) / (block + outside), 1e-5));
  }
  w.accumulation = apart.accumulation = 1;

  // Autocast narrows weights, and widens their gradients, once; what is added
  // has two bytes, but of norms.
  w.precision = apart.precision = Precision::kBf16;
  const auto fewer = [&](KernelName name, Phase phase) {
    return SumsOf(apart, name, phase).bytes - SumsOf(w, name, phase).bytes;
  };
  // Launches have the mean of the matrices' elements.
  const int64_t matrices = 4 * 768 * 768 + 2 * 768 * 3072;
  CHECK(static_cast<double>(fewer("cast weights", Phase::kForward)) ==
        Near(11.0 * matrices * 6, 1e-5));
  CHECK(fewer("cast weight gradient", Phase::kBackward) ==
        11 * (block - norms) * 6);
  CHECK(SumsOf(w, "tied gradient add", Phase::kBackward).bytes ==
        11 * ((block - norms) * 6 + norms * 12));
}

TEST_CASE("what is not counted of blocks that share their weights") {
  Workload w = EncoderOf(FindArchitecture("albert-base-v2"), 8, 128);
  CHECK_NOTHROW(Validate(w));
  w.parallel.data = 4;
  CHECK_NOTHROW(Validate(w));
  const auto message = [&](auto change) {
    Workload changed = w;
    change(changed);
    return RefusalOf(changed);
  };
  const std::string beside = "model.shared_blocks: expected false beside ";
  CHECK(message([](Workload& c) { c.gradient_checkpointing = true; }) ==
        beside + "checkpointing, got true");
  CHECK(message([](Workload& c) { c.trainable.frozen_layers = 1; }) ==
        beside + "trainable, got true");
  CHECK(message([](Workload& c) { c.parallel.shard = Shard::kFsdp; }) ==
        beside + "parallel.shard, got true");
  CHECK(message([](Workload& c) { c.optimizer.by_layer = true; }) ==
        beside + "optimizer.by_layer, got true");
}

TEST_CASE("what T5 keeps by hand") {
  Workload w = EncoderOf(FindArchitecture("t5-base"), 2, 512);
  // The last block takes more than the logits, and than copies of their matrix.
  w.predictions_per_sequence = 8;
  w.precision = Precision::kFp32;
  const int64_t dropped = LayerActivationBytes(w);
  const double all = ToBytes(EstimateMemory(w, {}).total());
  w.architecture.drops_activation = false;
  // The mask of what ReLU gives, of 1024 tokens.
  CHECK(dropped - LayerActivationBytes(w) == 1024 * 3072);
  w.architecture.drops_activation = true;
  w.architecture.position_kind = PositionKind::kNone;
  w.architecture.relative_buckets = 0;
  // The gradients of biases, in fp32, while blocks add to them.
  const double biases = 2.0 * 12 * 512 * 512 * 4;
  CHECK(all - ToBytes(EstimateMemory(w, {}).total()) == Near(biases, 0.001));
}

TEST_CASE("BART by hand") {
  const Architecture bart = FindArchitecture("bart-base");
  const int64_t attention = 4 * (768 * 768 + 768) + 2 * 768;
  const int64_t feed_forward = 2 * 768 * 3072 + 3072 + 768 + 2 * 768;
  const int64_t embeddings = 50'265 * 768 + 2 * (1026 * 768 + 2 * 768);
  CHECK(embeddings + 6 * (3 * attention + 2 * feed_forward) == 139'420'416);
  CHECK(TotalParameters(bart) == 139'420'416);
  CHECK(bart.max_sequence_length() == 1024);
  // A norm of embeddings a side, and two or three behind the residuals.
  const Workload w = EncoderOf(bart, 1, 64);
  CHECK(SumsOf(w, "layer norm", Phase::kForward).launches == 2 + 6 * 5);
  CHECK(SumsOf(w, "layer norm gradient", Phase::kBackward).launches ==
        2 + 6 * 5);
  // Words, and positions with each side.
  CHECK(SumsOf(w, "embedding gather", Phase::kForward).launches == 4);
}

TEST_CASE("ModernBERT by hand") {
  Architecture modern = FindArchitecture("modernbert-base");
  modern.head = Head::kMaskedLanguageModel;
  const int64_t block = 4 * 768 * 768 + 3 * 768 * 1152 + 2 * 768;
  // The norm of embeddings stands for the first block's.
  CHECK(50'368 * 768 + 22 * block + 768 + 768 * 768 + 768 + 50'368 ==
        149'655'232);
  CHECK(TotalParameters(modern) == 149'655'232);
  Workload w = EncoderOf(modern, 1, 1024);
  // Before each part, but once, of embeddings, of the last block, of the head.
  CHECK(SumsOf(w, "layer norm", Phase::kForward).launches == 43 + 1 + 1 + 1);
  CHECK(SumsOf(w, "layer norm gradient", Phase::kBackward).launches == 46);
  // One product makes queries, keys and values, and one both of the gate's.
  CHECK(SumsOf(w, "query, key and value projection", Phase::kForward)
            .matrix_flops == 22LL * 2 * 1024 * 768 * 3 * 768);
  CHECK(SumsOf(w, "feed-forward gate", Phase::kForward).launches == 0);
  CHECK(SumsOf(w, "feed-forward in", Phase::kForward).matrix_flops ==
        22LL * 2 * 1024 * 768 * 2 * 1152);
  CHECK(StepModelFlops(w) == 3 * ForwardModelFlops(w));
  // 8 blocks see all, 14 see 64 positions to each side, at the ends fewer.
  w.stack.attention = Attention::kFlash;
  CHECK(SumsOf(w, "flash attention", Phase::kForward).matrix_flops ==
        12LL * (8 * 1024 * 1024 + 14 * (1024 * 129 - 64 * 65)) * 2 * 2 * 64);
  // Of few tokens all but those of both ends, and of fewer all.
  w.sequence_length = 100;
  CHECK(SumsOf(w, "flash attention", Phase::kForward).matrix_flops ==
        12LL * (8 * 100 * 100 + 14 * (100 * 100 - 35 * 36)) * 2 * 2 * 64);
  w.sequence_length = 60;
  CHECK(SumsOf(w, "flash attention", Phase::kForward).matrix_flops ==
        12LL * 22 * 60 * 60 * 2 * 2 * 64);
  w.sequence_length = 1024;
  // The head of spans and of classes has a dense layer and a norm, too.
  for (const Head head :
       {Head::kQuestionAnswering, Head::kSequenceClassification}) {
    modern.head = head;
    CHECK(TotalParameters(modern) == 149'606'402);
  }
}

TEST_CASE("blocks without positions between those with") {
  const Architecture smollm = FindArchitecture("smollm3-3b");
  Workload w = EncoderOf(smollm, 1, 64);
  CHECK(SumsOf(w, "rotary positions", Phase::kForward).launches == 27 * 10);
  CHECK(SumsOf(w, "rotary gradient", Phase::kBackward).launches == 27 * 18);
  // What rotates is fp32 under autocast; what does not needs no cast.
  const int64_t casts = SumsOf(w, "cast activation", Phase::kForward).launches;
  w.architecture.unrotated_layers = 0;
  CHECK(SumsOf(w, "cast activation", Phase::kForward).launches - casts ==
        9 * 2);
}

TEST_CASE("every preset of encoders has kernels, memory and a valid block") {
  for (const Architecture& a : EncoderPresets()) {
    CAPTURE(a.name);
    Workload w = EncoderOf(a, 2, 64);
    CHECK_NOTHROW(Validate(w));
    CHECK(ShardUnitsOf(w).root.elements > 0);
    for (const StackRules& rules : kStackRules) {
      w.stack.fusion = rules.fusion;
      CHECK(ExpandKernels(w).Counts(Phase::kBackward).matrix_flops > 0);
      CHECK(EstimateMemory(w, {}).total().base() > 0);
    }
  }
}

TEST_CASE("parts of positions that do not go together") {
  const auto message = [](auto change) {
    Workload w = EncoderOf(FindArchitecture("t5-small"), 1, 64);
    change(w.architecture);
    try {
      Validate(w);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message([](Architecture& a) { a.relative_buckets = 0; }) ==
        "model.relative_buckets: expected a count of at least 1, got 0");
  CHECK(message([](Architecture& a) { a.unrotated_layers = 2; }) ==
        "model.unrotated_layers: expected 0 without rotary positions on one "
        "side, got 2");
  CHECK(message([](Architecture& a) { a.first_norm = false; }) ==
        "model.first_norm: expected true, or norm_placement: before in an "
        "encoder with a final_norm, got false");
  CHECK(message([](Architecture& a) { a.joint_gate = true; }) ==
        "model.joint_gate: expected gated beside it, got false");
}

// By hand, docs/models/encoders.md, "ELECTRA and OPT-350m".
TEST_CASE("tables narrower than the blocks, by hand") {
  const Architecture electra = FindArchitecture("electra-small");
  CHECK(TotalParameters(electra) == 13'549'314);
  Workload w = EncoderOf(electra, 2, 128);
  const auto flops = [&](KernelName name, Phase phase) {
    return SumsOf(w, name, phase).matrix_flops;
  };
  constexpr KernelName kWidened = "embedding projection";
  CHECK(flops(kWidened, Phase::kForward) == 2LL * 256 * 128 * 256);
  // Rows of 128 numbers in fp32 from three tables, and the index of each.
  CHECK(SumsOf(w, "embedding gather", Phase::kForward).bytes ==
        3 * (256 * 128 * 4 * 2 + 256 * 8));
  CHECK(SumsOf(w, "zero table gradient", Phase::kBackward).bytes ==
        (30'522 + 512 + 2) * 128 * 4);
  // What the same with tables of 256 has is as much in blocks.
  Workload wide = w;
  wide.architecture.embedding_size = 0;
  CHECK(StepModelFlops(w) - StepModelFlops(wide) == 3 * 2LL * 256 * 128 * 256);
  CHECK(Activations(w).kept - Activations(wide).kept ==
        256 * (128 * 2 - 128 * 4 - 128));
  w.trainable.frozen_layers = 2;
  CHECK(SumsOf(w, "zero table gradient", Phase::kBackward).launches == 0);

  // The masked head comes down to 128 before the logits.
  w = EncoderOf(electra, 2, 128);
  w.architecture.head = Head::kMaskedLanguageModel;
  CHECK(HeadParameters(w.architecture) == 256 * 128 + 128 + 2 * 128 + 30'522);
  CHECK(flops("head transform", Phase::kForward) == 2LL * 256 * 128 * 256);
  CHECK(flops("vocabulary logits", Phase::kForward) ==
        2LL * 256 * 30'522 * 128);

  w = EncoderOf(FindArchitecture("opt-350m"), 2, 128);
  CHECK(TotalParameters(w.architecture) == 331'196'416);
  CHECK(flops(kWidened, Phase::kForward) == 2LL * 256 * 512 * 1024);
  CHECK(flops("logits projection", Phase::kForward) == 2LL * 256 * 512 * 1024);
  CHECK(flops("vocabulary logits", Phase::kForward) ==
        2LL * 256 * 50'272 * 512);
  CHECK(SumsOf(w, "zero table gradient", Phase::kBackward).bytes ==
        (50'272 * 512 + 2'050 * 1024) * 4);
  // Norms behind attention and feed-forward, none behind the last block.
  CHECK_FALSE(w.architecture.closing_norm());
  w.stack.fusion = Fusion::kLiger;
  CHECK(SumsOf(w, "logits chunk", Phase::kForward).matrix_flops ==
        2LL * 256 * 50'272 * 512);
  CHECK(SumsOf(w, "logits projection", Phase::kForward).launches == 1);

  w.architecture.next_token_blocks = 1;
  CHECK_THROWS_WITH_AS(
      Validate(w),
      "model.embedding_size: expected hidden = 1024 or 0 in a model with "
      "next_token_blocks, got 512",
      InputError);
}

}  // namespace
}  // namespace trainfare::model
