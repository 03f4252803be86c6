#pragma once

// Transformers that train, on LibTorch tensors: what encoder.h, decoder.h and
// encoder_decoder.h have in common.
//
// Parameters keep the names, shapes and order of Hugging Face Transformers, so
// that a state_dict loads as it is; tests/trainer compares logits, loss and
// every gradient with that library.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/architecture.h"
#include "model/workload.h"
#include "trainer/kernels/fused_kernels.h"
#include "trainer/network/rotary.h"
#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

// What the part of a block with experts is called: by Mixtral, and by others.
inline constexpr const char* kMixtralExperts = "block_sparse_moe";
inline constexpr const char* kMlpExperts = "mlp";

// What Architecture does not say, because no count depends on it.
struct TransformerOptions {
  model::Fusion fusion = model::Fusion::kEager;  // or kFused
  model::Attention attention = model::Attention::kMaterialised;
  Activation activation = Activation::kGelu;
  double layer_norm_epsilon = 1e-12;
  double hidden_dropout = 0.1;  // of embeddings and of what residuals add
  double attention_dropout = 0.1;
  double classifier_dropout = 0.1;
  int64_t padding_id = 0;
  // The padding token's word embedding has no gradient; encoders of BERT's kind
  // and decoders of two sides always do so.
  bool freezes_padding = false;
  int64_t decoder_start_id = 0;  // first token a decoder of two sides is given
  RotaryOptions rotary;
  // The weights of a token's experts add up to 1.
  bool normalised_experts = true;
  std::string expert_block = kMixtralExperts;
  // What of the model trains, and whether the backward pass computes blocks
  // again instead of keeping them: so many that it reaches, from the lowest, or
  // all (0).
  model::Trainable trainable;
  bool recompute = false;
  int64_t recomputed_blocks = 0;
  // The type of parameters, activations and gradients. Narrower than fp32, the
  // optimizer has fp32 masters of them.
  at::ScalarType type = at::kFloat;
};
// The type of the parameters that a workload asks for. Throws InputError where
// weights cannot be narrow.
at::ScalarType ParameterType(const model::Workload& workload);
// Sets what a workload says of the network's stack, and of what trains and is
// computed again.
void SetStack(const model::Workload& workload, TransformerOptions& options);
// A label that no loss counts: the next token of a last or a padding one.
inline constexpr int64_t kNoLabel = -100;

// One batch of B sequences of T tokens; S of them on a decoder's side.
struct Batch {
  at::Tensor input_ids;    // (B, T) int64
  at::Tensor target_ids;   // (B, S) int64, given to the decoder of two sides
  at::Tensor token_types;  // (B, T) int64; undefined: all zero
  at::Tensor
      attention_mask;  // (B, T) bool, true on tokens; undefined: all true
  // int64: (B) of sequence classification; the token that is to follow each
  // position, (B, T) or (B, S), of language models.
  at::Tensor labels;
  at::Tensor start_positions;  // (B) int64, question answering
  at::Tensor end_positions;    // (B) int64, question answering
  // The weight of its mean loss: where ranks hold parts of different size, so
  // that the mean over ranks is the mean over all sequences.
  double weight = 1.0;
};

// What is to follow each of `ids` (B, T): the next one, and kNoLabel behind the
// last token of a row, of which `tokens` (B, T) bool marks all (undefined: all
// positions are tokens).
at::Tensor NextTokens(const at::Tensor& ids, const at::Tensor& tokens);

// What a decoder is given to predict `labels` (B, S): `start`, then all but the
// last; `padding` for kNoLabel.
at::Tensor ShiftRight(const at::Tensor& labels, int64_t start, int64_t padding);

// Mean cross entropy, in fp32, of logits (B, T, V) against labels (B, T) that
// are not kNoLabel.
at::Tensor LanguageModelLoss(const at::Tensor& logits,
                             const at::Tensor& labels);

// The scale of what an adapter adds: its alpha over its rank (Hu et al. 2021),
// here 2.
inline constexpr double kAdapterScale = 2.0;

// The function of a plain block's feed-forward.
model::Activation ActivationOf(const model::Architecture& architecture,
                               const TransformerOptions& options);

struct Parameter {
  std::string name;
  at::Tensor value;
};

struct Output {
  // (B, labels); (B, T, 2) for question answering; (B, T, V) or (B, S, V) of
  // language models.
  at::Tensor logits;
  at::Tensor loss;  // scalar, fp32; undefined where the batch has no labels
};

// A part of a model: "embeddings", "layer 3", "decoder layer 0".
struct PartName {
  std::string text;
  bool block = false;  // one of the blocks that follow each other
};

// Called where one part of a model ends and the next begins, with the part's
// output. The last part, "head", ends with the pass.
using PartEnd =
    std::function<void(const PartName& part, const at::Tensor& output)>;

