#include "model/internal/passes/norms.h"

#include "model/internal/passes/casts.h"
#include "model/internal/passes/matrices.h"

namespace trainfare::model::internal {
namespace {

// y = x / sqrt(mean(x^2) + e) * g. Operation by operation in fp32, as
// Transformers writes it: a cast, x^2, its mean, + e, 1 / sqrt, a product, a
// cast back, g. `scaled`: there is a g.
void RmsNormForward(
    Pass& pass, int64_t rows, int64_t width, int64_t read, bool scaled = true) {
  const int64_t elements = rows * width;
  const int64_t written = scaled ? NormWidth(pass, read) : read;
  if (pass.rules.fuses_norm) {
    pass.Reduction(
        "rms norm", rows, elements, read, written, kRmsNormForwardFlops);
    pass.ReadRows(RowReads::kNorm);
    return;
  }
  if (read < 4) pass.Copy("rms norm", elements, read, 4);
  pass.Elementwise("rms norm", elements, 4, 4, 1);
  pass.Reduction("rms norm", rows, elements, 4, 0, 1);
  pass.last().bytes_written = rows * 4;
  pass.Elementwise("rms norm", rows, 4, 4, 1);
  pass.Elementwise("rms norm", rows, 4, 4, 0, 1);
  pass.Elementwise("rms norm", elements, 4, 4, 1);
  if (read < 4) pass.Copy("rms norm", elements, 4, read);
  if (scaled) pass.Elementwise("rms norm", elements, read, written, 1);
}

// The backward pass of RmsNormForward(), in one pass, or an operation at a time
// as autograd runs it: g's gradient (a product and its sum), times g, a cast;
// through x r (two products, a sum of the second), through 1 / sqrt (three over
// the rows), through the mean (a quotient for each element), through x^2 (a
// power, two products), both paths added, a cast.
void RmsNormBackward(
    Pass& pass, int64_t rows, int64_t width, int64_t read, bool scaled = true) {
  const bool trains = scaled && NormsTrain(pass.workload);
  const int64_t elements = rows * width;
  // Of the pass forward.
  const int64_t written = scaled ? NormWidth(pass, read) : read;
  constexpr KernelName kName = "rms norm gradient";
  const auto weight_sum = [&](int64_t bytes) {
    pass.Reduction("rms norm weight gradient", width, elements, bytes, 0, 1);
    pass.last().bytes_written = width * 4;
  };
  if (pass.rules.fuses_norm) {
    pass.Reduction(
        kName, rows, elements, read + written, read, kRmsNormBackwardFlops);
    pass.ReadRows(RowReads::kNorm);
    if (trains) weight_sum(read + written);
    return;
  }
  if (trains) {
    pass.Elementwise(kName, elements, read + written, written, 1);
    weight_sum(written);
  }
  if (scaled) {
    pass.Elementwise(kName, elements, written, written, 1);
    if (pass.autocast && read < 4) pass.Copy(kName, elements, 4, read);
  }
  if (read < 4) pass.Copy(kName, elements, read, 4);
  pass.Elementwise(kName, elements, 4, 4, 1);
  pass.Elementwise(kName, elements, 8, 4, 1);
  pass.Reduction(kName, rows, elements, 4, 0, 1);
  pass.last().bytes_written = rows * 4;
  pass.Elementwise(kName, rows, 4, 4, 2);
  pass.Elementwise(kName, rows, 4, 4, 1);
  pass.Elementwise(kName, rows, 8, 4, 1);
  pass.Elementwise(kName, elements, 0, 4, 1);
  pass.Copy(kName, elements, 4, 4);
  pass.Elementwise(kName, elements, 4, 4, 1);
  pass.Elementwise(kName, elements, 8, 4, 1);
  pass.Elementwise(kName, elements, 8, 4, 1);
  if (read < 4) pass.Copy(kName, elements, 4, read);
}

// Norms without weights, whatever else the model has.
void BareNormForward(Pass& pass, int64_t rows, int64_t width, int64_t read) {
  RmsNormForward(pass, rows, width, read, /*scaled=*/false);
}
void BareNormBackward(Pass& pass, int64_t rows, int64_t width, int64_t read) {
  RmsNormBackward(pass, rows, width, read, /*scaled=*/false);
}

// A norm of the pass forward or backward.
using NormPass = void (*)(Pass&, int64_t, int64_t, int64_t);

// `bare` is the same without weights.
void HeadNorms(Pass& pass,
               NormPass norm,
               NormPass bare,
               bool rotates,
               int64_t query_tokens,
               int64_t key_tokens) {
  const Architecture& a = pass.architecture;
  // Keys and values of another block are normed there.
  if (a.borrows_keys()) key_tokens = 0;
  if (a.value_norm && key_tokens > 0) {
    bare(pass, key_tokens * a.key_heads(), a.context_head_size(), pass.element);
  }
  switch (a.query_key_norm) {
    case QueryKeyNorm::kNone:
      return;
    case QueryKeyNorm::kRotated:
      if (!rotates) return;
      norm = bare;
      [[fallthrough]];
    case QueryKeyNorm::kHead:
    case QueryKeyNorm::kEachHead:
      norm(pass, query_tokens * a.heads, a.query_head_size(), pass.element);
      if (key_tokens == 0) return;
      norm(pass, key_tokens * a.key_heads(), a.query_head_size(), pass.element);
      return;
    case QueryKeyNorm::kWhole:
      norm(pass, query_tokens, a.query_width(), pass.element);
      if (key_tokens == 0) return;
      norm(pass, key_tokens, a.key_width(), pass.element);
      return;
  }
}

}  // namespace

void NormForward(Pass& pass, int64_t rows, int64_t width, int64_t read) {
  const Architecture& a = pass.architecture;
  if (a.norm == Norm::kRms) {
    RmsNormForward(pass, rows, width, read);
    return;
  }
  pass.Reduction(
      "layer norm", rows, rows * width, read, read, kLayerNormForwardFlops);
  pass.ReadRows(RowReads::kNorm);
}

void NormBackward(Pass& pass, int64_t rows, int64_t width, int64_t read) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  if (a.norm == Norm::kRms) {
    RmsNormBackward(pass, rows, width, read);
    return;
  }
  const int64_t elements = rows * width;
  pass.Reduction("layer norm gradient",
                 rows,
                 elements,
                 2 * read,
                 read,
                 kLayerNormBackwardFlops);
  pass.ReadRows(RowReads::kNorm);
  if (!NormsTrain(w) || pass.rules.one_norm_gradient) return;
  // Scale and shift: column sums over the same tensors.
  pass.Reduction("layer norm weight gradient", width, elements, 2 * read, 0, 4);
  pass.last().bytes_written = 2 * width * 4;
}

