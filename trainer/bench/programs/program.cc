#include "trainer/bench/programs/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/error.h"
#include "trainer/network/transformer.h"

namespace trainfare::trainer {

size_t RotationCount(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.nbytes() == 0) return 1;
  constexpr size_t kMost = 128;
  // A view holds all that it is a part of.
  const size_t held = tensor.storage().nbytes();
  return std::clamp(
      static_cast<size_t>(kRotatedBytes) / held, size_t{1}, kMost);
}

}  // namespace trainfare::trainer

namespace trainfare::trainer::programs {
namespace {

at::ScalarType NarrowTypeOf(model::Precision precision) {
  switch (precision) {
    case model::Precision::kFp16:
      return at::kHalf;
    case model::Precision::kBf16:
      return at::kBFloat16;
    case model::Precision::kFp32:
    case model::Precision::kTf32:
      return at::kFloat;
    case model::Precision::kFp8:
    case model::Precision::kFp4:
      throw model::InputError(
          fmt::format("precision: kernels are measured in fp32, tf32, bf16 and "
                      "fp16, got {}",
                      model::ToText(precision)));
  }
  ENSURE(false, "a precision without a type");
}

}  // namespace

Setting::Setting(const Operation& of, const model::Workload& in, at::Device on)
    : operation(of),
      workload(in),
      device(on),
      narrow(NarrowTypeOf(in.precision)),
      wide(ParameterType(in)) {}

Program BackwardOfAll(std::vector<at::Tensor> inputs,
                      const std::function<std::vector<at::Tensor>()>& make) {
  const at::AutoGradMode with_gradients(true);
  for (const at::Tensor& input : inputs) input.requires_grad_(true);
  std::vector<at::Tensor> outputs = make();
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& output : outputs) {
    gradients.push_back(at::randn_like(output));
  }
  return [inputs = std::move(inputs),
          outputs = std::move(outputs),
          gradients = std::move(gradients)](int64_t) {
    return torch::autograd::grad(
        outputs, inputs, gradients, /*retain_graph=*/true)[0];
  };
}
Program Backward(std::vector<at::Tensor> inputs,
                 const std::function<at::Tensor()>& make) {
  return BackwardOfAll(std::move(inputs),
                       [&] { return std::vector<at::Tensor>{make()}; });
}

}  // namespace trainfare::trainer::programs
