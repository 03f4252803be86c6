#include "trainer/network/linear.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <optional>
#include <string>

namespace trainfare::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using LinearSignature = at::Tensor(const at::Tensor&,
                                   const at::Tensor&,
                                   const std::optional<at::Tensor>&,
                                   std::string_view,
                                   c10::List<std::optional<at::Scalar>>,
                                   std::optional<std::string_view>);

// LibTorch's own binding of oneDNN's inner product; absent from builds without
// oneDNN.
const std::optional<c10::TypedOperatorHandle<LinearSignature>>& OneDnnLinear() {
  static const auto handle =
      []() -> std::optional<c10::TypedOperatorHandle<LinearSignature>> {
    const auto found = c10::Dispatcher::singleton().findSchema(
        {"mkldnn::_linear_pointwise", ""});
    if (!found || !at::globalContext().userEnabledMkldnn()) {
      return std::nullopt;
    }
    return found->typed<LinearSignature>();
  }();
  return handle;
}

// a (m, k) times the transpose of b (n, k); both may be transposed views.
at::Tensor Product(const at::Tensor& a,
                   const at::Tensor& b,
                   const std::optional<at::Tensor>& bias = std::nullopt) {
  return OneDnnLinear()->call(
      a, b, bias, "none", c10::List<std::optional<at::Scalar>>(), "");
}

// The largest divisor of `rows` that is at most 64: the rows of oneDNN's
// blocks.
int64_t RowsOfBlock(int64_t rows) {
  constexpr int64_t kMostRows = 64;
  int64_t block = std::min(rows, kMostRows);
  while (rows % block != 0) {
    --block;
  }
  return block;
}

bool IsPrime(int64_t number) {
  for (int64_t divisor = 2; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) {
      return false;
    }
  }
  return number > 1;
}

// As many rows as x W^T should have: those of x, or a few more where an odd
// number of blocks of a prime number of rows (7 of 37, 13 of 37, 17 of 43)
// would run at four fifths of the rate of its neighbours. GFLOP/s before and
// after: 287 rows 378, 446; 481 rows 357, 454; 731 rows 364, 438; but 733, a
// prime itself, 444, 437.
int64_t PaddedRows(int64_t rows) {
  constexpr int64_t kManyRows = 256;
  constexpr int64_t kSmallBlock = 32;
  constexpr int64_t kMultiple = 8;
  const int64_t block = RowsOfBlock(rows);
  if (rows < kManyRows || rows % 2 == 0 || block < kSmallBlock ||
      !IsPrime(block)) {
    return rows;
  }
  return (rows + kMultiple - 1) / kMultiple * kMultiple;
}

// Whether products of rows with a weight (out, in) go to oneDNN.
bool TakesOneDnn(const at::Tensor& rows, int64_t out, int64_t in) {
  // Small heads (a handful of labels) fall off oneDNN's fast paths.
  constexpr int64_t kLeastFeatures = 16;
  return out >= kLeastFeatures && in >= kLeastFeatures && rows.is_cpu() &&
         rows.size(0) > 0 && rows.scalar_type() == at::kFloat &&
         !at::autocast::is_autocast_enabled(at::kCPU) &&
         OneDnnLinear().has_value();
}

// Whether MKL's products with what comes backward are the faster ones: it has its
// best kernels for Intel's processors alone. GFLOP/s of two cores of a Xeon with
// AVX-512, by oneDNN and MKL: weight gradients of 256 rows x 3072 x 768 180, 244;
// of 1024 x 768 x 768 180, 254; of 4096 x 1408 x 512 136, 224; input gradients of
// 64 x 768 x 768 163, 179; of 1024 x 3072 x 768 236, 245. Forward neither leads.
bool MklIsFasterBackward() {
#if defined(__x86_64__)
  static const bool is = at::hasMKL() && __builtin_cpu_is("intel") != 0;
  return is;
#else
  return false;
#endif
}

// Whether products with what comes backward, of so many rows, go to oneDNN.
bool TakesOneDnnBackward(const at::Tensor& rows, int64_t out, int64_t in) {
  return TakesOneDnn(rows, out, in) && !MklIsFasterBackward();
}

enum class WeightLayout { kOutIn, kInOut };

