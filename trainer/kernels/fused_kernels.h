#pragma once

// What the fused stack does between matrix products, as loops over plain
// arrays: for CPUs here, for GPUs in kernels/fused_layers.cu. fused_layers.h
// makes autograd operators of them.
//
// Masks of dropout hold a byte an element, 1 where it is kept; null: no
// dropout. `scale` is 1 / (1 - probability). Sums over rows (gradients of
// biases and LayerNorm) come as kFusedChunks partial sums, one a share of the
// rows, so that their order does not depend on threads or blocks.

#include <cstdint>

namespace trainfare::trainer {

inline constexpr int64_t kFusedChunks = 32;

enum class ElementType { kFloat, kDouble, kHalf, kBfloat16 };

// The activation of a feed-forward block.
enum class Activation {
  kGelu,      // x Phi(x): BERT
  kGeluTanh,  // its approximation by tanh: GPT-2
  kRelu,      // Vaswani et al. 2017
};

// What dropout draws from on a GPU: element i is kept where the upper half of
// SplitMix64(key + i) reaches `threshold`. On a CPU masks are drawn before.
struct MaskDraw {
  uint64_t key;
  uint32_t threshold;
};

// output = f(input + bias), rows x columns.
struct BiasActivation {
  int64_t rows;
  int64_t columns;
  Activation activation;
  ElementType type;  // of input, output and their gradients
  const void* input;
  const void* bias;      // of type double where `type` is, else float
  void* output;          // forward
  const void* gradient;  // backward, of the output
  void* input_gradient;
  void* bias_partials;  // (kFusedChunks, columns), typed as bias
};

// sum = dropout(input + bias) + residual; normed = LayerNorm(sum). Type of all
// but `input` and its gradient: double where `type` is, else float.
struct AddNorm {
  int64_t rows;
  int64_t columns;
  ElementType type;
  double epsilon;
  double scale;
  MaskDraw draw;
  uint8_t* mask;
  const void* input;
  const void* bias;
  const void* residual;
  const void* weight;
  const void* shift;
  void* sum;
  void* normed;
  void* mean;                   // (rows)
  void* deviation;              // (rows), its reciprocal
  const void* normed_gradient;  // backward
  const void* sum_gradient;     // null: none
  void* residual_gradient;      // equal to the input's where there is no mask,
  void* input_gradient;         // which then is null unless types differ
  void* partials;  // (3, kFusedChunks, columns): bias, weight, shift
};

// probabilities = softmax(scale * scores + mask); dropped = dropout of them.
struct SoftmaxDropout {
  int64_t rows;            // all heads' queries
  int64_t columns;         // keys
  int64_t queries;         // rows of one head
  int64_t rows_per_batch;  // heads x queries
  ElementType type;        // of scores, probabilities, dropped, gradients
  double score_scale;
  bool causal;  // key j is seen by query i where j <= i
  double scale;
  MaskDraw draw;
  uint8_t* mask;
  const void* scores;
  const void* padding;  // (batch, columns), added; typed as LayerNorm above
  void* probabilities;
  void* dropped;         // null without dropout: the probabilities are it
  const void* gradient;  // backward
  void* score_gradient;
};

// On all threads; types float and double.
void FusedForward(const BiasActivation& a);
void FusedBackward(const BiasActivation& a);
void FusedForward(const AddNorm& a);
void FusedBackward(const AddNorm& a);
void FusedForward(const SoftmaxDropout& a);
void FusedBackward(const SoftmaxDropout& a);

}  // namespace trainfare::trainer
