#include "trainer/network/llama_decoder.h"

#include <fmt/format.h>

#include <utility>

#include "model/error.h"
#include "trainer/network/dropout.h"
#include "trainer/network/experts.h"
#include "trainer/network/gated_block.h"
#include "trainer/network/linear.h"
#include "trainer/network/recompute.h"
#include "trainer/runtime/signals.h"

namespace trainfare::trainer {
namespace {

using model::Architecture;

void CheckOptions(const TransformerOptions& options, at::Device device) {
  if (options.fusion == model::Fusion::kFused && !device.is_cpu()) {
    throw model::InputError(
        "stack: decoders like Llama's have eager alone on a GPU, got fused");
  }
  if (options.recompute && options.attention_dropout > 0 && !device.is_cpu()) {
    throw model::InputError(
        "gradient_checkpointing: with dropout on a CPU alone; take a model "
        "with dropout 0");
  }
}

}  // namespace

LlamaDecoder::LlamaDecoder(const Architecture& architecture,
                           const TransformerOptions& options,
                           at::Device device,
                           uint64_t seed)
    : Transformer(architecture, options, device) {
  CheckOptions(options, device);
  const model::Trainable& trainable = options.trainable;
  const bool adapters = trainable.lora_rank > 0;
  const int64_t hidden = architecture.hidden;
  Freeze(!trainable.everything());
  word_embeddings_ =
      Add("model.embed_tokens.weight", {architecture.vocabulary, hidden});
  for (int64_t index = 0; index < architecture.layers; ++index) {
    ThrowIfStopRequested();
    Freeze(adapters || index < trainable.frozen_layers);
    layers_.push_back(AddLayer(index));
  }
  Freeze(adapters);
  final_norm_ = AddRmsNorm("model.norm", hidden);
  output_ = architecture.untied_output
                ? Add("lm_head.weight", {architecture.vocabulary, hidden})
                : word_embeddings_;
  Reset(seed);
}

LlamaDecoder::Layer LlamaDecoder::AddLayer(int64_t index) {
  const Architecture& a = architecture();
  const model::LoraMatrices& lora = options().trainable.lora;
  const std::string at = fmt::format("model.layers.{}.", index);
  Layer layer;
  const auto project =
      [&](const char* name, int64_t out, int64_t in, bool bias, bool adapts) {
        return AddProjection(at + "self_attn." + name, out, in, bias, adapts);
      };
  const bool bias = a.attention_bias;
  layer.query = project("q_proj", a.query_width(), a.hidden, bias, lora.query);
  layer.key = project("k_proj", a.key_width(), a.hidden, bias, lora.key);
  layer.value = project("v_proj", a.value_width(), a.hidden, bias, lora.value);
  layer.output = project(
      "o_proj", a.hidden, a.context_width(), a.output_bias, lora.output);
  if (a.query_key_norm == model::QueryKeyNorm::kHead) {
    layer.query_norm = AddRmsNorm(at + "self_attn.q_norm", a.query_head_size());
    layer.key_norm = AddRmsNorm(at + "self_attn.k_norm", a.query_head_size());
  }
  if (a.has_experts(index)) {
    AddExperts(at, layer);
  } else {
    layer.dense = AddFeedForward(at + "mlp.", a.intermediate);
  }
  layer.attention_norm = AddRmsNorm(at + "input_layernorm", a.hidden);
  layer.feed_forward_norm =
      AddRmsNorm(at + "post_attention_layernorm", a.hidden);
  return layer;
}

void LlamaDecoder::AddExperts(const std::string& at, Layer& layer) {
  const Architecture& a = architecture();
  const std::string block = at + options().expert_block + ".";
  // Neither the router nor the gate of shared experts is adapted.
  layer.router =
      AddProjection(block + "gate", a.experts, a.hidden, false, false);
  for (int64_t e = 0; e < a.experts; ++e) {
    layer.experts.push_back(AddFeedForward(
        fmt::format("{}experts.{}.", block, e), a.expert_intermediate));
  }
  if (a.shared_intermediate == 0) return;
  layer.shared =
      AddFeedForward(block + "shared_expert.", a.shared_intermediate);
  if (a.shared_expert_gate) {
    layer.shared_gate =
        AddProjection(block + "shared_expert_gate", 1, a.hidden, false, false);
  }
}

LlamaDecoder::GatedFeedForward LlamaDecoder::AddFeedForward(
    const std::string& at, int64_t width) {
  const Architecture& a = architecture();
  const model::LoraMatrices& lora = options().trainable.lora;
  // Mixtral numbers an expert's matrices and has the inner ones' product last.
  const bool numbered = options().expert_block == kMixtralExperts &&
                        at.find(".experts.") != std::string::npos;
  const auto add = [&](const char* name,
                       const char* number,
                       int64_t out,
                       int64_t in,
                       bool adapted) {
    return AddProjection(
        at + (numbered ? number : name), out, in, a.feed_forward_bias, adapted);
  };
  GatedFeedForward part;
  part.gate = add("gate_proj", "w1", width, a.hidden, lora.feed_forward_gate);
  if (numbered) {
    part.out = add("down_proj", "w2", a.hidden, width, lora.feed_forward_out);
  }
  part.in = add("up_proj", "w3", width, a.hidden, lora.feed_forward_in);
  if (!numbered) {
    part.out = add("down_proj", "w2", a.hidden, width, lora.feed_forward_out);
  }
  return part;
}

LlamaDecoder::Dense LlamaDecoder::AddProjection(
    const std::string& name, int64_t out, int64_t in, bool bias, bool adapts) {
  Dense dense = AddDense(name, out, in, bias);
  const int64_t rank = options().trainable.lora_rank;
  if (rank == 0 || !adapts) return dense;
  Freeze(false);
  dense.adapter_down = Add(name + ".lora_A.weight", {rank, in});
  // Nothing is added at the start (Hu et al. 2021).
  dense.adapter_up = Add(name + ".lora_B.weight", {out, rank}, 0.0);
  Freeze(true);
  return dense;
}

LlamaDecoder::Norm LlamaDecoder::AddRmsNorm(const std::string& name,
                                            int64_t width) {
  Norm norm;
  norm.weight = Add(name + ".weight", {width});
  return norm;
}

at::Tensor LlamaDecoder::Normed(const Norm& norm,
                                const at::Tensor& input) const {
  return RmsNorm(input, norm.weight, options().layer_norm_epsilon);
}

LlamaDecoder::Sequence LlamaDecoder::SequenceOf(int64_t length) const {
  const Architecture& a = architecture();
  const at::TensorOptions kind =
      at::TensorOptions(options().type).device(device());
  Sequence sequence;
  sequence.rotary =
      MakeRotaryTable(options().rotary, a.query_head_size(), length, kind);
  if (a.window == 0 || length <= a.window) {
    sequence.mask = CausalMask(length);
    return sequence;
  }
  // A position sees itself and the window - 1 before it.
  const at::Tensor seen = at::ones({length, length}, kind.dtype(at::kBool))
                              .tril()
                              .triu(1 - a.window);
  sequence.mask = at::zeros({length, length}, kind)
                      .masked_fill_(seen.logical_not(), LowestValue());
  sequence.causal = false;
  return sequence;
}

at::Tensor LlamaDecoder::SelfAttention(const Layer& layer,
                                       const at::Tensor& normed,
                                       const Sequence& sequence,
                                       bool training) const {
  const Architecture& a = architecture();
  at::Tensor query = SplitHeads(Project(layer.query, normed), a.heads);
  at::Tensor key = SplitHeads(Project(layer.key, normed), a.key_heads());
  const at::Tensor value =
      SplitHeads(Project(layer.value, normed), a.key_heads());
  if (layer.query_norm.weight.defined()) {
    query = Normed(layer.query_norm, query);
    key = Normed(layer.key_norm, key);
  }
  const int64_t times = GroupsKeys() ? 1 : a.heads / a.key_heads();
  return Attend({Rotate(query, sequence.rotary),
                 RepeatHeads(Rotate(key, sequence.rotary), times),
                 RepeatHeads(value, times)},
                sequence.mask,
                sequence.causal,
                training);
}

at::Tensor LlamaDecoder::FeedForward(const GatedFeedForward& part,
                                     const at::Tensor& input) const {
  const at::Tensor gate =
      GateOf(architecture().activation, Project(part.gate, input));
  return Project(part.out, gate * Project(part.in, input));
}

at::Tensor LlamaDecoder::FeedForward(const Layer& layer,
                                     const at::Tensor& normed) const {
  if (layer.experts.empty()) return FeedForward(layer.dense, normed);
  const at::Tensor tokens = normed.flatten(0, 1);
  at::Tensor sum = RouteToExperts(
      tokens,
      Project(layer.router, tokens),
      {architecture().experts_per_token, options().normalised_experts},
      [&](int64_t expert, const at::Tensor& rows) {
        return FeedForward(layer.experts[static_cast<size_t>(expert)], rows);
      });
  if (layer.shared.in.weight.defined()) {
    const at::Tensor shared = FeedForward(layer.shared, tokens);
    sum = AddSharedExpert(sum,
                          shared,
                          layer.shared_gate.weight.defined()
                              ? Project(layer.shared_gate, tokens)
                              : at::Tensor());
  }
  return sum.view(normed.sizes());
}

at::Tensor LlamaDecoder::RunLayer(const Layer& layer,
                                  const at::Tensor& hidden,
                                  const Sequence& sequence,
                                  bool training) const {
  const at::Tensor context = SelfAttention(
      layer, Normed(layer.attention_norm, hidden), sequence, training);
  const at::Tensor middle = hidden + Project(layer.output, context);
  return middle + FeedForward(layer, Normed(layer.feed_forward_norm, middle));
}

bool LlamaDecoder::Recomputes(int64_t layer) const {
  const TransformerOptions& o = options();
  if (o.recomputed_blocks == 0) return o.recompute;
  const int64_t place = layer - o.trainable.frozen_layers;
  return o.recompute && place >= 0 && place < o.recomputed_blocks;
}

Output LlamaDecoder::Run(const Batch& batch,
                         bool training,
                         const PartEnd& part_end) const {
  const Sequence sequence = SequenceOf(batch.input_ids.size(1));
  constexpr int64_t kNone = -1;
  at::Tensor hidden =
      at::embedding(word_embeddings_,
                    batch.input_ids,
                    options().freezes_padding ? options().padding_id : kNone);
  if (part_end) part_end({"embeddings"}, hidden);
  const bool backward = at::GradMode::is_enabled();
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto run = [this, &layer = layers_[i], sequence, training](
                         const at::Tensor& input) {
      return RunLayer(layer, input, sequence, training);
    };
    if (backward && Recomputes(static_cast<int64_t>(i))) {
      // Frozen embeddings ask for no gradient, the block's parameters may.
      if (!hidden.requires_grad()) {
        hidden = hidden.detach().requires_grad_(true);
      }
      hidden = Recomputed(run, hidden);
    } else {
      hidden = run(hidden);
    }
    if (part_end) part_end({fmt::format("layer {}", i), true}, hidden);
  }
  Output output;
  output.logits = Linear(Normed(final_norm_, hidden), output_, {});
  if (batch.labels.defined()) {
    output.loss = LanguageModelLoss(output.logits, batch.labels);
  }
  return output;
}

}  // namespace trainfare::trainer
