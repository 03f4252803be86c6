#include "model/internal/passes/loss.h"

#include "model/internal/passes/grouped_products.h"
#include "model/internal/passes/matrices.h"
#include "model/internal/passes/products.h"
#include "model/logits.h"
#include "model/rounding.h"

namespace trainfare::model::internal {
namespace {

// One kernel over the logits of a vocabulary, and another that puts their
// gradient in their place.
bool FusedLoss(const Pass& pass, int64_t classes) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  return LossOf(w).fuses && PredictsVocabulary(w) && classes == a.vocabulary;
}

// Bytes of each logit that it takes: as the eager loss, where the head widened
// them.
int64_t FusedLossWidth(const Pass& pass) {
  const Workload& w = pass.workload;
  return LossOf(w).shifts ? BytesOfLossLogit(w) : pass.element;
}

// LibTorch's cross entropy: log-softmax, and what the target has of it.
bool TwoKernelLoss(const Pass& pass) {
  return pass.EagerOutside() && !pass.rules.smooths_labels;
}

// LightSeq2 (not DeepSpeed, which has no translation models) computes the
// probabilities once more in the backward pass.
bool OneKernelCriterion(const Pass& pass) {
  const Architecture& a = pass.architecture;
  return a.two_sided() && pass.rules.one_kernel_criterion;
}

// Hsu et al. 2024 (Liger Kernel, fused_linear_cross_entropy.py): of some rows
// at a time the logits, their loss and gradient in place, and at once the
// gradients of what the logits were made of; the backward pass only scales.
void ChunkedVocabulary(Pass& pass, int64_t rows) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  const int64_t words = a.word_width();
  const int64_t chunk = LossChunk(a, rows);
  const int64_t chunks = CeilDivide(rows, chunk);
  const int64_t each = CeilDivide(rows, chunks);
  const auto repeat = [&] { pass.last().launches = chunks; };
  pass.Gemm("logits chunk", each, a.vocabulary, words);
  repeat();
  const int64_t width = w.work == Work::kForward ? 0 : pass.element;
  pass.Reduction("loss chunk",
                 each,
                 each * a.vocabulary,
                 pass.element,
                 width,
                 kSoftmaxForwardFlops + 2,
                 a.output_soft_cap ? 2 : 1);
  pass.ReadRows(RowReads::kTwice);
  repeat();
  if (w.work == Work::kForward) return;
  pass.Gemm("input gradient", each, words, a.vocabulary);
  repeat();
  if (!Trains(w, Matrix::kVocabulary)) return;
  // Products add to a gradient that begins with zeros (addmm; from Liger 0.7 on
  // sums come behind them, in fp32).
  const int64_t gradient = a.vocabulary * words;
  pass.Copy("zero table gradient", gradient, 0, pass.element);
  pass.last().parameter_bytes = pass.last().bytes();
  pass.last().parameter_bytes_written = pass.last().bytes();
  WeightGradientGemm(pass, "weight gradient", words, a.vocabulary, each);
  pass.last().bytes_read += gradient * pass.element;
  pass.last().parameter_bytes += gradient * pass.element;
  repeat();
}

// A row w of the matrix of logits over its length: the length, at least a little,
// and their quotient.
void UnitRowsForward(Pass& pass) {
  const Architecture& a = pass.architecture;
  if (!a.unit_output_rows) return;
  const int64_t elements = a.vocabulary * a.word_width();
  const int64_t width = ParameterWidth(pass.workload);
  constexpr KernelName kName = "unit rows";
  const auto of_weights = [&] {
    pass.last().parameter_bytes = pass.last().bytes();
  };
  pass.Reduction(kName, a.vocabulary, elements, width, 0, 2);
  pass.last().bytes_written = a.vocabulary * width;
  of_weights();
  if (!pass.Compiled()) {
    pass.Elementwise(kName, a.vocabulary, width, width, 1);
  }
  pass.Elementwise(kName, elements, width, width, 1);
  of_weights();
}

// Of w / n, n = |w|: g / n, and of n the sum of -g (w / n) / n, times w / n. One
// operation after another as autograd runs it (torch.nn.functional.normalize by
// PyTorch 2.11), or a sum and a pass.
void UnitRowsBackward(Pass& pass) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  if (!a.unit_output_rows || !Trains(w, Matrix::kVocabulary)) return;
  const int64_t rows = a.vocabulary;
  const int64_t elements = rows * a.word_width();
  const int64_t width = ParameterWidth(pass.workload);
  constexpr KernelName kName = "unit rows gradient";
  const auto operation = [&](int64_t read, int64_t written, int64_t flops) {
    pass.Elementwise(kName, elements, read * width, written * width, flops);
    pass.last().parameter_bytes = pass.last().bytes();
  };
  const auto sum = [&](int64_t read) {
    pass.Reduction(kName, rows, elements, read * width, 0, 1);
    pass.last().bytes_written = rows * width;
    pass.last().parameter_bytes = pass.last().bytes();
  };
  if (pass.Compiled()) {
    sum(2);
    operation(2, 1, 4);
    return;
  }
  operation(1, 1, 1);  // w / n
  operation(1, 1, 1);  // over n
  operation(1, 1, 1);  // -g
  operation(2, 1, 1);  // their product
  operation(1, 1, 1);  // g / n
  sum(1);
  pass.Elementwise(kName, rows, 2 * width, width, 1);  // where n is not least
  operation(1, 1, 1);                                  // w / n of the length
  operation(0, 0, 1);  // none of no length, of which a mask of rows says
  pass.last().bytes_read = rows * kMaskBytes;
  pass.last().parameter_bytes = pass.last().bytes();
  operation(1, 1, 1);  // times its gradient
  operation(2, 1, 1);  // both paths
}

}  // namespace

