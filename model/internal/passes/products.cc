#include "model/internal/passes/products.h"

#include "model/error.h"
#include "model/internal/passes/adapters.h"
#include "model/internal/passes/casts.h"
#include "model/internal/passes/grouped_products.h"
#include "model/trainable.h"

namespace trainfare::model::internal {
namespace {

// Whether the scales of an operand are known before all of it is there: 4 bits
// have one of the whole tensor.
bool KnowsScales(const Workload& w) {
  return w.precision == Precision::kFp8 &&
         w.fp8.scaling != Fp8Scaling::kTensor &&
         w.fp8.scaling != Fp8Scaling::kRows;
}

// Hand-fused norms and activations then leave 8 bits, twice, in the place of 16.
bool NarrowedByProducer(const Pass& pass) {
  return pass.HandFused() && KnowsScales(pass.workload);
}

// Bias gradients: column sums of (rows, columns).
void BiasGradient(Pass& pass, int64_t rows, int64_t columns) {
  pass.Reduction("bias gradient", columns, rows * columns, pass.element, 0, 1);
  pass.last().bytes_written = columns * pass.element;
}

int64_t WidthOf(const Pass& pass, Matrix matrix) {
  const Architecture& a = pass.architecture;
  switch (matrix) {
    case Matrix::kQuery:
      return a.query_projection_width();
    case Matrix::kKey:
      return a.key_projection_width();
    case Matrix::kValue:
      return a.value_projection_width();
    case Matrix::kFeedForwardGate:
    case Matrix::kFeedForwardIn:
      return a.intermediate;
    default:
      ENSURE(false, "a matrix that is joined with no other");
  }
}

}  // namespace

void BlockGemm(Pass& pass, KernelName name, int64_t m, int64_t n, int64_t k) {
  const Workload& w = pass.workload;
  // The scan's kernel takes its last weight in 16 bits, whatever the base is in.
  const bool in_scan = name == "state-space output projection" &&
                       !StateSpaceOutIsModule(w.stack.fusion);
  if (!in_scan) Dequantise(pass, n * k);
  if (pass.narrows_operands) {
    // Attention leaves 16 bits, as does the sum of experts' rows.
    if (!NarrowedByProducer(pass) || name == "attention output projection" ||
        name == "expert latent out") {
      NarrowOperand(pass, "cast activation", m * k);
    }
    if (in_scan || !BaseAsProducts(w)) {
      NarrowOperand(pass, "cast weights", n * k);
    }
  }
  pass.Gemm(name, m, n, k);
  if (pass.narrows_operands) ReadNarrowed(pass, Reads::kWeights);
}

void LaidOutBias(Pass& pass, int64_t elements) {
  if (pass.rules.lays_out_bias) {
    pass.Elementwise("bias", elements, pass.element, pass.element, 1);
  }
}

namespace {

bool Narrows(const Pass& pass, Matrix matrix) {
  return pass.narrows_operands && IsOfBlock(matrix);
}

// The gradient of what a product took, by its weight.
void InputGradient(Pass& pass, Matrix matrix, int64_t m, int64_t n, int64_t k) {
  const Workload& w = pass.workload;
  const bool narrow = Narrows(pass, matrix);
  const bool of_scan = matrix == Matrix::kStateSpaceOut &&
                       !StateSpaceOutIsModule(w.stack.fusion);
  if (IsOfBlock(matrix) && !of_scan) DequantiseAgain(pass, n * k);
  const bool narrow_already =
      pass.rules.biases_in_products && !pass.architecture.gated &&
      matrix == Matrix::kFeedForwardIn && w.precision == Precision::kFp8;
  if (narrow && !narrow_already) NarrowOperand(pass, "cast gradient", m * n);
  pass.Gemm("input gradient", m, k, n);
  if (narrow) ReadNarrowed(pass, Reads::kWeights);
}

}  // namespace

void LinearBackward(Pass& pass,
                    Matrix matrix,
                    int64_t m,
                    int64_t n,
                    int64_t k,
                    bool bias,
                    Input input) {
  const Workload& w = pass.workload;
  InputGradient(pass, matrix, m, n, k);
  AdapterBackward(pass, matrix, OneGroup(m), n, k);
  if (input == Input::kNarrowed) WidenGradient(pass, m * k);
  if (!Trains(w, matrix)) return;
  WeightGradientGemm(pass, "weight gradient", k, n, m);
  if (Narrows(pass, matrix) && NarrowWeightGradients(w)) {
    ReadNarrowed(pass, Reads::kGradient);
  }
  WidenParameterGradient(pass, k * n);
  if (bias && !(pass.rules.biases_in_products && IsOfBlock(matrix))) {
    BiasGradient(pass, m, n);
    if (!pass.Compiled()) WidenParameterGradient(pass, n);
  }
}

void MergedLinearBackward(Pass& pass,
                          std::span<const Matrix> matrices,
                          int64_t tokens,
                          bool bias) {
  const int64_t h = pass.architecture.hidden;
  int64_t outputs = 0;
  for (const Matrix matrix : matrices) outputs += WidthOf(pass, matrix);
  if (pass.workload.trainable.lora_rank == 0) {
    LinearBackward(
        pass, matrices.front(), tokens, outputs, h, bias, Input::kNarrowed);
    return;
  }
  InputGradient(pass, matrices.front(), tokens, outputs, h);
  for (const Matrix matrix : matrices) {
    AdapterBackward(pass, matrix, OneGroup(tokens), WidthOf(pass, matrix), h);
  }
  WidenGradient(pass, tokens * h);
}

}  // namespace trainfare::model::internal
