#include "model/internal/passes/experts.h"

#include <algorithm>

#include "model/internal/passes/activation_functions.h"
#include "model/internal/passes/adapters.h"
#include "model/internal/passes/casts.h"
#include "model/internal/passes/expert_rows.h"
#include "model/internal/passes/grouped_products.h"
#include "model/internal/passes/matrices.h"
#include "model/internal/passes/norms.h"
#include "model/internal/passes/products.h"
#include "model/rounding.h"
#include "model/trainable.h"

namespace trainfare::model::internal {
namespace {

// Each token goes to k of E experts, balanced; with fewer rows than experts
// some have none.
Routed RoutedRows(const Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  const int64_t rows = RowsOfExperts(pass.workload, tokens);
  const int64_t groups = std::min(rows, a.experts);
  return {rows, groups, CeilDivide(rows, groups)};
}

// The gradients of weights that stand with others in a tensor: autograd lays
// each into zeros of all of them, and adds these up.
void GradientWithin(Pass& pass, const Routed& r, int64_t k, int64_t n) {
  if (pass.experts != ExpertKernels::kShardLoop) return;
  const size_t first = pass.next();
  const int64_t all = std::min(r.groups, kExpertsOfShard) * k * n;
  pass.Copy("expert weight gradient", all, 0, pass.element);
  pass.Copy("expert weight gradient", k * n, pass.element, pass.element);
  pass.Elementwise(
      "expert weight gradient", all, 2 * pass.element, pass.element, 1);
  pass.RepeatSince(first, ExpertLaunches(pass, r));
}

// One product an expert: side by side in one kernel, or one after another.
void ExpertGemm(
    Pass& pass, KernelName name, const Routed& r, int64_t n, int64_t k) {
  const Workload& w = pass.workload;
  const int64_t groups = SideBySide(pass, r);
  const size_t first = pass.next();
  Dequantise(pass, groups * n * k);
  if (pass.narrows_operands) {
    NarrowOperand(pass, "cast activation", groups * r.each * k);
    if (!BaseAsProducts(w)) NarrowOperand(pass, "cast weights", groups * n * k);
  }
  GroupGemm(pass, name, r, n, k);
  if (pass.narrows_operands) ReadNarrowed(pass, Reads::kWeights);
  pass.RepeatSince(first, ExpertLaunches(pass, r));
}

void SharedExpertForward(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  const int64_t wide = a.shared_intermediate;
  if (wide == 0) return;
  const int64_t h = a.hidden;
  if (a.gated) {
    BlockGemm(pass, "feed-forward gate", tokens, wide, h);
    AdapterForward(pass, Matrix::kFeedForwardGate, tokens, wide, h);
  }
  BlockGemm(pass, "feed-forward in", tokens, wide, h);
  AdapterForward(pass, Matrix::kFeedForwardIn, tokens, wide, h);
  if (a.gated) {
    GatedActivation(pass, tokens * wide);
  } else {
    ActivationAlone(pass, "gelu", tokens * wide);
  }
  BlockGemm(pass, "feed-forward out", tokens, h, wide);
  AdapterForward(pass, Matrix::kFeedForwardOut, tokens, h, wide);
  if (a.shared_expert_gate) pass.Gemm("shared expert gate", tokens, 1, h);
  pass.Elementwise(
      "scale shared expert", tokens * h, 2 * pass.element, pass.element, 2);
}

void SharedExpertBackward(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  const int64_t wide = a.shared_intermediate;
  if (wide == 0) return;
  const int64_t h = a.hidden;
  pass.Elementwise(
      "shared expert gradient", tokens * h, 2 * pass.element, pass.element, 2);
  LinearBackward(pass, Matrix::kFeedForwardOut, tokens, h, wide, false);
  if (a.gated) {
    GatedActivationBackward(pass, tokens * wide);
    LinearBackward(pass,
                   Matrix::kFeedForwardGate,
                   tokens,
                   wide,
                   h,
                   false,
                   Input::kNarrowed);
  } else {
    ActivationAloneBackward(pass, "gelu gradient", tokens * wide);
  }
  LinearBackward(
      pass, Matrix::kFeedForwardIn, tokens, wide, h, false, Input::kNarrowed);
}

// What stands around routed experts that have norms of their own
// (Gemma4TextDecoderLayer and Gemma4TextRouter of Transformers): a norm of what
// they are given, and one of what the router is, whose weights it calls scales,
// scaled once more by a number; a scale of each expert within the weights.
void NormsBeforeExperts(Pass& pass, const Routed& r, int64_t sent) {
  const Architecture& a = pass.architecture;
  if (!a.expert_norms) return;
  NormForward(pass, sent, a.hidden, pass.wide);
  NormForward(pass, sent, a.hidden, pass.wide);
  if (pass.Compiled()) return;
  pass.Elementwise("scale router", sent * a.hidden, pass.wide, pass.element, 1);
  pass.Elementwise("routing", r.rows, 2 * kSingle, kSingle, 1);
}

// The router and the routed experts take the hidden states beside the norm that
// the others take, whose gradients are added to these.
void NormsBeforeExpertsBackward(Pass& pass, const Routed& r, int64_t sent) {
  const Architecture& a = pass.architecture;
  if (!a.expert_norms) return;
  if (!pass.Compiled()) {
    pass.Elementwise("routing gradient", r.rows, 2 * kSingle, kSingle, 1);
    pass.Elementwise(
        "scale router", sent * a.hidden, pass.element, pass.wide, 1);
  }
  NormBackward(pass, sent, a.hidden, pass.wide);
  NormBackward(pass, sent, a.hidden, pass.wide);
  if (pass.Compiled()) return;
  for (int more = 0; more < 2; ++more) {
    pass.Elementwise(
        "residual gradient add", sent * a.hidden, 2 * pass.wide, pass.wide, 1);
  }
}

// Behind the routed experts, and behind those of every token.
void NormsBehindExperts(Pass& pass, int64_t sent, int64_t tokens) {
  const Architecture& a = pass.architecture;
  if (!a.expert_norms) return;
  NormForward(pass, sent, a.hidden, pass.wide);
  NormForward(pass, tokens, a.hidden, pass.wide);
}

void NormsBehindExpertsBackward(Pass& pass, int64_t sent, int64_t tokens) {
  const Architecture& a = pass.architecture;
  if (!a.expert_norms) return;
  NormBackward(pass, tokens, a.hidden, pass.wide);
  NormBackward(pass, sent, a.hidden, pass.wide);
}

// What experts of a latent width are given of so many tokens, and what their
// sum is widened by again; the router takes tokens as they are.
void LatentForward(Pass& pass, Matrix matrix, int64_t tokens) {
  const Architecture& a = pass.architecture;
  if (a.expert_latent == 0) return;
  constexpr KernelName kIn = "expert latent in";
  constexpr KernelName kOut = "expert latent out";
  const bool narrows = matrix == Matrix::kExpertLatentIn;
  const int64_t n = narrows ? a.expert_latent : a.hidden;
  const int64_t k = narrows ? a.hidden : a.expert_latent;
  BlockGemm(pass, narrows ? kIn : kOut, tokens, n, k);
  AdapterForward(pass, matrix, tokens, n, k);
}

void LatentBackward(Pass& pass, Matrix matrix, int64_t tokens) {
  const Architecture& a = pass.architecture;
  if (a.expert_latent == 0) return;
  const bool narrows = matrix == Matrix::kExpertLatentIn;
  LinearBackward(pass,
                 matrix,
                 tokens,
                 narrows ? a.expert_latent : a.hidden,
                 narrows ? a.hidden : a.expert_latent,
                 /*bias=*/false);
}

}  // namespace

void ExpertsForward(Pass& pass, int64_t tokens) {
  const Architecture& a = pass.architecture;
  const int64_t sent = TokensOfExperts(pass.workload, tokens);
  const Routed r = RoutedRows(pass, sent);
  const int64_t h = a.expert_width();
  const int64_t wide = a.expert_intermediate;
  NormsBeforeExperts(pass, r, sent);
  RoutingForward(pass, r, sent);
  LatentForward(pass, Matrix::kExpertLatentIn, sent);
  GatherRows(pass, r);
  if (a.gated) {
    ExpertGemm(pass, "expert gate", r, wide, h);
    AdapterForward(pass, Matrix::kFeedForwardGate, r, wide, h);
  }
  ExpertGemm(pass, "expert in", r, wide, h);
  AdapterForward(pass, Matrix::kFeedForwardIn, r, wide, h);
  const size_t first = pass.next();
  if (a.gated) {
    GatedActivation(pass, ExpertRows(pass, r) * wide);
  } else {
    ActivationAlone(pass, "gelu", ExpertRows(pass, r) * wide);
  }
  pass.RepeatSince(first, ExpertLaunches(pass, r));
  ExpertGemm(pass, "expert out", r, h, wide);
  AdapterForward(pass, Matrix::kFeedForwardOut, r, h, wide);
  AddRows(pass, r, sent);
  LatentForward(pass, Matrix::kExpertLatentOut, sent);
  NormsBehindExperts(pass, sent, tokens);
  SharedExpertForward(pass, tokens);
}

void ExpertsBackward(Pass& pass, int64_t tokens) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  const int64_t sent = TokensOfExperts(w, tokens);
  const Routed r = RoutedRows(pass, sent);
  const int64_t h = a.expert_width();
  const int64_t wide = a.expert_intermediate;
  const bool trains = Trains(w, Matrix::kFeedForwardIn);
  const auto product = [&](Matrix matrix, int64_t n, int64_t k) {
    ExpertGemm(pass, "expert input gradient", r, k, n);
    AdapterBackward(pass, matrix, r, n, k);
    if (!trains) return;
    GroupWeightGradient(pass, "expert weight gradient", r, k, n);
    pass.last().launches = ExpertLaunches(pass, r);
    if (pass.narrows_operands && NarrowWeightGradients(w)) {
      ReadNarrowed(pass, Reads::kGradient);
    }
    GradientWithin(pass, r, k, n);
  };
  const auto each = [&](const auto& elementwise) {
    const size_t first = pass.next();
    elementwise();
    pass.RepeatSince(first, ExpertLaunches(pass, r));
  };
  const int64_t rows = ExpertRows(pass, r);
  NormsBehindExpertsBackward(pass, sent, tokens);
  SharedExpertBackward(pass, tokens);
  LatentBackward(pass, Matrix::kExpertLatentOut, sent);
  GatherRowGradients(pass, r, sent);
  product(Matrix::kFeedForwardOut, h, wide);
  if (a.gated) {
    each([&] { GatedActivationBackward(pass, rows * wide); });
    product(Matrix::kFeedForwardGate, wide, h);
    each([&] {
      pass.Elementwise(
          "input gradient add", rows * h, 2 * pass.element, pass.element, 1);
    });
  } else {
    each([&] { ActivationAloneBackward(pass, "gelu gradient", rows * wide); });
  }
  product(Matrix::kFeedForwardIn, wide, h);
  AddRowGradients(pass, r, sent);
  LatentBackward(pass, Matrix::kExpertLatentIn, sent);
  pass.Reduction("routing gradient",
                 sent,
                 sent * a.scored_experts(),
                 8,
                 pass.element,
                 kSoftmaxBackwardFlops);
  pass.Gemm("input gradient", sent, h, a.scored_experts());
  if (trains) {
    WeightGradientGemm(pass, "weight gradient", h, a.scored_experts(), sent);
  }
  NormsBeforeExpertsBackward(pass, r, sent);
}

}  // namespace trainfare::model::internal
