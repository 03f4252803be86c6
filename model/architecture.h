#pragma once

// What a Transformer is made of, and the presets that ship with the tool.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainfare::model {

enum class Family {
  kEncoder,         // BERT: bidirectional attention, LayerNorm after residual
  kDecoder,         // GPT: causal attention, LayerNorm before the block
  kEncoderDecoder,  // Transformer base/big: cross-attention in the decoder
};

enum class Head {
  kSequenceClassification,  // pooled first token -> labels
  kQuestionAnswering,       // every token -> start and end logits
  kMaskedLanguageModel,     // transform + tied vocabulary projection
  kCausalLanguageModel,     // tied vocabulary projection at every position
  kPreTraining,             // masked language model + next sentence
  kNone,                    // encoder (with pooler, where it has one) alone
};

// Dimensions of one model. Counts, not bytes: precision belongs to Workload.
struct Architecture {
  std::string name;
  Family family = Family::kEncoder;
  int64_t layers = 0;          // encoder layers (decoder layers of a decoder)
  int64_t decoder_layers = 0;  // of an encoder-decoder only
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t intermediate = 0;
  int64_t vocabulary = 0;
  int64_t positions = 0;        // rows of the learned position table; 0 = fixed
  int64_t position_offset = 0;  // rows not usable as positions (RoBERTa: 2)
  int64_t token_types = 0;      // rows of the token-type table
  bool embedding_layer_norm = true;
  bool pooler = true;  // dense + tanh over the first token
  // Of a decoder: query, key and value are three matrices (OPT) and not one
  // (GPT-2's c_attn).
  bool separate_projections = false;
  // DistilBERT and RoBERTa classify through one more dense layer.
  bool classifier_dense = false;
  Head head = Head::kSequenceClassification;
  int64_t labels = 2;
  double dropout = 0.1;  // of hidden states and attention probabilities

  // Self-attention's query, key and value come of one matrix.
  bool joint_projection() const;
  // The pooler is built only for heads that read it.
  bool has_pooler() const;
  // Longest sequence that the position table allows; nullopt when unlimited.
  std::optional<int64_t> max_sequence_length() const;

  friend bool operator==(const Architecture&, const Architecture&) = default;
};

// Trainable parameters, exact. The encoder part excludes the task head but
// includes embeddings and pooler: 109,482,240 for bert-base-uncased.
// Derivation by hand: docs/models/counts.md; asserted in tests/model.
int64_t EncoderParameters(const Architecture& architecture);
int64_t HeadParameters(const Architecture& architecture);
int64_t TotalParameters(const Architecture& architecture);

// Every parameter tensor of one model, in model order: how many optimizer
// launches a for-loop needs and how gradients fall into buckets.
struct ParameterTensor {
  std::string name;  // the name in Hugging Face's state_dict for BERT
  int64_t elements;
  int64_t layer;        // 0 embeddings, 1..n blocks, n + 1 head
  int64_t columns = 1;  // of a matrix; 1: a vector
};
std::vector<ParameterTensor> ParameterTensorsOf(
    const Architecture& architecture);

int64_t ParameterTensorCount(const Architecture& architecture);

// The presets that ship with the tool, sorted by name.
std::span<const Architecture> ArchitecturePresets();
// By exact name or alias; throws InputError naming the nearest presets.
const Architecture& FindArchitecture(std::string_view name);
std::optional<Architecture> TryFindArchitecture(std::string_view name);

std::string_view ToText(Family family);
std::string_view ToText(Head head);
Family FamilyFromText(std::string_view text);  // throws InputError
Head HeadFromText(std::string_view text);      // throws InputError

}  // namespace trainfare::model
