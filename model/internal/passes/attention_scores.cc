#include "model/internal/passes/attention_scores.h"

#include "model/internal/passes/casts.h"
#include "model/internal/passes/norms.h"
#include "model/internal/passes/positions.h"

namespace trainfare::model::internal {
namespace {

// An exponential each, and the cap's tanh, which the pass backward makes anew,
// too.
int64_t SpecialOpsOfScores(const Architecture& a, const AttentionShape& shape) {
  return shape.seen_scores() * (a.attention_soft_cap ? 2 : 1);
}

void FlashAttentionForward(Pass& pass, const AttentionShape& shape) {
  const Architecture& a = pass.architecture;
  Kernel& kernel = pass.Push(
      "flash attention", KernelKind::kAttention, shape.context_elements());
  kernel.gemm = {
      shape.products(), shape.query_length, shape.key_length, shape.head_size};
  kernel.matrix_flops =
      2 * shape.seen_scores() * (shape.head_size + shape.value_size);
  kernel.vector_flops =
      (kSoftmaxForwardFlops + 1 + pass.DropoutFlops()) * shape.seen_scores();
  kernel.special_ops = SpecialOpsOfScores(a, shape);
  kernel.random_draws = pass.DropoutDraws() * shape.seen_scores();
  kernel.blocks_overlap = true;
  kernel.bytes_read =
      (shape.query_elements() + shape.key_value_elements()) * pass.element;
  kernel.bytes_written = shape.context_elements() * pass.element;
  if (Biased(pass, shape)) kernel.bytes_read += shape.scores() * pass.element;
}

void FlashAttentionBackward(Pass& pass, const AttentionShape& shape) {
  const Architecture& a = pass.architecture;
  const int64_t rows = shape.products() * shape.query_length;
  if (pass.EagerOutside()) {
    // Dao et al. 2022, algorithm 4: D = rowsum(dO o O), before.
    pass.Reduction("flash attention row sums",
                   rows,
                   shape.context_elements(),
                   2 * pass.element,
                   0,
                   2);
    pass.last().bytes_written = rows * 4;
  }
  // Scores are computed anew: five products instead of four.
  Kernel& kernel = pass.Push("flash attention gradient",
                             KernelKind::kAttention,
                             shape.query_elements());
  kernel.gemm = {
      shape.products(), shape.query_length, shape.key_length, shape.head_size};
  // Scores, queries' and keys' gradients of one size; probabilities' and
  // values' of the other.
  kernel.matrix_flops =
      2 * shape.seen_scores() * (3 * shape.head_size + 2 * shape.value_size);
  kernel.vector_flops =
      (kSoftmaxForwardFlops + kSoftmaxBackwardFlops + pass.DropoutFlops()) *
      shape.seen_scores();
  kernel.special_ops = SpecialOpsOfScores(a, shape);
  kernel.random_draws = pass.DropoutDraws() * shape.seen_scores();
  kernel.bytes_read = (shape.query_elements() + 2 * shape.context_elements() +
                       shape.key_value_elements()) *
                      pass.element;
  kernel.bytes_written =
      (shape.query_elements() + shape.key_value_elements()) * pass.element;
  if (Biased(pass, shape)) kernel.bytes_read += shape.scores() * pass.element;
  if (BiasTrains(pass, shape)) {
    kernel.bytes_written += shape.scores() * pass.element;
  }
  if (pass.EagerOutside()) {
    // Sums of blocks of keys meet in fp32.
    pass.Copy("flash attention query gradient",
              shape.query_elements(),
              4,
              pass.element);
  }
  if (BiasTrains(pass, shape)) {
    pass.Elementwise("position bias gradient",
                     shape.scores(),
                     2 * pass.element,
                     pass.element,
                     1);
  }
}

// Operands of batched products, where heads are not where these take them.
void CopyHeads(Pass& pass,
               const AttentionShape& shape,
               int64_t queries,
               int64_t keys) {
  const bool repeats = shape.key_heads < shape.heads && !pass.Compiled();
  const int64_t rotated = RotatedWidth(pass, shape);
  if (pass.EagerOutside() && !pass.rules.heads_are_strides) {
    // Strided heads are not one batched product: each operand is copied.
    // (Fairseq's tokens come before its sentences: heads are one stride.)
    pass.Copy("split heads", queries, rotated, rotated);
    if (!repeats) {
      pass.Copy("split heads", keys, rotated, rotated);
      pass.Copy("split heads",
                keys / shape.head_size * shape.value_size,
                pass.element,
                pass.element);
    }
  }
  if (repeats) {
    // A batched product has as many keys as queries; the copies lie as it
    // takes them.
    const int64_t rows = shape.products() * shape.key_length;
    pass.Copy("repeat heads", rows * shape.head_size, rotated, rotated);
    pass.Copy(
        "repeat heads", rows * shape.value_size, pass.element, pass.element);
  }
  CastRotated(pass, shape, queries);
  CastRotated(
      pass, shape, shape.products() * shape.key_length * shape.head_size);
}

// Whether softmax gives what is wider than its scores, in fp32; and what it reads
// of each then: LibTorch's takes fp16 as it is, bf16 by a copy (SoftMax.cpp).
bool WidensScores(const Pass& pass) {
  return Widths(pass.workload).probability > pass.wide;
}

int64_t SoftmaxReads(const Pass& pass) {
  const Workload& w = pass.workload;
  return WidensScores(pass) && w.precision != Precision::kFp16
             ? Widths(w).probability
             : pass.wide;
}

// A launch each: scale, mask, softmax, dropout, and the casts between them.
void SoftmaxForwardByOperation(Pass& pass, const AttentionShape& shape) {
  const int64_t scores = shape.scores();
  if (!pass.rules.scales_queries && pass.architecture.scaled_scores) {
    pass.Elementwise("scale scores", scores, pass.element, pass.element, 1);
  }
  // The mask is fp32, and so is the sum; a bias has the mask in it.
  pass.Elementwise("mask scores",
                   scores,
                   pass.element + (Biased(pass, shape) ? pass.wide : 0),
                   pass.wide,
                   1);
  const int64_t width = Widths(pass.workload).probability;
  if (SoftmaxReads(pass) > pass.wide) {
    pass.Copy("cast scores", scores, pass.wide, width);
  }
  pass.Reduction("softmax",
                 shape.products() * shape.query_length,
                 scores,
                 SoftmaxReads(pass),
                 width,
                 kSoftmaxForwardFlops,
                 1);
  pass.ReadRows(RowReads::kThrice);
  if (WidensScores(pass)) {
    pass.Copy("cast scores", scores, width, pass.element);
  }
  Dropout(pass, scores, pass.wide);
  CastOperand(pass, scores);
}

void SoftmaxForward(Pass& pass, const AttentionShape& shape) {
  if (pass.ByOperation()) {
    SoftmaxForwardByOperation(pass, shape);
    return;
  }
  const int64_t scores = shape.scores();
  const int64_t rows = shape.products() * shape.query_length;
  // Where positions are biases, scores are read with them.
  const int64_t read = (Biased(pass, shape) ? 2 : 1) * pass.element;
  if (pass.HandFused()) {
    pass.Reduction("mask and softmax",
                   rows,
                   scores,
                   read,
                   pass.element,
                   kSoftmaxForwardFlops + 1,
                   1);
    pass.ReadRows(RowReads::kThrice);
    Dropout(pass, scores, pass.element);
    return;
  }
  // Fused passes keep probabilities for the backward pass, dropped or not.
  const int64_t kept_for_backward =
      pass.FusedPasses() ? (pass.dropout ? pass.element + kMaskBytes : 0)
                         : pass.DropoutMask();
  pass.Reduction("mask, softmax and dropout",
                 rows,
                 scores,
                 read,
                 pass.element + kept_for_backward,
                 kSoftmaxForwardFlops + 2 + pass.DropoutFlops(),
                 1,
                 pass.DropoutDraws());
  pass.ReadRows(RowReads::kThrice);
}

void SoftmaxBackward(Pass& pass, const AttentionShape& shape) {
  const Architecture& a = pass.architecture;
  const int64_t scores = shape.scores();
  const int64_t rows = shape.products() * shape.query_length;
  if (pass.ByOperation()) {
    WidenGradient(pass, scores);
    DropoutBackward(pass, scores, pass.wide);
    const int64_t width = Widths(pass.workload).probability;
    if (WidensScores(pass)) {
      pass.Copy("cast scores", scores, pass.element, width);
    }
    pass.Reduction("softmax gradient",
                   rows,
                   scores,
                   2 * width,
                   SoftmaxReads(pass),
                   kSoftmaxBackwardFlops);
    pass.ReadRows(RowReads::kTwice);
    if (SoftmaxReads(pass) > pass.wide) {
      pass.Copy("cast scores", scores, width, pass.wide);
    }
    if (BiasTrains(pass, shape) && !a.relative_bias_each_block) {
      pass.Elementwise(
          "position bias gradient", scores, 2 * pass.wide, pass.wide, 1);
    }
    NarrowGradient(pass, scores);
    if (!a.scaled_scores) return;
    pass.Elementwise(pass.rules.scales_queries ? KernelName("mask gradient")
                                               : KernelName("scale gradient"),
                     scores,
                     pass.element,
                     pass.element,
                     1);
  } else {
    // A bias has the sum of all blocks' gradients, or is one block's.
    const int64_t sum = BiasTrains(pass, shape) ? pass.element : 0;
    const int64_t so_far = a.relative_bias_each_block ? 0 : sum;
    pass.Reduction("dropout and softmax gradient",
                   rows,
                   scores,
                   2 * pass.element + pass.DropoutMask() + so_far,
                   pass.element + sum,
                   kSoftmaxBackwardFlops + pass.DropoutFlops() + 1);
    pass.ReadRows(RowReads::kTwice);
  }
  if (a.attention_soft_cap && !pass.Compiled()) {
    pass.Elementwise(
        "soft cap gradient", scores, 2 * pass.element, pass.element, 3);
  }
}

// The gradients of a key or value that several queries read: one a query, then
// their sum.
void SumRepeatedHeads(Pass& pass, const AttentionShape& shape) {
  const Workload& w = pass.workload;
  if (shape.key_heads == shape.heads || pass.Compiled()) return;
  const bool flash = ScoresOnChip(w.stack.attention);
  const auto sum = [&](int64_t size, int64_t width) {
    const int64_t elements = shape.products() * shape.key_length * size;
    const int64_t sums = elements / shape.heads * shape.key_heads;
    pass.Reduction("repeated head gradients", sums, elements, width, 0, 1);
    pass.last().bytes_written = sums * width;
  };
  sum(shape.head_size, flash ? pass.element : RotatedWidth(pass, shape));
  sum(shape.value_size, pass.element);
}

void MaterialisedAttentionForward(Pass& pass,
                                  const AttentionShape& shape,
                                  int64_t queries,
                                  int64_t keys) {
  const Architecture& a = pass.architecture;
  CopyHeads(pass, shape, queries, keys);
  pass.Gemm("attention scores",
            shape.query_length,
            shape.key_length,
            shape.head_size,
            shape.products());
  if (a.attention_soft_cap && !pass.Compiled()) {
    pass.Elementwise(
        "soft cap", shape.scores(), pass.element, pass.element, 2, 1);
  }
  SoftmaxForward(pass, shape);
  pass.Gemm("attention context",
            shape.query_length,
            shape.value_size,
            shape.key_length,
            shape.products());
}

void MaterialisedAttentionBackward(Pass& pass, const AttentionShape& shape) {
  pass.Gemm("probability gradient",
            shape.query_length,
            shape.key_length,
            shape.value_size,
            shape.products());
  pass.Gemm("value gradient",
            shape.key_length,
            shape.value_size,
            shape.query_length,
            shape.products());
  SoftmaxBackward(pass, shape);
  pass.Gemm("query gradient",
            shape.query_length,
            shape.head_size,
            shape.key_length,
            shape.products());
  pass.Gemm("key gradient",
            shape.key_length,
            shape.head_size,
            shape.query_length,
            shape.products());
  WidenRotatedGradient(
      pass, shape, shape.products() * shape.query_length * shape.head_size);
  WidenRotatedGradient(
      pass, shape, shape.products() * shape.key_length * shape.head_size);
  SumRepeatedHeads(pass, shape);
}

}  // namespace

bool CopiesHeads(const Pass& pass) {
  const Workload& w = pass.workload;
  const bool flash = ScoresOnChip(w.stack.attention);
  return !pass.Compiled() &&
         !(flash && (pass.EagerOutside() || pass.rules.packs_heads));
}

void AttentionCoreForward(Pass& pass,
                          const AttentionShape& shape,
                          int64_t queries,
                          int64_t keys) {
  const Workload& w = pass.workload;
  if (ScoresOnChip(w.stack.attention)) {
    CastRotated(pass, shape, queries);
    CastRotated(pass, shape, keys);
    FlashAttentionForward(pass, shape);
  } else {
    MaterialisedAttentionForward(pass, shape, queries, keys);
  }
}

void AttentionCoreBackward(Pass& pass,
                           const AttentionShape& shape,
                           int64_t queries,
                           int64_t keys) {
  const Workload& w = pass.workload;
  if (ScoresOnChip(w.stack.attention)) {
    FlashAttentionBackward(pass, shape);
    if (pass.EagerOutside()) SumRepeatedHeads(pass, shape);
    WidenRotatedGradient(pass, shape, queries);
    WidenRotatedGradient(pass, shape, keys);
  } else {
    MaterialisedAttentionBackward(pass, shape);
  }
}

}  // namespace trainfare::model::internal
