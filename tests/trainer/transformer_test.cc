#include "trainer/transformer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <random>

#include "model/error.h"
#include "trainer/dropout.h"
#include "trainer/session.h"

namespace trainfare::trainer {
namespace {

model::Architecture Small() {
  model::Architecture a;
  a.name = "small";
  a.layers = 2;
  a.hidden = 32;
  a.heads = 4;
  a.intermediate = 64;
  a.vocabulary = 100;
  a.positions = 32;
  a.token_types = 2;
  a.labels = 4;
  return a;
}

Batch RandomBatch(const model::Architecture& a, int64_t batch, int64_t length) {
  at::Generator random = at::detail::createCPUGenerator(11);
  Batch result;
  result.input_ids =
      at::randint(1, a.vocabulary, {batch, length}, random, at::kLong);
  result.labels = at::randint(0, a.labels, {batch}, random, at::kLong);
  return result;
}

DOCTEST_TEST_CASE("parameters of the presets are as the model counts them") {
  for (const char* name : {"bert-tiny", "bert-mini"}) {
    const model::Architecture& a = model::FindArchitecture(name);
    const Encoder encoder(a, DefaultOptions(a), at::kCPU, 1);
    DOCTEST_CHECK(encoder.parameter_count() == model::TotalParameters(a));
  }
  // RoBERTa and DistilBERT at a size that a test can hold.
  model::Architecture roberta = model::FindArchitecture("roberta-base");
  roberta.layers = 1;
  model::Architecture distilbert =
      model::FindArchitecture("distilbert-base-uncased");
  distilbert.layers = 1;
  for (const model::Architecture& a : {roberta, distilbert}) {
    const Encoder encoder(a, DefaultOptions(a), at::kCPU, 1);
    DOCTEST_CHECK(encoder.parameter_count() == model::TotalParameters(a));
  }
}

DOCTEST_TEST_CASE("flash attention gives what materialised attention gives") {
  const model::Architecture a = Small();
  EncoderOptions options = DefaultOptions(a);
  options.attention_dropout = 0;
  const Encoder materialised(a, options, at::kCPU, 3);
  options.attention = model::Attention::kFlash;
  const Encoder flash(a, options, at::kCPU, 3);
  Batch batch = RandomBatch(a, 3, 17);
  batch.attention_mask = at::ones({3, 17}, at::kBool);
  batch.attention_mask.narrow(1, 12, 5).select(0, 1).fill_(false);
  const Output first = materialised.Forward(batch, false);
  const Output second = flash.Forward(batch, false);
  DOCTEST_CHECK(at::allclose(first.logits, second.logits, 1e-4, 1e-6));
  first.loss.backward();
  second.loss.backward();
  for (size_t i = 0; i < materialised.parameters().size(); ++i) {
    const Parameter& parameter = materialised.parameters()[i];
    DOCTEST_INFO(parameter.name);
    DOCTEST_CHECK(at::allclose(parameter.value.grad(),
                               flash.parameters()[i].value.grad(),
                               1e-4,
                               1e-6));
  }
}

DOCTEST_TEST_CASE("what the trainer cannot run is an error, not a guess") {
  const auto message = [](model::Architecture a, EncoderOptions options) {
    try {
      const Encoder encoder(a, options, at::kCPU, 1);
    } catch (const model::InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  model::Architecture a = Small();
  EncoderOptions flash = DefaultOptions(a);
  flash.attention = model::Attention::kFlash;
  DOCTEST_CHECK(message(a, flash) ==
                "attention: flash has no dropout on a CPU; take materialised, "
                "or a model with dropout 0");
  a.family = model::Family::kDecoder;
  DOCTEST_CHECK(message(a, DefaultOptions(a)) ==
                "model small: family: this trainer runs encoders, got decoder");
  a = Small();
  a.heads = 5;
  DOCTEST_CHECK(
      message(a, DefaultOptions(a)) ==
      "model small: hidden: expected a multiple of heads (5), got 32");
}

DOCTEST_TEST_CASE("training overfits a tiny labelled set") {
  const model::Architecture a = Small();
  for (const model::Precision precision :
       {model::Precision::kFp32, model::Precision::kBf16}) {
    OptimizerOptions optimizer;
    optimizer.kind.implementation = model::OptimizerImplementation::kFused;
    optimizer.learning_rate = 2e-3;
    SeedDropout(5);
    Session session(
        std::make_unique<Encoder>(a, DefaultOptions(a), at::kCPU, 5),
        precision,
        optimizer);
    const Batch batch = RandomBatch(a, 16, 12);
    const auto accuracy = [&] {
      return session.Predict(batch)
          .argmax(-1)
          .eq(batch.labels)
          .to(at::kDouble)
          .mean()
          .item<double>();
    };
    const double first_loss =
        session.Step(1, [&](int64_t) { return batch; }).loss;
    DOCTEST_CHECK(first_loss == doctest::Approx(std::log(4)).epsilon(0.2));
    double loss = first_loss;
    for (int step = 0; step < 150; ++step) {
      loss = session.Step(1, [&](int64_t) { return batch; }).loss;
    }
    DOCTEST_CHECK(loss < 0.1);
    DOCTEST_CHECK(accuracy() == 1.0);
  }
}

DOCTEST_TEST_CASE("the same seed gives the same losses, another seed others") {
  const model::Architecture a = Small();
  const Batch batch = RandomBatch(a, 4, 12);
  const auto losses = [&](uint64_t seed) {
    SeedDropout(seed);
    OptimizerOptions optimizer;
    Session session(
        std::make_unique<Encoder>(a, DefaultOptions(a), at::kCPU, seed),
        model::Precision::kFp32,
        optimizer);
    std::vector<double> all;
    for (int step = 0; step < 5; ++step) {
      all.push_back(session.Step(1, [&](int64_t) { return batch; }).loss);
    }
    return all;
  };
  DOCTEST_CHECK(losses(1) == losses(1));
  DOCTEST_CHECK(losses(1) != losses(2));
}

DOCTEST_TEST_CASE("accumulated micro-batches give the gradients of the whole") {
  model::Architecture a = Small();
  a.dropout = 0;
  const Batch whole = RandomBatch(a, 6, 10);
  const auto gradients = [&](int64_t parts) {
    OptimizerOptions optimizer;
    optimizer.learning_rate = 0;  // gradients stay; parameters too
    optimizer.weight_decay = 0;
    Session session(
        std::make_unique<Encoder>(a, DefaultOptions(a), at::kCPU, 1),
        model::Precision::kFp32,
        optimizer);
    const StepTimes times = session.Step(parts, [&](int64_t i) {
      Batch part;
      const int64_t size = 6 / parts;
      part.input_ids = whole.input_ids.narrow(0, i * size, size);
      part.labels = whole.labels.narrow(0, i * size, size);
      return part;
    });
    std::vector<at::Tensor> result = {at::tensor(times.loss)};
    for (const Parameter& parameter : session.encoder().parameters()) {
      result.push_back(parameter.value.grad());
    }
    return result;
  };
  const std::vector<at::Tensor> one = gradients(1);
  const std::vector<at::Tensor> three = gradients(3);
  for (size_t i = 0; i < one.size(); ++i) {
    DOCTEST_CHECK(at::allclose(one[i], three[i], 1e-4, 1e-6));
  }
}

}  // namespace
}  // namespace trainfare::trainer
