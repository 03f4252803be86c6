#include "trainer/network/transformer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <random>

#include "model/error.h"
#include "model/presets.h"
#include "tests/near.h"
#include "tests/trainer/overfit.h"
#include "tests/trainer/random_batch.h"
#include "trainer/network/decoder.h"
#include "trainer/network/dropout.h"
#include "trainer/network/encoder.h"
#include "trainer/network/make_transformer.h"
#include "trainer/training/session.h"

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

model::Architecture SmallDecoder() {
  model::Architecture a = Small();
  a.name = "small decoder";
  a.family = model::Family::kDecoder;
  a.head = model::Head::kCausalLanguageModel;
  a.token_types = 0;
  a.embedding_layer_norm = false;
  a.pooler = false;
  return a;
}

model::Architecture SmallEncoderDecoder() {
  model::Architecture a = SmallDecoder();
  a.name = "small transformer";
  a.family = model::Family::kEncoderDecoder;
  a.decoder_layers = 3;
  a.positions = 0;
  return a;
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
  model::Architecture gpt2 = model::FindArchitecture("gpt2");
  gpt2.layers = 1;
  model::Architecture transformer = model::FindArchitecture("transformer-base");
  transformer.layers = 1;
  transformer.decoder_layers = 2;
  for (const model::Architecture& a :
       {roberta, distilbert, gpt2, transformer}) {
    const auto made = MakeTransformer(a, DefaultOptions(a), at::kCPU, 1);
    DOCTEST_CHECK(made->parameter_count() == model::TotalParameters(a));
  }
}

void CheckFlashIsMaterialised(const model::Architecture& a) {
  DOCTEST_INFO(a.name);
  TransformerOptions options = DefaultOptions(a);
  options.attention_dropout = 0;
  const auto materialised = MakeTransformer(a, options, at::kCPU, 3);
  options.attention = model::Attention::kFlash;
  const auto flash = MakeTransformer(a, options, at::kCPU, 3);
  Batch batch = RandomBatch(a, 3, 17);
  if (a.family != model::Family::kDecoder) {
    batch.attention_mask = at::ones({3, 17}, at::kBool);
    batch.attention_mask.narrow(1, 12, 5).select(0, 1).fill_(false);
  }
  const Output first = materialised->Forward(batch, false);
  const Output second = flash->Forward(batch, false);
  DOCTEST_CHECK(at::allclose(first.logits, second.logits, 1e-4, 1e-6));
  first.loss.backward();
  second.loss.backward();
  for (size_t i = 0; i < materialised->parameters().size(); ++i) {
    const Parameter& parameter = materialised->parameters()[i];
    DOCTEST_INFO(parameter.name);
    DOCTEST_CHECK(at::allclose(parameter.value.grad(),
                               flash->parameters()[i].value.grad(),
                               1e-4,
                               1e-6));
  }
}

DOCTEST_TEST_CASE("flash attention gives what materialised attention gives") {
  CheckFlashIsMaterialised(Small());
  CheckFlashIsMaterialised(SmallDecoder());
  CheckFlashIsMaterialised(SmallEncoderDecoder());
}

DOCTEST_TEST_CASE(
    "labels are the next tokens, a decoder's input those before") {
  const at::Tensor ids = at::tensor({5, 6, 7, 8, 9, 0}, at::kLong).view({2, 3});
  const at::Tensor tokens = ids.ne(0);
  DOCTEST_CHECK(NextTokens(ids, {}).equal(
      at::tensor({6, 7, -100, 9, 0, -100}, at::kLong).view({2, 3})));
  const at::Tensor labels = NextTokens(ids, tokens);
  DOCTEST_CHECK(labels.equal(
      at::tensor({6, 7, -100, 9, -100, -100}, at::kLong).view({2, 3})));
  DOCTEST_CHECK(
      ShiftRight(labels, 1, 3)
          .equal(at::tensor({1, 6, 7, 1, 9, 3}, at::kLong).view({2, 3})));
}

