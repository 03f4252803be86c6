#include "model/internal/passes/feed_forward.h"

#include <array>

#include "model/internal/passes/activation_functions.h"
#include "model/internal/passes/adapters.h"
#include "model/internal/passes/casts.h"
#include "model/internal/passes/experts.h"
#include "model/internal/passes/matrices.h"
#include "model/internal/passes/norms.h"
#include "model/internal/passes/products.h"

namespace trainfare::model::internal {
namespace {

void DenseForward(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  const int64_t elements = tokens * a.intermediate;
  const bool joint = a.gated && a.joint_gate;
  if (a.gated) {
    if (!joint) {
      BlockGemm(pass, "feed-forward gate", tokens, a.intermediate, a.hidden);
    }
    AdapterForward(
        pass, Matrix::kFeedForwardGate, tokens, a.intermediate, a.hidden);
    if (!joint) CastOperand(pass, tokens * a.hidden);  // each product its own
  }
  const int64_t in = (joint ? 2 : 1) * a.intermediate;
  BlockGemm(pass, "feed-forward in", tokens, in, a.hidden);
  AdapterForward(
      pass, Matrix::kFeedForwardIn, tokens, a.intermediate, a.hidden);
  if (a.feed_forward_bias) LaidOutBias(pass, tokens * in);
  if (a.gated) {
    GatedActivation(pass, elements);
    if (DropsActivation(pass)) DropActivation(pass, elements);
  } else {
    ActivationForward(pass, elements);
  }
  BlockGemm(pass, "feed-forward out", tokens, a.hidden, a.intermediate);
  AdapterForward(
      pass, Matrix::kFeedForwardOut, tokens, a.hidden, a.intermediate);
  if (a.feed_forward_bias) LaidOutBias(pass, tokens * a.hidden);
}

// Both products behind a gate, side by side where they are one matrix.
void GatedInputsBackward(Pass& pass, int64_t tokens, bool bias) {
  const Architecture& a = pass.architecture;
  using enum Matrix;
  if (a.joint_gate) {
    if (pass.EagerOutside()) {
      pass.Copy("join projection gradients",
                2 * tokens * a.intermediate,
                pass.element,
                pass.element);
    }
    MergedLinearBackward(
        pass, std::array{kFeedForwardGate, kFeedForwardIn}, tokens, bias);
    return;
  }
  const auto linear = [&](Matrix matrix) {
    LinearBackward(
        pass, matrix, tokens, a.intermediate, a.hidden, bias, Input::kNarrowed);
  };
  linear(kFeedForwardGate);
  if (!pass.Compiled()) {
    pass.Elementwise(
        "input gradient add", tokens * a.hidden, 2 * pass.wide, pass.wide, 1);
  }
  linear(kFeedForwardIn);
}

void DenseBackward(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  const bool fused = pass.FusedPasses();
  const bool bias = a.feed_forward_bias && !fused;
  LinearBackward(
      pass, Matrix::kFeedForwardOut, tokens, a.hidden, a.intermediate, bias);
  const int64_t elements = tokens * a.intermediate;
  const bool apart = DropsActivation(pass) && pass.ByOperation();
  if (apart) DropoutBackward(pass, elements, pass.element);
  const bool drops = DropsActivation(pass) && !apart;
  if (a.gated) {
    GatedActivationBackward(pass, elements);
    if (drops) {
      pass.last().vector_flops += elements * kDropoutFlops;
      pass.last().bytes_read += elements * kMaskBytes;
    }
    GatedInputsBackward(pass, tokens, bias);
    return;
  }
  ActivationBackward(pass, elements);
  if (fused) pass.AddPartialSums(a.intermediate);
  LinearBackward(pass,
                 Matrix::kFeedForwardIn,
                 tokens,
                 a.intermediate,
                 a.hidden,
                 bias,
                 Input::kNarrowed);
}

}  // namespace

void FeedForwardForward(Pass& pass, int64_t tokens, bool experts) {
  const Architecture& a = pass.architecture;
  CastOperand(pass, tokens * a.hidden);
  if (experts) {
    ExpertsForward(pass, tokens);
  } else {
    DenseForward(pass, tokens);
  }
  ResidualAndNormForward(pass, tokens);
}

void FeedForwardBackward(Pass& pass, int64_t tokens, bool experts) {
  ResidualAndNormBackward(pass, tokens);
  if (experts) {
    ExpertsBackward(pass, tokens);
  } else {
    DenseBackward(pass, tokens);
  }
  ResidualGradientAdd(pass, tokens);
}

}  // namespace trainfare::model::internal
