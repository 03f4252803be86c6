#include "trainer/network/llama_decoder.h"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/error.h"
#include "model/json_fields.h"
#include "model/memory.h"
#include "model/presets.h"
#include "model/trainable.h"
#include "tests/near.h"
#include "tests/trainer/overfit.h"
#include "tests/trainer/random_batch.h"
#include "trainer/network/dropout.h"
#include "trainer/network/experts.h"
#include "trainer/network/linear.h"
#include "trainer/network/make_transformer.h"
#include "trainer/network/rotary.h"
#include "trainer/runtime/host_allocator.h"
#include "trainer/training/measure.h"
#include "trainer/training/session.h"

namespace trainfare::trainer {
namespace {

model::Architecture SmallLlama() {
  model::Architecture a;
  a.name = "small llama";
  a.family = model::Family::kDecoder;
  a.head = model::Head::kCausalLanguageModel;
  a.layers = 3;
  a.hidden = 32;
  a.heads = 4;
  a.key_value_heads = 2;
  a.intermediate = 48;
  a.vocabulary = 61;
  a.positions = 64;
  a.embedding_layer_norm = a.pooler = false;
  a.separate_projections = true;
  a.dropout = 0.0;
  a.norm = model::Norm::kRms;
  a.norm_bias = false;
  a.norm_placement = model::NormPlacement::kBefore;
  a.position_kind = model::PositionKind::kRotary;
  a.attention_bias = a.output_bias = a.feed_forward_bias = false;
  a.activation = model::Activation::kSilu;
  a.gated = true;
  a.untied_output = true;
  return a;
}

model::Architecture SmallWithExperts() {
  model::Architecture a = SmallLlama();
  a.name = "small mixtral";
  a.experts = 4;
  a.experts_per_token = 2;
  a.expert_intermediate = 24;
  return a;
}

std::vector<at::Tensor> GradientsOf(const Transformer& transformer,
                                    const Batch& batch,
                                    bool training) {
  const Output output = transformer.Forward(batch, training);
  output.loss.backward();
  std::vector<at::Tensor> gradients = {output.loss.detach()};
  for (const Parameter& parameter : transformer.parameters()) {
    gradients.push_back(parameter.value.grad());
  }
  return gradients;
}

DOCTEST_TEST_CASE("parameters are those that the model counts") {
  model::Architecture dense_first = SmallWithExperts();
  dense_first.dense_layers = 1;
  model::Architecture shared = SmallWithExperts();
  shared.shared_intermediate = 40;
  shared.shared_expert_gate = true;
  model::Architecture qwen3 = SmallLlama();
  qwen3.query_key_norm = model::QueryKeyNorm::kHead;
  qwen3.head_size = 12;
  qwen3.untied_output = false;
  for (const model::Architecture& a :
       {SmallLlama(), SmallWithExperts(), dense_first, shared, qwen3}) {
    DOCTEST_INFO(a.name);
    const LlamaDecoder decoder(a, DefaultOptions(a), at::kCPU, 1);
    DOCTEST_CHECK(decoder.parameter_count() == model::TotalParameters(a));
    DOCTEST_CHECK(static_cast<int64_t>(decoder.parameters().size()) ==
                  model::ParameterTensorCount(a));
  }
}

DOCTEST_TEST_CASE("adapters and frozen blocks train what the model counts") {
  model::Workload w;
  w.architecture = SmallLlama();
  w.trainable.lora_rank = 3;
  w.trainable.lora.query = w.trainable.lora.value = true;
  w.trainable.lora.feed_forward_out = true;
  model::Workload frozen;
  frozen.architecture = SmallLlama();
  frozen.trainable.frozen_layers = 2;
  // Each expert and the shared one have adapters of their own.
  model::Workload experts = w;
  experts.architecture = SmallWithExperts();
  experts.architecture.shared_intermediate = 40;
  experts.architecture.shared_expert_gate = true;
  experts.trainable.lora = model::LoraMatricesOf(experts.architecture);
  for (const model::Workload& one : {w, frozen, experts}) {
    TransformerOptions options = DefaultOptions(one.architecture);
    options.trainable = one.trainable;
    const LlamaDecoder decoder(one.architecture, options, at::kCPU, 1);
    int64_t trained = 0;
    for (const Parameter& parameter : decoder.TrainedParameters()) {
      trained += parameter.value.numel();
    }
    DOCTEST_CHECK(trained == model::TrainableParameters(one));
    DOCTEST_CHECK(decoder.parameter_count() ==
                  model::TotalParameters(one.architecture) +
                      model::AdapterParameters(one));
    GradientsOf(decoder, RandomBatch(one.architecture, 2, 9), true);
    for (const Parameter& parameter : decoder.parameters()) {
      DOCTEST_INFO(parameter.name);
      DOCTEST_CHECK(parameter.value.grad().defined() ==
                    parameter.value.requires_grad());
    }
  }
}

DOCTEST_TEST_CASE("an adapter is a product of low rank beside its matrix") {
  const model::Architecture a = SmallLlama();
  TransformerOptions options = DefaultOptions(a);
  const Batch batch = RandomBatch(a, 2, 9);
  options.type = at::kDouble;
  const LlamaDecoder plain(a, options, at::kCPU, 7);
  options.trainable.lora_rank = 3;
  options.trainable.lora.key = true;
  const LlamaDecoder adapted(a, options, at::kCPU, 8);
  const at::NoGradGuard no_grad;
  const std::string matrix = "model.layers.1.self_attn.k_proj.";
  at::Tensor down;
  at::Tensor up;
  size_t plain_index = 0;
  for (const Parameter& parameter : adapted.parameters()) {
    if (parameter.name == matrix + "lora_A.weight") down = parameter.value;
    if (parameter.name == matrix + "lora_B.weight") up = parameter.value;
    if (parameter.name.find(".lora_") != std::string::npos) continue;
    parameter.value.copy_(plain.parameters()[plain_index++].value);
  }
  const auto logits = [&](const LlamaDecoder& decoder) {
    return decoder.Forward(batch, false).logits;
  };
  // It adds nothing at the start.
  DOCTEST_CHECK(at::equal(logits(plain), logits(adapted)));
  up.copy_(at::randn_like(up));
  for (const Parameter& parameter : plain.parameters()) {
    if (parameter.name != matrix + "weight") continue;
    parameter.value.add_(at::matmul(up, down), 2.0);
  }
  DOCTEST_CHECK(at::allclose(logits(plain), logits(adapted), 1e-12, 1e-12));
}

DOCTEST_TEST_CASE("blocks that are computed again have the same gradients") {
  model::Architecture dropping = SmallLlama();
  dropping.dropout = 0.3;
  for (const model::Architecture& a :
       {SmallLlama(), SmallWithExperts(), dropping}) {
    DOCTEST_INFO(a.name << ", dropout " << a.dropout);
    const Batch batch = RandomBatch(a, 3, 11);
    TransformerOptions options = DefaultOptions(a);
    std::vector<std::vector<at::Tensor>> gradients;
    std::vector<uint64_t> drawn;
    // Recomputing no block, all, the lowest, the lower two.
    for (const int64_t blocks : {-1, 0, 1, 2}) {
      options.recompute = blocks >= 0;
      options.recomputed_blocks = std::max<int64_t>(0, blocks);
      const LlamaDecoder decoder(a, options, at::kCPU, 5);
      SeedDropout(4);
      gradients.push_back(GradientsOf(decoder, batch, true));
      // The sequence of masks goes on as if nothing had been drawn twice.
      drawn.push_back(DropoutState().calls);
    }
    DOCTEST_CHECK((drawn[0] > 0) == (a.dropout > 0));
    for (size_t run = 1; run < gradients.size(); ++run) {
      DOCTEST_INFO("run " << run);
      DOCTEST_CHECK(drawn[0] == drawn[run]);
      DOCTEST_REQUIRE(gradients[0].size() == gradients[run].size());
      for (size_t i = 0; i < gradients[0].size(); ++i) {
        DOCTEST_CHECK(at::equal(gradients[0][i], gradients[run][i]));
      }
    }
  }
}

DOCTEST_TEST_CASE("in bf16 blocks are computed again in bf16") {
  const model::Architecture a = SmallLlama();
  const Batch batch = RandomBatch(a, 3, 11);
  std::vector<at::Tensor> gradients;
  for (const bool recompute : {false, true}) {
    TransformerOptions options = DefaultOptions(a);
    options.recompute = recompute;
    Session session(std::make_unique<LlamaDecoder>(a, options, at::kCPU, 5),
                    model::Precision::kBf16,
                    {});
    session.Step(1, [&](int64_t) { return batch; });
    gradients.push_back(
        session.transformer().parameters()[3].value.grad().clone());
  }
  DOCTEST_CHECK(at::equal(gradients[0], gradients[1]));
}

DOCTEST_TEST_CASE("a small model learns a batch by heart") {
  for (const bool adapters : {false, true}) {
    for (const model::Architecture& a : {SmallLlama(), SmallWithExperts()}) {
      DOCTEST_INFO(a.name << ", adapters " << adapters);
      TransformerOptions options = DefaultOptions(a);
      if (adapters) {
        options.trainable.lora_rank = 16;
        options.trainable.lora = model::LoraMatricesOf(a);
        options.recompute = true;
      }
      // By longer steps adapters jump about: where to is the processor's.
      OptimizerOptions optimizer;
      optimizer.learning_rate = adapters ? 3e-3 : 1e-2;
      Session session(std::make_unique<LlamaDecoder>(a, options, at::kCPU, 3),
                      model::Precision::kFp32,
                      optimizer);
      const Overfitted result =
          Overfit(session, RandomBatch(a, 2, 12), adapters ? 320 : 60);
      DOCTEST_CHECK(result.first_loss == Near(std::log(61.0), 0.1));
      // Adapters of frozen random matrices, without those of the logits, learn
      // less, and those of experts as the first weights route.
      DOCTEST_CHECK(result.last_loss <
                    (adapters ? 0.9 : 0.2) * result.first_loss);
    }
  }
}

// What tensors hold at most, on a processor to the byte; of a few megabytes,
// so that what no model counts (tables of positions, a mask) is little.
DOCTEST_TEST_CASE("a step allocates what the model of memory counts") {
  InstallHostAllocator();  // which counts
  Measurer measurer(at::kCPU, false);
  MeasureRequest request;
  model::Workload& w = request.workload;
  w.architecture = SmallLlama();
  w.architecture.layers = 4;
  w.architecture.hidden = 256;
  w.architecture.intermediate = 704;
  w.architecture.heads = 8;
  w.architecture.key_value_heads = 4;
  w.architecture.vocabulary = 2000;
  w.architecture.positions = 512;
  w.batch = 4;
  w.sequence_length = 128;
  w.optimizer.implementation = model::OptimizerImplementation::kFused;
  request.steps = 1;
  request.warmup = 1;
  request.max_seconds = 60;
  for (const model::Attention attention :
       {model::Attention::kMaterialised, model::Attention::kFlash}) {
    // Recomputing no block, all, and the lowest.
    for (const int64_t blocks : {-1, 0, 1}) {
      w.stack.attention = attention;
      w.gradient_checkpointing = blocks >= 0;
      w.checkpointed_blocks = std::max<int64_t>(0, blocks);
      const auto record = measurer.Run(request);
      DOCTEST_REQUIRE(record.has_value());
      const auto held = static_cast<double>(record->peak_allocated_bytes);
      const double counted =
          model::ToBytes(model::EstimateMemory(w, {}).total());
      DOCTEST_MESSAGE(std::string(model::ToText(attention))
                      << ", blocks again " << blocks << ": " << held / 1e6
                      << " MB held, " << counted / 1e6 << " counted");
      DOCTEST_CHECK(counted == Near(held, 0.03));
    }
  }
}

// Three tokens, two experts that multiply by 10 and by 100, one of which each
// token is sent to: softmax of (1, 0) is 0.731, of (0, 2) 0.881.
DOCTEST_TEST_CASE("tokens go to their best experts and come back weighted") {
  const at::Tensor tokens =
      at::tensor({1.0, 2.0, 3.0}, at::kDouble).view({3, 1});
  const at::Tensor scores =
      at::tensor({1.0, 0.0, 0.0, 2.0, 1.0, 0.0}, at::kDouble).view({3, 2});
  std::vector<int64_t> rows;
  const Expert expert = [&](int64_t e, const at::Tensor& sent) {
    rows.push_back(sent.size(0));
    return sent * (e == 0 ? 10.0 : 100.0);
  };
  const auto route = [&](int64_t k, bool normalised) {
    const at::Tensor sum =
        RouteToExperts(tokens, scores, {k, normalised}, expert).flatten();
    return std::vector<double>(sum.const_data_ptr<double>(),
                               sum.const_data_ptr<double>() + 3);
  };
  const double first = std::exp(1.0) / (std::exp(1.0) + 1.0);
  const double second = std::exp(2.0) / (std::exp(2.0) + 1.0);
  std::vector<double> sums = route(1, true);
  DOCTEST_CHECK(sums == std::vector<double>{10.0, 200.0, 30.0});
  DOCTEST_CHECK(rows == std::vector<int64_t>{2, 1});
  sums = route(1, false);
  DOCTEST_CHECK(sums[0] == Near(10.0 * first, 1e-5));
  DOCTEST_CHECK(sums[1] == Near(200.0 * second, 1e-5));
  sums = route(2, true);
  DOCTEST_CHECK(sums[2] ==
                Near(3.0 * (10.0 * first + 100.0 * (1.0 - first)), 1e-5));
}

// Optimizers and other ranks ask for the gradient of every expert.
DOCTEST_TEST_CASE("an expert that no token was sent to has gradients of zero") {
  const at::Tensor tokens =
      at::tensor({1.0, 2.0}, at::kDouble).view({2, 1}).requires_grad_(true);
  const at::Tensor scores =
      at::tensor({1.0, 0.0, 3.0, 0.0}, at::kDouble).view({2, 2});
  std::vector<at::Tensor> weights;
  for (int e = 0; e < 2; ++e) {
    weights.push_back(at::ones({1, 1}, at::kDouble).requires_grad_(true));
  }
  const Expert expert = [&](int64_t e, const at::Tensor& sent) {
    return Linear(sent, weights[static_cast<size_t>(e)], {});
  };
  RouteToExperts(tokens, scores, {1, true}, expert).sum().backward();
  DOCTEST_CHECK(weights[0].grad().item<double>() == 3.0);
  DOCTEST_REQUIRE(weights[1].grad().defined());
  DOCTEST_CHECK(weights[1].grad().item<double>() == 0.0);
}

DOCTEST_TEST_CASE("rotary positions turn pairs by their angle") {
  // Head size 4, base 100: frequencies 1 and 1/10.
  RotaryOptions options;
  options.base = 100.0;
  const RotaryTable table = MakeRotaryTable(options, 4, 3, at::kDouble);
  const at::Tensor heads =
      at::tensor({1.0, 0.0, 0.0, 1.0}, at::kDouble).expand({1, 1, 3, 4});
  const at::Tensor turned = Rotate(heads, table)[0][0][2];  // position 2
  const auto* const values = turned.const_data_ptr<double>();
  DOCTEST_CHECK(values[0] == Near(std::cos(2.0), 1e-5));
  DOCTEST_CHECK(values[1] == Near(-std::sin(0.2), 1e-5));
  DOCTEST_CHECK(values[2] == Near(std::sin(2.0), 1e-5));
  DOCTEST_CHECK(values[3] == Near(std::cos(0.2), 1e-5));
}

DOCTEST_TEST_CASE("what this trainer has not is named") {
  const auto message = [](const model::Architecture& a,
                          const TransformerOptions& options) {
    try {
      MakeTransformer(a, options, at::kCPU, 1);
    } catch (const model::InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  model::Architecture a = SmallLlama();
  TransformerOptions options = DefaultOptions(a);
  a.attention_sinks = true;
  DOCTEST_CHECK(message(a, options) ==
                "model small llama: the trainer has decoders like Llama's, "
                "without attention sinks");
  a = SmallLlama();
  a.window = 8;
  a.windowed_layers = 1;
  DOCTEST_CHECK(message(a, options).find("without blocks with a window") !=
                std::string::npos);
  options.trainable.lora_rank = 4;
  options.trainable.base_bits = 4;
  DOCTEST_CHECK(message(SmallLlama(), options).find("trainable.base_bits:") ==
                0);
  options.trainable.base_bits = 0;
  const model::Architecture& bert = model::FindArchitecture("bert-tiny");
  DOCTEST_CHECK(message(bert, options).find("adapters") != std::string::npos);
}

// As `calibrate` writes them.
std::string RequestOf(const model::Workload& workload) {
  nlohmann::ordered_json request = nlohmann::ordered_json::object();
  model::JsonFieldWriter writer(request);
  VisitFields(writer, workload);
  request["steps"] = 2;
  return request.dump();
}

DOCTEST_TEST_CASE("requests of such models are measured") {
  Measurer measurer(at::kCPU, false);
  model::Workload plain;
  plain.architecture = SmallLlama();
  plain.batch = 2;
  plain.sequence_length = 16;
  model::Workload again = plain;
  again.gradient_checkpointing = true;
  model::Workload adapted = plain;
  adapted.trainable.lora_rank = 2;
  adapted.trainable.lora.query = true;
  model::Workload routed = adapted;
  routed.architecture = SmallWithExperts();
  routed.trainable.lora.feed_forward_in = true;
  model::Workload one_again = again;
  one_again.checkpointed_blocks = 1;
  for (const model::Workload& asked :
       {plain, again, one_again, adapted, routed}) {
    const std::string request = RequestOf(asked);
    DOCTEST_INFO(request);
    const auto record = measurer.Run(ParseMeasureRequest(request));
    DOCTEST_REQUIRE(record.has_value());
    DOCTEST_CHECK(record->workload == asked);
    DOCTEST_CHECK(record->parameters ==
                  model::TotalParameters(asked.architecture) +
                      model::AdapterParameters(asked));
  }
}

}  // namespace
}  // namespace trainfare::trainer
