#pragma once

// A feed-forward block of experts (Shazeer et al. 2017, Fedus et al. 2022): a
// router sends each token to the best k of them, and adds up what they give.

#include <cstdint>
#include <functional>

#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

struct RouterOptions {
  int64_t experts_per_token = 1;
  // The weights of a token's experts add up to 1 (Mixtral), or are what softmax
  // over all experts gave them.
  bool normalised = true;
};

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
