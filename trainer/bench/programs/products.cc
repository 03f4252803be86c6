#include "trainer/bench/programs/programs.h"
#include "trainer/network/linear.h"

namespace trainfare::trainer::programs {

// y = x W^T + b: x (m, k), W (n, k).
Program LinearForward(const Setting& s) {
  const auto& g = s.kernel().gemm;
  return [input = s.Narrow({g.m, g.k}),
          weights = Rotation([&] {
            return s.Narrow({g.n, g.k});
          }),
          bias = s.Narrow({g.n})](int64_t call) {
    return Linear(input, weights[call], bias);
  };
}

// Those of experts, of adapters and of logits over a vocabulary have none.
Program LinearWithoutBias(const Setting& s) {
  const auto& g = s.kernel().gemm;
  return [input = s.Narrow({g.m, g.k}), weights = Rotation([&] {
                                          return s.Narrow({g.n, g.k});
                                        })](int64_t call) {
    return Linear(input, weights[call], {});
  };
}

// The input gradient (m, k) of the same layer, with W (k, n).
Program InputGradient(const Setting& s) {
  const auto& g = s.kernel().gemm;
  return [gradient = s.Narrow({g.m, g.k}), weights = Rotation([&] {
                                             return s.Narrow({g.k, g.n});
                                           })](int64_t call) {
    return LinearInputGradient(gradient, weights[call]);
  };
}

// Input (k, m) and gradient (k, n); k counts the tokens.
Program WeightGradient(const Setting& s) {
  const auto& g = s.kernel().gemm;
  return [gradient = s.Narrow({g.k, g.n}), input = s.Narrow({g.k, g.m})](
             int64_t) { return LinearWeightGradient(gradient, input); };
}

// Column sums of (rows, columns): one FLOP an element, a column an output.
Program BiasGradient(const Setting& s) {
  const int64_t columns = s.kernel().work_items;
  const int64_t rows = s.kernel().vector_flops / columns;
  return [gradient = s.Narrow({rows, columns})](int64_t) {
    return gradient.sum(0);
  };
}

}  // namespace trainfare::trainer::programs