void Loss(Pass& pass, int64_t rows, int64_t classes) {
  const Workload& w = pass.workload;
  if (FusedLoss(pass, classes)) {
    const int64_t width = FusedLossWidth(pass);
    if (width > pass.element) {
      pass.Copy("cast logits", rows * classes, pass.element, width);
    }
    pass.Reduction(
        "loss", rows, rows * classes, width, 0, kSoftmaxForwardFlops, 1);
    pass.last().bytes_written = rows * 8;  // log-sum-exp, loss
    return;
  }
  const int64_t width = BytesOfLossLogit(w);
  if (TwoKernelLoss(pass) && pass.element < 4) {
    pass.Copy("cast logits", rows * classes, pass.element, width);
  }
  // LightSeq2's criterion writes no probabilities, nor does Inductor's.
  const bool sums_alone = OneKernelCriterion(pass) || LossOf(w).keeps_row_sums;
  pass.Reduction("loss",
                 rows,
                 rows * classes,
                 TwoKernelLoss(pass) ? width : pass.element,
                 sums_alone ? 0 : width,
                 kSoftmaxForwardFlops,
                 1);
  if (sums_alone) {
    pass.last().bytes_written = rows * 4;
    pass.ReadRows(RowReads::kTwice);
  } else {
    pass.ReadRows(RowReads::kThrice);
  }
  if (TwoKernelLoss(pass)) {
    pass.Reduction("negative log-likelihood", 1, rows, 4 + kIndexBytes, 0, 1);
  }
  if (pass.rules.smooths_labels) {
    // Label smoothing: what the target has, and the mean over all classes.
    pass.Copy("gather target", rows, 4 + kIndexBytes, 4);
    pass.Reduction("smooth loss", rows, rows * classes, 4, 0, 1);
    pass.last().bytes_written = rows * 4;
  }
}

void LossBackward(Pass& pass, int64_t rows, int64_t classes) {
  const Workload& w = pass.workload;
  const int64_t scores = rows * classes;
  if (OneKernelCriterion(pass) || FusedLoss(pass, classes)) {
    const int64_t width =
        FusedLoss(pass, classes) ? FusedLossWidth(pass) : pass.element;
    pass.Reduction("loss gradient",
                   rows,
                   scores,
                   width,
                   width,
                   kSoftmaxForwardFlops + 2,
                   1);
    if (!FusedLoss(pass, classes)) pass.ReadRows(RowReads::kThrice);
    if (width > pass.element) {
      pass.Copy("cast gradient", scores, width, pass.element);
    }
    return;
  }
  if (!pass.EagerOutside()) {
    const int64_t read = LossOf(w).keeps_row_sums ? pass.element : 4;
    pass.Elementwise("loss gradient", scores, read, pass.element, 2, 1);
    return;
  }
  const int64_t width = BytesOfLossLogit(w);
  pass.Copy("zero target gradient", scores, 0, width);
  pass.Copy("scatter target gradient", rows, 4 + kIndexBytes, width);
  if (pass.rules.smooths_labels) {
    // The gradients of both terms of the smoothed loss are added.
    pass.Elementwise("loss gradient add", scores, 4, 4, 1);
    pass.Reduction("loss gradient", rows, scores, 8, pass.element, 3, 1);
    pass.ReadRows(RowReads::kTwice);
    return;
  }
  pass.Reduction("loss gradient", rows, scores, 2 * width, width, 2, 1);
  pass.ReadRows(RowReads::kTwice);
  if (pass.element < 4) pass.Copy("cast gradient", scores, width, pass.element);
}

void VocabularyForward(Pass& pass, int64_t rows) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  UnitRowsForward(pass);
  if (ChunksLoss(w)) {
    ChunkedVocabulary(pass, rows);
    return;
  }
  pass.Gemm("vocabulary logits", rows, a.vocabulary, a.word_width());
  if (a.output_soft_cap) {
    pass.Elementwise(
        "soft cap", rows * a.vocabulary, pass.element, pass.element, 2, 1);
  }
  Loss(pass, rows, a.vocabulary);
}

void VocabularyBackward(Pass& pass, int64_t rows) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  const int64_t words = a.word_width();
  if (ChunksLoss(w)) {
    pass.Elementwise(
        "loss gradient", rows * words, pass.element, pass.element, 1);
    UnitRowsBackward(pass);
    return;
  }
  LossBackward(pass, rows, a.vocabulary);
  if (a.output_soft_cap) {
    pass.Elementwise("soft cap gradient",
                     rows * a.vocabulary,
                     2 * pass.element,
                     pass.element,
                     3);
  }
  LinearBackward(pass,
                 Matrix::kVocabulary,
                 rows,
                 a.vocabulary,
                 words,
                 a.head != Head::kCausalLanguageModel || a.logits_bias,
                 words == a.hidden ? Input::kNarrowed : Input::kAsItIs);
  UnitRowsBackward(pass);
}

}  // namespace trainfare::model::internal
