#include "trainer/network/decoder.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "trainer/network/dropout.h"
#include "trainer/network/linear.h"
#include "trainer/runtime/signals.h"

namespace trainfare::trainer {

Decoder::Decoder(const model::Architecture& architecture,
                 const TransformerOptions& options,
                 at::Device device,
                 uint64_t seed)
    : Transformer(architecture, options, device) {
  const int64_t hidden = architecture.hidden;
  // Radford et al. 2019: what adds to the residual starts smaller the more
  // layers add to it.
  const double residual =
      kDeviation / std::sqrt(2.0 * static_cast<double>(architecture.layers));
  word_embeddings_ =
      Add("transformer.wte.weight", {architecture.vocabulary, hidden});
  position_embeddings_ =
      Add("transformer.wpe.weight", {architecture.positions, hidden});
  for (int64_t index = 0; index < architecture.layers; ++index) {
    ThrowIfStopRequested();
    const std::string at = fmt::format("transformer.h.{}.", index);
    Layer layer;
    layer.attention_norm = AddNorm(at + "ln_1");
    layer.attention = AddTransposed(at + "attn.c_attn", hidden, 3 * hidden);
    layer.attention_output =
        AddTransposed(at + "attn.c_proj", hidden, hidden, residual);
    layer.feed_forward_norm = AddNorm(at + "ln_2");
    layer.intermediate =
        AddTransposed(at + "mlp.c_fc", hidden, architecture.intermediate);
    layer.output = AddTransposed(
        at + "mlp.c_proj", architecture.intermediate, hidden, residual);
    layers_.push_back(std::move(layer));
  }
  final_norm_ = AddNorm("transformer.ln_f");
  Reset(seed);
}

Decoder::Dense Decoder::AddTransposed(const std::string& name,
                                      int64_t in,
                                      int64_t out,
                                      double deviation) {
  Dense dense;
  dense.weight = Add(name + ".weight", {in, out}, deviation);
  dense.bias = Add(name + ".bias", {out});
  dense.transposed = true;
  return dense;
}

at::Tensor Decoder::SelfAttention(const Layer& layer,
                                  const at::Tensor& normed,
                                  const at::Tensor& mask,
                                  bool training) const {
  // Split and not narrowed: their gradients are joined in one copy.
  const std::vector<at::Tensor> parts =
      Project(layer.attention, normed).split(architecture().hidden, -1);
  return Attend(
      {SplitHeads(parts[0]), SplitHeads(parts[1]), SplitHeads(parts[2])},
      mask,
      /*causal=*/true,
      training);
}

Output Decoder::Run(const Batch& batch,
                    bool training,
                    const PartEnd& part_end) const {
  const int64_t length = batch.input_ids.size(1);
  const double dropout = options().hidden_dropout;
  const at::Tensor mask = CausalMask(length);
  at::Tensor hidden = Dropout(at::embedding(word_embeddings_, batch.input_ids) +
                                  position_embeddings_.narrow(0, 0, length),
                              dropout,
                              training);  // (B, T, H)
  if (part_end) part_end({"embeddings"}, hidden);
  // Each sum is normed for what comes next, in the same pass over it where the
  // stack is fused.
  at::Tensor normed = Normalise(layers_.front().attention_norm, hidden);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const Norm& next =
        i + 1 < layers_.size() ? layers_[i + 1].attention_norm : final_norm_;
    const Residual middle =
        ProjectAndAdd(layer.attention_output,
                      SelfAttention(layer, normed, mask, training),
                      hidden,
                      layer.feed_forward_norm,
                      training);
    const Residual end =
        ProjectAndAdd(layer.output,
                      ProjectAndActivate(layer.intermediate, middle.normed),
                      middle.sum,
                      next,
                      training);
    hidden = end.sum;
    normed = end.normed;
    if (part_end) part_end({fmt::format("layer {}", i), true}, hidden);
  }
  Output output;
  output.logits = Linear(normed, word_embeddings_, {});  // (B, T, V)
  if (batch.labels.defined()) {
    output.loss = LanguageModelLoss(output.logits, batch.labels);
  }
  return output;
}

}  // namespace trainfare::trainer
