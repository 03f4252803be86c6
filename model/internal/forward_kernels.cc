#include <algorithm>

#include "model/activations.h"
#include "model/internal/pass_kernels.h"
#include "model/memory.h"
#include "model/rounding.h"
#include "model/sharding.h"
#include "model/trainable.h"

namespace trainfare::model::internal {

void PassKernels::Forward() {
  Open(Phase::kForward, SegmentRole::kEmbeddings, 1);
  EmbeddingsForward(SourceTokens());
  PositionBiasForward(w_.sequence_length);
  if (TwoSided()) {
    EmbeddingsForward(w_.batch * TargetLength());
    PositionBiasForward(TargetLength());
  }
  if (casts_weights_) CastWeights();
  Close();

  for (const LayerGroup& group : LayerGroupsOf(a_, 0, a_.layers)) {
    Open(Phase::kForward, SegmentRole::kLayer, group.count);
    LayerForward(group, SourceTokens());
    Close();
  }
  if (TwoSided()) {
    Open(Phase::kForward, SegmentRole::kDecoderLayer, a_.decoder_layers);
    DecoderLayerForward();
    Close();
  }
  if (a_.next_token_blocks > 0) {
    Open(Phase::kForward, SegmentRole::kDecoderLayer, a_.next_token_blocks);
    NextTokenInputForward();
    LayerForward(NextTokenGroup(), SourceTokens());
    LayerNormForward(SourceTokens());
    VocabularyForward(PredictedTokens());
    Close();
  }

  Open(Phase::kForward, SegmentRole::kHead, 1);
  HeadForward();
  Close();
}

AttentionShape PassKernels::SelfAttention(int64_t length,
                                          bool windowed,
                                          bool positions) const {
  AttentionShape shape{w_.batch,
                       a_.heads,
                       length,
                       length,
                       a_.query_head_size(),
                       a_.key_heads(),
                       a_.context_head_size(),
                       0,
                       positions};
  const int64_t document = std::max<int64_t>(1, length / w_.documents);
  int64_t seen = document * document;
  if (a_.family == Family::kDecoder) {
    const int64_t window = windowed ? std::min(a_.window, document) : document;
    seen = window * (window + 1) / 2 + (document - window) * window;
  } else if (windowed) {
    // To both sides.
    seen = document * std::min(document, 2 * (a_.window / 2) + 1);
  }
  shape.seen = seen * w_.documents;
  return shape;
}

AttentionShape PassKernels::CrossAttention() const {
  return {w_.batch,
          a_.heads,
          TargetLength(),
          w_.sequence_length,
          a_.query_head_size(),
          a_.key_heads(),
          a_.context_head_size(),
          TargetLength() * w_.sequence_length,
          /*positions=*/false};
}

// Rows of so many tables, summed.
void PassKernels::GatherRows(int64_t tables, int64_t tokens, int64_t width) {
  const int64_t elements = tokens * width;
  const int64_t gathers = EagerOutside() ? tables : 1;
  const bool in_one = Sinusoids() && !EagerOutside();
  for (int64_t i = 0; i < gathers; ++i) {
    Kernel& kernel = Push("embedding gather", KernelKind::kEmbedding, elements);
    const int64_t rows_read = EagerOutside() ? 1 : tables;
    kernel.bytes_read = rows_read * (elements * 4 + tokens * kIndexBytes);
    kernel.bytes_written = elements * (EagerOutside() ? 4 : wide_);
    kernel.vector_flops = (rows_read - 1 + (in_one ? 2 : 0)) * elements;
  }
  if (!EagerOutside()) return;
  if (Sinusoids()) Elementwise("embedding scale", elements, 4, 4, 1);
  const int64_t added = tables - 1 + (Sinusoids() ? 1 : 0);
  for (int64_t i = 0; i < added; ++i) {
    Elementwise("embedding add", elements, 8, 4, 1);
  }
}

// Tables narrower than the blocks.
void PassKernels::WidenEmbeddings(int64_t tokens) {
  CastOperand(tokens * a_.word_width());
  Gemm("embedding projection", tokens, a_.hidden, a_.word_width());
}

void PassKernels::EmbeddingsForward(int64_t tokens) {
  const int64_t width = a_.embedding_width();
  const bool words_alone = a_.word_width() != width;
  int64_t tables = words_alone ? 0 : 1;
  if (a_.table_rows() > 0) ++tables;
  if (a_.token_types > 0) ++tables;
  if (words_alone) {
    GatherRows(1, tokens, a_.word_width());
    WidenEmbeddings(tokens);
  }
  if (tables > 0) GatherRows(tables, tokens, width);
  if (words_alone && tables > 0) {
    Elementwise("embedding add", tokens * width, 2 * wide_, wide_, 1);
  }
  if (a_.embedding_layer_norm) NormForward(tokens, width, wide_);
  if (dropout_ && !Compiled()) Dropout(tokens * width, wide_);
  if (a_.projects_embeddings() && !words_alone) WidenEmbeddings(tokens);
}

// Raffel et al. 2020, section 2.1: once for all blocks of a side, from distances
// to buckets, from these to a bias a head, and, operation by operation, the mask
// of each sequence with it.
void PassKernels::PositionBiasForward(int64_t length) {
  if (a_.position_kind != PositionKind::kRelative) return;
  const int64_t pairs = length * length;
  const int64_t width = EagerOutside() ? 4 : element_;
  Elementwise("position bias", pairs, kIndexBytes, kIndexBytes, 1);
  if (EagerOutside()) list_.kernels.back().launches = kBucketLaunches;
  Kernel& gather =
      Push("embedding gather", KernelKind::kEmbedding, pairs * a_.heads);
  gather.bytes_read = pairs * (kIndexBytes + a_.heads * 4);
  gather.bytes_written = pairs * a_.heads * width;
  if (EagerOutside()) {
    Elementwise("position bias", w_.batch * pairs * a_.heads, 4, wide_, 1);
  }
}

// What is narrowed of the blocks: a launch a matrix, and one a bias.
PassKernels::WeightCasts PassKernels::CastsOfBlocks() const {
  const int64_t h = a_.hidden;
  const int64_t feed_forward = a_.gated ? 3 : 2;
  const int64_t matrices = a_.joint_gate ? 2 : feed_forward;
  WeightCasts casts;
  const auto attention = [&](int64_t layers, int64_t products) {
    if (a_.latent()) {
      const int64_t query = a_.latent_query > 0
                                ? a_.latent_query * (h + a_.query_width())
                                : h * a_.query_width();
      casts.Add(layers * (h * a_.key_value_down_width() + query +
                          a_.latent_key_value * a_.key_value_up_width() +
                          a_.context_width() * h),
                layers * (a_.latent_query > 0 ? 5 : 4));
      return;
    }
    casts.Add(layers * h *
                  (a_.query_width() + a_.key_width() + a_.value_width() +
                   a_.context_width()),
              layers * (products * CastLaunches(a_.attention_bias) +
                        CastLaunches(a_.output_bias)));
  };
  const auto dense = [&](int64_t layers, int64_t intermediate, bool bias) {
    casts.Add(layers * feed_forward * h * intermediate,
              layers * matrices * CastLaunches(bias));
  };
  attention(a_.layers + a_.next_token_blocks, a_.joint_projection() ? 1 : 3);
  attention(2 * a_.decoder_layers, 3);
  const int64_t upper = a_.next_token_blocks;
  casts.Add(upper * 2 * h * h, upper);
  const int64_t with_experts =
      a_.expert_layers() + (a_.experts > 0 ? upper : 0);
  dense(a_.blocks() - with_experts, a_.intermediate, a_.feed_forward_bias);
  if (a_.experts > 0) {
    casts.Add(with_experts * h * a_.experts, with_experts);
    dense(with_experts * a_.experts, a_.expert_intermediate, a_.expert_bias);
    if (a_.shared_intermediate > 0) {
      dense(with_experts, a_.shared_intermediate, false);
    }
  }
  if (FusedPasses()) {
    // The fused layers add the biases of outputs, and of what goes into the
    // feed-forward, in fp32.
    casts.launches -= 2 * a_.layers + 3 * a_.decoder_layers;
    casts.launches -= a_.layers + a_.decoder_layers;
  }
  return casts;
}

PassKernels::WeightCasts PassKernels::CastsOfHead() const {
  const int64_t h = a_.hidden;
  WeightCasts casts;
  const auto matrix = [&](int64_t rows, int64_t columns, bool bias = true) {
    casts.Add(rows * columns, CastLaunches(bias));
  };
  if (a_.has_pooler()) matrix(h, h);
  if (a_.head == Head::kSequenceClassification) {
    if (a_.classifier_dense) matrix(h, h, a_.head_bias);
    matrix(a_.labels, h);
  } else if (a_.head == Head::kQuestionAnswering) {
    if (a_.head_norm) matrix(h, h, a_.head_bias);
    matrix(2, h);
  } else if (VocabularyHead()) {
    if (a_.head == Head::kPreTraining) matrix(2, h);
    const bool causal = a_.head == Head::kCausalLanguageModel;
    const int64_t words = a_.word_width();
    if (!causal || words != h) matrix(words, h, !causal && a_.head_bias);
    matrix(a_.vocabulary, words, !causal || a_.logits_bias);
  }
  if (a_.projects_embeddings()) {
    matrix(h, a_.word_width(), a_.family == Family::kEncoder);
  }
  return casts;
}

// A stack whose weights stay wide keeps a narrow copy of every matrix and bias
// for the length of a pass.
void PassKernels::CastWeights() {
  WeightCasts casts = CastsOfBlocks();
  const WeightCasts head = CastsOfHead();
  casts.Add(head.elements, head.launches);
  PushCasts(casts);
}

void PassKernels::PushCasts(const WeightCasts& casts) {
  Copy("cast weights", casts.elements / casts.launches, 4, element_);
  Kernel& kernel = list_.kernels.back();
  kernel.launches = casts.launches;
  kernel.parameter_bytes = kernel.bytes();
  kernel.parameter_bytes_written = kernel.bytes_written;
}

// A block that is computed again under autocast, whose copies went with the
// pass forward: a block's share of them all. Shards are gathered narrow.
void PassKernels::CastWeightsAgain() {
  if (!autocast_ || ShardsParameters(w_.parallel)) return;
  const int64_t blocks = a_.blocks();
  WeightCasts casts = CastsOfBlocks();
  casts.elements /= blocks;
  casts.launches = std::max<int64_t>(1, casts.launches / blocks);
  PushCasts(casts);
}

void PassKernels::NormForward(int64_t rows, int64_t width, int64_t read) {
  if (a_.norm == Norm::kRms) {
    RmsNormForward(rows, width, read);
    return;
  }
  Reduction(
      "layer norm", rows, rows * width, read, read, kLayerNormForwardFlops);
  ReadRows(RowReads::kNorm);
}

// y = x / sqrt(mean(x^2) + e) * g. Operation by operation in fp32, as
// Transformers writes it: a cast, x^2, its mean, + e, 1 / sqrt, a product, a
// cast back, g.
void PassKernels::RmsNormForward(int64_t rows, int64_t width, int64_t read) {
  const int64_t elements = rows * width;
  const int64_t written = NormWidth(read);
  if (rules_.fuses_norm) {
    Reduction("rms norm", rows, elements, read, written, kRmsNormForwardFlops);
    ReadRows(RowReads::kNorm);
    return;
  }
  if (read < 4) Copy("rms norm", elements, read, 4);
  Elementwise("rms norm", elements, 4, 4, 1);
  Reduction("rms norm", rows, elements, 4, 0, 1);
  list_.kernels.back().bytes_written = rows * 4;
  Elementwise("rms norm", rows, 4, 4, 1);
  Elementwise("rms norm", rows, 4, 4, 0, 1);
  Elementwise("rms norm", elements, 4, 4, 1);
  if (read < 4) Copy("rms norm", elements, 4, read);
  Elementwise("rms norm", elements, read, written, 1);
}

// Autocast keeps the factor of a norm in fp32, and so is what it makes.
int64_t PassKernels::NormWidth(int64_t read) const {
  return autocast_ ? 4 : read;
}

// Norms of queries and keys, which their projections leave narrow.
void PassKernels::HeadNorms(NormPass pass,
                            int64_t query_tokens,
                            int64_t key_tokens) {
  if (a_.query_key_norm == QueryKeyNorm::kHead) {
    (this->*pass)(query_tokens * a_.heads, a_.query_head_size(), element_);
    (this->*pass)(key_tokens * a_.key_heads(), a_.query_head_size(), element_);
  } else if (a_.query_key_norm == QueryKeyNorm::kWhole) {
    (this->*pass)(query_tokens, a_.query_width(), element_);
    (this->*pass)(key_tokens, a_.key_width(), element_);
  }
}

// Elements of queries and keys that carry a position.
PassKernels::Rotated PassKernels::RotatedElements(const AttentionShape& shape,
                                                  int64_t query_tokens,
                                                  int64_t key_tokens) const {
  const int64_t size =
      a_.rotary_head_size > 0 ? a_.rotary_head_size : a_.query_head_size();
  const int64_t key_heads = a_.latent() ? 1 : a_.key_heads();
  Rotated rotated;
  rotated.queries = query_tokens * a_.heads * size;
  rotated.keys = key_tokens * key_heads * size;
  // Behind norms queries and keys are as these leave them.
  rotated.read =
      a_.query_key_norm == QueryKeyNorm::kNone ? element_ : NormWidth(element_);
  rotated.written = RotatedWidth(shape);
  return rotated;
}

// Autocast keeps the tables of sines in fp32, and so is what they make.
int64_t PassKernels::RotatedWidth(const AttentionShape& shape) const {
  const bool wide = autocast_ && Rotates(shape) && !rules_.fuses_positions;
  return wide ? 4 : element_;
}

// x cos + rotate(x) sin over queries and keys (Su et al. 2021). Operation by
// operation: x cos, - of one half, both halves joined, sin, the sum.
void PassKernels::RotaryForward(const AttentionShape& shape,
                                int64_t query_tokens,
                                int64_t key_tokens) {
  if (!Rotates(shape)) return;
  constexpr KernelName kName = "rotary positions";
  const Rotated r = RotatedElements(shape, query_tokens, key_tokens);
  if (rules_.fuses_positions) {
    Elementwise(kName, r.queries + r.keys, r.read, r.written, kRotaryFlops);
    return;
  }
  for (const int64_t elements : {r.queries, r.keys}) {
    Elementwise(kName, elements, r.read, r.written, 1);
    Elementwise(kName, elements / 2, r.read, r.read, 1);
    Copy(kName, elements, r.read, r.read);
    Elementwise(kName, elements, r.read, r.written, 1);
    Elementwise(kName, elements, 2 * r.written, r.written, 1);
  }
}

// Frozen matrices of few bits are widened each time that a product reads them
// (Dettmers et al. 2023).
void PassKernels::Dequantise(int64_t elements) {
  if (!WidensBase(w_)) return;
  if (w_.trainable.base_by_operations) {
    DequantiseByOperations(elements);
    return;
  }
  Kernel& kernel =
      Push("dequantise weights", KernelKind::kElementwise, elements);
  kernel.vector_flops = 2 * elements;  // a table's value, its group's scale
  kernel.bytes_read = QuantisedBytes(elements, w_.trainable);
  kernel.bytes_written = elements * element_;
  kernel.parameter_bytes = kernel.bytes();
}

// Words of 32 bits are shifted once for each number in them, narrowed and
// masked; zeros, of a group of 128, likewise and one more, which are taken off;
// scales multiply. Source: AutoGPTQ, nn_modules/qlinear/qlinear_cuda_old.py.
void PassKernels::DequantiseByOperations(int64_t elements) {
  constexpr KernelName kName = "dequantise weights";
  constexpr int64_t kWord = 4;
  constexpr int64_t kGroup = 128;
  const int64_t narrow = w_.trainable.base_bits == 8 ? 2 : 1;
  const size_t first = list_.kernels.size();
  const auto unpack = [&](int64_t numbers) {
    Elementwise(kName, numbers, 0, kWord, 1);
    list_.kernels.back().bytes_read = numbers * w_.trainable.base_bits / 8;
    Copy(kName, numbers, kWord, narrow);
    Elementwise(kName, numbers, narrow, narrow, 1);
  };
  const int64_t groups = CeilDivide(elements, kGroup);
  unpack(groups);
  Elementwise(kName, groups, narrow, narrow, 1);
  unpack(elements);
  Elementwise(kName, elements, narrow, narrow, 1);
  Elementwise(kName, elements, narrow, element_, 1);
  for (size_t i = first; i < list_.kernels.size(); ++i) {
    list_.kernels[i].parameter_bytes = list_.kernels[i].bytes();
  }
}

// The gradient of what a frozen matrix took reads it widened, too: once more,
// or as the forward pass kept it.
void PassKernels::DequantiseAgain(int64_t elements) {
  if (!w_.trainable.base_by_operations) Dequantise(elements);
}

// An operand in 8 bits, and transposed for the pass back, in one kernel; of a
// pass forward alone only the first, as where weight gradients are of operands
// in 16 bits. Source: NVIDIA TransformerEngine, cast_transpose; a scale of a
// row serves one of the two (pytorch/ao, float8/README.md).
void PassKernels::CastToFp8(KernelName name, int64_t elements) {
  const Fp8& fp8 = w_.fp8;
  const bool weights = name == "cast weights";
  const bool twice =
      w_.work != Work::kForward && (weights || fp8.weight_gradients);
  const int64_t copies = twice ? 2 : 1;
  const size_t first = list_.kernels.size();
  if (weights && fp8.gathered) {
    // They come in 8 bits; what is left is the transposed copy.
    if (twice) Copy(name, elements, kBytesOfFp8, kBytesOfFp8);
  } else if (fp8.scaling == Fp8Scaling::kRows) {
    for (int64_t i = 0; i < copies; ++i) {
      Copy(name, elements, element_, kBytesOfFp8);
    }
  } else {
    if (fp8.scaling == Fp8Scaling::kTensor) {
      Reduction("largest value", elements, elements, element_, 0, 1);
    }
    Copy(name, elements, element_, copies * kBytesOfFp8);
    if (fp8.scaling == Fp8Scaling::kBlocks) {
      list_.kernels.back().bytes_written +=
          copies * CeilDivide(elements, kNumbersOfFp8Scale);
    }
  }
  if (!weights) return;
  for (size_t i = first; i < list_.kernels.size(); ++i) {
    list_.kernels[i].parameter_bytes = list_.kernels[i].bytes();
  }
}

// Makes the last kernel a product of operands in 8 bits, the second of which
// may be a weight; its result is wide.
void PassKernels::ReadFp8(Reads second) {
  Kernel& kernel = list_.kernels.back();
  const GemmExtents& g = kernel.gemm;
  kernel.eight_bits = true;
  kernel.bytes_read = g.batch * (g.m * g.k + g.k * g.n) * kBytesOfFp8;
  if (second == Reads::kWeights) {
    kernel.parameter_bytes = g.batch * g.k * g.n * kBytesOfFp8;
  }
}

void PassKernels::BlockGemm(KernelName name, int64_t m, int64_t n, int64_t k) {
  Dequantise(n * k);
  if (fp8_) {
    // Attention leaves 16 bits.
    if (!NarrowedByProducer() || name == "attention output projection") {
      CastToFp8("cast activation", m * k);
    }
    if (!BaseInFp8(w_)) CastToFp8("cast weights", n * k);
  }
  Gemm(name, m, n, k);
  if (fp8_) ReadFp8(Reads::kWeights);
}

// Autocast narrows what a product reads, each time that one reads it.
void PassKernels::CastOperand(int64_t elements) {
  if (autocast_) Copy("cast activation", elements, 4, element_);
}

void PassKernels::Dropout(int64_t elements, int64_t width) {
  if (!dropout_) return;
  Elementwise(
      "dropout", elements, width, width + kMaskBytes, kDropoutFlops, 0, 1);
}

void PassKernels::LayerForward(const LayerGroup& group, int64_t tokens) {
  AttentionForward(
      Attends::kSelf,
      SelfAttention(w_.sequence_length, group.windowed, group.positions),
      tokens,
      tokens);
  FeedForwardForward(tokens, group.experts);
}

void PassKernels::DecoderLayerForward() {
  const int64_t tokens = w_.batch * TargetLength();
  AttentionForward(
      Attends::kSelf, SelfAttention(TargetLength()), tokens, tokens);
  AttentionForward(Attends::kCross, CrossAttention(), tokens, SourceTokens());
  FeedForwardForward(tokens);
}

// What a block that predicts one token further is given: the embeddings of the
// tokens before it and the hidden states below, each normed, side by side
// through one product (DeepSeek-AI 2024, "DeepSeek-V3", equation 21).
void PassKernels::NextTokenInputForward() {
  const int64_t tokens = SourceTokens();
  const int64_t h = a_.hidden;
  EmbeddingsForward(tokens);
  LayerNormForward(tokens);
  LayerNormForward(tokens);
  Copy("join next tokens", 2 * tokens * h, wide_, wide_);
  CastOperand(2 * tokens * h);
  BlockGemm("next-token projection", tokens, h, 2 * h);
}

// DeepSeek-AI 2024, section 2.1.
void PassKernels::LatentProjections(const AttentionShape& shape,
                                    int64_t tokens) {
  const int64_t h = a_.hidden;
  const auto product =
      [&](KernelName name, Matrix matrix, int64_t n, int64_t k) {
        BlockGemm(name, tokens, n, k);
        AdapterForward(matrix, tokens, n, k);
      };
  using enum Matrix;
  if (a_.latent_query > 0) {
    product("query down projection", kQueryDown, a_.latent_query, h);
    NormForward(tokens, a_.latent_query, element_);
    product("query up projection", kQueryUp, a_.query_width(), a_.latent_query);
  } else {
    product("query projection", kQuery, a_.query_width(), h);
  }
  product("latent projection", kKeyValueDown, a_.key_value_down_width(), h);
  NormForward(tokens, a_.latent_key_value, element_);
  product("key and value up projection",
          kKeyValueUp,
          a_.key_value_up_width(),
          a_.latent_key_value);
  RotaryForward(shape, tokens, tokens);
  // Both parts of keys, and of queries, side by side.
  Copy("gather latent keys", 2 * tokens * a_.query_width(), element_, element_);
}

// Queries, keys and values, with their biases and adapters.
void PassKernels::ProjectionsForward(Attends attends,
                                     const AttentionShape& shape,
                                     int64_t query_tokens,
                                     int64_t key_tokens) {
  const int64_t h = a_.hidden;
  if (a_.latent()) {
    LatentProjections(shape, query_tokens);
  } else if (Joint(attends)) {
    BlockGemm("query, key and value projection",
              query_tokens,
              a_.query_width() + a_.key_width() + a_.value_width(),
              h);
  } else {
    BlockGemm("query projection", query_tokens, a_.query_width(), h);
    if (HandFused()) {
      // Keys and values are made of the encoder's output, queries are not.
      BlockGemm("key and value projection",
                key_tokens,
                a_.key_width() + a_.value_width(),
                h);
    } else {
      CastOperand(key_tokens * h);
      BlockGemm("key projection", key_tokens, a_.key_width(), h);
      CastOperand(key_tokens * h);
      BlockGemm("value projection", key_tokens, a_.value_width(), h);
    }
  }
  const int64_t queries = query_tokens * a_.query_width();
  const int64_t keys = key_tokens * a_.key_width();
  const int64_t values = key_tokens * a_.value_width();
  if (HandFused() && CopiesHeads()) {
    Elementwise(
        "bias and head split", queries + keys + values, element_, element_, 1);
  }
  if (!a_.latent()) {
    AdapterForward(Matrix::kQuery, query_tokens, a_.query_width(), h);
    AdapterForward(Matrix::kKey, key_tokens, a_.key_width(), h);
    AdapterForward(Matrix::kValue, key_tokens, a_.value_width(), h);
  }
  if (a_.attention_bias) {
    LaidOutBias(queries);
    LaidOutBias(keys);
    LaidOutBias(values);
  }
}

// Projections, scores, softmax, context, output projection, residual, norm.
void PassKernels::AttentionForward(Attends attends,
                                   const AttentionShape& shape,
                                   int64_t query_tokens,
                                   int64_t key_tokens) {
  const int64_t h = a_.hidden;
  const int64_t queries = query_tokens * a_.query_width();
  const int64_t context = query_tokens * a_.context_width();
  CastOperand(query_tokens * h);
  ProjectionsForward(attends, shape, query_tokens, key_tokens);
  HeadNorms(&PassKernels::NormForward, query_tokens, key_tokens);
  if (!a_.latent()) RotaryForward(shape, query_tokens, key_tokens);
  if (rules_.scales_queries && a_.scaled_scores) {
    Elementwise("scale queries", queries, element_, element_, 1);
  }
  AttentionCoreForward(shape, queries, key_tokens * a_.key_width());
  if (CopiesHeads()) Copy("merge heads", context, element_, element_);
  BlockGemm("attention output projection", query_tokens, h, a_.context_width());
  AdapterForward(Matrix::kOutput, query_tokens, h, a_.context_width());
  if (a_.output_bias) LaidOutBias(query_tokens * h);
  ResidualAndNormForward(query_tokens);
}

// From queries, keys and values to their context.
void PassKernels::AttentionCoreForward(const AttentionShape& shape,
                                       int64_t queries,
                                       int64_t keys) {
  if (ScoresOnChip(w_.stack.attention)) {
    CastRotated(shape, queries);
    CastRotated(shape, keys);
    FlashAttentionForward(shape);
  } else {
    MaterialisedAttentionForward(shape, queries, keys);
  }
}

// What positions widened is narrowed for the product that reads it.
void PassKernels::CastRotated(const AttentionShape& shape, int64_t elements) {
  if (RotatedWidth(shape) > element_) CastOperand(elements);
}

void PassKernels::FlashAttentionForward(const AttentionShape& shape) {
  Kernel& kernel =
      Push("flash attention", KernelKind::kAttention, shape.context_elements());
  kernel.gemm = {
      shape.products(), shape.query_length, shape.key_length, shape.head_size};
  kernel.matrix_flops =
      2 * shape.seen_scores() * (shape.head_size + shape.value_size);
  kernel.vector_flops =
      (kSoftmaxForwardFlops + 1 + DropoutFlops()) * shape.seen_scores();
  kernel.special_ops = shape.seen_scores() * (a_.attention_soft_cap ? 2 : 1);
  kernel.random_draws = DropoutDraws() * shape.seen_scores();
  kernel.bytes_read =
      (shape.query_elements() + shape.key_value_elements()) * element_;
  kernel.bytes_written = shape.context_elements() * element_;
  if (Biased(shape)) kernel.bytes_read += shape.scores() * element_;
}

// LibTorch's flash attention takes heads where the projections left them.
bool PassKernels::CopiesHeads() const {
  const bool flash = ScoresOnChip(w_.stack.attention);
  return !Compiled() && !(flash && (EagerOutside() || rules_.packs_heads));
}

// Operands of batched products, where heads are not where these take them.
void PassKernels::CopyHeads(const AttentionShape& shape,
                            int64_t queries,
                            int64_t keys) {
  const bool repeats = shape.key_heads < shape.heads && !Compiled();
  const int64_t rotated = RotatedWidth(shape);
  if (EagerOutside() && !rules_.heads_are_strides) {
    // Strided heads are not one batched product: each operand is copied.
    // (Fairseq's tokens come before its sentences: heads are one stride.)
    Copy("split heads", queries, rotated, rotated);
    if (!repeats) {
      Copy("split heads", keys, rotated, rotated);
      Copy("split heads",
           keys / shape.head_size * shape.value_size,
           element_,
           element_);
    }
  }
  if (repeats) {
    // A batched product has as many keys as queries; the copies lie as it
    // takes them.
    const int64_t rows = shape.products() * shape.key_length;
    Copy("repeat heads", rows * shape.head_size, rotated, rotated);
    Copy("repeat heads", rows * shape.value_size, element_, element_);
  }
  CastRotated(shape, queries);
  CastRotated(shape, shape.products() * shape.key_length * shape.head_size);
}

void PassKernels::SoftmaxForward(const AttentionShape& shape) {
  const int64_t scores = shape.scores();
  const int64_t rows = shape.products() * shape.query_length;
  // Where positions are biases, scores are read with them.
  const int64_t read = (Biased(shape) ? 2 : 1) * element_;
  if (ByOperation()) {
    if (!rules_.scales_queries && a_.scaled_scores) {
      Elementwise("scale scores", scores, element_, element_, 1);
    }
    // The mask is fp32, and so is the sum; a bias has the mask in it.
    Elementwise("mask scores",
                scores,
                element_ + (Biased(shape) ? wide_ : 0),
                wide_,
                1);
    Reduction("softmax", rows, scores, wide_, wide_, kSoftmaxForwardFlops, 1);
    ReadRows(RowReads::kThrice);
    Dropout(scores, wide_);
    CastOperand(scores);
  } else if (HandFused()) {
    Reduction("mask and softmax",
              rows,
              scores,
              read,
              element_,
              kSoftmaxForwardFlops + 1,
              1);
    ReadRows(RowReads::kThrice);
    Dropout(scores, element_);
  } else if (FusedPasses()) {
    // Probabilities are kept for the backward pass, dropped or not.
    Reduction("mask, softmax and dropout",
              rows,
              scores,
              read,
              dropout_ ? 2 * element_ + kMaskBytes : element_,
              kSoftmaxForwardFlops + 2 + DropoutFlops(),
              1,
              DropoutDraws());
    ReadRows(RowReads::kThrice);
  } else {
    Reduction("mask, softmax and dropout",
              rows,
              scores,
              read,
              element_ + DropoutMask(),
              kSoftmaxForwardFlops + 2 + DropoutFlops(),
              1,
              DropoutDraws());
    ReadRows(RowReads::kThrice);
  }
}

void PassKernels::MaterialisedAttentionForward(const AttentionShape& shape,
                                               int64_t queries,
                                               int64_t keys) {
  CopyHeads(shape, queries, keys);
  Gemm("attention scores",
       shape.query_length,
       shape.key_length,
       shape.head_size,
       shape.products());
  if (a_.attention_soft_cap && !Compiled()) {
    Elementwise("soft cap", shape.scores(), element_, element_, 2, 1);
  }
  SoftmaxForward(shape);
  Gemm("attention context",
       shape.query_length,
       shape.value_size,
       shape.key_length,
       shape.products());
}

// dropout(x + bias) + residual, then LayerNorm (before the block in a
// decoder: the same kernels in another order).
void PassKernels::ResidualAndNormForward(int64_t tokens) {
  const int64_t elements = tokens * a_.hidden;
  switch (rules_.block) {
    case BlockKernels::kByOperation:
      Dropout(elements, element_);
      if (a_.norm_placement == NormPlacement::kBoth) LayerNormForward(tokens);
      Elementwise("residual add", elements, element_ + wide_, wide_, 1);
      LayerNormForward(tokens);
      break;
    case BlockKernels::kFusedPasses:
      // Writes the sum, which the backward pass reads, and its norm.
      Reduction("bias, dropout, residual and layer norm",
                tokens,
                elements,
                element_ + wide_,
                2 * wide_ + DropoutMask(),
                2 + DropoutFlops() + kLayerNormForwardFlops,
                0,
                DropoutDraws());
      ReadRows(RowReads::kNorm);
      break;
    case BlockKernels::kHandFused:
      Elementwise("bias, dropout and residual",
                  elements,
                  2 * element_,
                  element_ + DropoutMask(),
                  2 + DropoutFlops(),
                  0,
                  DropoutDraws());
      LayerNormForward(tokens);
      break;
    case BlockKernels::kCompiled:
      Reduction("bias, dropout, residual and layer norm",
                tokens,
                elements,
                2 * element_,
                element_ + DropoutMask(),
                2 + DropoutFlops() + kLayerNormForwardFlops,
                0,
                DropoutDraws());
      ReadRows(RowReads::kNorm);
      break;
  }
}

void PassKernels::FeedForwardForward(int64_t tokens, bool experts) {
  CastOperand(tokens * a_.hidden);
  if (experts) {
    ExpertsForward(tokens);
  } else {
    DenseForward(tokens);
  }
  ResidualAndNormForward(tokens);
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), each operation a kernel;
// autocast takes the power in fp32, and all that comes of it (NewGELUActivation
// in activations.py of Transformers 4.57).
void PassKernels::GeluByOperations(int64_t elements) {
  const auto operation = [&](int64_t read, int64_t flops, int64_t special = 0) {
    Elementwise("gelu operation", elements, read, wide_, flops, special);
  };
  if (autocast_) Copy("cast activation", elements, element_, wide_);
  operation(wide_, 2);             // x^3
  operation(wide_, 1);             // 0.044715 x^3
  operation(element_ + wide_, 1);  // x + ..
  operation(wide_, 1);             // sqrt(2 / pi) ..
  operation(wide_, 0, 1);          // tanh
  operation(wide_, 1);             // 1 + ..
  Elementwise("gelu operation", elements, element_, element_, 1);  // 0.5 x
  operation(element_ + wide_, 1);
  CastOperand(elements);
}

// An activation that no neighbour takes in.
void PassKernels::ActivationAlone(KernelName name, int64_t elements) {
  if (WritesGeluOut(w_)) {
    GeluByOperations(elements);
  } else {
    Elementwise(name, elements, element_, element_, kGeluForwardFlops, 1);
  }
}

// (act(x G) * x W): one pass, or the activation and the product apart.
void PassKernels::GatedActivation(int64_t elements) {
  if (rules_.fuses_gate) {
    Elementwise("gated activation",
                elements,
                2 * element_,
                element_,
                kGeluForwardFlops + 1,
                1);
    return;
  }
  ActivationAlone("gated activation", elements);
  Elementwise("activation product", elements, 2 * element_, element_, 1);
}

void PassKernels::ActivationForward(int64_t elements) {
  if (FusedPasses() || HandFused()) {
    // LightSeq2 also drops out the activation in the same pass.
    const bool drops = DropsActivation();
    Elementwise("bias and gelu",
                elements,
                element_,
                element_ + (drops ? DropoutMask() : 0),
                kGeluForwardFlops + 1 + (drops ? DropoutFlops() : 0),
                1,
                drops ? DropoutDraws() : 0);
  } else {
    ActivationAlone("gelu", elements);
    if (DropsActivation()) DropActivation(elements);
  }
}

// A kernel of its own, or within the one before it.
void PassKernels::DropActivation(int64_t elements) {
  if (ByOperation()) {
    Dropout(elements, element_);
    return;
  }
  Kernel& kernel = list_.kernels.back();
  kernel.vector_flops += elements * kDropoutFlops;
  kernel.random_draws += elements;
  kernel.bytes_written += elements * kMaskBytes;
}

void PassKernels::DenseForward(int64_t tokens) {
  const int64_t elements = tokens * a_.intermediate;
  const bool joint = a_.gated && a_.joint_gate;
  if (a_.gated) {
    if (!joint) {
      BlockGemm("feed-forward gate", tokens, a_.intermediate, a_.hidden);
    }
    AdapterForward(
        Matrix::kFeedForwardGate, tokens, a_.intermediate, a_.hidden);
    if (!joint) CastOperand(tokens * a_.hidden);  // each product its own
  }
  const int64_t in = (joint ? 2 : 1) * a_.intermediate;
  BlockGemm("feed-forward in", tokens, in, a_.hidden);
  AdapterForward(Matrix::kFeedForwardIn, tokens, a_.intermediate, a_.hidden);
  if (a_.feed_forward_bias) LaidOutBias(tokens * in);
  if (a_.gated) {
    GatedActivation(elements);
    if (DropsActivation()) DropActivation(elements);
  } else {
    ActivationForward(elements);
  }
  BlockGemm("feed-forward out", tokens, a_.hidden, a_.intermediate);
  AdapterForward(Matrix::kFeedForwardOut, tokens, a_.hidden, a_.intermediate);
  if (a_.feed_forward_bias) LaidOutBias(tokens * a_.hidden);
}

// Each token goes to k of E experts, balanced; with fewer rows than experts
// some have none.
PassKernels::Routed PassKernels::RoutedRows(int64_t tokens) const {
  const int64_t rows = tokens * a_.experts_per_token;
  const int64_t groups = std::min(rows, a_.experts);
  return {rows, groups, CeilDivide(rows, groups)};
}

// One product an expert: side by side in one kernel, or one after another.
void PassKernels::ExpertGemm(KernelName name,
                             const Routed& r,
                             int64_t n,
                             int64_t k) {
  const int64_t groups = SideBySide(r);
  const size_t first = list_.kernels.size();
  if (fp8_) {
    CastToFp8("cast activation", groups * r.each * k);
    if (!BaseInFp8(w_)) CastToFp8("cast weights", groups * n * k);
  }
  GroupGemm(name, r, n, k);
  if (fp8_) ReadFp8(Reads::kWeights);
  RepeatSince(first, ExpertLaunches(r));
}

// Scores of all experts and the best k of each token.
void PassKernels::RoutingForward(const Routed& r, int64_t tokens) {
  Gemm("router", tokens, a_.experts, a_.hidden);
  Reduction("routing",
            tokens,
            tokens * a_.experts,
            element_,
            4,
            kSoftmaxForwardFlops + 2,
            1);
  if (rules_.experts != ExpertKernels::kLoop) return;
  // The best, their sum and share, a cast; then a mask of all pairs.
  const size_t first = list_.kernels.size();
  Elementwise("routing", r.rows, 4, 4, 1);
  RepeatSince(first, 4);
  Copy("routing", r.rows * a_.experts, 0, kIndexBytes);
  Copy("routing", r.rows, kIndexBytes, kIndexBytes);
}

// Rows of one expert side by side.
void PassKernels::GatherRows(const Routed& r) {
  const int64_t h = a_.hidden;
  if (rules_.experts != ExpertKernels::kLoop) {
    Copy("permute tokens", r.rows * h, element_, element_);
    return;
  }
  const size_t first = list_.kernels.size();
  Reduction("routing", r.each, r.rows, kIndexBytes, 0, 1);
  RepeatSince(first, kNonzeroLaunches);
  Copy("permute tokens", r.each * h, element_, element_);
  RepeatSince(first, r.groups);
}

// Back to where they came from, weighted and added.
void PassKernels::AddRows(const Routed& r, int64_t tokens) {
  const int64_t h = a_.hidden;
  if (rules_.experts != ExpertKernels::kLoop) {
    Elementwise("unpermute tokens", r.rows * h, element_, element_, 2);
    return;
  }
  Copy("unpermute tokens", tokens * h, 0, element_);
  const size_t first = list_.kernels.size();
  Copy("unpermute tokens", r.each, 2 * kIndexBytes + element_, element_);
  Elementwise("unpermute tokens", r.each * h, element_, element_, 1);
  Elementwise("unpermute tokens", r.each * h, 2 * element_, element_, 1);
  RepeatSince(first, r.groups);
}

// Shazeer et al. 2017, Fedus et al. 2022: scores of all experts, the best k,
// rows of one expert side by side, its feed-forward, and back, weighted.
void PassKernels::ExpertsForward(int64_t tokens) {
  const Routed r = RoutedRows(tokens);
  const int64_t h = a_.hidden;
  const int64_t wide = a_.expert_intermediate;
  RoutingForward(r, tokens);
  GatherRows(r);
  if (a_.gated) {
    ExpertGemm("expert gate", r, wide, h);
    AdapterForward(Matrix::kFeedForwardGate, r, wide, h);
  }
  ExpertGemm("expert in", r, wide, h);
  AdapterForward(Matrix::kFeedForwardIn, r, wide, h);
  const size_t first = list_.kernels.size();
  if (a_.gated) {
    GatedActivation(ExpertRows(r) * wide);
  } else {
    ActivationAlone("gelu", ExpertRows(r) * wide);
  }
  RepeatSince(first, ExpertLaunches(r));
  ExpertGemm("expert out", r, h, wide);
  AdapterForward(Matrix::kFeedForwardOut, r, h, wide);
  AddRows(r, tokens);
  SharedExpertForward(tokens);
}

void PassKernels::SharedExpertForward(int64_t tokens) {
  const int64_t wide = a_.shared_intermediate;
  if (wide == 0) return;
  const int64_t h = a_.hidden;
  BlockGemm("feed-forward gate", tokens, wide, h);
  AdapterForward(Matrix::kFeedForwardGate, tokens, wide, h);
  BlockGemm("feed-forward in", tokens, wide, h);
  AdapterForward(Matrix::kFeedForwardIn, tokens, wide, h);
  GatedActivation(tokens * wide);
  BlockGemm("feed-forward out", tokens, h, wide);
  AdapterForward(Matrix::kFeedForwardOut, tokens, h, wide);
  if (a_.shared_expert_gate) Gemm("shared expert gate", tokens, 1, h);
  Elementwise("scale shared expert", tokens * h, 2 * element_, element_, 2);
}

bool PassKernels::VocabularyHead() const {
  return a_.head == Head::kMaskedLanguageModel ||
         a_.head == Head::kPreTraining || a_.head == Head::kCausalLanguageModel;
}

int64_t PassKernels::PredictedTokens() const {
  return w_.predictions_per_sequence > 0
             ? w_.batch * w_.predictions_per_sequence
             : HeadTokens();
}

void PassKernels::HeadForward() {
  const int64_t b = w_.batch;
  const int64_t h = a_.hidden;
  if (NormOfItsOwn()) {
    LayerNormForward(HeadTokens());
    if (TwoSided()) LayerNormForward(SourceTokens());
  }
  if (a_.has_pooler()) {
    Copy("first tokens", b * h, wide_, element_);
    Gemm("pooler", b, h, h);
    Elementwise("tanh", b * h, element_, element_, 0, 1);
  }
  if (a_.head == Head::kSequenceClassification) {
    if (a_.classifier_dense) {
      Copy("first tokens", b * h, wide_, element_);
      Gemm("classifier dense", b, h, h);
      Elementwise("activation", b * h, element_, element_, 1, 1);
    }
    if (a_.head_norm) LayerNormForward(b);
    Dropout(b * h, element_);
    Gemm("classifier", b, a_.labels, h);
    Loss(b, a_.labels);
  } else if (a_.head == Head::kQuestionAnswering) {
    CastOperand(HeadTokens() * h);
    if (a_.head_norm) HeadTransformForward(HeadTokens(), h);
    Gemm("span logits", HeadTokens(), 2, h);
    Loss(2 * b, w_.sequence_length);
  } else if (VocabularyHead()) {
    const int64_t rows = PredictedTokens();
    if (a_.head == Head::kPreTraining) {
      Gemm("next sentence", b, 2, h);
      Loss(b, 2);
    }
    if (w_.predictions_per_sequence > 0) {
      Copy("gather predicted tokens", rows * h, wide_, element_);
    } else {
      CastOperand(rows * h);
    }
    if (a_.head != Head::kCausalLanguageModel) {
      HeadTransformForward(rows, a_.word_width());
    } else if (a_.projects_embeddings()) {
      Gemm("logits projection", rows, a_.word_width(), h);
    }
    VocabularyForward(rows);
  }
}

// A dense layer, its activation and a norm before what the head gives.
void PassKernels::HeadTransformForward(int64_t rows, int64_t width) {
  const int64_t elements = rows * width;
  Gemm("head transform", rows, width, a_.hidden);
  Elementwise("gelu", elements, element_, element_, kGeluForwardFlops, 1);
  NormForward(rows, width, wide_);
  CastOperand(elements);
}

// Logits of a vocabulary and their loss.
void PassKernels::VocabularyForward(int64_t rows) {
  if (ChunkedLoss()) {
    ChunkedVocabulary(rows);
    return;
  }
  Gemm("vocabulary logits", rows, a_.vocabulary, a_.word_width());
  if (a_.output_soft_cap) {
    Elementwise("soft cap", rows * a_.vocabulary, element_, element_, 2, 1);
  }
  Loss(rows, a_.vocabulary);
}

bool PassKernels::ChunkedLoss() const {
  return LossOf(w_).chunks && a_.head == Head::kCausalLanguageModel;
}

// Hsu et al. 2024 (Liger Kernel, fused_linear_cross_entropy.py): of some rows
// at a time the logits, their loss and gradient in place, and at once the
// gradients of what the logits were made of; the backward pass only scales.
void PassKernels::ChunkedVocabulary(int64_t rows) {
  const int64_t words = a_.word_width();
  const int64_t chunk = LossChunk(a_, rows);
  const int64_t chunks = CeilDivide(rows, chunk);
  const int64_t each = CeilDivide(rows, chunks);
  const auto repeat = [&] { list_.kernels.back().launches = chunks; };
  Gemm("logits chunk", each, a_.vocabulary, words);
  repeat();
  const int64_t width = w_.work == Work::kForward ? 0 : element_;
  Reduction("loss chunk",
            each,
            each * a_.vocabulary,
            element_,
            width,
            kSoftmaxForwardFlops + 2,
            a_.output_soft_cap ? 2 : 1);
  ReadRows(RowReads::kTwice);
  repeat();
  if (w_.work == Work::kForward) return;
  Gemm("input gradient", each, words, a_.vocabulary);
  repeat();
  if (!Trains(Matrix::kVocabulary)) return;
  WeightGradientGemm("weight gradient", words, a_.vocabulary, each);
  repeat();
}

// Log-softmax and negative log-likelihood, in fp32.
void PassKernels::Loss(int64_t rows, int64_t classes) {
  if (FusedLoss(classes)) {
    const int64_t width = FusedLossWidth();
    if (width > element_) Copy("cast logits", rows * classes, element_, width);
    Reduction("loss", rows, rows * classes, width, 0, kSoftmaxForwardFlops, 1);
    list_.kernels.back().bytes_written = rows * 8;  // log-sum-exp, loss
    return;
  }
  const int64_t width = BytesOfLossLogit(w_);
  if (TwoKernelLoss() && element_ < 4) {
    Copy("cast logits", rows * classes, element_, width);
  }
  // LightSeq2's criterion writes no probabilities, nor does Inductor's.
  const bool sums_alone = OneKernelCriterion() || LossOf(w_).keeps_row_sums;
  Reduction("loss",
            rows,
            rows * classes,
            TwoKernelLoss() ? width : element_,
            sums_alone ? 0 : width,
            kSoftmaxForwardFlops,
            1);
  if (sums_alone) {
    list_.kernels.back().bytes_written = rows * 4;
    ReadRows(RowReads::kTwice);
  } else {
    ReadRows(RowReads::kThrice);
  }
  if (TwoKernelLoss()) {
    Reduction("negative log-likelihood", 1, rows, 4 + kIndexBytes, 0, 1);
  }
  if (rules_.smooths_labels) {
    // Label smoothing: what the target has, and the mean over all classes.
    Copy("gather target", rows, 4 + kIndexBytes, 4);
    Reduction("smooth loss", rows, rows * classes, 4, 0, 1);
    list_.kernels.back().bytes_written = rows * 4;
  }
}

// One kernel over the logits of a vocabulary, and another that puts their
// gradient in their place.
bool PassKernels::FusedLoss(int64_t classes) const {
  return LossOf(w_).fuses && VocabularyHead() && classes == a_.vocabulary;
}

// Bytes of each logit that it takes: as the eager loss, where the head widened
// them.
int64_t PassKernels::FusedLossWidth() const {
  return LossOf(w_).shifts ? BytesOfLossLogit(w_) : element_;
}

// LibTorch's cross entropy: log-softmax, and what the target has of it.
bool PassKernels::TwoKernelLoss() const {
  return EagerOutside() && !rules_.smooths_labels;
}

// LightSeq2 (not DeepSpeed, which has no translation models) computes the
// probabilities once more in the backward pass.
bool PassKernels::OneKernelCriterion() const {
  return TwoSided() && rules_.one_kernel_criterion;
}

}  // namespace trainfare::model::internal
