// Parameters in bf16 or fp16 whose fp32 masters the optimizer holds.

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "model/error.h"
#include "model/kernels.h"
#include "model/presets.h"
#include "tests/near.h"
#include "tests/trainer/overfit.h"
#include "tests/trainer/published_updates.h"
#include "trainer/device/launch_counter.h"
#include "trainer/kernels/fused_adan.h"
#include "trainer/network/dropout.h"
#include "trainer/network/encoder.h"
#include "trainer/network/make_transformer.h"
#include "trainer/optimizer/make_optimizer.h"
#include "trainer/optimizer/optimizer.h"
#include "trainer/training/measure.h"
#include "trainer/training/session.h"

namespace trainfare::trainer {
namespace {

using model::OptimizerImplementation;
using model::OptimizerKind;

constexpr OptimizerImplementation kImplementations[] = {
    OptimizerImplementation::kForLoop,
    OptimizerImplementation::kMultiTensor,
    OptimizerImplementation::kFused};
constexpr at::ScalarType kTypes[] = {at::kBFloat16, at::kHalf};

// One that decays, of no whole number of vectors, and one that does not.
std::vector<Parameter> MakeParameters(at::ScalarType type) {
  at::manual_seed(2);
  const at::Tensor weight = at::randn({7, 5}).to(type);
  const at::Tensor bias = at::randn({7}).to(type);
  return {{"layer.weight", weight.requires_grad_(true)},
          {"layer.bias", bias.requires_grad_(true)}};
}

at::Tensor NarrowGradient(int step,
                          size_t index,
                          at::IntArrayRef sizes,
                          at::ScalarType type) {
  at::manual_seed(100 * static_cast<uint64_t>(step) + index);
  return at::randn(sizes).to(type);
}

at::Tensor MasterOf(const Optimizer& optimizer, const std::string& parameter) {
  for (const Parameter& tensor : optimizer.State()) {
    if (tensor.name == parameter + ".master") return tensor.value;
  }
  return {};
}

// Masters after so many steps with gradients `loss_scale` times too large; the
// parameters are checked to be the masters rounded.
std::vector<at::Tensor> After(int steps,
                              const OptimizerOptions& options,
                              at::ScalarType type,
                              double loss_scale = 1.0) {
  const std::vector<Parameter> parameters = MakeParameters(type);
  const auto optimizer = MakeOptimizer(parameters, options);
  for (int step = 0; step < steps; ++step) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      const at::Tensor& value = parameters[i].value;
      value.mutable_grad() =
          NarrowGradient(step, i, value.sizes(), type) * loss_scale;
    }
    optimizer->Step(loss_scale);
    optimizer->ZeroGradients();
  }
  std::vector<at::Tensor> masters;
  for (const Parameter& parameter : parameters) {
    masters.push_back(MasterOf(*optimizer, parameter.name));
    DOCTEST_REQUIRE(masters.back().defined());
    DOCTEST_CHECK((masters.back().scalar_type() == at::kFloat));
    DOCTEST_CHECK((parameter.value.scalar_type() == type));
    DOCTEST_CHECK(parameter.value.detach().equal(masters.back().to(type)));
  }
  return masters;
}

// From the gradients as they come.
std::vector<at::Tensor> Reference(int steps,
                                  const OptimizerOptions& options,
                                  at::ScalarType type) {
  std::vector<at::Tensor> result;
  const std::vector<Parameter> parameters = MakeParameters(type);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& value = parameters[i].value;
    result.push_back(PublishedUpdates(options,
                                      value,
                                      i == 0 ? options.weight_decay : 0.0,
                                      steps,
                                      [&](int step) {
                                        return NarrowGradient(
                                            step, i, value.sizes(), type);
                                      }));
  }
  return result;
}

DOCTEST_TEST_CASE("masters follow the published equations") {
  OptimizerOptions options;
  options.learning_rate = 1e-2;
  options.weight_decay = 0.1;
  for (const auto kind : {OptimizerKind::kAdamW, OptimizerKind::kAdan}) {
    for (const at::ScalarType type : kTypes) {
      options.kind.kind = kind;
      const std::vector<at::Tensor> expected = Reference(200, options, type);
      for (const auto implementation : kImplementations) {
        options.kind.implementation = implementation;
        DOCTEST_INFO(std::string(model::ToText(kind)),
                     " ",
                     std::string(model::ToText(implementation)),
                     " ",
                     std::string(at::toString(type)));
        const std::vector<at::Tensor> actual = After(200, options, type);
        for (size_t i = 0; i < expected.size(); ++i) {
          DOCTEST_CHECK(
              at::allclose(actual[i].to(at::kDouble), expected[i], 1e-4, 1e-5));
        }
      }
    }
  }
}

