#include "trainer/network/experts.h"

#include <tuple>
#include <vector>

#include "trainer/network/widen.h"

namespace trainfare::trainer {

at::Tensor RouteToExperts(const at::Tensor& tokens,
                          const at::Tensor& scores,
                          const RouterOptions& options,
                          const Expert& expert) {
  const int64_t k = options.experts_per_token;
  at::Tensor weights;  // (N, k)
  at::Tensor chosen;   // (N, k)
  std::tie(weights, chosen) = at::softmax(Widened(scores), -1).topk(k, -1);
  if (options.normalised) weights = weights / weights.sum(-1, true);

  // The pairs of a token and an expert, those of one expert side by side.
  const at::Tensor flat = chosen.flatten();
  const at::Tensor order = at::argsort(flat, /*stable=*/true);
  const at::Tensor token = order.div(k, "floor");
  const at::Tensor counts =
      at::bincount(flat, {}, scores.size(-1)).to(at::kCPU);  // waits for a GPU
  const auto* const rows = counts.const_data_ptr<int64_t>();
  // Split and not narrowed: their gradients are joined in one copy.
  const std::vector<at::Tensor> parts =
      tokens.index_select(0, token).split_with_sizes(
          {rows, static_cast<size_t>(counts.size(0))});
  std::vector<at::Tensor> results;
  // One without rows has gradients, too: zeros, for optimizers and other ranks.
  for (size_t e = 0; e < parts.size(); ++e) {
    results.push_back(expert(static_cast<int64_t>(e), parts[e]));
  }
  const at::Tensor share =
      weights.flatten().index_select(0, order).unsqueeze(-1);
  const at::Tensor sent = at::cat(results) * share.to(results[0].scalar_type());
  return at::zeros_like(tokens).index_add(
      0, token, sent.to(tokens.scalar_type()));
}

}  // namespace trainfare::trainer
