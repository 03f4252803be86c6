#include <array>

#include "model/internal/pass_kernels.h"
#include "model/trainable.h"

namespace trainfare::model::internal {

void PassKernels::Backward() {
  Open(Phase::kBackward, SegmentRole::kHead, 1);
  HeadBackward();
  Close();
  if (TwoSided()) {
    Open(Phase::kBackward, SegmentRole::kDecoderLayer, a_.decoder_layers);
    if (w_.gradient_checkpointing) DecoderLayerForward();
    const int64_t tokens = w_.batch * TargetLength();
    FeedForwardBackward(tokens);
    AttentionBackward(
        Attends::kCross, CrossAttention(), tokens, SourceTokens());
    AttentionBackward(
        Attends::kSelf, SelfAttention(TargetLength()), tokens, tokens);
    Close();
  }
  // What lies below the first weights that train has no backward pass. (A
  // first block with adapters is counted like the others: its own input
  // gradient is not needed.)
  if (LayersWithBackward(w_) > 0) {
    Open(Phase::kBackward, SegmentRole::kLayer, LayersWithBackward(w_));
    if (w_.gradient_checkpointing) {
      LayerForward(SelfAttention(w_.sequence_length), SourceTokens());
    }
    FeedForwardBackward(SourceTokens());
    AttentionBackward(Attends::kSelf,
                      SelfAttention(w_.sequence_length),
                      SourceTokens(),
                      SourceTokens());
    Close();
  }
  if (w_.trainable.everything()) {
    Open(Phase::kBackward, SegmentRole::kEmbeddings, 1);
    EmbeddingsBackward(SourceTokens());
    if (TwoSided()) EmbeddingsBackward(w_.batch * TargetLength());
    Close();
  }
}

// Of Y (m, n) = X (m, k) W (k, n): input gradient, weight gradient, bias.
// `bias`: its gradient is a kernel of its own. `input`: whether X was narrowed
// for this product, so that its gradient is widened.
void PassKernels::LinearBackward(
    Matrix matrix, int64_t m, int64_t n, int64_t k, bool bias, Input input) {
  Gemm("input gradient", m, k, n);
  AdapterBackward(matrix, m, n, k);
  if (input == Input::kNarrowed) WidenGradient(m * k);
  if (!Trains(matrix)) return;
  WeightGradientGemm("weight gradient", k, n, m);
  WidenParameterGradient(k * n);
  if (bias) {
    BiasGradient(m, n);
    WidenParameterGradient(n);
  }
}

// Back through a cast of autocast's.
void PassKernels::WidenGradient(int64_t elements) {
  if (autocast_) Copy("cast gradient", elements, element_, 4);
}
void PassKernels::NarrowGradient(int64_t elements) {
  if (autocast_) Copy("cast gradient", elements, 4, element_);
}
void PassKernels::WidenParameterGradient(int64_t elements) {
  if (!autocast_) return;
  Copy("cast weight gradient", elements, element_, 4);
  list_.kernels.back().parameter_bytes = list_.kernels.back().bytes();
  list_.kernels.back().parameter_bytes_written =
      list_.kernels.back().bytes_written;
}

// Of the partial sums that the trainer's fused kernels leave.
void PassKernels::AddPartialSums(int64_t sums) {
  Reduction("add partial sums", sums, sums * kPartialSums, 4, 0, 1);
  list_.kernels.back().bytes_written = sums * 4;
}

void PassKernels::LayerNormBackward(int64_t rows) {
  const int64_t elements = rows * a_.hidden;
  Reduction("layer norm gradient",
            rows,
            elements,
            2 * wide_,
            wide_,
            kLayerNormBackwardFlops);
  if (!NormsTrain()) return;
  // Scale and shift: column sums over the same tensors.
  Reduction("layer norm weight gradient", a_.hidden, elements, 2 * wide_, 0, 4);
  list_.kernels.back().bytes_written = 2 * a_.hidden * 4;
}

void PassKernels::DropoutBackward(int64_t elements, int64_t width) {
  if (!dropout_) return;
  Elementwise(
      "dropout gradient", elements, width + kMaskBytes, width, kDropoutFlops);
}

void PassKernels::ResidualAndNormBackward(int64_t tokens) {
  const int64_t elements = tokens * a_.hidden;
  if (fusion_ == Fusion::kCompiled) {
    Reduction("layer norm, residual and dropout gradient",
              tokens,
              elements,
              2 * element_ + DropoutMask(),
              2 * element_,
              kLayerNormBackwardFlops + 1 + DropoutFlops());
    if (!NormsTrain()) return;
    Reduction(
        "layer norm weight gradient", a_.hidden, elements, 2 * element_, 0, 4);
    list_.kernels.back().bytes_written = 2 * a_.hidden * 4;
    return;
  }
  if (fusion_ == Fusion::kFused) {
    // Before the block, LayerNorm also takes the residual's own gradient.
    const int64_t own = a_.family == Family::kDecoder ? wide_ : 0;
    const bool two = dropout_ || autocast_;  // gradients that differ
    Reduction("layer norm, residual and dropout gradient",
              tokens,
              elements,
              2 * wide_ + own + DropoutMask(),
              wide_ + (two ? element_ : 0),
              kLayerNormBackwardFlops + 1 + DropoutFlops());
    if (!NormsTrain()) return;
    Reduction("bias and layer norm weight gradient",
              a_.hidden,
              elements,
              3 * wide_ + DropoutMask(),
              0,
              6);
    list_.kernels.back().bytes_written = 3 * a_.hidden * 4 * kPartialSums;
    AddPartialSums(3 * a_.hidden);
    return;
  }
  LayerNormBackward(tokens);
  NarrowGradient(elements);  // of the sum's narrow term
  DropoutBackward(elements, element_);
}

// Gradients of the two branches of a residual meet.
void PassKernels::ResidualGradientAdd(int64_t tokens) {
  const bool within =
      fusion_ == Fusion::kCompiled ||
      (fusion_ == Fusion::kFused && a_.family == Family::kDecoder);
  if (!within) {
    Elementwise(
        "residual gradient add", tokens * a_.hidden, 2 * wide_, wide_, 1);
  }
}

void PassKernels::FeedForwardBackward(int64_t tokens) {
  const bool fused = fusion_ == Fusion::kFused;
  ResidualAndNormBackward(tokens);
  LinearBackward(
      Matrix::kFeedForwardOut, tokens, a_.hidden, a_.intermediate, !fused);
  const int64_t elements = tokens * a_.intermediate;
  if (DropsActivation() && Fairseq()) DropoutBackward(elements, element_);
  const bool drops = DropsActivation() && !Fairseq();
  Elementwise(
      fused ? "gelu and bias gradient" : "gelu gradient",
      elements,
      2 * element_ + (drops ? DropoutMask() : 0),
      element_,
      kGeluBackwardFlops + (fused ? 1 : 0) + (drops ? DropoutFlops() : 0),
      2);
  if (fused) AddPartialSums(a_.intermediate);
  LinearBackward(Matrix::kFeedForwardIn,
                 tokens,
                 a_.intermediate,
                 a_.hidden,
                 !fused,
                 Input::kNarrowed);
  ResidualGradientAdd(tokens);
}

void PassKernels::AttentionBackward(Attends attends,
                                    const AttentionShape& shape,
                                    int64_t query_tokens,
                                    int64_t key_tokens) {
  const int64_t h = a_.hidden;
  const int64_t queries = query_tokens * h;
  const int64_t keys = key_tokens * h;
  ResidualAndNormBackward(query_tokens);
  LinearBackward(
      Matrix::kOutput, query_tokens, h, h, fusion_ != Fusion::kFused);
  if (CopiesHeads()) {
    Copy("split head gradients", queries, element_, element_);
  }
  if (w_.stack.attention == Attention::kFlash) {
    if (EagerOutside()) {
      // Dao et al. 2022, algorithm 4: D = rowsum(dO o O), before.
      Reduction("flash attention row sums",
                query_tokens * a_.heads,
                queries,
                2 * element_,
                0,
                2);
      list_.kernels.back().bytes_written = query_tokens * a_.heads * 4;
    }
    // Scores are computed anew: five products instead of four.
    Kernel& kernel = Push("flash attention gradient",
                          KernelKind::kAttention,
                          shape.query_elements());
    kernel.gemm = {shape.products(),
                   shape.query_length,
                   shape.key_length,
                   shape.head_size};
    kernel.matrix_flops = 10 * shape.scores() * shape.head_size;
    kernel.vector_flops =
        (kSoftmaxForwardFlops + kSoftmaxBackwardFlops + DropoutFlops()) *
        shape.scores();
    kernel.special_ops = shape.scores();
    kernel.random_draws = DropoutDraws() * shape.scores();
    kernel.bytes_read =
        (3 * shape.query_elements() + 2 * shape.key_elements()) * element_;
    kernel.bytes_written =
        (shape.query_elements() + 2 * shape.key_elements()) * element_;
    if (EagerOutside()) {
      // Sums of blocks of keys meet in fp32.
      Copy("flash attention query gradient", queries, 4, element_);
    }
  } else {
    MaterialisedAttentionBackward(shape);
  }
  if (CopiesHeads()) {
    Copy("merge head gradients", queries, element_, element_);
    Copy("merge head gradients", keys, element_, element_);
    Copy("merge head gradients", keys, element_, element_);
  }
  using enum Matrix;
  if (Joint(attends)) {
    if (EagerOutside()) {
      Copy("join projection gradients", 3 * queries, element_, element_);
    }
    MergedLinearBackward(std::array{kQuery, kKey, kValue}, query_tokens);
  } else if (fusion_ == Fusion::kLightSeq) {
    LinearBackward(kQuery, query_tokens, h, h);
    MergedLinearBackward(std::array{kKey, kValue}, key_tokens);
  } else {
    LinearBackward(kQuery, query_tokens, h, h, true, Input::kNarrowed);
    LinearBackward(kKey, key_tokens, h, h, true, Input::kNarrowed);
    LinearBackward(kValue, key_tokens, h, h, true, Input::kNarrowed);
    if (EagerOutside()) {
      Elementwise("input gradient add", queries, 2 * wide_, wide_, 1);
      Elementwise("input gradient add", keys, 2 * wide_, wide_, 1);
    }
  }
  ResidualGradientAdd(query_tokens);
}

// Of one product of several square matrices side by side; each may have its
// own adapter.
void PassKernels::MergedLinearBackward(std::span<const Matrix> matrices,
                                       int64_t tokens) {
  const int64_t h = a_.hidden;
  const auto outputs = static_cast<int64_t>(matrices.size()) * h;
  if (w_.trainable.lora_rank == 0) {
    LinearBackward(
        matrices.front(), tokens, outputs, h, true, Input::kNarrowed);
    return;
  }
  Gemm("input gradient", tokens, h, outputs);
  for (const Matrix matrix : matrices) AdapterBackward(matrix, tokens, h, h);
  WidenGradient(tokens * h);
}

void PassKernels::MaterialisedAttentionBackward(const AttentionShape& shape) {
  const int64_t scores = shape.scores();
  const int64_t rows = shape.products() * shape.query_length;
  Gemm("probability gradient",
       shape.query_length,
       shape.key_length,
       shape.head_size,
       shape.products());
  Gemm("value gradient",
       shape.key_length,
       shape.head_size,
       shape.query_length,
       shape.products());
  if (OperationByOperation(w_.stack)) {
    WidenGradient(scores);
    DropoutBackward(scores, wide_);
    Reduction("softmax gradient",
              rows,
              scores,
              2 * wide_,
              wide_,
              kSoftmaxBackwardFlops);
    NarrowGradient(scores);
    Elementwise(Fairseq() ? "mask gradient" : "scale gradient",
                scores,
                element_,
                element_,
                1);
  } else {
    Reduction("dropout and softmax gradient",
              rows,
              scores,
              2 * element_ + DropoutMask(),
              element_,
              kSoftmaxBackwardFlops + DropoutFlops() + 1);
  }
  Gemm("query gradient",
       shape.query_length,
       shape.head_size,
       shape.key_length,
       shape.products());
  Gemm("key gradient",
       shape.key_length,
       shape.head_size,
       shape.query_length,
       shape.products());
}

void PassKernels::HeadBackward() {
  const int64_t b = w_.batch;
  const int64_t h = a_.hidden;
  if (a_.head == Head::kSequenceClassification) {
    LossBackward(b, a_.labels);
    LinearBackward(Matrix::kTaskHead, b, a_.labels, h);
    DropoutBackward(b * h, element_);
    if (a_.classifier_dense) {
      Elementwise("activation gradient", b * h, 2 * element_, element_, 1);
      LinearBackward(Matrix::kTaskHead, b, h, h);
      ScatterFirstTokens();
    }
  } else if (a_.head == Head::kQuestionAnswering) {
    LossBackward(2 * b, w_.sequence_length);
    LinearBackward(
        Matrix::kTaskHead, HeadTokens(), 2, h, true, Input::kNarrowed);
  } else if (VocabularyHead()) {
    const int64_t rows = PredictedTokens();
    LossBackward(rows, a_.vocabulary);
    LinearBackward(Matrix::kVocabulary,
                   rows,
                   a_.vocabulary,
                   h,
                   a_.head != Head::kCausalLanguageModel,
                   Input::kNarrowed);
    if (a_.head != Head::kCausalLanguageModel) {
      LayerNormBackward(rows);
      Elementwise("gelu gradient",
                  rows * h,
                  2 * element_,
                  element_,
                  kGeluBackwardFlops,
                  2);
      LinearBackward(
          Matrix::kVocabularyHead, rows, h, h, true, Input::kNarrowed);
    }
    if (a_.head == Head::kPreTraining) {
      LossBackward(b, 2);
      LinearBackward(Matrix::kVocabularyHead, b, 2, h);
    }
  }
  if (a_.has_pooler() && a_.head != Head::kNone) {
    Elementwise("tanh gradient", b * h, 2 * element_, element_, 3);
    LinearBackward(Matrix::kPooler, b, h, h);
    ScatterFirstTokens();
  }
  if (a_.family == Family::kDecoder) LayerNormBackward(HeadTokens());
}

void PassKernels::ScatterFirstTokens() {
  Copy("scatter first tokens", HeadTokens() * a_.hidden, 0, wide_);
}

void PassKernels::LossBackward(int64_t rows, int64_t classes) {
  const int64_t scores = rows * classes;
  if (OneKernelCriterion()) {
    Reduction("loss gradient",
              rows,
              scores,
              element_,
              element_,
              kSoftmaxForwardFlops + 2,
              1);
    return;
  }
  if (!EagerOutside()) {
    Elementwise("loss gradient", scores, 4, element_, 2, 1);
    return;
  }
  Copy("zero target gradient", scores, 0, 4);
  Copy("scatter target gradient", rows, 4 + kIndexBytes, 4);
  if (Fairseq()) {
    // Of both terms of the smoothed loss, added.
    Elementwise("loss gradient add", scores, 4, 4, 1);
    Reduction("loss gradient", rows, scores, 8, element_, 3, 1);
    return;
  }
  Reduction("loss gradient", rows, scores, 8, 4, 2, 1);
  if (element_ < 4) Copy("cast gradient", scores, 4, element_);
}

// Gradients of tables are dense: zeroed, then rows added. A table that the
// logits are made with too has that gradient added to it.
void PassKernels::EmbeddingsBackward(int64_t tokens) {
  const int64_t elements = tokens * a_.hidden;
  DropoutBackward(elements, wide_);
  if (a_.embedding_layer_norm) LayerNormBackward(tokens);
  if (Sinusoids() && EagerOutside()) {
    Elementwise("embedding scale gradient", elements, 4, 4, 1);
  }
  const std::array table_rows = {a_.vocabulary, a_.positions, a_.token_types};
  for (const int64_t rows : table_rows) {
    if (rows == 0) continue;
    Copy("zero table gradient", rows * a_.hidden, 0, 4);
    list_.kernels.back().parameter_bytes = list_.kernels.back().bytes();
    Kernel& kernel = Push("table gradient", KernelKind::kEmbedding, elements);
    kernel.vector_flops = elements;
    kernel.bytes_read = 2 * elements * 4 + tokens * kIndexBytes;
    kernel.bytes_written = elements * 4;
  }
  if (VocabularyHead() && EagerOutside()) {
    Elementwise("tied gradient add", a_.vocabulary * a_.hidden, 8, 4, 1);
    list_.kernels.back().parameter_bytes = list_.kernels.back().bytes();
    list_.kernels.back().parameter_bytes_written =
        list_.kernels.back().bytes_written;
  }
}

}  // namespace trainfare::model::internal