class Transformer {
 public:
  virtual ~Transformer() = default;
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  // Dropout is applied only when `training`.
  Output Forward(const Batch& batch,
                 bool training,
                 const PartEnd& part_end = {}) const {
    return Run(batch, training, part_end);
  }

  // Draws all weights again, in place: N(0, 0.02) unless the model says
  // otherwise, biases 0, LayerNorm 1 and 0.
  void Reset(uint64_t seed);

  // In the order of Hugging Face's state_dict; adapters behind their matrices.
  const std::vector<Parameter>& parameters() const { return parameters_; }
  // Those that get a gradient.
  std::vector<Parameter> TrainedParameters() const;
  int64_t parameter_count() const;
  const model::Architecture& architecture() const { return architecture_; }
  const TransformerOptions& options() const { return options_; }
  at::Device device() const { return device_; }

 protected:
  struct Dense {
    at::Tensor weight;        // (out, in)
    at::Tensor bias;          // (out); undefined: none
    bool transposed = false;  // the weight is (in, out), as GPT-2 keeps it
    // An adapter beside the weight (model/trainable.h); undefined: none.
    at::Tensor adapter_down;  // (rank, in)
    at::Tensor adapter_up;    // (out, rank)
  };
  struct Norm {
    at::Tensor weight;  // (H), or as wide as what it norms
    at::Tensor bias;    // the same; undefined of RMSNorm
  };
  struct Heads {
    at::Tensor query, key, value;  // (B, heads, T, head_size)
  };
  // Initial deviation of weights: Devlin et al. 2019, Radford et al. 2019;
  // initializer_range of the published configurations.
  static constexpr double kDeviation = 0.02;

  // Throws InputError for a stack or attention that cannot be run.
  Transformer(const model::Architecture& architecture,
              const TransformerOptions& options,
              at::Device device);

  // Parameters that are added from here on get no gradient.
  void Freeze(bool frozen) { frozen_ = frozen; }
  at::Tensor Add(const std::string& name,
                 at::IntArrayRef sizes,
                 double deviation = kDeviation);
  Dense AddDense(const std::string& name,
                 int64_t out,
                 int64_t in,
                 bool bias = true);
  Norm AddNorm(const std::string& name);

  // What residuals go on with, and its LayerNorm.
  struct Residual {
    at::Tensor sum;
    at::Tensor normed;
  };

  at::Tensor Normalise(const Norm& norm, const at::Tensor& input) const;
  static at::Tensor Project(const Dense& dense, const at::Tensor& input);
  static Dense WithoutBias(Dense dense) {
    dense.bias.reset();
    return dense;
  }
  // The activation of a projection: the inner half of a feed-forward block.
  at::Tensor ProjectAndActivate(const Dense& dense,
                                const at::Tensor& input) const;
  // dropout(projection of `input`) + residual.
  Residual ProjectAndAdd(const Dense& dense,
                         const at::Tensor& input,
                         const at::Tensor& residual,
                         const Norm& norm,
                         bool training) const;
  // (B, T, heads * head_size) to (B, heads, T, head_size).
  static at::Tensor SplitHeads(const at::Tensor& input, int64_t heads);
  at::Tensor SplitHeads(const at::Tensor& input) const {
    return SplitHeads(input, architecture_.heads);
  }
  // Softmax(Q K^T / sqrt(head_size) + mask) V with the heads side by side
  // again, (B, T, heads * head_size). `mask` is added to the scores; undefined:
  // none. `causal` says that it is CausalMask().
  at::Tensor Attend(const Heads& heads,
                    const at::Tensor& mask,
                    bool causal,
                    bool training) const;
  // Whether Attend() takes fewer heads of keys and values than of queries:
  // LibTorch's flash attention on a GPU does, in 16 bits.
  bool GroupsKeys() const;
  // (B, 1, 1, T): 0 on tokens, lowest on padding; undefined without padding.
  at::Tensor PaddingMask(const at::Tensor& attention_mask) const;
  // (T, T): lowest above the diagonal, where a position would see its future;
  // undefined where attention knows it without.
  at::Tensor CausalMask(int64_t length) const;
  // The lowest finite value of the parameters' type.
  double LowestValue() const;

 private:
  at::Tensor Activate(const at::Tensor& input) const;
  at::Tensor Probabilities(const Heads& heads,
                           const at::Tensor& mask,
                           bool causal,
                           bool training) const;

  virtual Output Run(const Batch& batch,
                     bool training,
                     const PartEnd& part_end) const = 0;

  model::Architecture architecture_;
  TransformerOptions options_;
  at::Device device_;
  std::vector<Parameter> parameters_;
  std::vector<double> deviations_;  // at the start, of each parameter
  bool frozen_ = false;
};

}  // namespace trainfare::trainer
