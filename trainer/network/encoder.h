#pragma once

// BERT, RoBERTa and DistilBERT with a sequence-classification or
// question-answering head.

#include <cstdint>
#include <string>
#include <vector>

#include "model/trainer_rules.h"
#include "trainer/network/transformer.h"

namespace trainfare::trainer {

using model::EncoderLayout;
using model::LayoutOf;

class Encoder final : public Transformer {
 public:
  Encoder(const model::Architecture& architecture,
          const TransformerOptions& options,
          at::Device device,
          uint64_t seed);

 private:
  Output Run(const Batch& batch,
             bool training,
             const PartEnd& part_end) const override;

  struct Layer {
    Dense query, key, value, attention_output;
    Norm attention_norm;
    Dense intermediate, output;
    Norm output_norm;
  };

  void AddHead();
  at::Tensor Embed(const Batch& batch, bool training) const;
  at::Tensor SelfAttention(const Layer& layer,
                           const at::Tensor& hidden,
                           const at::Tensor& mask,
                           bool training) const;
  at::Tensor RunLayer(const Layer& layer,
                      const at::Tensor& hidden,
                      const at::Tensor& mask,
                      bool training) const;
  Output AnswerQuestions(const at::Tensor& hidden,
                         const Batch& batch,
                         bool training) const;
  Output Classify(const at::Tensor& hidden,
                  const Batch& batch,
                  bool training) const;

  EncoderLayout layout_;
  at::Tensor word_embeddings_;      // (V, H)
  at::Tensor position_embeddings_;  // (positions, H)
  at::Tensor type_embeddings_;      // (types, H); undefined without types
  Norm embedding_norm_;
  std::vector<Layer> layers_;
  Dense pooler_;      // BERT: dense + tanh over the first token
  Dense head_dense_;  // RoBERTa, DistilBERT: the classifier's first layer
  Dense head_;        // labels, or start and end
};

}  // namespace trainfare::trainer
