#pragma once

// Decoders of Llama's kind (Touvron et al. 2023): RMSNorm before each block,
// rotary positions, grouped attention with or without a window, a gated
// feed-forward or experts, logits from a matrix of their own or from the word
// embeddings. Llama, Mistral, Mixtral, Qwen2, Qwen3 and their experts are rows
// of the same description; all or a part of a model trains, adapters too.

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/network/transformer.h"

namespace trainfare::trainer {

class LlamaDecoder final : public Transformer {
 public:
  // Throws InputError for a part of a block that this trainer does not have.
  LlamaDecoder(const model::Architecture& architecture,
               const TransformerOptions& options,
               at::Device device,
               uint64_t seed);

 private:
  // Padding stands behind the tokens of a row, so that causal attention alone
  // hides it; logits at padding mean nothing.
  Output Run(const Batch& batch,
             bool training,
             const PartEnd& part_end) const override;

  // (act(x G) * x W) V.
  struct GatedFeedForward {
    Dense gate, in, out;
  };
  struct Layer {
    Norm attention_norm, feed_forward_norm;
    Dense query, key, value, output;
    Norm query_norm, key_norm;  // undefined: none
    GatedFeedForward dense;     // where there are no experts
    Dense router;
    std::vector<GatedFeedForward> experts;
    GatedFeedForward shared;  // undefined: none
    Dense shared_gate;
  };
  // What a batch's sequences have in common.
  struct Sequence {
    RotaryTable rotary;
    at::Tensor mask;  // undefined: none
    bool causal = true;
  };

  Layer AddLayer(int64_t index);
  void AddExperts(const std::string& at, Layer& layer);
  GatedFeedForward AddFeedForward(const std::string& at, int64_t width);
  Dense AddProjection(
      const std::string& name, int64_t out, int64_t in, bool bias, bool adapts);
  Norm AddRmsNorm(const std::string& name, int64_t width);

  Sequence SequenceOf(int64_t length) const;
  at::Tensor Normed(const Norm& norm, const at::Tensor& input) const;
  at::Tensor SelfAttention(const Layer& layer,
                           const at::Tensor& normed,
                           const Sequence& sequence,
                           bool training) const;
  at::Tensor FeedForward(const GatedFeedForward& part,
                         const at::Tensor& input) const;
  at::Tensor FeedForward(const Layer& layer, const at::Tensor& normed) const;
  // Whether the backward pass computes a block again.
  bool Recomputes(int64_t layer) const;
  at::Tensor RunLayer(const Layer& layer,
                      const at::Tensor& hidden,
                      const Sequence& sequence,
                      bool training) const;

  at::Tensor word_embeddings_;  // (V, H)
  std::vector<Layer> layers_;
  Norm final_norm_;
  at::Tensor output_;  // (V, H); the word embeddings where they are tied
};

}  // namespace trainfare::trainer