DOCTEST_TEST_CASE("a decoder does not see the future, an encoder's side does") {
  const at::NoGradGuard no_grad;
  const auto same_until = [](const at::Tensor& a, const at::Tensor& b) {
    return a.sub(b).abs().amax({0, 2}).lt(1e-5).sum().item<int64_t>();
  };
  for (const model::Architecture& a : {SmallDecoder(), SmallEncoderDecoder()}) {
    const bool two_sided = a.family == model::Family::kEncoderDecoder;
    const auto made = MakeTransformer(a, DefaultOptions(a), at::kCPU, 3);
    Batch batch = RandomBatch(a, 2, 9);
    const at::Tensor before = made->Forward(batch, false).logits;
    at::Tensor& ids = two_sided ? batch.target_ids : batch.input_ids;
    ids = ids.clone();
    ids.select(1, 6).fill_(99);
    const at::Tensor after = made->Forward(batch, false).logits;
    DOCTEST_CHECK(same_until(before, after) == 6);
    if (!two_sided) continue;
    batch.input_ids = batch.input_ids.clone();
    batch.input_ids.select(1, 8).fill_(99);
    DOCTEST_CHECK(same_until(made->Forward(batch, false).logits, after) == 0);
    // Unless the last word is padding.
    batch.attention_mask = batch.input_ids.ne(99);
    const at::Tensor padded = made->Forward(batch, false).logits;
    batch.input_ids.select(1, 8).fill_(7);
    DOCTEST_CHECK(same_until(made->Forward(batch, false).logits, padded) == 11);
  }
}

DOCTEST_TEST_CASE("what the trainer cannot run is an error, not a guess") {
  const auto message = [](model::Architecture a, TransformerOptions options) {
    try {
      MakeTransformer(a, options, at::kCPU, 1);
    } catch (const model::InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  model::Architecture a = Small();
  TransformerOptions flash = DefaultOptions(a);
  flash.attention = model::Attention::kFlash;
  DOCTEST_CHECK(message(a, flash) ==
                "attention: flash has no dropout on a CPU; take materialised, "
                "or a model with dropout 0");
  a.family = model::Family::kDecoder;
  DOCTEST_CHECK(message(a, DefaultOptions(a)) ==
                "model small: head: decoders have causal-language-model here, "
                "got sequence-classification");
  a = SmallDecoder();
  a.token_types = 2;
  DOCTEST_CHECK(message(a, DefaultOptions(a)) ==
                "model small decoder: expected GPT-2's embeddings, without "
                "token types, a position offset and a LayerNorm; got "
                "token_types 2, position_offset 0, embedding_layer_norm false");
  a = SmallEncoderDecoder();
  a.decoder_layers = 0;
  DOCTEST_CHECK(message(a, DefaultOptions(a)) ==
                "model small transformer: decoder_layers: expected a positive "
                "count, got 0");
  a = Small();
  a.heads = 5;
  DOCTEST_CHECK(
      message(a, DefaultOptions(a)) ==
      "model small: hidden: expected a multiple of heads (5), got 32");
  a = Small();
  a.embedding_size = 16;
  DOCTEST_CHECK(message(a, DefaultOptions(a)) ==
                "model small: embedding_size: the trainer's tables are as "
                "wide as its blocks (32), got 16");
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
    const Overfitted result = Overfit(session, batch, 150);
    DOCTEST_CHECK(result.first_loss == Near(std::log(4), 0.2));
    DOCTEST_CHECK(result.last_loss < 0.1);
    DOCTEST_CHECK(result.accuracy == 1.0);
  }
}

DOCTEST_TEST_CASE("language models overfit a tiny set of texts") {
  for (const model::Architecture& a : {SmallDecoder(), SmallEncoderDecoder()}) {
    DOCTEST_INFO(a.name);
    OptimizerOptions optimizer;
    optimizer.kind.implementation = model::OptimizerImplementation::kFused;
    optimizer.learning_rate = 3e-3;
    SeedDropout(5);
    Session session(MakeTransformer(a, DefaultOptions(a), at::kCPU, 5),
                    model::Precision::kFp32,
                    optimizer);
    const Batch batch = RandomBatch(a, 8, 12);
    const Overfitted result = Overfit(session, batch, 300);
    DOCTEST_CHECK(result.first_loss == Near(std::log(100), 0.1));
    // The first word of a text cannot be known, what follows can.
    DOCTEST_CHECK(result.accuracy > 0.98);
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
    for (const Parameter& parameter : session.transformer().parameters()) {
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
