#include "model/internal/pass_kernels.h"

namespace trainfare::model::internal {

void PassKernels::Forward() {
  Open(Phase::kForward, SegmentRole::kEmbeddings, 1);
  EmbeddingsForward(SourceTokens());
  if (TwoSided()) EmbeddingsForward(w_.batch * TargetLength());
  if (autocast_) CastWeights();
  Close();

  Open(Phase::kForward, SegmentRole::kLayer, a_.layers);
  LayerForward(SelfAttention(w_.sequence_length), SourceTokens());
  Close();
  if (TwoSided()) {
    Open(Phase::kForward, SegmentRole::kDecoderLayer, a_.decoder_layers);
    DecoderLayerForward();
    Close();
  }

  Open(Phase::kForward, SegmentRole::kHead, 1);
  HeadForward();
  Close();
}

AttentionShape PassKernels::SelfAttention(int64_t length) const {
  return {w_.batch, a_.heads, length, length, a_.hidden / a_.heads};
}

AttentionShape PassKernels::CrossAttention() const {
  return {w_.batch,
          a_.heads,
          TargetLength(),
          w_.sequence_length,
          a_.hidden / a_.heads};
}

void PassKernels::EmbeddingsForward(int64_t tokens) {
  const int64_t elements = tokens * a_.hidden;
  int64_t tables = 1;
  if (a_.positions > 0) ++tables;
  if (a_.token_types > 0) ++tables;
  const int64_t gathers = EagerOutside() ? tables : 1;
  const bool in_one = Sinusoids() && !EagerOutside();
  for (int64_t i = 0; i < gathers; ++i) {
    Kernel& kernel = Push("embedding gather", KernelKind::kEmbedding, elements);
    const int64_t rows_read = EagerOutside() ? 1 : tables;
    kernel.bytes_read = rows_read * (elements * 4 + tokens * kIndexBytes);
    kernel.bytes_written = elements * (EagerOutside() ? 4 : wide_);
    kernel.vector_flops = (rows_read - 1 + (in_one ? 2 : 0)) * elements;
  }
  if (EagerOutside()) {
    if (Sinusoids()) Elementwise("embedding scale", elements, 4, 4, 1);
    const int64_t added = tables - 1 + (Sinusoids() ? 1 : 0);
    for (int64_t i = 0; i < added; ++i) {
      Elementwise("embedding add", elements, 8, 4, 1);
    }
  }
  if (a_.embedding_layer_norm) LayerNormForward(tokens);
  if (dropout_ && fusion_ != Fusion::kCompiled) Dropout(elements, wide_);
}

// Autocast keeps a narrow copy of every matrix and bias for the length of a
// pass.
void PassKernels::CastWeights() {
  const int64_t h = a_.hidden;
  int64_t elements = a_.layers * (4 * h * h + 2 * h * a_.intermediate) +
                     a_.decoder_layers * (8 * h * h + 2 * h * a_.intermediate);
  int64_t launches = 2 * (a_.layers * (a_.joint_projection() ? 4 : 6) +
                          a_.decoder_layers * 10);
  if (fusion_ == Fusion::kFused) {
    // The fused layers add these in fp32.
    launches -= 2 * a_.layers + 3 * a_.decoder_layers;  // outputs
    launches -= a_.layers + a_.decoder_layers;          // feed-forward in
  }
  const auto add = [&](int64_t rows, int64_t columns, bool bias = true) {
    elements += rows * columns;
    launches += bias ? 2 : 1;
  };
  if (a_.has_pooler()) add(h, h);
  if (a_.head == Head::kSequenceClassification) {
    if (a_.classifier_dense) add(h, h);
    add(a_.labels, h);
  } else if (a_.head == Head::kQuestionAnswering) {
    add(2, h);
  } else if (VocabularyHead()) {
    if (a_.head == Head::kPreTraining) add(2, h);
    if (a_.head != Head::kCausalLanguageModel) add(h, h);
    add(a_.vocabulary, h, a_.head != Head::kCausalLanguageModel);
  }
  Copy("cast weights", elements / launches, 4, element_);
  Kernel& kernel = list_.kernels.back();
  kernel.launches = launches;
  kernel.parameter_bytes = kernel.bytes();
  kernel.parameter_bytes_written = kernel.bytes_written;
}

void PassKernels::LayerNormForward(int64_t rows) {
  Reduction("layer norm",
            rows,
            rows * a_.hidden,
            wide_,
            wide_,
            kLayerNormForwardFlops);
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

void PassKernels::LayerForward(const AttentionShape& shape, int64_t tokens) {
  AttentionForward(Attends::kSelf, shape, tokens, tokens);
  FeedForwardForward(tokens);
}

void PassKernels::DecoderLayerForward() {
  const int64_t tokens = w_.batch * TargetLength();
  AttentionForward(
      Attends::kSelf, SelfAttention(TargetLength()), tokens, tokens);
  AttentionForward(Attends::kCross, CrossAttention(), tokens, SourceTokens());
  FeedForwardForward(tokens);
}

// Projections, scores, softmax, context, output projection, residual, norm.
void PassKernels::AttentionForward(Attends attends,
                                   const AttentionShape& shape,
                                   int64_t query_tokens,
                                   int64_t key_tokens) {
  const int64_t h = a_.hidden;
  const int64_t queries = query_tokens * h;
  const int64_t keys = key_tokens * h;
  CastOperand(queries);
  if (Joint(attends)) {
    Gemm("query, key and value projection", query_tokens, 3 * h, h);
  } else {
    Gemm("query projection", query_tokens, h, h);
    if (fusion_ == Fusion::kLightSeq) {
      // Of the encoder's output, which queries are not made of.
      Gemm("key and value projection", key_tokens, 2 * h, h);
    } else {
      CastOperand(keys);
      Gemm("key projection", key_tokens, h, h);
      CastOperand(keys);
      Gemm("value projection", key_tokens, h, h);
    }
  }
  if (fusion_ == Fusion::kLightSeq) {
    Elementwise(
        "bias and head split", queries + 2 * keys, element_, element_, 1);
  }
  AdapterForward(Matrix::kQuery, query_tokens, h, h);
  AdapterForward(Matrix::kKey, key_tokens, h, h);
  AdapterForward(Matrix::kValue, key_tokens, h, h);
  LaidOutBias(queries);
  LaidOutBias(keys);
  LaidOutBias(keys);
  if (Fairseq()) Elementwise("scale queries", queries, element_, element_, 1);
  if (w_.stack.attention == Attention::kFlash) {
    Kernel& kernel =
        Push("flash attention", KernelKind::kAttention, shape.query_elements());
    kernel.gemm = {shape.products(),
                   shape.query_length,
                   shape.key_length,
                   shape.head_size};
    kernel.matrix_flops = 4 * shape.scores() * shape.head_size;
    kernel.vector_flops =
        (kSoftmaxForwardFlops + 1 + DropoutFlops()) * shape.scores();
    kernel.special_ops = shape.scores();
    kernel.random_draws = DropoutDraws() * shape.scores();
    kernel.bytes_read =
        (shape.query_elements() + 2 * shape.key_elements()) * element_;
    kernel.bytes_written = shape.query_elements() * element_;
  } else {
    MaterialisedAttentionForward(shape, queries, keys);
  }
  if (CopiesHeads()) Copy("merge heads", queries, element_, element_);
  Gemm("attention output projection", query_tokens, h, h);
  AdapterForward(Matrix::kOutput, query_tokens, h, h);
  LaidOutBias(queries);
  ResidualAndNormForward(query_tokens);
}

// LibTorch's flash attention takes heads where the projections left them.
bool PassKernels::CopiesHeads() const {
  const bool flash = w_.stack.attention == Attention::kFlash;
  return fusion_ != Fusion::kCompiled && !(flash && EagerOutside());
}

void PassKernels::MaterialisedAttentionForward(const AttentionShape& shape,
                                               int64_t queries,
                                               int64_t keys) {
  const int64_t scores = shape.scores();
  const int64_t rows = shape.products() * shape.query_length;
  if (EagerOutside() && !Fairseq()) {
    // Strided heads are not one batched product: each operand is copied.
    // (Fairseq's tokens come before its sentences: heads are one stride.)
    Copy("split heads", queries, element_, element_);
    Copy("split heads", keys, element_, element_);
    Copy("split heads", keys, element_, element_);
  }
  Gemm("attention scores",
       shape.query_length,
       shape.key_length,
       shape.head_size,
       shape.products());
  if (OperationByOperation(w_.stack)) {
    if (!Fairseq()) {
      Elementwise("scale scores", scores, element_, element_, 1);
    }
    // The mask is fp32, and so is the sum.
    Elementwise("mask scores", scores, element_, wide_, 1);
    Reduction("softmax", rows, scores, wide_, wide_, kSoftmaxForwardFlops, 1);
    Dropout(scores, wide_);
    CastOperand(scores);
  } else if (fusion_ == Fusion::kLightSeq) {
    Reduction("mask and softmax",
              rows,
              scores,
              element_,
              element_,
              kSoftmaxForwardFlops + 1,
              1);
    Dropout(scores, element_);
  } else if (fusion_ == Fusion::kFused) {
    // Probabilities are kept for the backward pass, dropped or not.
    Reduction("mask, softmax and dropout",
              rows,
              scores,
              element_,
              dropout_ ? 2 * element_ + kMaskBytes : element_,
              kSoftmaxForwardFlops + 2 + DropoutFlops(),
              1,
              DropoutDraws());
  } else {
    Reduction("mask, softmax and dropout",
              rows,
              scores,
              element_,
              element_ + DropoutMask(),
              kSoftmaxForwardFlops + 2 + DropoutFlops(),
              1,
              DropoutDraws());
  }
  Gemm("attention context",
       shape.query_length,
       shape.head_size,
       shape.key_length,
       shape.products());
}

// dropout(x + bias) + residual, then LayerNorm (before the block in a
// decoder: the same kernels in another order).
void PassKernels::ResidualAndNormForward(int64_t tokens) {
  const int64_t elements = tokens * a_.hidden;
  switch (fusion_) {
    case Fusion::kEager:
    case Fusion::kFairseq:
      Dropout(elements, element_);
      Elementwise("residual add", elements, element_ + wide_, wide_, 1);
      LayerNormForward(tokens);
      break;
    case Fusion::kFused:
      // Writes the sum, which the backward pass reads, and its norm.
      Reduction("bias, dropout, residual and layer norm",
                tokens,
                elements,
                element_ + wide_,
                2 * wide_ + DropoutMask(),
                2 + DropoutFlops() + kLayerNormForwardFlops,
                0,
                DropoutDraws());
      break;
    case Fusion::kLightSeq:
      Elementwise("bias, dropout and residual",
                  elements,
                  2 * element_,
                  element_ + DropoutMask(),
                  2 + DropoutFlops(),
                  0,
                  DropoutDraws());
      LayerNormForward(tokens);
      break;
    case Fusion::kCompiled:
      Reduction("bias, dropout, residual and layer norm",
                tokens,
                elements,
                2 * element_,
                element_ + DropoutMask(),
                2 + DropoutFlops() + kLayerNormForwardFlops,
                0,
                DropoutDraws());
      break;
  }
}

void PassKernels::FeedForwardForward(int64_t tokens) {
  const int64_t elements = tokens * a_.intermediate;
  CastOperand(tokens * a_.hidden);
  Gemm("feed-forward in", tokens, a_.intermediate, a_.hidden);
  AdapterForward(Matrix::kFeedForwardIn, tokens, a_.intermediate, a_.hidden);
  LaidOutBias(elements);
  if (fusion_ == Fusion::kFused || fusion_ == Fusion::kLightSeq) {
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
    Elementwise("gelu", elements, element_, element_, kGeluForwardFlops, 1);
    if (DropsActivation()) Dropout(elements, element_);
  }
  Gemm("feed-forward out", tokens, a_.hidden, a_.intermediate);
  AdapterForward(Matrix::kFeedForwardOut, tokens, a_.hidden, a_.intermediate);
  LaidOutBias(tokens * a_.hidden);
  ResidualAndNormForward(tokens);
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
  if (a_.family == Family::kDecoder) LayerNormForward(HeadTokens());
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
    Dropout(b * h, element_);
    Gemm("classifier", b, a_.labels, h);
    Loss(b, a_.labels);
  } else if (a_.head == Head::kQuestionAnswering) {
    CastOperand(HeadTokens() * h);
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
      Gemm("head transform", rows, h, h);
      Elementwise("gelu", rows * h, element_, element_, kGeluForwardFlops, 1);
      LayerNormForward(rows);
      CastOperand(rows * h);
    }
    Gemm("vocabulary logits", rows, a_.vocabulary, h);
    Loss(rows, a_.vocabulary);
  }
}

