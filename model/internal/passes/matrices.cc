#include "model/internal/passes/matrices.h"

#include "model/error.h"
#include "model/trainable.h"

namespace trainfare::model::internal {

bool IsOfBlock(Matrix matrix) { return matrix <= Matrix::kFeedForwardOut; }

bool Trains(const Workload& w, Matrix matrix) {
  if (w.trainable.lora_rank > 0) {
    return matrix == Matrix::kTaskHead ||
           (matrix == Matrix::kVocabulary &&
            w.trainable.embeddings_beside_adapters);
  }
  // Embeddings are frozen with the lowest blocks, and an output layer that is
  // their table.
  const bool of_tables =
      matrix == Matrix::kEmbeddings || matrix == Matrix::kLayerEmbeddings ||
      (matrix == Matrix::kVocabulary && !w.architecture.untied_output);
  return !of_tables || w.trainable.everything();
}

bool NormsTrain(const Workload& w) {
  return w.architecture.norm_scale && w.trainable.lora_rank == 0;
}

namespace {

// The member of LoraMatrices; nullptr: no adapter stands beside such a matrix.
bool LoraMatrices::*MemberOf(Matrix matrix) {
  switch (matrix) {
    case Matrix::kQuery:
      return &LoraMatrices::query;
    case Matrix::kKey:
      return &LoraMatrices::key;
    case Matrix::kValue:
      return &LoraMatrices::value;
    case Matrix::kQueryDown:
      return &LoraMatrices::query_down;
    case Matrix::kQueryUp:
      return &LoraMatrices::query_up;
    case Matrix::kKeyValueDown:
      return &LoraMatrices::key_value_down;
    case Matrix::kKeyValueUp:
      return &LoraMatrices::key_value_up;
    case Matrix::kOutput:
      return &LoraMatrices::output;
    case Matrix::kAttentionGate:
      return &LoraMatrices::attention_gate;
    case Matrix::kFeedForwardGate:
      return &LoraMatrices::feed_forward_gate;
    case Matrix::kFeedForwardIn:
      return &LoraMatrices::feed_forward_in;
    case Matrix::kFeedForwardOut:
      return &LoraMatrices::feed_forward_out;
    case Matrix::kStateSpaceIn:
      return &LoraMatrices::state_space_in;
    case Matrix::kStateSpaceOut:
      return &LoraMatrices::state_space_out;
    case Matrix::kExpertLatentIn:
      return &LoraMatrices::expert_latent_in;
    case Matrix::kExpertLatentOut:
      return &LoraMatrices::expert_latent_out;
    case Matrix::kLayerGate:
      return &LoraMatrices::layer_gate;
    case Matrix::kLayerProjection:
      return &LoraMatrices::layer_projection;
    case Matrix::kLayerEmbeddings:
      return &LoraMatrices::layer_embeddings;
    case Matrix::kDeltaRuleIn:
      return &LoraMatrices::delta_rule_in;
    case Matrix::kDeltaRuleGate:
      return &LoraMatrices::delta_rule_gate;
    case Matrix::kDeltaRuleWrite:
      return &LoraMatrices::delta_rule_write;
    case Matrix::kDeltaRuleDecay:
      return &LoraMatrices::delta_rule_decay;
    case Matrix::kDeltaRuleOut:
      return &LoraMatrices::delta_rule_out;
    case Matrix::kConvolutionIn:
      return &LoraMatrices::convolution_in;
    case Matrix::kConvolutionOut:
      return &LoraMatrices::convolution_out;
    case Matrix::kNextToken:
    case Matrix::kPooler:
    case Matrix::kTaskHead:
    case Matrix::kVocabularyHead:
    case Matrix::kEmbeddings:
    case Matrix::kVocabulary:
      return nullptr;
  }
  ENSURE(false, "a matrix without an answer");
}

}  // namespace

bool HasAdapter(const Workload& w, Matrix matrix) {
  const bool of_projections =
      matrix == Matrix::kKey || matrix == Matrix::kValue;
  if (of_projections && OneAdapterOfProjections(w)) return false;
  if (matrix == Matrix::kValue && w.architecture.shares_keys()) return false;
  if (of_projections && w.architecture.borrows_keys()) return false;
  if (matrix == Matrix::kFeedForwardIn && OneAdapterOfGate(w)) return false;
  bool LoraMatrices::*const member = MemberOf(matrix);
  return w.trainable.lora_rank > 0 && member != nullptr &&
         w.trainable.lora.*member;
}

bool AdapterTakesInput(const Workload& w, Matrix matrix) {
  bool LoraMatrices::*const member = MemberOf(matrix);
  return member != nullptr && TakesInput(w, member);
}

}  // namespace trainfare::model::internal
