#pragma once

// The Transformer of Vaswani et al. 2017: an encoder and a decoder that share
// one vocabulary with the output projection, LayerNorm after each residual,
// sinusoidal positions. Names and shapes are those of MarianMTModel, which is
// this model in Hugging Face Transformers.

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/network/transformer.h"

namespace trainfare::trainer {

class EncoderDecoder final : public Transformer {
 public:
  EncoderDecoder(const model::Architecture& architecture,
                 const TransformerOptions& options,
                 at::Device device,
                 uint64_t seed);

 private:
  // Targets are padded behind their tokens: causal attention hides that.
  Output Run(const Batch& batch,
             bool training,
             const PartEnd& part_end) const override;

  struct Attention {
    Dense query, key, value, output;
    Norm norm;
  };
  struct Layer {
    Attention self;
    Attention cross;  // of decoder layers only
    Dense intermediate, output;
    Norm output_norm;
  };

  Attention AddAttention(const std::string& at,
                         const char* name,
                         const char* norm);
  Layer AddLayer(const std::string& at, bool decoder);

  at::Tensor Embed(const at::Tensor& ids, bool training) const;
  // Queries of `hidden`, keys and values of `memory`, then residual and norm.
  at::Tensor Attended(const Attention& attention,
                      const at::Tensor& hidden,
                      const at::Tensor& memory,
                      const at::Tensor& mask,
                      bool causal,
                      bool training) const;
  at::Tensor FeedForward(const Layer& layer,
                         const at::Tensor& hidden,
                         bool training) const;
  // Rows of the sine and cosine table, (T, H).
  at::Tensor Positions(int64_t length) const;

  at::Tensor embeddings_;  // (V, H)
  std::vector<Layer> encoder_;
  std::vector<Layer> decoder_;
  // As many rows as were ever asked for: there is no longest sequence.
  mutable at::Tensor positions_;
};

}  // namespace trainfare::trainer
