#include "trainer/optimizer.h"

#include <doctest/doctest.h>

#include <cmath>

#include "model/error.h"

namespace trainfare::trainer {
namespace {

using model::OptimizerImplementation;
using model::OptimizerKind;

// Two parameters, one of them without weight decay, and the gradients that
// each step gives them.
std::vector<Parameter> MakeParameters() {
  at::manual_seed(2);
  return {{"layer.weight", at::randn({7, 5}).requires_grad_(true)},
          {"layer.bias", at::randn({7}).requires_grad_(true)}};
}

at::Tensor Gradient(int step, int64_t index, at::IntArrayRef sizes) {
  at::manual_seed(static_cast<uint64_t>(100 * step) +
                  static_cast<uint64_t>(index));
  return at::randn(sizes);
}

std::vector<at::Tensor> After(int steps, const OptimizerOptions& options) {
  const std::vector<Parameter> parameters = MakeParameters();
  const auto optimizer = MakeOptimizer(parameters, options);
  for (int step = 0; step < steps; ++step) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      const at::Tensor& value = parameters[i].value;
      value.mutable_grad() =
          Gradient(step, static_cast<int64_t>(i), value.sizes());
    }
    optimizer->Step();
    optimizer->ZeroGradients();
  }
  return {parameters[0].value.detach(), parameters[1].value.detach()};
}

// AdamW as published (Loshchilov & Hutter 2019, algorithm 2), in fp64.
std::vector<at::Tensor> ReferenceAdamW(int steps,
                                       const OptimizerOptions& options) {
  std::vector<at::Tensor> result;
  const std::vector<Parameter> parameters = MakeParameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    at::Tensor value = parameters[i].value.detach().to(at::kDouble);
    at::Tensor first = at::zeros_like(value);
    at::Tensor second = at::zeros_like(value);
    const double decay = i == 0 ? options.weight_decay : 0.0;
    for (int step = 0; step < steps; ++step) {
      const at::Tensor gradient =
          Gradient(step, static_cast<int64_t>(i), value.sizes())
              .to(at::kDouble);
      first = options.beta1 * first + (1 - options.beta1) * gradient;
      second =
          options.beta2 * second + (1 - options.beta2) * gradient * gradient;
      const double t = step + 1;
      const at::Tensor first_hat = first / (1 - std::pow(options.beta1, t));
      const at::Tensor second_hat = second / (1 - std::pow(options.beta2, t));
      value = value - options.learning_rate *
                          (first_hat / (second_hat.sqrt() + options.epsilon) +
                           decay * value);
    }
    result.push_back(value);
  }
  return result;
}

DOCTEST_TEST_CASE("every AdamW follows the published equations") {
  OptimizerOptions options;
  options.learning_rate = 1e-2;
  options.weight_decay = 0.1;
  const std::vector<at::Tensor> expected = ReferenceAdamW(200, options);
  for (const auto implementation : {OptimizerImplementation::kForLoop,
                                    OptimizerImplementation::kMultiTensor,
                                    OptimizerImplementation::kFused}) {
    options.kind = {OptimizerKind::kAdamW, implementation};
    DOCTEST_INFO(std::string(model::ToText(implementation)));
    const std::vector<at::Tensor> actual = After(200, options);
    for (size_t i = 0; i < expected.size(); ++i) {
      DOCTEST_CHECK(
          at::allclose(actual[i].to(at::kDouble), expected[i], 1e-4, 1e-5));
    }
  }
}

DOCTEST_TEST_CASE("SGD is one scaled gradient a step") {
  OptimizerOptions options;
  options.learning_rate = 0.5;
  options.weight_decay = 0.1;
  for (const auto implementation : {OptimizerImplementation::kForLoop,
                                    OptimizerImplementation::kMultiTensor}) {
    options.kind = {OptimizerKind::kSgd, implementation};
    const std::vector<Parameter> start = MakeParameters();
    const at::Tensor weight = start[0].value.detach();
    const at::Tensor expected =
        weight - 0.5 * (Gradient(0, 0, weight.sizes()) + 0.1 * weight);
    DOCTEST_CHECK(at::allclose(After(1, options)[0], expected, 1e-6, 1e-7));
  }
  options.kind = {OptimizerKind::kSgd, OptimizerImplementation::kFused};
  DOCTEST_CHECK_THROWS_WITH_AS(
      MakeOptimizer(MakeParameters(), options),
      "optimizer: sgd has for_loop and multi_tensor, got fused",
      model::InputError);
}

}  // namespace
}  // namespace trainfare::trainer
