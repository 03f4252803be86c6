#include "model/internal/passes/matrices.h"

#include "model/error.h"

namespace trainfare::model::internal {

bool IsOfBlock(Matrix matrix) { return matrix <= Matrix::kFeedForwardOut; }

bool Trains(const Workload& w, Matrix matrix) {
  if (w.trainable.lora_rank > 0) {
    return matrix == Matrix::kTaskHead ||
           (matrix == Matrix::kVocabulary &&
            w.trainable.embeddings_beside_adapters);
  }
  const bool of_tables =
      matrix == Matrix::kVocabulary || matrix == Matrix::kEmbeddings;
  return !of_tables || w.trainable.everything();
}

bool NormsTrain(const Workload& w) {
  return w.architecture.norm_scale && w.trainable.lora_rank == 0;
}

bool HasAdapter(const Workload& w, Matrix matrix) {
  const LoraMatrices& m = w.trainable.lora;
  if (w.trainable.lora_rank == 0) return false;
  switch (matrix) {
    case Matrix::kQuery:
      return m.query;
    case Matrix::kKey:
      return m.key;
    case Matrix::kValue:
      return m.value;
    case Matrix::kQueryDown:
      return m.query_down;
    case Matrix::kQueryUp:
      return m.query_up;
    case Matrix::kKeyValueDown:
      return m.key_value_down;
    case Matrix::kKeyValueUp:
      return m.key_value_up;
    case Matrix::kOutput:
      return m.output;
    case Matrix::kFeedForwardGate:
      return m.feed_forward_gate;
    case Matrix::kFeedForwardIn:
      return m.feed_forward_in;
    case Matrix::kFeedForwardOut:
      return m.feed_forward_out;
    case Matrix::kNextToken:
    case Matrix::kPooler:
    case Matrix::kTaskHead:
    case Matrix::kVocabularyHead:
    case Matrix::kEmbeddings:
    case Matrix::kVocabulary:
      return false;
  }
  ENSURE(false, "a matrix without an answer");
}

}  // namespace trainfare::model::internal
