#pragma once

// GPT-2: causal attention, LayerNorm before each block, and a language model's
// head whose weights are those of the word embeddings.

#include <cstdint>
#include <vector>

#include "trainer/network/transformer.h"

namespace trainfare::trainer {

class Decoder final : public Transformer {
 public:
  Decoder(const model::Architecture& architecture,
          const TransformerOptions& options,
          at::Device device,
          uint64_t seed);

 private:
  // Padding stands behind the tokens of a row, so that causal attention alone
  // hides it; logits at padding mean nothing.
  Output Run(const Batch& batch,
             bool training,
             const PartEnd& part_end) const override;

  struct Layer {
    Norm attention_norm;
    Dense attention;  // query, key and value side by side: (H, 3 H)
    Dense attention_output;
    Norm feed_forward_norm;
    Dense intermediate, output;
  };

  // GPT-2 keeps weights as (in, out).
  Dense AddTransposed(const std::string& name,
                      int64_t in,
                      int64_t out,
                      double deviation = kDeviation);
  at::Tensor SelfAttention(const Layer& layer,
                           const at::Tensor& normed,
                           const at::Tensor& mask,
                           bool training) const;

  at::Tensor word_embeddings_;      // (V, H)
  at::Tensor position_embeddings_;  // (positions, H)
  std::vector<Layer> layers_;
  Norm final_norm_;
};

}  // namespace trainfare::trainer