DOCTEST_TEST_CASE("small updates add up in the masters") {
  // 1e-4 a step is lost in a bf16 parameter near 1, whose neighbours are 4e-3
  // and 8e-3 away.
  OptimizerOptions options;
  options.kind = {OptimizerKind::kAdamW, OptimizerImplementation::kFused};
  options.learning_rate = 1e-4;
  const at::Tensor value = at::ones({3}, at::kBFloat16).requires_grad_(true);
  const auto optimizer = MakeOptimizer({{"x.bias", value}}, options);
  for (int step = 0; step < 100; ++step) {
    value.mutable_grad() = at::ones({3}, at::kBFloat16);
    optimizer->Step();
  }
  DOCTEST_CHECK(MasterOf(*optimizer, "x.bias")[0].item<double>() ==
                Near(0.99, 1e-5));
  DOCTEST_CHECK(value[0].item<double>() == 0.98828125);  // the nearest to 0.99
}

DOCTEST_TEST_CASE("the loss scale leaves no trace") {
  // A power of two, so that scaled gradients are exact.
  for (const auto kind :
       {OptimizerKind::kSgd, OptimizerKind::kAdamW, OptimizerKind::kAdan}) {
    for (const auto implementation : kImplementations) {
      if (kind == OptimizerKind::kSgd &&
          implementation == OptimizerImplementation::kFused) {
        continue;
      }
      for (const double largest_norm : {0.0, 0.5}) {
        OptimizerOptions options;
        options.kind = {kind, implementation};
        options.learning_rate = 1e-2;
        options.largest_gradient_norm = largest_norm;
        const auto plain = After(5, options, at::kHalf);
        const auto scaled = After(5, options, at::kHalf, 256.0);
        for (size_t i = 0; i < plain.size(); ++i) {
          DOCTEST_CHECK(plain[i].equal(scaled[i]));
        }
      }
    }
  }
}

DOCTEST_TEST_CASE("narrow gradients are clipped by their global norm") {
  OptimizerOptions options;
  options.kind = {OptimizerKind::kSgd, OptimizerImplementation::kForLoop};
  options.learning_rate = 1.0;
  options.weight_decay = 0.0;
  const auto step = [&](double largest) {
    options.largest_gradient_norm = largest;
    std::vector<Parameter> parameters;
    for (const float gradient : {3.0F, 4.0F}) {  // norm 5
      parameters.push_back(
          {"x.weight", at::zeros({1}, at::kBFloat16).requires_grad_(true)});
      parameters.back().value.mutable_grad() =
          at::full({1}, gradient, at::kBFloat16);
    }
    const auto optimizer = MakeOptimizer(parameters, options);
    optimizer->Step();
    return -optimizer->State().back().value.item<double>();
  };
  DOCTEST_CHECK(step(10.0) == 4.0);
  DOCTEST_CHECK(std::abs(step(1.0) - 0.8) < 1e-6);
}

DOCTEST_TEST_CASE("one pass gives the same whatever the number of threads") {
  const int64_t size = 3 * kAdanChunk + 7;
  for (const auto kind : {OptimizerKind::kAdamW, OptimizerKind::kAdan}) {
    const auto run = [&](int threads) {
      const int before = at::get_num_threads();
      at::set_num_threads(threads);
      at::manual_seed(3);
      OptimizerOptions options;
      options.kind = {kind, OptimizerImplementation::kFused};
      const Parameter parameter = {
          "x.weight", at::randn({size}).to(at::kBFloat16).requires_grad_(true)};
      const auto optimizer = MakeOptimizer({parameter}, options);
      for (int step = 0; step < 3; ++step) {
        parameter.value.mutable_grad() = at::randn({size}).to(at::kBFloat16);
        optimizer->Step();
      }
      at::set_num_threads(before);
      return MasterOf(*optimizer, "x.weight");
    };
    DOCTEST_CHECK(run(1).equal(run(2)));
  }
}