int64_t NormWidth(const Pass& pass, int64_t read) {
  return pass.autocast ? 4 : read;
}

void HeadNormsForward(Pass& pass,
                      bool rotates,
                      int64_t query_tokens,
                      int64_t key_tokens) {
  HeadNorms(
      pass, &NormForward, &BareNormForward, rotates, query_tokens, key_tokens);
}

void HeadNormsBackward(Pass& pass,
                       bool rotates,
                       int64_t query_tokens,
                       int64_t key_tokens) {
  HeadNorms(pass,
            &NormBackward,
            &BareNormBackward,
            rotates,
            query_tokens,
            key_tokens);
}

void Dropout(Pass& pass, int64_t elements, int64_t width) {
  if (!pass.dropout) return;
  pass.Elementwise(
      "dropout", elements, width, width + kMaskBytes, kDropoutFlops, 0, 1);
}

void DropoutBackward(Pass& pass, int64_t elements, int64_t width) {
  if (!pass.dropout) return;
  pass.Elementwise(
      "dropout gradient", elements, width + kMaskBytes, width, kDropoutFlops);
}

void ResidualAndNormForward(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  const int64_t rows = pass.OfTokens(tokens);
  const int64_t elements = rows * a.hidden;
  switch (pass.rules.block) {
    case BlockKernels::kByOperation:
      Dropout(pass, elements, pass.element);
      if (a.norm_placement == NormPlacement::kBoth) {
        LayerNormForward(pass, tokens);
      }
      pass.Elementwise(
          "residual add", elements, pass.element + pass.wide, pass.wide, 1);
      LayerNormForward(pass, tokens);
      break;
    case BlockKernels::kFusedPasses:
      // Writes the sum, which the backward pass reads, and its norm.
      pass.Reduction("bias, dropout, residual and layer norm",
                     rows,
                     elements,
                     pass.element + pass.wide,
                     2 * pass.wide + pass.DropoutMask(),
                     2 + pass.DropoutFlops() + kLayerNormForwardFlops,
                     0,
                     pass.DropoutDraws());
      pass.ReadRows(RowReads::kNorm);
      break;
    case BlockKernels::kHandFused:
      pass.Elementwise("bias, dropout and residual",
                       elements,
                       2 * pass.element,
                       pass.element + pass.DropoutMask(),
                       2 + pass.DropoutFlops(),
                       0,
                       pass.DropoutDraws());
      LayerNormForward(pass, tokens);
      break;
    case BlockKernels::kCompiled:
      pass.Reduction("bias, dropout, residual and layer norm",
                     rows,
                     elements,
                     2 * pass.element,
                     pass.element + pass.DropoutMask(),
                     2 + pass.DropoutFlops() + kLayerNormForwardFlops,
                     0,
                     pass.DropoutDraws());
      pass.ReadRows(RowReads::kNorm);
      break;
  }
}

