#include "model/internal/passes/head.h"

#include "model/internal/passes/casts.h"
#include "model/internal/passes/loss.h"
#include "model/internal/passes/matrices.h"
#include "model/internal/passes/norms.h"
#include "model/internal/passes/products.h"
#include "model/logits.h"

namespace trainfare::model::internal {
namespace {

// The norm behind the last block has no residual to go with, unless the first
// block does without: each block has two of them, and one is left over.
bool NormOfItsOwn(const Pass& pass) {
  return pass.architecture.closing_norm() && pass.architecture.first_norm;
}

// A dense layer, its activation and a norm before what the head gives.
void HeadTransformForward(Pass& pass, int64_t rows, int64_t width) {
  const Architecture& a = pass.architecture;
  const int64_t elements = rows * width;
  pass.Gemm("head transform", rows, width, a.hidden);
  pass.Elementwise(
      "gelu", elements, pass.element, pass.element, kGeluForwardFlops, 1);
  NormForward(pass, rows, width, pass.wide);
  CastOperand(pass, elements);
}

void HeadTransformBackward(Pass& pass,
                           Matrix matrix,
                           int64_t rows,
                           int64_t width) {
  const Architecture& a = pass.architecture;
  NormBackward(pass, rows, width, pass.wide);
  pass.Elementwise("gelu gradient",
                   rows * width,
                   2 * pass.element,
                   pass.element,
                   kGeluBackwardFlops,
                   2);
  LinearBackward(
      pass, matrix, rows, width, a.hidden, a.head_bias, Input::kNarrowed);
}

void ScatterFirstTokens(Pass& pass) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  pass.Copy("scatter first tokens", HeadTokens(w) * a.hidden, 0, pass.wide);
}

}  // namespace

void HeadForward(Pass& pass) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  const int64_t b = w.batch;
  const int64_t h = a.hidden;
  if (NormOfItsOwn(pass)) {
    LayerNormForward(pass, HeadTokens(w));
    if (a.two_sided()) LayerNormForward(pass, w.tokens());
  }
  if (a.has_pooler()) {
    pass.Copy("first tokens", b * h, pass.wide, pass.element);
    pass.Gemm("pooler", b, h, h);
    pass.Elementwise("tanh", b * h, pass.element, pass.element, 0, 1);
  }
  if (a.head == Head::kSequenceClassification) {
    if (a.classifier_dense) {
      pass.Copy("first tokens", b * h, pass.wide, pass.element);
      pass.Gemm("classifier dense", b, h, h);
      pass.Elementwise("activation", b * h, pass.element, pass.element, 1, 1);
    }
    if (a.head_norm) LayerNormForward(pass, b);
    Dropout(pass, b * h, pass.element);
    pass.Gemm("classifier", b, a.labels, h);
    Loss(pass, b, a.labels);
  } else if (a.head == Head::kQuestionAnswering) {
    CastOperand(pass, HeadTokens(w) * h);
    if (a.head_norm) HeadTransformForward(pass, HeadTokens(w), h);
    pass.Gemm("span logits", HeadTokens(w), 2, h);
    Loss(pass, 2 * b, w.sequence_length);
  } else if (PredictsVocabulary(w)) {
    const int64_t rows = LogitsOf(w).rows;
    if (a.head == Head::kPreTraining) {
      pass.Gemm("next sentence", b, 2, h);
      Loss(pass, b, 2);
    }
    if (w.predictions_per_sequence > 0) {
      pass.Copy("gather predicted tokens", rows * h, pass.wide, pass.element);
    } else {
      CastOperand(pass, rows * h);
    }
    if (a.head != Head::kCausalLanguageModel) {
      HeadTransformForward(pass, rows, a.word_width());
    } else if (a.projects_embeddings()) {
      pass.Gemm("logits projection", rows, a.word_width(), h);
    }
    VocabularyForward(pass, rows);
  }
}

namespace {

void ClassifierBackward(Pass& pass) {
  const Architecture& a = pass.architecture;
  const int64_t b = pass.workload.batch;
  const int64_t h = a.hidden;
  LossBackward(pass, b, a.labels);
  LinearBackward(pass, Matrix::kTaskHead, b, a.labels, h);
  DropoutBackward(pass, b * h, pass.element);
  if (a.head_norm) LayerNormBackward(pass, b);
  if (!a.classifier_dense) return;
  pass.Elementwise(
      "activation gradient", b * h, 2 * pass.element, pass.element, 1);
  LinearBackward(pass, Matrix::kTaskHead, b, h, h, a.head_bias);
  ScatterFirstTokens(pass);
}

void SpansBackward(Pass& pass) {
  const Workload& w = pass.workload;
  const int64_t h = pass.architecture.hidden;
  LossBackward(pass, 2 * w.batch, w.sequence_length);
  LinearBackward(
      pass, Matrix::kTaskHead, HeadTokens(w), 2, h, true, Input::kNarrowed);
  if (pass.architecture.head_norm) {
    HeadTransformBackward(pass, Matrix::kTaskHead, HeadTokens(w), h);
  }
}

// From the loss of the tokens to the input of the head's own layers.
void TokensBackward(Pass& pass) {
  const Architecture& a = pass.architecture;
  const int64_t b = pass.workload.batch;
  const int64_t h = a.hidden;
  const int64_t rows = LogitsOf(pass.workload).rows;
  VocabularyBackward(pass, rows);
  const bool causal = a.head == Head::kCausalLanguageModel;
  if (causal && a.projects_embeddings()) {
    LinearBackward(pass,
                   Matrix::kVocabularyHead,
                   rows,
                   a.word_width(),
                   h,
                   false,
                   Input::kNarrowed);
  }
  if (ChunksLoss(pass.workload)) return;
  if (!causal) {
    HeadTransformBackward(pass, Matrix::kVocabularyHead, rows, a.word_width());
  }
  if (a.head == Head::kPreTraining) {
    LossBackward(pass, b, 2);
    LinearBackward(pass, Matrix::kVocabularyHead, b, 2, h);
  }
}

}  // namespace

void HeadBackward(Pass& pass) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  if (a.head == Head::kSequenceClassification) {
    ClassifierBackward(pass);
  } else if (a.head == Head::kQuestionAnswering) {
    SpansBackward(pass);
  } else if (PredictsVocabulary(w)) {
    TokensBackward(pass);
  }
  if (a.has_pooler() && a.head != Head::kNone) {
    const int64_t b = w.batch;
    const int64_t h = a.hidden;
    pass.Elementwise("tanh gradient", b * h, 2 * pass.element, pass.element, 3);
    LinearBackward(pass, Matrix::kPooler, b, h, h);
    ScatterFirstTokens(pass);
  }
  if (NormOfItsOwn(pass)) {
    LayerNormBackward(pass, HeadTokens(w));
    if (a.two_sided()) LayerNormBackward(pass, w.tokens());
  }
}

}  // namespace trainfare::model::internal