template <WeightLayout layout>
class HostLinear : public torch::autograd::Function<HostLinear<layout>> {
 public:
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const at::Tensor& given,
                            const std::optional<at::Tensor>& bias) {
    context->save_for_backward({input, given});
    context->saved_data["bias"] = bias.has_value();
    const at::Tensor weight = OutIn(given);
    // With few rows oneDNN picks a kernel of a fifth of the rate of the one
    // that it has for the transposed product. GFLOP/s of rows x 4096 x 1024, by
    // MKL, oneDNN and oneDNN transposed: 8 rows 43, 52, 69; 32 rows 121, 57,
    // 288; 64 rows 135, 293, 325.
    constexpr int64_t kFewRows = 64;
    if (input.size(0) < kFewRows) {
      const at::Tensor product = Product(weight, input).t();
      return (bias ? product.add(*bias) : product).contiguous();
    }
    const int64_t rows = input.size(0);
    const int64_t padded = PaddedRows(rows);
    if (padded != rows) {
      const at::Tensor more =
          at::constant_pad_nd(input, {0, 0, 0, padded - rows});
      return Product(more, weight, bias).narrow(0, 0, rows);
    }
    return Product(input, weight, bias);
  }

  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& input = saved[0];  // (n, in)
    const at::Tensor weight = OutIn(saved[1]);
    const at::Tensor gradient = gradients[0].contiguous();  // (n, out)
    at::Tensor input_gradient;
    if (context->needs_input_grad(0)) {
      input_gradient = LinearInputGradient(gradient, weight);
    }
    at::Tensor weight_gradient;  // a frozen weight has none
    if (context->needs_input_grad(1)) {
      // In the layout of the weight: another would be copied.
      weight_gradient = layout == WeightLayout::kOutIn
                            ? LinearWeightGradient(gradient, input)
                            : LinearWeightGradient(input, gradient);
    }
    const bool bias = context->saved_data["bias"].toBool();
    return {
        input_gradient,
        weight_gradient,
        bias && context->needs_input_grad(2) ? gradient.sum(0) : at::Tensor()};
  }

 private:
  static at::Tensor OutIn(const at::Tensor& weight) {
    return layout == WeightLayout::kOutIn ? weight : weight.t();
  }
};

std::optional<at::Tensor> IfDefined(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
}

at::Tensor Rows(const at::Tensor& input) {
  return input.reshape({-1, input.size(-1)});
}

// (.., out) where `input` is (.., in).
at::Tensor Unflatten(const at::Tensor& rows, const at::Tensor& input) {
  at::DimVector sizes(input.sizes().begin(), input.sizes().end());
  sizes.back() = rows.size(-1);
  return rows.view(sizes);
}

}  // namespace

at::Tensor LinearInputGradient(const at::Tensor& gradient,
                               const at::Tensor& weight) {
  return TakesOneDnnBackward(gradient, weight.size(0), weight.size(1))
             ? Product(gradient, weight.t())
             : at::mm(gradient, weight);
}

at::Tensor LinearWeightGradient(const at::Tensor& gradient,
                                const at::Tensor& input) {
  return TakesOneDnnBackward(gradient, gradient.size(1), input.size(1))
             ? Product(gradient.t(), input.t())
             : at::mm(gradient.t(), input);
}

at::Tensor Linear(const at::Tensor& input,
                  const at::Tensor& weight,
                  const at::Tensor& bias) {
  if (!TakesOneDnn(input, weight.size(0), weight.size(1))) {
    return at::linear(input, weight, IfDefined(bias));
  }
  // Strided rows (the first token of every sequence) would make oneDNN fall
  // back to its reference product, a hundred times slower.
  return Unflatten(HostLinear<WeightLayout::kOutIn>::apply(
                       Rows(input).contiguous(), weight, IfDefined(bias)),
                   input);
}

at::Tensor Affine(const at::Tensor& input,
                  const at::Tensor& weight,
                  const at::Tensor& bias) {
  const at::Tensor rows = Rows(input);
  if (!TakesOneDnn(input, weight.size(1), weight.size(0))) {
    return Unflatten(
        bias.defined() ? at::addmm(bias, rows, weight) : at::mm(rows, weight),
        input);
  }
  return Unflatten(HostLinear<WeightLayout::kInOut>::apply(
                       rows.contiguous(), weight, IfDefined(bias)),
                   input);
}

}  // namespace trainfare::trainer
