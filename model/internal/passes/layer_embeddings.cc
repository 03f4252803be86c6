#include "model/internal/passes/layer_embeddings.h"

#include "model/internal/passes/activation_functions.h"
#include "model/internal/passes/adapters.h"
#include "model/internal/passes/casts.h"
#include "model/internal/passes/embeddings.h"
#include "model/internal/passes/matrices.h"
#include "model/internal/passes/norms.h"
#include "model/internal/passes/products.h"
#include "model/trainable.h"

namespace trainfare::model::internal {
namespace {

constexpr KernelName kGradient = "layer embedding gradient";

// An operation over so many elements, outside of what a compiler fuses.
void Operation(
    Pass& pass, KernelName name, int64_t elements, int64_t read, int64_t made) {
  if (pass.EagerOutside()) pass.Elementwise(name, elements, read, made, 1);
}

// The norm of what comes of a block's embeddings, and the residual; the next
// block's norm stands with its feed-forward (norms.cc).
void AddToResidual(Pass& pass, int64_t tokens) {
  const int64_t rows = pass.OfTokens(tokens);
  const int64_t elements = rows * pass.architecture.hidden;
  if (pass.Compiled()) {
    pass.Reduction("bias, dropout, residual and layer norm",
                   rows,
                   elements,
                   2 * pass.element,
                   pass.element,
                   1 + kRmsNormForwardFlops);
    pass.ReadRows(RowReads::kNorm);
    return;
  }
  LayerNormForward(pass, tokens);
  pass.Elementwise(
      "residual add", elements, pass.element + pass.wide, pass.wide, 1);
}

void AddToResidualBackward(Pass& pass, int64_t tokens) {
  LayerNormBackward(pass, tokens);
  NarrowGradient(pass, pass.OfTokens(tokens) * pass.architecture.hidden);
}

// The gradient of a block's own is laid into zeros as wide as those of all
// blocks, which are added up (select_backward of PyTorch); a compiler writes
// that part alone.
void OwnGradient(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  if (!LayerEmbeddingsTrain(pass.workload) || !pass.EagerOutside()) return;
  const int64_t all = tokens * a.layer_table_width();
  pass.Elementwise(kGradient, all, 0, pass.wide, 0);
  pass.Copy(kGradient, tokens * a.layer_embedding_size, pass.wide, pass.wide);
  pass.Elementwise(kGradient, all, 2 * pass.wide, pass.wide, 1);
}

// Of act(gate) e both factors' gradients, and the activation's.
void GateBackward(Pass& pass, int64_t elements) {
  constexpr KernelName kName = "layer gate gradient";
  const bool trains = LayerEmbeddingsTrain(pass.workload);
  if (!pass.ByOperation()) {
    pass.Elementwise(kName,
                     elements,
                     2 * pass.element + pass.wide,
                     pass.element + (trains ? pass.wide : 0),
                     kGeluBackwardFlops + 2,
                     2);
    return;
  }
  if (trains) {
    pass.Elementwise(kName, elements, pass.wide + pass.element, pass.wide, 1);
  }
  pass.Elementwise(kName, elements, 2 * pass.wide, pass.element, 1);
  ActivationAloneBackward(pass, kName, elements);
}

}  // namespace

// Rows times a number, the product times another, its norm over each block's
// part; the sum of both times a third (project_per_layer_inputs() of
// Transformers' modeling_gemma4.py).
void LayerEmbeddingsForward(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  if (a.layer_embedding_size == 0) return;
  constexpr KernelName kName = "layer embedding";
  const int64_t width = a.layer_table_width();
  const int64_t elements = tokens * width;
  Kernel& gather =
      pass.Push("embedding gather", KernelKind::kEmbedding, elements);
  gather.bytes_read =
      elements * ParameterWidth(pass.workload) + tokens * kIndexBytes;
  gather.bytes_written = elements * pass.wide;
  Operation(pass, kName, elements, pass.wide, pass.wide);
  CastOperand(pass, tokens * a.hidden);
  pass.Gemm("layer embedding projection", tokens, width, a.hidden);
  AdapterForward(pass, Matrix::kLayerEmbeddings, tokens, width, a.hidden);
  Operation(pass, kName, elements, pass.element, pass.element);
  NormForward(pass,
              elements / a.layer_embedding_size,
              a.layer_embedding_size,
              pass.element);
  const int64_t normed = NormWidth(pass, pass.element);
  pass.Elementwise(kName, elements, normed + pass.wide, pass.wide, 2);
  Operation(pass, kName, elements, pass.wide, pass.wide);
}

void LayerEmbeddingsBackward(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  if (a.layer_embedding_size == 0) return;
  const int64_t width = a.layer_table_width();
  const int64_t elements = tokens * width;
  Operation(pass, kGradient, elements, pass.wide, pass.wide);
  NormBackward(pass,
               elements / a.layer_embedding_size,
               a.layer_embedding_size,
               pass.element);
  Operation(pass, kGradient, elements, pass.element, pass.element);
  LinearBackward(pass,
                 Matrix::kLayerEmbeddings,
                 tokens,
                 width,
                 a.hidden,
                 /*bias=*/false,
                 Input::kNarrowed);
  ResidualGradientAdd(pass, tokens);
  if (!pass.workload.trainable.everything()) return;
  Operation(pass, kGradient, elements, pass.wide, pass.wide);
  TableGradient(pass, a.layer_table_rows(), tokens, width);
}

// act(x G) e P, where x is what the feed-forward left and e the block's own
// (Gemma4TextDecoderLayer of Transformers).
void LayerInputForward(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  const int64_t size = a.layer_embedding_size;
  if (size == 0) return;
  const int64_t elements = tokens * size;
  CastOperand(pass, tokens * a.hidden);
  BlockGemm(pass, "layer gate", tokens, size, a.hidden);
  AdapterForward(pass, Matrix::kLayerGate, tokens, size, a.hidden);
  if (pass.ByOperation()) {
    ActivationAlone(pass, "activation", elements);
    pass.Elementwise(
        "activation product", elements, pass.element + pass.wide, pass.wide, 1);
    CastOperand(pass, elements);
  } else {
    pass.Elementwise("activation product",
                     elements,
                     pass.element + pass.wide,
                     pass.element,
                     kGeluForwardFlops + 1,
                     1);
  }
  BlockGemm(pass, "layer projection", tokens, a.hidden, size);
  AdapterForward(pass, Matrix::kLayerProjection, tokens, a.hidden, size);
  AddToResidual(pass, tokens);
}

void LayerInputBackward(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  const int64_t size = a.layer_embedding_size;
  if (size == 0) return;
  AddToResidualBackward(pass, tokens);
  LinearBackward(pass,
                 Matrix::kLayerProjection,
                 tokens,
                 a.hidden,
                 size,
                 /*bias=*/false,
                 Input::kNarrowed);
  GateBackward(pass, tokens * size);
  OwnGradient(pass, tokens);
  LinearBackward(pass,
                 Matrix::kLayerGate,
                 tokens,
                 size,
                 a.hidden,
                 /*bias=*/false,
                 Input::kNarrowed);
  ResidualGradientAdd(pass, tokens);
}

}  // namespace trainfare::model::internal
