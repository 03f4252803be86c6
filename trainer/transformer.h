#pragma once

// A Transformer encoder that trains: BERT, RoBERTa and DistilBERT with a
// sequence-classification or question-answering head, on LibTorch tensors.
//
// Parameters keep the names and the order of Hugging Face Transformers, so
// that a state_dict loads as it is; tests/trainer compares logits, loss and
// every gradient with that library.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/architecture.h"
#include "model/workload.h"
#include "trainer/aten.h"

namespace trainfare::trainer {

// The three published layouts, told apart by their dimensions: DistilBERT has
// no token types, RoBERTa's positions start behind the padding id.
enum class EncoderLayout { kBert, kRoberta, kDistilBert };
EncoderLayout LayoutOf(const model::Architecture& architecture);

// What Architecture does not say, because no count depends on it.
struct EncoderOptions {
  model::Attention attention = model::Attention::kMaterialised;
  double layer_norm_epsilon = 1e-12;
  double hidden_dropout = 0.1;
  double attention_dropout = 0.1;
  double classifier_dropout = 0.1;
  int64_t padding_id = 0;  // its embedding gets no gradient
};
// The values of the published checkpoints of this layout.
EncoderOptions DefaultOptions(const model::Architecture& architecture);

// One batch of B sequences of T tokens.
struct Batch {
  at::Tensor input_ids;    // (B, T) int64
  at::Tensor token_types;  // (B, T) int64; undefined: all zero
  at::Tensor
      attention_mask;  // (B, T) bool, true on tokens; undefined: all true
  at::Tensor labels;   // (B) int64, sequence classification
  at::Tensor start_positions;  // (B) int64, question answering
  at::Tensor end_positions;    // (B) int64, question answering
  // Of its mean loss: where ranks hold parts of different size, so that the
  // mean over ranks is the mean over all sequences.
  double weight = 1.0;
};

struct Parameter {
  std::string name;
  at::Tensor value;
};

struct Output {
  at::Tensor logits;  // (B, labels), or (B, T, 2) for question answering
  at::Tensor loss;    // scalar, fp32; undefined where the batch has no labels
};

// Called where one part of a model ends and the next begins, with the part's
// name ("embeddings", "layer 3") and its output. The last part, "head", ends
// with the pass.
using PartEnd =
    std::function<void(const std::string& part, const at::Tensor& output)>;

class Encoder {
 public:
  // Weights drawn from N(0, 0.02), biases 0, LayerNorm 1 and 0, as BERT's.
  // Throws InputError for a family or head that this trainer does not have.
  Encoder(const model::Architecture& architecture,
          const EncoderOptions& options,
          at::Device device,
          uint64_t seed);

  // Draws all weights again, in place.
  void Reset(uint64_t seed);

  // Dropout is applied only when `training`.
  Output Forward(const Batch& batch,
                 bool training,
                 const PartEnd& part_end = {}) const;

  // In the order of Hugging Face's state_dict.
  const std::vector<Parameter>& parameters() const { return parameters_; }
  int64_t parameter_count() const;
  const model::Architecture& architecture() const { return architecture_; }
  const EncoderOptions& options() const { return options_; }
  at::Device device() const { return device_; }

 private:
  struct Dense {
    at::Tensor weight;  // (out, in)
    at::Tensor bias;    // (out)
  };
  struct Norm {
    at::Tensor weight;  // (H)
    at::Tensor bias;    // (H)
  };
  struct Layer {
    Dense query, key, value, attention_output;
    Norm attention_norm;
    Dense intermediate, output;
    Norm output_norm;
  };

  at::Tensor Add(const std::string& name, at::IntArrayRef sizes);
  Dense AddDense(const std::string& name, int64_t out, int64_t in);
  Norm AddNorm(const std::string& name);
  void AddHead();

  at::Tensor Embed(const Batch& batch, bool training) const;
  at::Tensor SelfAttention(const Layer& layer,
                           const at::Tensor& hidden,
                           const at::Tensor& bias,
                           bool training) const;
  at::Tensor Normalise(const Norm& norm, const at::Tensor& input) const;

  model::Architecture architecture_;
  EncoderOptions options_;
  EncoderLayout layout_;
  at::Device device_;
  std::vector<Parameter> parameters_;

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
