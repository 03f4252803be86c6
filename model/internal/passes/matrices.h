#pragma once

// The matrices of a model, and which of them train.

#include "model/workload.h"

namespace trainfare::model::internal {

// Matrices of a model, as far as training tells them apart.
enum class Matrix {
  kNextToken,  // joins what a block of that sort is given
  kQuery,
  kKey,
  kValue,
  kQueryDown,
  kQueryUp,
  kKeyValueDown,
  kKeyValueUp,
  kOutput,
  kAttentionGate,
  kStateSpaceIn,
  kStateSpaceOut,
  kDeltaRuleIn,
  kDeltaRuleGate,
  kDeltaRuleWrite,
  kDeltaRuleDecay,
  kDeltaRuleOut,
  kConvolutionIn,
  kConvolutionOut,
  kExpertLatentIn,
  kExpertLatentOut,
  kLayerGate,
  kLayerProjection,
  kFeedForwardGate,
  kFeedForwardIn,
  kFeedForwardOut,
  kPooler,
  kTaskHead,         // trains beside adapters
  kVocabularyHead,   // the transform before the logits
  kEmbeddings,       // widens them
  kLayerEmbeddings,  // makes a part of those of all blocks
  kVocabulary,       // tied to the word embeddings
};

// Those of blocks, whose products may be in 8 bits.
bool IsOfBlock(Matrix matrix);

// Whether a weight has a gradient, in a block that has a backward pass.
bool Trains(const Workload& workload, Matrix matrix);

// The same of LayerNorm's scales and shifts.
bool NormsTrain(const Workload& workload);

// Whether an adapter stands beside a matrix.
bool HasAdapter(const Workload& workload, Matrix matrix);

// Whether it takes an input for itself (TakesInput() of model/trainable.h).
bool AdapterTakesInput(const Workload& workload, Matrix matrix);

}  // namespace trainfare::model::internal
