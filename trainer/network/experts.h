#pragma once

// A feed-forward block of experts (Shazeer et al. 2017, Fedus et al. 2022): a
// router sends each token to the best k of them, and adds up what they give.

#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

struct RouterOptions {
  int64_t experts_per_token = 1;
  // The weights of a token's experts add up to 1 (Mixtral), or are what softmax
  // over all experts gave them.
  bool normalised = true;
};

// The pairs of a token and an expert that it goes to, those of one expert side
// by side.
struct RoutedTokens {
  std::vector<at::Tensor> rows;  // of each expert, (n, H)
  at::Tensor weights;            // of a token's experts, (N, k)
  at::Tensor order;              // each pair's place in `weights`, (N k)
  at::Tensor token;              // that it is of, (N k)
};
RoutedTokens RouteTokens(const at::Tensor& tokens,
                         const at::Tensor& scores,
                         const RouterOptions& options);
// The results of all experts, weighted and added up for each of the tokens.
at::Tensor CombineExperts(const RoutedTokens& routed,
                          const std::vector<at::Tensor>& results,
                          const at::Tensor& tokens);

// `sum` and what a shared expert adds, times the sigmoid of its gate (N, 1)
// where that is defined.
at::Tensor AddSharedExpert(const at::Tensor& sum,
                           const at::Tensor& shared,
                           const at::Tensor& gate);

// What one expert makes of the rows (n, H) that were sent to it, n >= 0.
using Expert =
    std::function<at::Tensor(int64_t expert, const at::Tensor& rows)>;

// `tokens` (N, H) through their experts, (N, H). `scores` (N, experts) are the
// router's; the product of both factors carries the gradient.
at::Tensor RouteToExperts(const at::Tensor& tokens,
                          const at::Tensor& scores,
                          const RouterOptions& options,
                          const Expert& expert);

}  // namespace trainfare::trainer
