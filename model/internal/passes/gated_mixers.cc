#include "model/internal/passes/gated_mixers.h"

namespace trainfare::model::internal {

void Push(Pass& pass, const ChunkProduct& product) {
  Kernel& kernel = pass.Push(product.name,
                             KernelKind::kChunkGemm,
                             product.batch * product.m * product.n);
  kernel.gemm = {product.batch, product.m, product.n, product.k};
  kernel.matrix_flops = 2 * product.batch * product.m * product.n * product.k;
  kernel.bytes_read = product.read;
  kernel.bytes_written = product.written;
  // A difference and two products beside the exponential.
  kernel.vector_flops = 3 * product.scaled;
  kernel.special_ops = product.scaled;
}

void CausalConvolution(Pass& pass,
                       int64_t elements,
                       int64_t reach,
                       Behind behind) {
  const bool silu = behind == Behind::kSilu;
  pass.Elementwise("causal convolution",
                   elements,
                   pass.element,
                   pass.element,
                   2 * reach + (silu ? kGeluForwardFlops : 0),
                   silu ? 1 : 0);
}

// Products of the gradients of what it takes and of its filters, and where
// SiLU needs it the forward ones.
void CausalConvolutionBackward(Pass& pass,
                               int64_t elements,
                               int64_t reach,
                               Behind behind) {
  const bool silu = behind == Behind::kSilu;
  pass.Elementwise("causal convolution gradient",
                   elements,
                   2 * pass.element,
                   pass.element,
                   silu ? 6 * reach + kGeluBackwardFlops : 4 * reach,
                   silu ? 1 : 0);
}

void GatedNorm(Pass& pass, int64_t rows, int64_t elements) {
  pass.Reduction("gated norm",
                 rows,
                 elements,
                 2 * pass.element,
                 pass.element,
                 kRmsNormForwardFlops + kGeluForwardFlops + 1,
                 1);
  pass.ReadRows(RowReads::kNorm);
}

void GatedNormBackward(Pass& pass, int64_t rows, int64_t elements, bool again) {
  pass.Reduction("gated norm gradient",
                 rows,
                 elements,
                 3 * pass.element,
                 (again ? 3 : 2) * pass.element,
                 kRmsNormBackwardFlops + kGeluBackwardFlops + 2,
                 2);
  pass.ReadRows(RowReads::kNorm);
}

}  // namespace trainfare::model::internal