// Log-softmax and negative log-likelihood, in fp32.
void PassKernels::Loss(int64_t rows, int64_t classes) {
  if (TwoKernelLoss() && element_ < 4) {
    Copy("cast logits", rows * classes, element_, 4);
  }
  // LightSeq2's criterion writes no probabilities.
  Reduction("loss",
            rows,
            rows * classes,
            TwoKernelLoss() ? 4 : element_,
            OneKernelCriterion() ? 0 : 4,
            kSoftmaxForwardFlops,
            1);
  if (OneKernelCriterion()) list_.kernels.back().bytes_written = rows * 4;
  if (TwoKernelLoss()) {
    Reduction("negative log-likelihood", 1, rows, 4 + kIndexBytes, 0, 1);
  }
  if (Fairseq()) {
    // Label smoothing: what the target has, and the mean over all classes.
    Copy("gather target", rows, 4 + kIndexBytes, 4);
    Reduction("smooth loss", rows, rows * classes, 4, 0, 1);
    list_.kernels.back().bytes_written = rows * 4;
  }
}

// LibTorch's cross entropy: log-softmax, and what the target has of it.
bool PassKernels::TwoKernelLoss() const { return EagerOutside() && !Fairseq(); }

// LightSeq2 (not DeepSpeed, which has no translation models) computes the
// probabilities once more in the backward pass.
bool PassKernels::OneKernelCriterion() const {
  return TwoSided() && fusion_ == Fusion::kLightSeq;
}

}  // namespace trainfare::model::internal