void ResidualAndNormBackward(Pass& pass, int64_t tokens) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  const int64_t rows = pass.OfTokens(tokens);
  const int64_t elements = rows * a.hidden;
  if (pass.Compiled()) {
    pass.Reduction("layer norm, residual and dropout gradient",
                   rows,
                   elements,
                   2 * pass.element + pass.DropoutMask(),
                   2 * pass.element,
                   kLayerNormBackwardFlops + 1 + pass.DropoutFlops());
    pass.ReadRows(RowReads::kNorm);
    if (!NormsTrain(w)) return;
    pass.Reduction("layer norm weight gradient",
                   a.hidden,
                   elements,
                   2 * pass.element,
                   0,
                   4);
    pass.last().bytes_written = 2 * a.hidden * 4;
    return;
  }
  if (pass.FusedPasses()) {
    // Before the block, LayerNorm also takes the residual's own gradient.
    const int64_t own = a.norm_before() ? pass.wide : 0;
    const bool two = pass.dropout || pass.autocast;  // gradients that differ
    pass.Reduction("layer norm, residual and dropout gradient",
                   rows,
                   elements,
                   2 * pass.wide + own + pass.DropoutMask(),
                   pass.wide + (two ? pass.element : 0),
                   kLayerNormBackwardFlops + 1 + pass.DropoutFlops());
    pass.ReadRows(RowReads::kNorm);
    if (!NormsTrain(w)) return;
    pass.Reduction("bias and layer norm weight gradient",
                   a.hidden,
                   elements,
                   3 * pass.wide + pass.DropoutMask(),
                   0,
                   6);
    pass.last().bytes_written = 3 * a.hidden * 4 * kPartialSums;
    pass.AddPartialSums(3 * a.hidden);
    return;
  }
  LayerNormBackward(pass, tokens);
  if (a.norm_placement == NormPlacement::kBoth) LayerNormBackward(pass, tokens);
  NarrowGradient(pass, elements);  // of the sum's narrow term
  DropoutBackward(pass, elements, pass.element);
}

void ResidualGradientAdd(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  const bool within =
      pass.Compiled() || (pass.FusedPasses() && a.norm_before());
  if (!within) {
    pass.Elementwise("residual gradient add",
                     pass.OfTokens(tokens) * a.hidden,
                     2 * pass.wide,
                     pass.wide,
                     1);
  }
}

}  // namespace trainfare::model::internal
