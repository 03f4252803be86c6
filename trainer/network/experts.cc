#include "trainer/network/experts.h"

#include <tuple>

#include "trainer/network/widen.h"

namespace trainfare::trainer {

RoutedTokens RouteTokens(const at::Tensor& tokens,
                         const at::Tensor& scores,
                         const RouterOptions& options) {
  const int64_t k = options.experts_per_token;
  RoutedTokens routed;
  at::Tensor chosen;  // (N, k)
  std::tie(routed.weights, chosen) =
      at::softmax(Widened(scores), -1).topk(k, -1);
  if (options.normalised) {
    routed.weights = routed.weights / routed.weights.sum(-1, true);
  }
  const at::Tensor flat = chosen.flatten();
  routed.order = at::argsort(flat, /*stable=*/true);
  routed.token = routed.order.div(k, "floor");
  const at::Tensor counts =
      at::bincount(flat, {}, scores.size(-1)).to(at::kCPU);  // waits for a GPU
  const auto* const rows = counts.const_data_ptr<int64_t>();
  // Split and not narrowed: their gradients are joined in one copy.
  routed.rows =
      tokens.index_select(0, routed.token)
          .split_with_sizes({rows, static_cast<size_t>(counts.size(0))});
  return routed;
}

at::Tensor CombineExperts(const RoutedTokens& routed,
                          const std::vector<at::Tensor>& results,
                          const at::Tensor& tokens) {
  const at::Tensor share =
      routed.weights.flatten().index_select(0, routed.order).unsqueeze(-1);
  const at::Tensor sent = at::cat(results) * share.to(results[0].scalar_type());
  return at::zeros_like(tokens).index_add(
      0, routed.token, sent.to(tokens.scalar_type()));
}

at::Tensor AddSharedExpert(const at::Tensor& sum,
                           const at::Tensor& shared,
                           const at::Tensor& gate) {
  return gate.defined() ? sum + at::sigmoid(gate) * shared : sum + shared;
}

at::Tensor RouteToExperts(const at::Tensor& tokens,
                          const at::Tensor& scores,
                          const RouterOptions& options,
                          const Expert& expert) {
  const RoutedTokens routed = RouteTokens(tokens, scores, options);
  std::vector<at::Tensor> results;
  // One without rows has gradients, too: zeros, for optimizers and other ranks.
  for (size_t e = 0; e < routed.rows.size(); ++e) {
    results.push_back(expert(static_cast<int64_t>(e), routed.rows[e]));
  }
  return CombineExperts(routed, results, tokens);
}

}  // namespace trainfare::trainer
