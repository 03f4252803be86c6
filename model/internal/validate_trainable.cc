#include "model/internal/validate_trainable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.h"
#include "model/internal/require_count.h"
#include "model/limits.h"
#include "model/stack_rules.h"
#include "model/trainable.h"

namespace trainfare::model::internal {
namespace {

// What of a model tells which matrices it has.
std::string_view WhatModelHas(const Architecture& a) {
  if (a.state_space_layers > 0) return "beside state spaces";
  if (a.delta_rule_layers > 0) return "beside the delta rule";
  if (a.convolution_layers > 0) return "beside short convolutions";
  return a.latent() ? "in latent attention" : "without latent attention";
}

// Latent attention has matrices of its own in the place of others.
void RequireMatricesOfModel(const LoraMatrices& matrices,
                            const Architecture& a) {
  const std::vector<std::string> known = ToWords(LoraMatricesOf(a));
  for (const std::string& word : ToWords(matrices)) {
    if (std::find(known.begin(), known.end(), word) != known.end()) continue;
    throw InputError(
        fmt::format("trainable.lora.matrices: expected some of {} {}, got {}",
                    fmt::join(known, ", "),
                    WhatModelHas(a),
                    word));
  }
}

// A matrix of k inputs and n outputs is no sum of more than min(k, n) of rank 1.
void RequireRoomForRank(const Workload& w) {
  const int64_t rank = w.trainable.lora_rank;
  const auto smallest = SmallestAdapted(w);
  if (!smallest || rank <= smallest->smaller_side()) return;
  throw InputError(
      fmt::format("trainable.lora.rank: expected a count of at most {}, the "
                  "smaller side of {} ({} x {}), got {}",
                  smallest->smaller_side(),
                  smallest->module,
                  smallest->inputs,
                  smallest->outputs,
                  rank));
}

// Adapters: the matrices that they stand beside, and their rank.
void ValidateAdapters(const Workload& w) {
  const Trainable& t = w.trainable;
  const Architecture& a = w.architecture;
  if (t.lora.feed_forward_gate && !a.gated) {
    throw InputError(
        "trainable.lora.matrices: expected a gated feed-forward for "
        "feed_forward_gate");
  }
  RequireCount(t.lora_rank, 0, kLargestDimension, "trainable.lora.rank");
  if (t.lora_rank == 0) return;
  RequireMatricesOfModel(t.lora, a);
  const LoraMatrices modules = Modules(w.stack.fusion, t.lora);
  if (t.lora.state_space_out != modules.state_space_out) {
    throw InputError(
        fmt::format("trainable.lora.matrices: expected no state_space_out "
                    "(out_proj) in stack {}, where the scan's kernel takes "
                    "that weight and runs no adapter; hint: state_space_in, or "
                    "stack megatron",
                    ToText(w.stack.fusion)));
  }
  if (t.lora != modules) {
    throw InputError(
        fmt::format("trainable.lora.matrices: expected of the delta rule "
                    "delta_rule_in and delta_rule_out in stack {}, which has "
                    "one first product; hint: delta_rule_in",
                    ToText(w.stack.fusion)));
  }
  RequireRoomForRank(w);
  if (a.next_token_blocks > 0) {
    throw InputError(fmt::format(
        "model.next_token_blocks: expected 0 beside adapters, got {}",
        a.next_token_blocks));
  }
  if (t.frozen_layers > 0) {
    throw InputError(
        "trainable: expected frozen layers or adapters, got both; adapters "
        "freeze all layers");
  }
  if (t.lora == LoraMatrices{}) {
    throw InputError(
        "trainable.lora.matrices: expected at least one matrix, got none");
  }
}

// What goes with adapters alone.
void ValidateBesideAdapters(const Workload& w) {
  const Trainable& t = w.trainable;
  const Architecture& a = w.architecture;
  if (!(t.lora_dropout >= 0 && t.lora_dropout < 1) ||
      (t.lora_dropout > 0 && t.lora_rank == 0)) {
    throw InputError(fmt::format(
        "trainable.lora.dropout: expected 0 to below 1 beside adapters, got {}",
        t.lora_dropout));
  }
  if (t.base_bits != 0 &&
      (t.lora_rank == 0 || (t.base_bits != 4 && t.base_bits != 8))) {
    throw InputError(fmt::format(
        "trainable.lora.base_bits: expected 4 or 8 beside adapters, got {}",
        t.base_bits));
  }
  if (t.embeddings_beside_adapters &&
      (t.lora_rank == 0 || !EmbeddingsMayTrainBesideAdapters(a))) {
    throw InputError(
        "trainable.lora.embeddings: expected false but beside adapters of a "
        "causal language model whose embeddings have no norm or projection, "
        "got true");
  }
  if (t.base_by_operations && (!WidensBase(w) || !OperationsMayWidenBase(a))) {
    throw InputError(
        "trainable.lora.base_by_operations: expected false but over base_bits "
        "that products do not take as they are, without experts, blocks that "
        "are no Transformer's or a second side, got true");
  }
}

}  // namespace

void ValidateTrainable(const Workload& w) {
  const Trainable& t = w.trainable;
  const Architecture& a = w.architecture;
  if (t.frozen_layers < 0 || t.frozen_layers > a.layers) {
    throw InputError(
        fmt::format("trainable.frozen_layers: expected 0 to {}, the layers of "
                    "{}, got {}",
                    a.layers,
                    a.name.empty() ? "the model" : a.name,
                    t.frozen_layers));
  }
  ValidateAdapters(w);
  ValidateBesideAdapters(w);
  if (t.frozen_layers > 0 && TrainableTensorCount(w) == 0) {
    throw InputError(
        fmt::format("trainable.frozen_layers: expected something left to train "
                    "above the frozen layers of {}, got {} of {}",
                    a.name.empty() ? "the model" : a.name,
                    t.frozen_layers,
                    a.layers));
  }
}

}  // namespace trainfare::model::internal
