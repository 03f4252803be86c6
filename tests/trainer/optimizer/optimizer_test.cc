#include "trainer/optimizer/optimizer.h"

#include <doctest/doctest.h>

#include <cmath>

#include "model/error.h"
#include "tests/trainer/published_updates.h"
#include "trainer/device/launch_counter.h"
#include "trainer/kernels/fused_adan.h"
#include "trainer/optimizer/make_optimizer.h"

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

std::vector<at::Tensor> Reference(int steps, const OptimizerOptions& options) {
  std::vector<at::Tensor> result;
  const std::vector<Parameter> parameters = MakeParameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& value = parameters[i].value;
    result.push_back(PublishedUpdates(
        options,
        value,
        i == 0 ? options.weight_decay : 0.0,
        steps,
        [&](int step) {
          return Gradient(step, static_cast<int64_t>(i), value.sizes());
        }));
  }
  return result;
}

DOCTEST_TEST_CASE("every AdamW follows the published equations") {
  OptimizerOptions options;
  options.learning_rate = 1e-2;
  options.weight_decay = 0.1;
  options.kind.kind = OptimizerKind::kAdamW;
  const std::vector<at::Tensor> expected = Reference(200, options);
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

DOCTEST_TEST_CASE("every Adan follows the published equations") {
  OptimizerOptions options;
  options.learning_rate = 1e-2;
  options.weight_decay = 0.1;
  options.kind.kind = OptimizerKind::kAdan;
  const std::vector<at::Tensor> expected = Reference(200, options);
  for (const auto implementation : {OptimizerImplementation::kForLoop,
                                    OptimizerImplementation::kMultiTensor,
                                    OptimizerImplementation::kFused}) {
    options.kind = {OptimizerKind::kAdan, implementation};
    DOCTEST_INFO(std::string(model::ToText(implementation)));
    const std::vector<at::Tensor> actual = After(200, options);
    for (size_t i = 0; i < expected.size(); ++i) {
      DOCTEST_CHECK(
          at::allclose(actual[i].to(at::kDouble), expected[i], 1e-4, 1e-5));
    }
  }
}

DOCTEST_TEST_CASE("fused Adan gives the same with a launch a tensor") {
  OptimizerOptions options;
  options.kind = {OptimizerKind::kAdan, OptimizerImplementation::kFused};
  const std::vector<at::Tensor> together = After(5, options);
  options.access = model::FusedAccess::kOneTensor;
  const std::vector<at::Tensor> each = After(5, options);
  for (size_t i = 0; i < together.size(); ++i) {
    DOCTEST_CHECK(each[i].equal(together[i]));
  }
  options.kind.implementation = OptimizerImplementation::kForLoop;
  DOCTEST_CHECK_THROWS_WITH_AS(
      After(1, options),
      "optimizer: a launch a tensor is for the fused adan, got adan for_loop",
      model::InputError);
}

DOCTEST_TEST_CASE("fused Adan gives the same whatever the number of threads") {
  // Longer than a chunk and no multiple of a vector.
  const int64_t size = 3 * kAdanChunk + 7;
  const auto run = [&](int threads) {
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    at::manual_seed(3);
    OptimizerOptions options;
    options.kind = {OptimizerKind::kAdan, OptimizerImplementation::kFused};
    const Parameter parameter = {"x.weight",
                                 at::randn({size}).requires_grad_(true)};
    const auto optimizer = MakeOptimizer({parameter}, options);
    for (int step = 0; step < 3; ++step) {
      parameter.value.mutable_grad() = at::randn({size});
      optimizer->Step();
    }
    at::set_num_threads(before);
    return parameter.value.detach();
  };
  DOCTEST_CHECK(run(1).equal(run(2)));
}

DOCTEST_TEST_CASE("kernels of one step are counted") {
  struct Row {
    OptimizerKind kind;
    OptimizerImplementation implementation;
    int64_t launches;
  };
  // Two tensors, each in a group of its own. SGD: two operations a tensor;
  // AdamW: 8; Adan: 14; one fused pass a step.
  for (const Row& row :
       {Row{OptimizerKind::kSgd, OptimizerImplementation::kForLoop, 2 * 2},
        Row{OptimizerKind::kAdamW, OptimizerImplementation::kForLoop, 2 * 8},
        Row{OptimizerKind::kAdan, OptimizerImplementation::kForLoop, 2 * 14},
        Row{OptimizerKind::kAdan, OptimizerImplementation::kFused, 1}}) {
    OptimizerOptions options;
    options.kind = {row.kind, row.implementation};
    const std::vector<Parameter> parameters = MakeParameters();
    const auto optimizer = MakeOptimizer(parameters, options);
    for (int step = 0; step < 2; ++step) {
      for (const Parameter& parameter : parameters) {
        parameter.value.mutable_grad() = at::ones_like(parameter.value);
      }
      const LaunchCounter counter;
      optimizer->Step();
      if (step == 1) DOCTEST_CHECK(counter.count() == row.launches);
    }
  }
}

DOCTEST_TEST_CASE("layer-wise decay slows the layers below") {
  const Blocks bert{12, 0};
  DOCTEST_CHECK(DepthOf("bert.embeddings.LayerNorm.weight", bert) == 0);
  DOCTEST_CHECK(DepthOf("bert.encoder.layer.0.output.dense.bias", bert) == 1);
  DOCTEST_CHECK(DepthOf("bert.encoder.layer.11.output.dense.bias", bert) == 12);
  DOCTEST_CHECK(DepthOf("classifier.weight", bert) == 13);
  DOCTEST_CHECK(DepthOf("transformer.wte.weight", bert) == 0);
  const Blocks transformer{6, 5};
  DOCTEST_CHECK(DepthOf("model.shared.weight", transformer) == 0);
  DOCTEST_CHECK(DepthOf("model.encoder.layers.5.fc1.bias", transformer) == 6);
  DOCTEST_CHECK(DepthOf("model.decoder.layers.0.fc1.bias", transformer) == 7);
  DOCTEST_CHECK(DepthOf("model.decoder.layers.4.fc1.bias", transformer) == 11);

  OptimizerOptions options;
  options.kind = {OptimizerKind::kSgd, OptimizerImplementation::kForLoop};
  options.learning_rate = 1.0;
  options.weight_decay = 0.0;
  options.layer_decay = 0.5;
  std::vector<Parameter> parameters;
  for (const char* name : {"embeddings.weight",
                           "layer.0.weight",
                           "layer.1.weight",
                           "classifier.weight"}) {
    parameters.push_back({name, at::zeros({1}).requires_grad_(true)});
    parameters.back().value.mutable_grad() = at::ones({1});
  }
  MakeOptimizer(parameters, options)->Step();
  const double expected[] = {-0.125, -0.25, -0.5, -1.0};
  for (size_t i = 0; i < parameters.size(); ++i) {
    DOCTEST_CHECK(parameters[i].value.item<double>() == expected[i]);
  }
}

DOCTEST_TEST_CASE("gradients are clipped by their global norm") {
  OptimizerOptions options;
  options.kind = {OptimizerKind::kSgd, OptimizerImplementation::kMultiTensor};
  options.learning_rate = 1.0;
  options.weight_decay = 0.0;
  const auto step = [&](double largest) {
    options.largest_gradient_norm = largest;
    std::vector<Parameter> parameters;
    for (const float gradient : {3.0F, 4.0F}) {  // norm 5
      parameters.push_back({"x.weight", at::zeros({1}).requires_grad_(true)});
      parameters.back().value.mutable_grad() = at::full({1}, gradient);
    }
    MakeOptimizer(parameters, options)->Step();
    return -parameters[1].value.item<double>();
  };
  DOCTEST_CHECK(step(0.0) == 4.0);
  DOCTEST_CHECK(step(10.0) == 4.0);
  DOCTEST_CHECK(std::abs(step(1.0) - 0.8) < 1e-6);
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
