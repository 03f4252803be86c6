#pragma once

// Optimizers as they were published, in fp64, tensor by tensor.

#include <cmath>
#include <functional>

#include "trainer/optimizer/optimizer.h"

namespace trainfare::trainer {

// One parameter after so many steps with the gradients of `gradient`(step).
// AdamW: Loshchilov & Hutter 2019, algorithm 2. Adan: Xie et al. 2022,
// algorithm 1; its moments start from the first gradient there, the authors'
// code starts from 0 and divides by 1 - b^t, which is the reading followed
// here.
inline at::Tensor PublishedUpdates(
    const OptimizerOptions& o,
    const at::Tensor& start,
    double decay,
    int steps,
    const std::function<at::Tensor(int)>& gradient) {
  const double rate = o.learning_rate;
  at::Tensor p = start.detach().to(at::kDouble);
  at::Tensor m = at::zeros_like(p);
  at::Tensor v = at::zeros_like(p);
  at::Tensor n = at::zeros_like(p);
  at::Tensor previous;
  for (int step = 0; step < steps; ++step) {
    const at::Tensor g = gradient(step).to(at::kDouble);
    const double t = step + 1;
    if (o.kind.kind == model::OptimizerKind::kAdamW) {
      m = o.beta1 * m + (1 - o.beta1) * g;
      v = o.beta2 * v + (1 - o.beta2) * g * g;
      const at::Tensor m_hat = m / (1 - std::pow(o.beta1, t));
      const at::Tensor v_hat = v / (1 - std::pow(o.beta2, t));
      p = p - rate * (m_hat / (v_hat.sqrt() + o.epsilon) + decay * p);
      continue;
    }
    const at::Tensor d = step == 0 ? at::zeros_like(g) : g - previous;
    m = o.adan_beta1 * m + (1 - o.adan_beta1) * g;
    v = o.adan_beta2 * v + (1 - o.adan_beta2) * d;
    n = o.adan_beta3 * n + (1 - o.adan_beta3) * (g + o.adan_beta2 * d).square();
    const at::Tensor m_hat = m / (1 - std::pow(o.adan_beta1, t));
    const at::Tensor v_hat = v / (1 - std::pow(o.adan_beta2, t));
    const at::Tensor n_hat = n / (1 - std::pow(o.adan_beta3, t));
    p = (p -
         rate * (m_hat + o.adan_beta2 * v_hat) / (n_hat.sqrt() + o.epsilon)) /
        (1 + decay * rate);
    previous = g;
  }
  return p;
}

}  // namespace trainfare::trainer