DOCTEST_TEST_CASE(
    "an optimizer that is reset takes the parameters as masters") {
  const std::vector<Parameter> parameters = MakeParameters(at::kBFloat16);
  OptimizerOptions options;
  options.kind = {OptimizerKind::kAdan, OptimizerImplementation::kFused};
  const auto optimizer = MakeOptimizer(parameters, options);
  const at::NoGradGuard no_grad;
  parameters[0].value.fill_(3.0);
  optimizer->Reset();
  DOCTEST_CHECK(MasterOf(*optimizer, "layer.weight")
                    .equal(at::full({7, 5}, 3.0, at::kFloat)));
}

// The trainer's launches are those of model/optimizer_kernels.h for the forms
// whose operations are the same: of the for-loop AdamW eight a tensor and the
// two casts, of the one pass one. (The model's Adan is the authors' code, of
// 18 operations where this one has 14.)
DOCTEST_TEST_CASE("kernels of one step are those that the model counts") {
  model::Workload w;
  w.architecture = model::FindArchitecture("bert-tiny");
  w.precision = model::Precision::kBf16;
  w.stack.narrow_weights = true;
  w.optimizer.masters = model::Masters::kInUpdate;
  TransformerOptions options = DefaultOptions(w.architecture);
  options.type = ParameterType(w);
  const auto transformer =
      MakeTransformer(w.architecture, options, at::kCPU, 1);
  for (const model::Optimizer kind :
       {model::Optimizer{OptimizerKind::kAdamW,
                         OptimizerImplementation::kForLoop},
        model::Optimizer{OptimizerKind::kAdamW,
                         OptimizerImplementation::kFused},
        model::Optimizer{OptimizerKind::kAdan,
                         OptimizerImplementation::kFused}}) {
    OptimizerOptions optimizer_options;
    optimizer_options.kind = kind;
    const auto optimizer =
        MakeOptimizer(transformer->parameters(), optimizer_options);
    for (const Parameter& parameter : transformer->parameters()) {
      parameter.value.mutable_grad() = at::ones_like(parameter.value);
    }
    optimizer->Step();
    const LaunchCounter counter;
    optimizer->Step();
    w.optimizer = kind;
    w.optimizer.masters = model::Masters::kInUpdate;
    DOCTEST_INFO(std::string(model::ToText(kind.implementation)));
    DOCTEST_CHECK(
        counter.count() ==
        model::ExpandKernels(w).Counts(model::Phase::kOptimizer).launches);
  }
}

DOCTEST_TEST_CASE("narrow weights overfit a tiny labelled set") {
  model::Architecture a = model::FindArchitecture("bert-tiny");
  a.hidden = 32;
  a.intermediate = 64;
  a.vocabulary = 100;
  a.labels = 4;
  TransformerOptions options = DefaultOptions(a);
  for (const at::ScalarType type : kTypes) {
    options.type = type;
    OptimizerOptions optimizer;
    optimizer.kind = {OptimizerKind::kAdamW, OptimizerImplementation::kFused};
    optimizer.learning_rate = 2e-3;
    SeedDropout(5);
    Session session(
        std::make_unique<Encoder>(a, options, at::kCPU, 5),
        type == at::kHalf ? model::Precision::kFp16 : model::Precision::kBf16,
        optimizer);
    at::manual_seed(7);
    Batch batch;
    batch.input_ids = at::randint(1, a.vocabulary, {16, 12}, at::kLong);
    batch.attention_mask = at::ones({16, 12}, at::kBool);
    batch.attention_mask[3].narrow(0, 5, 7).fill_(false);
    batch.labels = at::randint(0, a.labels, {16}, at::kLong);
    const Overfitted result = Overfit(session, batch, 150);
    DOCTEST_CHECK(result.first_loss == Near(std::log(4), 0.2));
    DOCTEST_CHECK(result.last_loss < 0.1);
    DOCTEST_CHECK(result.accuracy == 1.0);
    for (const Parameter& parameter : session.transformer().parameters()) {
      DOCTEST_CHECK((parameter.value.scalar_type() == type));
    }
  }
}

