#pragma once

// Workloads of which parts train: the last blocks of BERT-base, or adapters.

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "model/kernels.h"
#include "model/presets.h"
#include "model/workload.h"

namespace trainfare::model {

inline Workload BertToTrain() {
  Workload w;
  w.architecture = FindArchitecture("bert-base-uncased");
  w.batch = 8;
  w.sequence_length = 128;
  return w;
}

inline Workload Frozen(int64_t layers) {
  Workload w = BertToTrain();
  w.trainable.frozen_layers = layers;
  return w;
}

inline Workload BertLora(int64_t rank) {
  Workload w = BertToTrain();
  w.trainable.lora_rank = rank;
  w.trainable.lora.query = true;
  w.trainable.lora.value = true;
  return w;
}

inline Workload LoraOf(const char* model,
                       std::initializer_list<std::string_view> matrices,
                       int64_t rank) {
  Workload w;
  w.architecture = FindArchitecture(model);
  w.trainable.lora_rank = rank;
  for (const std::string_view matrix : matrices) {
    AddLoraMatrix(matrix, w.trainable.lora);
  }
  return w;
}
// Beside all matrices of every feed-forward, experts or not.
inline Workload LoraOfExperts(const char* model, int64_t rank) {
  return LoraOf(model,
                {"feed_forward_gate", "feed_forward_in", "feed_forward_out"},
                rank);
}

inline int64_t MatrixFlops(const Workload& w, Phase phase) {
  return ExpandKernels(w).Counts(phase).matrix_flops;
}

}  // namespace trainfare::model
