#include <algorithm>
#include <tuple>
#include <vector>

#include "trainer/bench/programs/programs.h"
#include "trainer/network/gated_block.h"

namespace trainfare::trainer::programs {
namespace {

// Rows of a norm: its kernels over all elements, and its reduction over rows.
struct NormSize {
  int64_t rows = 0;
  int64_t width = 0;
  bool weighted = false;  // its factor trains
};
NormSize NormSizeOf(const Operation& operation) {
  NormSize size;
  int64_t elements = 0;
  for (const model::Kernel& kernel : operation.kernels) {
    elements = std::max(elements, kernel.work_items);
    const bool weight = kernel.name == kRmsWeightGradient;
    size.weighted = size.weighted || weight;
    if (kernel.kind == model::KernelKind::kReduction && !weight) {
      size.rows = kernel.work_items;
    }
  }
  size.width = elements / size.rows;
  return size;
}
constexpr double kRmsEpsilon = 1e-6;

}  // namespace

Program RmsNormForward(const Setting& s) {
  const NormSize size = NormSizeOf(s.operation);
  return [input = s.Wide({size.rows, size.width}),
          weight = s.Wide({size.width})](int64_t) {
    return RmsNorm(input, weight, kRmsEpsilon);
  };
}
Program RmsNormGradient(const Setting& s) {
  const NormSize size = NormSizeOf(s.operation);
  const at::Tensor input = s.Wide({size.rows, size.width});
  const at::Tensor weight = s.Wide({size.width});
  std::vector<at::Tensor> inputs = {input};
  if (size.weighted) inputs.push_back(weight);
  return Backward(inputs, [&] { return RmsNorm(input, weight, kRmsEpsilon); });
}

Program LayerNorm(const Setting& s) {
  const int64_t hidden = s.architecture().hidden;
  const auto options = at::TensorOptions(at::kFloat).device(s.device);
  return [input = s.Wide({s.kernel().work_items, hidden}),
          weight = at::ones({hidden}, options),
          bias = at::zeros({hidden}, options),
          hidden](int64_t) {
    return at::layer_norm(input, {hidden}, weight, bias, 1e-12);
  };
}
Program LayerNormGradient(const Setting& s) {
  const int64_t hidden = s.architecture().hidden;
  const int64_t rows = s.kernel().work_items;
  const auto options = at::TensorOptions(at::kFloat).device(s.device);
  const at::Tensor input = s.Wide({rows, hidden});
  const at::Tensor weight = at::ones({hidden}, options);
  const at::Tensor bias = at::zeros({hidden}, options);
  const auto forward =
      at::native_layer_norm(input, {hidden}, weight, bias, 1e-12);
  return [=,
          gradient = s.Wide({rows, hidden}),
          mean = std::get<1>(forward),
          scale = std::get<2>(forward)](int64_t) {
    return std::get<0>(at::native_layer_norm_backward(gradient,
                                                      input,
                                                      {hidden},
                                                      mean,
                                                      scale,
                                                      weight,
                                                      bias,
                                                      {true, true, true}));
  };
}

}  // namespace trainfare::trainer::programs