// Loss and gradients of a small model, no dropout.
std::vector<at::Tensor> Gradients(const model::Architecture& a,
                                  model::Fusion fusion,
                                  at::ScalarType type) {
  TransformerOptions options = DefaultOptions(a);
  options.type = type;
  options.fusion = fusion;
  const auto transformer = MakeTransformer(a, options, at::kCPU, 3);
  at::manual_seed(4);
  Batch batch;
  batch.input_ids = at::randint(1, a.vocabulary, {2, 9}, at::kLong);
  if (a.family == model::Family::kEncoder) {
    batch.labels = at::randint(0, a.labels, {2}, at::kLong);
    batch.attention_mask = at::ones({2, 9}, at::kBool);
    batch.attention_mask[1].narrow(0, 6, 3).fill_(false);
  } else {
    batch.labels = at::randint(1, a.vocabulary, {2, 9}, at::kLong);
    batch.target_ids = ShiftRight(batch.labels, 0, 0);
  }
  const Output output = transformer->Forward(batch, /*training=*/false);
  DOCTEST_CHECK((output.logits.scalar_type() == type));
  output.loss.backward();
  std::vector<at::Tensor> all = {output.loss.detach()};
  for (const Parameter& parameter : transformer->parameters()) {
    DOCTEST_CHECK((parameter.value.grad().scalar_type() == type));
    all.push_back(parameter.value.grad());
  }
  return all;
}

double RelativeDistance(const std::vector<at::Tensor>& got,
                        const std::vector<at::Tensor>& want) {
  double off = 0;
  double size = 0;
  for (size_t i = 1; i < want.size(); ++i) {
    const at::Tensor exact = want[i].to(at::kDouble);
    off += (got[i].to(at::kDouble) - exact).square().sum().item<double>();
    size += exact.square().sum().item<double>();
  }
  return std::sqrt(off / size);
}

DOCTEST_TEST_CASE("models of every family run in narrow types") {
  for (const char* name : {"bert-tiny", "gpt2", "transformer-base"}) {
    model::Architecture a = model::FindArchitecture(name);
    a.layers = 2;
    a.decoder_layers = a.decoder_layers > 0 ? 1 : 0;
    a.hidden = 32;
    a.heads = 4;
    a.intermediate = 64;
    a.vocabulary = 50;
    DOCTEST_INFO(name);
    const auto exact = Gradients(a, model::Fusion::kEager, at::kFloat);
    for (const at::ScalarType type : kTypes) {
      DOCTEST_INFO(std::string(at::toString(type)));
      const double epsilon = type == at::kBFloat16 ? 0x1p-8 : 0x1p-11;
      const auto eager = Gradients(a, model::Fusion::kEager, type);
      const auto fused = Gradients(a, model::Fusion::kFused, type);
      for (const auto& narrow : {eager, fused}) {
        DOCTEST_CHECK(narrow.front().item<double>() ==
                      Near(exact.front().item<double>(), epsilon));
      }
      // Fused operators round once where eager ones round every intermediate.
      const double of_eager = RelativeDistance(eager, exact);
      const double of_fused = RelativeDistance(fused, exact);
      DOCTEST_CHECK(of_eager < 16 * epsilon);
      DOCTEST_CHECK(of_fused < 1.1 * of_eager);
    }
  }
}

DOCTEST_TEST_CASE("narrow weights are asked for by name") {
  const auto message = [](const std::string& more) -> std::string {
    try {
      ParseMeasureRequest(
          R"({"model": "bert-tiny", "batch": 1, "sequence_length": 8,
              "narrow_weights": true)" +
          more + "}");
    } catch (const model::InputError& error) {
      return error.what();
    }
    return "";
  };
  DOCTEST_CHECK(message("") ==
                "narrow_weights: expected precision bf16 or fp16, got fp32");
  DOCTEST_CHECK(message(R"(, "precision": "bf16")").empty());
  DOCTEST_CHECK(message(R"(, "precision": "bf16", "stack": "fused")").empty());
}

DOCTEST_TEST_CASE("a record says that weights are narrow") {
  Measurer measurer(at::kCPU);
  const std::string request =
      R"({"model": "bert-tiny", "batch": 2, "sequence_length": 16,
          "precision": "bf16", "steps": 1, "warmup": 2)";
  const auto workload_of = [&](const std::string& more) {
    const auto record = measurer.Run(ParseMeasureRequest(request + more + "}"));
    DOCTEST_REQUIRE(record.has_value());
    const auto json = nlohmann::json::parse(ToJsonLine(*record));
    DOCTEST_CHECK(json.value("launches_optimizer", 0) > 0);
    return json.at("workload");
  };
  const auto narrow = workload_of(R"(, "narrow_weights": true)");
  DOCTEST_CHECK(narrow.at("narrow_weights") == true);
  DOCTEST_CHECK(narrow.at("optimizer").at("masters") == "in_update");
  const auto plain = workload_of("");
  DOCTEST_CHECK(plain.at("narrow_weights") == false);
  DOCTEST_CHECK(plain.at("optimizer").at("masters") == "apart");
}

}  // namespace
}  // namespace trainfare::trainer
