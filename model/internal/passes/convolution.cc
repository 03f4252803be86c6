#include "model/internal/passes/convolution.h"

#include "model/internal/passes/adapters.h"
#include "model/internal/passes/casts.h"
#include "model/internal/passes/gated_mixers.h"
#include "model/internal/passes/matrices.h"
#include "model/internal/passes/norms.h"
#include "model/internal/passes/products.h"

namespace trainfare::model::internal {
namespace {

// What a filter's channel takes, or gives, times its gate.
void ChannelGate(Pass& pass, int64_t elements) {
  pass.Elementwise(
      "convolution gate", elements, 2 * pass.element, pass.element, 1);
}

// Gradients of both factors: a kernel each by operations.
void ChannelGateBackward(Pass& pass, int64_t elements) {
  constexpr KernelName kName = "convolution gate gradient";
  const int64_t width = pass.element;
  if (!pass.EagerOutside()) {
    pass.Elementwise(kName, elements, 3 * width, 2 * width, 2);
    return;
  }
  pass.Elementwise(kName, elements, 2 * width, width, 1);
  pass.RepeatSince(pass.next() - 1, 2);
}

}  // namespace

void ConvolutionForward(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  const int64_t width = a.convolution_width();
  const int64_t projection = a.convolution_projection_width();
  CastOperand(pass, tokens * a.hidden);
  BlockGemm(pass, "convolution input projection", tokens, projection, a.hidden);
  AdapterForward(pass, Matrix::kConvolutionIn, tokens, projection, a.hidden);
  ChannelGate(pass, tokens * width);
  CausalConvolution(
      pass, tokens * width, a.convolution_reach, Behind::kNothing);
  ChannelGate(pass, tokens * width);
  BlockGemm(pass, "convolution output projection", tokens, a.hidden, width);
  AdapterForward(pass, Matrix::kConvolutionOut, tokens, a.hidden, width);
  ResidualAndNormForward(pass, tokens);
}

void ConvolutionBackward(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  const int64_t width = a.convolution_width();
  const int64_t projection = a.convolution_projection_width();
  ResidualAndNormBackward(pass, tokens);
  LinearBackward(pass,
                 Matrix::kConvolutionOut,
                 tokens,
                 a.hidden,
                 width,
                 /*bias=*/false);
  ChannelGateBackward(pass, tokens * width);
  CausalConvolutionBackward(
      pass, tokens * width, a.convolution_reach, Behind::kNothing);
  ChannelGateBackward(pass, tokens * width);
  // The three that one product made, side by side again.
  if (pass.EagerOutside()) {
    pass.Copy("join projection gradients",
              tokens * projection,
              pass.element,
              pass.element);
  }
  LinearBackward(pass,
                 Matrix::kConvolutionIn,
                 tokens,
                 projection,
                 a.hidden,
                 /*bias=*/false,
                 Input::kNarrowed);
  ResidualGradientAdd(pass, tokens);
}

}  // namespace trainfare::model::internal
