#include "trainer/network/encoder_decoder.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "trainer/network/dropout.h"
#include "trainer/network/linear.h"
#include "trainer/runtime/signals.h"

namespace trainfare::trainer {

EncoderDecoder::EncoderDecoder(const model::Architecture& architecture,
                               const TransformerOptions& options,
                               at::Device device,
                               uint64_t seed)
    : Transformer(architecture, options, device) {
  embeddings_ = Add("model.shared.weight",
                    {architecture.vocabulary, architecture.hidden});
  for (int64_t index = 0; index < architecture.layers; ++index) {
    ThrowIfStopRequested();
    encoder_.push_back(
        AddLayer(fmt::format("model.encoder.layers.{}.", index), false));
  }
  for (int64_t index = 0; index < architecture.decoder_layers; ++index) {
    ThrowIfStopRequested();
    decoder_.push_back(
        AddLayer(fmt::format("model.decoder.layers.{}.", index), true));
  }
  Reset(seed);
}

EncoderDecoder::Attention EncoderDecoder::AddAttention(const std::string& at,
                                                       const char* name,
                                                       const char* norm) {
  const int64_t hidden = architecture().hidden;
  const auto dense = [&](const char* part) {
    return AddDense(fmt::format("{}{}.{}", at, name, part), hidden, hidden);
  };
  Attention attention;
  attention.key = dense("k_proj");
  attention.value = dense("v_proj");
  attention.query = dense("q_proj");
  attention.output = dense("out_proj");
  attention.norm = AddNorm(at + norm);
  return attention;
}

EncoderDecoder::Layer EncoderDecoder::AddLayer(const std::string& at,
                                               bool decoder) {
  Layer layer;
  layer.self = AddAttention(at, "self_attn", "self_attn_layer_norm");
  if (decoder) {
    layer.cross = AddAttention(at, "encoder_attn", "encoder_attn_layer_norm");
  }
  layer.intermediate =
      AddDense(at + "fc1", architecture().intermediate, architecture().hidden);
  layer.output =
      AddDense(at + "fc2", architecture().hidden, architecture().intermediate);
  layer.output_norm = AddNorm(at + "final_layer_norm");
  return layer;
}

// Vaswani et al. 2017, section 3.5, the sines of all frequencies before the
// cosines, as the authors' code has them:
//
//   P(t, i)         = sin(t / 10000^(2 i / H))    i < H / 2
//   P(t, H / 2 + i) = cos(t / 10000^(2 i / H))
at::Tensor EncoderDecoder::Positions(int64_t length) const {
  if (!positions_.defined() || positions_.size(0) < length) {
    const int64_t hidden = architecture().hidden;
    const at::Tensor frequency =
        at::exp(at::arange(0, hidden, 2, at::kDouble) *
                (-std::log(10000.0) / static_cast<double>(hidden)));
    const at::Tensor angle =
        at::arange(length, at::kDouble).unsqueeze(1) * frequency;
    positions_ = at::cat({at::sin(angle), at::cos(angle)}, 1)
                     .to(at::TensorOptions(options().type).device(device()));
  }
  return positions_.narrow(0, 0, length);
}

at::Tensor EncoderDecoder::Embed(const at::Tensor& ids, bool training) const {
  const double scale = std::sqrt(static_cast<double>(architecture().hidden));
  return Dropout(at::embedding(embeddings_, ids, options().padding_id) * scale +
                     Positions(ids.size(1)),
                 options().hidden_dropout,
                 training);
}

at::Tensor EncoderDecoder::Attended(const Attention& attention,
                                    const at::Tensor& hidden,
                                    const at::Tensor& memory,
                                    const at::Tensor& mask,
                                    bool causal,
                                    bool training) const {
  const auto project = [&](const at::Tensor& input, const Dense& dense) {
    return SplitHeads(Linear(input, dense.weight, dense.bias));
  };
  const at::Tensor context = Attend({project(hidden, attention.query),
                                     project(memory, attention.key),
                                     project(memory, attention.value)},
                                    mask,
                                    causal,
                                    training);
  return ProjectAndAdd(
             attention.output, context, hidden, attention.norm, training)
      .normed;
}

at::Tensor EncoderDecoder::FeedForward(const Layer& layer,
                                       const at::Tensor& hidden,
                                       bool training) const {
  return ProjectAndAdd(layer.output,
                       ProjectAndActivate(layer.intermediate, hidden),
                       hidden,
                       layer.output_norm,
                       training)
      .normed;
}

Output EncoderDecoder::Run(const Batch& batch,
                           bool training,
                           const PartEnd& part_end) const {
  const at::Tensor padding = PaddingMask(batch.attention_mask);
  at::Tensor memory = Embed(batch.input_ids, training);  // (B, T, H)
  if (part_end) part_end({"embeddings"}, memory);
  for (size_t i = 0; i < encoder_.size(); ++i) {
    const Layer& layer = encoder_[i];
    memory = FeedForward(layer,
                         Attended(layer.self,
                                  memory,
                                  memory,
                                  padding,
                                  /*causal=*/false,
                                  training),
                         training);
    if (part_end) part_end({fmt::format("layer {}", i), true}, memory);
  }
  const at::Tensor future = CausalMask(batch.target_ids.size(1));
  at::Tensor hidden = Embed(batch.target_ids, training);  // (B, S, H)
  if (part_end) part_end({"decoder embeddings"}, hidden);
  for (size_t i = 0; i < decoder_.size(); ++i) {
    const Layer& layer = decoder_[i];
    hidden =
        Attended(layer.self, hidden, hidden, future, /*causal=*/true, training);
    hidden = Attended(
        layer.cross, hidden, memory, padding, /*causal=*/false, training);
    hidden = FeedForward(layer, hidden, training);
    if (part_end) part_end({fmt::format("decoder layer {}", i), true}, hidden);
  }
  Output output;
  output.logits = Linear(hidden, embeddings_, {});  // (B, S, V)
  if (batch.labels.defined()) {
    output.loss = LanguageModelLoss(output.logits, batch.labels);
  }
  return output;
}

}  // namespace trainfare::trainer
