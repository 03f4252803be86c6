#include "trainer/network/experts.h"

#include <vector>

#include "trainer/bench/programs/programs.h"

namespace trainfare::trainer::programs {
namespace {

RouterOptions RouterOf(const Setting& s) {
  return {s.architecture().experts_per_token, /*normalised=*/true};
}

at::Tensor TokensToRoute(const Setting& s) {
  return s.Wide(
      {s.workload.batch * s.workload.sequence_length, s.architecture().hidden});
}

// Scores by which each expert gets as many tokens as the next, which is what
// is counted: token t goes to k experts from number t k on.
at::Tensor BalancedScores(const Setting& s, int64_t tokens) {
  const int64_t experts = s.architecture().experts;
  const int64_t k = s.architecture().experts_per_token;
  constexpr double kChosen = 10.0;
  const at::Tensor best = at::arange(tokens * k, at::kLong)
                              .remainder(experts)
                              .view({tokens, k})
                              .to(s.device);
  return s.Wide({tokens, experts}).scatter_(1, best, kChosen);
}

struct RoutedExperts {
  at::Tensor tokens;
  RoutedTokens routed;
  std::vector<at::Tensor> results;  // of each expert
};
RoutedExperts ExpertsOf(const Setting& s) {
  RoutedExperts experts;
  experts.tokens = TokensToRoute(s);
  experts.routed = RouteTokens(
      experts.tokens, BalancedScores(s, experts.tokens.size(0)), RouterOf(s));
  for (const at::Tensor& rows : experts.routed.rows) {
    experts.results.push_back(s.Wide({rows.size(0), rows.size(1)}));
  }
  return experts;
}

struct SharedPart {
  at::Tensor sum;
  at::Tensor shared;
  at::Tensor gate;  // undefined: none
};
SharedPart SharedPartOf(const Setting& s) {
  SharedPart part;
  part.sum = TokensToRoute(s);
  part.shared = TokensToRoute(s);
  if (s.architecture().shared_expert_gate) {
    part.gate = s.Wide({part.sum.size(0), 1});
  }
  return part;
}

}  // namespace

// The choice of experts, and tokens side by side for each of them.
Program Route(const Setting& s) {
  const at::Tensor tokens = TokensToRoute(s);
  return [tokens,
          scores = BalancedScores(s, tokens.size(0)),
          options = RouterOf(s)](int64_t) {
    // All rows are one tensor, of which these are views.
    return RouteTokens(tokens, scores, options).rows.front();
  };
}
Program RouteGradient(const Setting& s) {
  const at::Tensor tokens = TokensToRoute(s);
  const at::Tensor scores = BalancedScores(s, tokens.size(0));
  return BackwardOfAll({tokens, scores}, [&] {
    RoutedTokens routed = RouteTokens(tokens, scores, RouterOf(s));
    std::vector<at::Tensor> outputs = routed.rows;
    outputs.push_back(routed.weights);
    return outputs;
  });
}

Program Combine(const Setting& s) {
  return [experts = ExpertsOf(s)](int64_t) {
    return CombineExperts(experts.routed, experts.results, experts.tokens);
  };
}
Program CombineGradient(const Setting& s) {
  const RoutedExperts experts = ExpertsOf(s);
  std::vector<at::Tensor> inputs = experts.results;
  inputs.push_back(experts.routed.weights);
  return Backward(inputs, [&] {
    return CombineExperts(experts.routed, experts.results, experts.tokens);
  });
}

Program SharedExpert(const Setting& s) {
  return [part = SharedPartOf(s)](int64_t) {
    return AddSharedExpert(part.sum, part.shared, part.gate);
  };
}
Program SharedExpertGradient(const Setting& s) {
  const SharedPart part = SharedPartOf(s);
  std::vector<at::Tensor> inputs = {part.shared};
  if (part.gate.defined()) inputs.push_back(part.gate);
  return Backward(inputs, [&] {
    return AddSharedExpert(part.sum, part.shared, part.gate);
  });
}

}  // namespace trainfare::trainer::programs
