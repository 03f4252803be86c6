#pragma once

// The fields of Architecture and Workload, once: names, ranges, which of them a
// file must have, what they are. Reading and writing of YAML and JSON, the
// identity of a run and the tests that nothing is lost on the way are archives
// over this list, so that a new field is one line here. A device has its list
// in hardware/catalog/device_fields.h, a fit in calibrate/fit/fit_fields.h, a
// measurement in model/record_fields.h.
// Where a function is longer than a screen it is a table, a statement a field.
//
//   struct Archive {
//     template <class T> void operator()(const Field& field, T& value);
//   };
//
// An archive gets every field in order: a number, a text, a flag, a word (an
// enum), words (LoraMatrices), or a struct with fields of its own; of some also
// a quantity, an optional, a list. A reading archive keeps the value of what
// its file leaves out, and has a member type `Reads`. Archives: JsonFieldReader
// and JsonFieldWriter (model/json_fields.h), YamlFieldReader and
// YamlFieldWriter (hardware/files/yaml_fields.h), FieldKeyLister
// (hardware/files/field_keys.h), FieldTexts() below.

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "model/architecture.h"
#include "model/limits.h"
#include "model/trainable.h"
#include "model/workload.h"

namespace trainfare::model {

struct Field {
  std::string_view name;
  std::string_view about = {};  // one line, for `trainfare list keys`
  bool required = false;        // of a file that is read
  int64_t least = 0;            // of a count, inclusive
  int64_t most = kLargestDimension;
  // Of a count whose 0 says that there is no such thing, which a person says by
  // leaving the key out.
  int64_t least_asked = 0;
  double low = 0.0;  // of a number, inclusive
  double high = 1.0;
  // A quantity's bounds in base units, inclusive; above 0 unless it may be 0.
  double least_base = 0.0;
  double most_base = std::numeric_limits<double>::infinity();
  bool may_be_zero = false;
  // How it is written: a struct on one line; what stands above the field, for
  // whoever reads the file.
  std::string_view json = {};  // its name in JSON, where that has its unit
  bool one_line = false;
  bool plain = false;  // a text that is a word of ours, and needs no quotes
  std::string_view comment = {};
};

inline std::string NameInJson(const Field& field) {
  return std::string(field.json.empty() ? field.name : field.json);
}

// The words of sets, for archives.
void FromWords(const std::vector<std::string>& words, LoraMatrices& matrices);

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;

template <class T>
concept IsQuantity = requires(const T& value) {
  typename T::Scalar;
  value.base();
};

template <class T>
concept HasWords = requires(const T& value) {
  ToWords(value);
};

template <class Archive>
concept ReadingArchive = requires {
  typename Archive::Reads;
};

// T or const T, as an archive reads or writes.
template <class T, class Struct>
concept Of = std::same_as<std::remove_const_t<T>, Struct>;

// What a family has where a file does not say.
void SetFamilyDefaults(Architecture& architecture);

// How blocks of the gated delta rule mix tokens.
template <class Archive, Of<Architecture> A>
void VisitDeltaRule(Archive& archive, A& a) {
  archive(Field{.name = "delta_rule_layers",
                .about = "Blocks that mix tokens by the gated delta rule, not "
                         "by attention"},
          a.delta_rule_layers);
  archive(Field{.name = "delta_key_heads",
                .about = "Heads of queries and keys of the delta rule"},
          a.delta_key_heads);
  archive(Field{.name = "delta_value_heads",
                .about = "Heads of its values; several share one of keys"},
          a.delta_value_heads);
  archive(Field{.name = "delta_key_size", .about = "Width of a head of keys"},
          a.delta_key_size);
  archive(
      Field{.name = "delta_value_size", .about = "Width of a head of values"},
      a.delta_value_size);
  archive(Field{.name = "delta_convolution",
                .about = "Tokens that its convolution reaches over",
                .least = 1},
          a.delta_convolution);
  archive(Field{.name = "delta_chunk",
                .about = "Tokens that it multiplies at once",
                .least = 1,
                .most = kLongestSequence},
          a.delta_chunk);
  archive(Field{.name = "delta_joint_projections",
                .about = "Its first products are two, not four (Qwen3-Next)"},
          a.delta_joint_projections);
}

// How blocks of a short convolution do.
template <class Archive, Of<Architecture> A>
void VisitConvolution(Archive& archive, A& a) {
  archive(Field{.name = "convolution_layers",
                .about = "Blocks that mix tokens by a short gated convolution, "
                         "not by attention"},
          a.convolution_layers);
  archive(Field{.name = "convolution_channels",
                .about = "Channels that it takes; 0: hidden"},
          a.convolution_channels);
  archive(Field{.name = "convolution_reach",
                .about = "Tokens that its filters reach over (conv_L_cache)",
                .least = 1},
          a.convolution_reach);
}

// What a block is made of. Long because it is a table: a statement a field.
template <class Archive, Of<Architecture> A>
void VisitBlock(Archive& archive, A& a) {
  archive(Field{.name = "norm",
                .about = "Mean and variance, or root mean square alone"},
          a.norm);
  archive(Field{.name = "norm_bias", .about = "LayerNorm has a shift"},
          a.norm_bias);
  archive(Field{.name = "norm_scale", .about = "Norms have weights"},
          a.norm_scale);
  archive(
      Field{
          .name = "norm_placement",
          .about =
              "Where norms stand; by_family: before in a decoder, else after"},
      a.norm_placement);
  archive(Field{.name = "first_norm",
                .about = "The first block begins with a norm (ModernBERT: no)"},
          a.first_norm);
  archive(Field{.name = "query_key_norm",
                .about = "Norm of queries and keys: of each head, by weights "
                         "or none, or of "
                         "all"},
          a.query_key_norm);
  archive(Field{.name = "position_kind",
                .about = "How positions enter; without a table `positions` is "
                         "the longest sequence"},
          a.position_kind);
  archive(Field{.name = "relative_buckets",
                .about = "Buckets of distances, of relative positions"},
          a.relative_buckets);
  archive(Field{.name = "relative_bias_each_block",
                .about = "Each block has relative positions of its own (UMT5)"},
          a.relative_bias_each_block);
  archive(Field{.name = "shared_blocks",
                .about = "All blocks have one set of weights (ALBERT)"},
          a.shared_blocks);
  archive(Field{.name = "unrotated_layers",
                .about = "Blocks without positions (SmolLM3: a quarter)"},
          a.unrotated_layers);
  archive(Field{.name = "scaled_scores",
                .about = "Scores are divided by the root of a head's size"},
          a.scaled_scores);
  archive(Field{.name = "key_value_heads",
                .about = "Heads of keys and values; 0: as many as `heads`"},
          a.key_value_heads);
  archive(
      Field{.name = "head_size",
            .about = "Width of a head of queries and keys; 0: hidden / heads"},
      a.head_size);
  archive(Field{.name = "value_head_size",
                .about = "Width of a head of values; 0: head_size"},
          a.value_head_size);
  archive(Field{.name = "latent_query",
                .about = "Rank of DeepSeek's latent queries; 0: plain ones"},
          a.latent_query);
  archive(Field{.name = "latent_key_value",
                .about =
                    "Rank of DeepSeek's latent keys and values; 0: plain ones"},
          a.latent_key_value);
  archive(
      Field{.name = "rotary_head_size",
            .about = "Part of a head that carries its position; 0: all of it"},
      a.rotary_head_size);
  archive(
      Field{.name = "joint_projections",
            .about = "Query, key and value of an encoder are one matrix, too"},
      a.joint_projections);
  archive(Field{.name = "attention_bias",
                .about = "Query, key and value have biases"},
          a.attention_bias);
  archive(
      Field{.name = "output_bias", .about = "Attention's output has a bias"},
      a.output_bias);
  archive(Field{.name = "clipped_projections",
                .about = "Queries, keys and values are clipped (DBRX)"},
          a.clipped_projections);
  archive(Field{.name = "gated_attention",
                .about = "Attention's result has a gate, which comes with the "
                         "queries (Qwen3-Next)"},
          a.gated_attention);
  archive(Field{.name = "separate_attention_gate",
                .about = "That gate comes of a product of its own (AFMoE)"},
          a.separate_attention_gate);
  archive(
      Field{
          .name = "attention_sinks",
          .about = "A learned score for each head beside the others (gpt-oss)"},
      a.attention_sinks);
  archive(Field{.name = "value_norm",
                .about = "Values have a norm of each head, without weights "
                         "(Gemma 4)"},
          a.value_norm);
  archive(Field{.name = "window",
                .about = "Positions that a query sees in blocks with a window"},
          a.window);
  archive(Field{.name = "windowed_layers", .about = "Blocks with a window"},
          a.windowed_layers);
  archive(Field{.name = "full_head_size",
                .about = "Width of heads of the other blocks; 0: as with a "
                         "window"},
          a.full_head_size);
  archive(Field{.name = "full_key_value_heads",
                .about = "Heads of keys and values of these; 0: as with a "
                         "window"},
          a.full_key_value_heads);
  archive(Field{.name = "windowed_sinks",
                .about = "Sinks are of blocks with a window (MiMo-V2-Flash)"},
          a.windowed_sinks);
  archive(Field{.name = "keys_are_values",
                .about = "Without a window one product makes keys and values "
                         "(Gemma 4)"},
          a.keys_are_values);
  archive(Field{.name = "chunked_window",
                .about = "A window begins anew after so many positions (Llama "
                         "4)"},
          a.chunked_window);
  archive(
      Field{.name = "state_space_layers",
            .about = "Blocks that mix tokens by a state space (Mamba-2), not "
                     "by attention"},
      a.state_space_layers);
  archive(
      Field{.name = "single_part_blocks",
            .about = "A block is attention, a state space or a feed-forward "
                     "alone"},
      a.single_part_blocks);
  archive(Field{.name = "feed_forward_layers",
                .about = "Of such blocks those that are a feed-forward"},
          a.feed_forward_layers);
  archive(Field{.name = "state_heads", .about = "Heads of a state space"},
          a.state_heads);
  archive(Field{.name = "state_head_size",
                .about = "Width of a head of a state space"},
          a.state_head_size);
  archive(Field{.name = "state_size",
                .about = "States of each element of a head (ssm_state_size)"},
          a.state_size);
  archive(Field{.name = "state_groups",
                .about = "Groups of its heads that share B and C",
                .least = 1},
          a.state_groups);
  archive(Field{.name = "state_convolution",
                .about = "Tokens that its convolution reaches over",
                .least = 1},
          a.state_convolution);
  archive(Field{.name = "state_chunk",
                .about = "Tokens that its scan multiplies at once",
                .least = 1,
                .most = kLongestSequence},
          a.state_chunk);
  VisitDeltaRule(archive, a);
  VisitConvolution(archive, a);
  archive(Field{.name = "activation",
                .about = "Function in the feed-forward block"},
          a.activation);
  archive(
      Field{.name = "gated", .about = "A second product gates the activation"},
      a.gated);
  archive(Field{.name = "joint_gate", .about = "Both products are one matrix"},
          a.joint_gate);
  archive(Field{.name = "drops_activation",
                .about = "Dropout of what the activation gives, too"},
          a.drops_activation);
  archive(Field{.name = "feed_forward_bias",
                .about = "The feed-forward products have biases"},
          a.feed_forward_bias);
  archive(Field{.name = "parallel_block",
                .about = "Attention and feed-forward read the same sum"},
          a.parallel_block);
  archive(Field{.name = "shared_norm",
                .about = "They read it through the same norm"},
          a.shared_norm);
  archive(
      Field{.name = "experts", .about = "Routed experts of a block; 0: none"},
      a.experts);
  archive(Field{.name = "experts_per_token",
                .about = "Experts that a token is sent to"},
          a.experts_per_token);
  archive(
      Field{.name = "expert_intermediate", .about = "Width of a routed expert"},
      a.expert_intermediate);
  archive(Field{.name = "shared_intermediate",
                .about = "Width of the experts of every token together"},
          a.shared_intermediate);
  archive(Field{.name = "expert_latent",
                .about = "Width of the rows that routed experts take and give "
                         "(moe_latent_size); 0: hidden"},
          a.expert_latent);
  archive(
      Field{
          .name = "shared_expert_gate",
          .about = "A scalar for each token weighs the experts of every token"},
      a.shared_expert_gate);
  archive(Field{.name = "router_bias", .about = "The router has a bias"},
          a.router_bias);
  archive(Field{.name = "expert_norms",
                .about = "Experts and their router have norms of their own "
                         "(Gemma 4)"},
          a.expert_norms);
  archive(Field{.name = "expert_bias",
                .about = "The products of experts have biases"},
          a.expert_bias);
  archive(
      Field{.name = "dense_layers", .about = "First blocks without experts"},
      a.dense_layers);
  archive(Field{.name = "expert_period",
                .about = "Of so many blocks above them the last has experts "
                         "(Llama 4 Maverick: 2)"},
          a.expert_period);
  archive(Field{.name = "expert_groups",
                .about = "Groups that experts are in (n_group)",
                .least = 1,
                .most = kMostExperts},
          a.expert_groups);
  archive(Field{.name = "expert_groups_per_token",
                .about = "Of these so many have all experts of a token "
                         "(topk_group)",
                .least = 1,
                .most = kMostExperts},
          a.expert_groups_per_token);
  archive(Field{.name = "untied_output",
                .about = "The logits have a matrix of their own"},
          a.untied_output);
  archive(Field{.name = "logits_bias",
                .about = "Logits of a causal language model have biases (Phi)"},
          a.logits_bias);
  archive(Field{.name = "unit_output_rows",
                .about = "Rows of the matrix of logits are made of unit length "
                         "at each step (Baichuan 2)"},
          a.unit_output_rows);
  archive(Field{.name = "head_norm",
                .about = "A dense layer and a norm before classes and spans"},
          a.head_norm);
  archive(
      Field{.name = "head_bias",
            .about = "Dense layers before classes and vocabulary have biases"},
      a.head_bias);
  archive(Field{.name = "output_soft_cap",
                .about = "Logits go through tanh (Gemma 2)"},
          a.output_soft_cap);
  archive(Field{.name = "narrow_logits",
                .about = "The loss takes logits as they are made, and they "
                         "stay (GPTBigCode)"},
          a.narrow_logits);
  archive(Field{.name = "attention_soft_cap",
                .about = "Scores go through tanh (Gemma 2)"},
          a.attention_soft_cap);
  archive(Field{.name = "final_norm", .about = "A norm behind the last block"},
          a.final_norm);
}

// Dimensions, without the task: what `model:` of a scenario spells out. Long
// because it is a table: a statement a field.
template <class Archive, Of<Architecture> A>
void VisitDimensions(Archive& archive, A& a) {
  archive(Field{.name = "name", .about = "What answers call it"}, a.name);
  archive(
      Field{
          .name = "family",
          .about = "Attention sees both sides, what is before, or both in turn",
          .required = true},
      a.family);
  if constexpr (ReadingArchive<Archive>) SetFamilyDefaults(a);
  const bool two_sided = a.family == Family::kEncoderDecoder;
  archive(Field{.name = "layers",
                .about = "Blocks; of an encoder-decoder those of its encoder",
                .required = true,
                .least = 1,
                .most = kMostLayers},
          a.layers);
  archive(
      Field{.name = "decoder_layers",
            .about = "Blocks of the decoder; an encoder-decoder must have it",
            .required = two_sided,
            .least = two_sided ? 1 : 0,
            .most = kMostLayers},
      a.decoder_layers);
  archive(Field{.name = "hidden",
                .about = "Width of the residual stream",
                .required = true,
                .least = 1},
          a.hidden);
  archive(Field{.name = "heads",
                .about = "Heads of queries",
                .required = true,
                .least = 1},
          a.heads);
  if constexpr (ReadingArchive<Archive>) a.intermediate = 4 * a.hidden;
  archive(Field{.name = "intermediate",
                .about = "Width of the feed-forward block; 4 x hidden where it "
                         "is not given",
                .least = 1},
          a.intermediate);
  archive(Field{.name = "vocabulary",
                .about = "Rows of the table of tokens",
                .required = true,
                .least = 1},
          a.vocabulary);
  archive(Field{.name = "embedding_size",
                .about = "Width of the table of tokens, of an encoder's other "
                         "tables too; 0: hidden"},
          a.embedding_size);
  archive(
      Field{.name = "positions",
            .about = "Rows of the table of positions, a side; 0: fixed ones"},
      a.positions);
  archive(Field{.name = "position_offset",
                .about = "Rows of it before the first position (RoBERTa: 2)"},
          a.position_offset);
  archive(
      Field{.name = "token_types", .about = "Rows of the table of token types"},
      a.token_types);
  archive(
      Field{.name = "embedding_layer_norm",
            .about = "A norm behind the embeddings; false where no encoder"},
      a.embedding_layer_norm);
  archive(
      Field{.name = "pooler",
            .about =
                "Dense and tanh over the first token; false where no encoder"},
      a.pooler);
  archive(
      Field{.name = "separate_projections",
            .about = "A decoder has three matrices for query, key and value"},
      a.separate_projections);
  archive(
      Field{
          .name = "classifier_dense",
          .about =
              "One more dense layer before the classes (DistilBERT, RoBERTa)"},
      a.classifier_dense);
  VisitBlock(archive, a);
}

// What the model is trained for. `head`: the name of that field.
template <class Archive, Of<Architecture> A>
void VisitTask(Archive& archive, A& a, std::string_view head = "head") {
  archive(
      Field{.name = head, .about = "What it is trained for", .required = true},
      a.head);
  archive(Field{.name = "labels",
                .about = "Classes that the head tells apart",
                .least = 1},
          a.labels);
  archive(Field{.name = "dropout",
                .about = "Share of hidden states and probabilities; 0 of "
                         "blocks that are not plain",
                .high = 0.99},
          a.dropout);
  archive(Field{.name = "next_token_blocks",
                .about = "Blocks above the last that each predict one token "
                         "further (DeepSeek-V3's MTP)",
                .most = kMostLayers},
          a.next_token_blocks);
  archive(Field{.name = "shared_next_token",
                .about = "These blocks are one, used again for each token "
                         "further (mtp_use_repeated_layer)"},
          a.shared_next_token);
}

template <class Archive, Of<Architecture> A>
void VisitFields(Archive& archive, A& a) {
  VisitDimensions(archive, a);
  VisitTask(archive, a);
}

template <class Archive, Of<Fp8> F>
void VisitFields(Archive& archive, F& f) {
  archive(Field{.name = "scaling",
                .about = "By largest values of steps before, or of a tensor, "
                         "row, block of 32"},
          f.scaling);
  archive(Field{.name = "weight_gradients",
                .about = "Products that make them are in 8 bits, too"},
          f.weight_gradients);
  archive(Field{.name = "gathered",
                .about = "Ranks that share weights gather them in 8 bits"},
          f.gathered);
}

template <class Archive, Of<Optimizer> O>
void VisitFields(Archive& archive, O& o) {
  archive(Field{.name = "name", .about = "Its rule", .required = true}, o.kind);
  archive(Field{.name = "implementation",
                .about = "Kernels: one an operation and tensor, one over many "
                         "tensors, or one in all",
                .required = true},
          o.implementation);
  archive(
      Field{.name = "by_layer",
            .about = "A learning rate for each layer, so an update for each"},
      o.by_layer);
  archive(Field{.name = "masters",
                .about = "Narrow weights: passes to fp32 of their own, in the "
                         "update, or no masters"},
          o.masters);
  archive(Field{.name = "wide_gradients",
                .about = "Narrow weights: gradients are summed, and sent, in "
                         "fp32"},
          o.wide_gradients);
  archive(Field{.name = "in_backward",
                .about = "Each tensor is updated as its gradient comes, which "
                         "then goes"},
          o.in_backward);
  archive(Field{.name = "state_bits",
                .about = "Of a number of its state: 8, 16; 0: as wide as the "
                         "update",
                .most = 16},
          o.state_bits);
}

// The adapters of Trainable, a struct of their own in files.
template <class TrainableLike>
struct Lora {
  TrainableLike& trainable;
};

template <class Archive, class TrainableLike>
void VisitFields(Archive& archive, const Lora<TrainableLike>& lora) {
  archive(Field{.name = "rank",
                .about = "Rank of the adapters",
                .required = true,
                .least_asked = 1},
          lora.trainable.lora_rank);
  archive(Field{.name = "matrices",
                .about = "Matrices beside which they stand, or all; the usual "
                         "two where none is named"},
          lora.trainable.lora);
  archive(Field{.name = "dropout",
                .about = "Share of what adapters take that is dropped out "
                         "(PEFT's lora_dropout)",
                .high = 0.99},
          lora.trainable.lora_dropout);
  archive(Field{.name = "embeddings",
                .about = "Word embeddings and output layer train whole beside "
                         "them (modules_to_save)"},
          lora.trainable.embeddings_beside_adapters);
  archive(Field{.name = "base_bits",
                .about = "Bits of the frozen matrices (QLoRA: 4); 0: as the "
                         "stack keeps weights",
                .most = 8},
          lora.trainable.base_bits);
  archive(Field{.name = "double_quantised",
                .about = "Their constants are quantised once more (QLoRA; "
                         "bitsandbytes if told so)"},
          lora.trainable.double_quantised);
  archive(Field{.name = "base_by_operations",
                .about = "Widened by operations and kept for backward (GPTQ "
                         "without kernels)"},
          lora.trainable.base_by_operations);
  archive(Field{.name = "wide",
                .about = "Adapters in fp32 beside narrow weights (PEFT's "
                         "default)"},
          lora.trainable.wide_adapters);
  archive(Field{.name = "as_units",
                .about = "Each is gathered by itself under fsdp (PEFT's "
                         "fsdp_auto_wrap_policy)"},
          lora.trainable.adapters_as_units);
}

template <class Archive, Of<Trainable> T>
void VisitFields(Archive& archive, T& t) {
  archive(Field{.name = "frozen_layers",
                .about = "First blocks that keep their weights, as the "
                         "embeddings then do",
                .least_asked = 1},
          t.frozen_layers);
  const Lora<T> lora{t};
  archive(
      Field{.name = "lora",
            .about = "Adapters train, all else but the head keeps its weights"},
      lora);
}

template <class Archive, Of<GradientCompression> C>
void VisitFields(Archive& archive, C& c) {
  archive(Field{.name = "name",
                .about = "What is done to gradients before they are sent",
                .required = true},
          c.kind);
  archive(
      Field{.name = "rank", .about = "Rank of the approximation, of power_sgd"},
      c.rank);
}

template <class Archive, Of<Parallel> P>
void VisitFields(Archive& archive, P& p) {
  archive(Field{.name = "data",
                .about = "Ranks; 0: as many as there are",
                .most = kMostDevices},
          p.data);
  archive(Field{.name = "shard",
                .about = "What each rank keeps a share of: state, gradients "
                         "too, parameters too"},
          p.shard);
  archive(
      Field{.name = "replicate",
            .about =
                "Copies of the whole state, each over data / replicate ranks",
            .least = 1,
            .most = kMostDevices},
      p.replicate);
  archive(Field{.name = "reshard_after_forward",
                .about = "Parameters are gathered again for the backward pass"},
          p.reshard_after_forward);
  archive(Field{.name = "embedding_units",
                .about = "Embeddings and output layer are units of their own "
                         "under fsdp"},
          p.embedding_units);
  archive(Field{.name = "offload",
                .about = "What waits in the host's memory: optimizer state "
                         "with its update, parameters too"},
          p.offload);
  archive(Field{.name = "offload_activations",
                .about = "What blocks keep for the backward pass is in the "
                         "host's memory meanwhile"},
          p.offload_activations);
  archive(Field{.name = "tensor",
                .about = "Ranks that have a part of every layer each",
                .least = 1,
                .most = kMostDevices},
          p.tensor);
  archive(Field{.name = "sequence",
                .about = "These divide tokens between products, too"},
          p.sequence);
  archive(Field{.name = "tensor_overlap",
                .about = "Sums within layers that go on beside products: none, "
                         "gradients, products"},
          p.tensor_overlap);
  archive(Field{.name = "context",
                .about = "Ranks that have a part of every sequence each",
                .least = 1,
                .most = kMostDevices},
          p.context);
  archive(Field{.name = "expert",
                .about = "Ranks of those with the same weights that divide "
                         "experts",
                .least = 1,
                .most = kMostExperts},
          p.expert);
  archive(Field{.name = "expert_tensor",
                .about = "Ranks that have a part of every expert each; 0: as "
                         "many as of a layer",
                .most = kMostDevices},
          p.expert_tensor);
  archive(Field{.name = "expert_exchange",
                .about = "How a token goes to its experts: to each, or once to "
                         "each host and rank"},
          p.expert_exchange);
  archive(Field{.name = "expert_overlap",
                .about = "Exchanges go on beside another micro-batch's blocks"},
          p.expert_overlap);
  archive(Field{.name = "pipeline",
                .about = "Stages of consecutive blocks",
                .least = 1,
                .most = kMostLayers},
          p.pipeline);
  archive(Field{.name = "chunks",
                .about = "Chunks that a stage has its blocks in (interleaved)",
                .least = 1,
                .most = kMostLayers},
          p.chunks);
  archive(Field{.name = "stages",
                .about = "What stages have alike: blocks, blocks with tables, "
                         "or cost"},
          p.stages);
}

template <class Archive, Of<Stack> S>
void VisitFields(Archive& archive, S& s) {
  archive(Field{.name = "stack",
                .about = "Software: which operations become one kernel",
                .required = true},
          s.fusion);
  archive(Field{.name = "attention",
                .about = "Scores go to memory, or stay on the chip"},
          s.attention);
  archive(Field{.name = "loss",
                .about = "Kernels of a vocabulary's loss: the stack's own, or "
                         "others"},
          s.loss);
  archive(Field{.name = "experts",
                .about = "How experts run: as the stack has them, or as others "
                         "do"},
          s.experts);
  archive(Field{.name = "narrow_weights",
                .about = "Weights are in 16 bits throughout, masters in fp32 "
                         "(Apex O2, DeepSpeed)"},
          s.narrow_weights);
  archive(Field{.name = "compiler_level",
                .about = "Optimisation level of Trainium's compiler",
                .least = 1,
                .most = 3},
          s.compiler_level);
  archive(
      Field{.name = "stochastic_rounding",
            .about = "Results are rounded up or down by chance, on Trainium"},
      s.stochastic_rounding);
}

// Long because it is a table: a statement a field.
template <class Archive, Of<Workload> W>
void VisitFields(Archive& archive, W& w) {
  archive(Field{.name = "model", .about = "What is trained", .required = true},
          w.architecture);
  archive(Field{.name = "batch",
                .about = "Sequences of one rank and micro-batch",
                .required = true,
                .least = 1,
                .most = kLargestBatch},
          w.batch);
  archive(Field{.name = "sequence_length",
                .about = "Tokens of a sequence, padding included",
                .required = true,
                .least = 1,
                .most = kLongestSequence},
          w.sequence_length);
  archive(
      Field{.name = "target_length",
            .about =
                "Tokens on the side of the decoder; 0: as many as on the other",
            .most = kLongestSequence},
      w.target_length);
  archive(Field{.name = "documents",
                .about = "Texts of equal length packed into each sequence; "
                         "flash keeps them apart",
                .least = 1,
                .most = kLongestSequence},
          w.documents);
  archive(Field{.name = "accumulation",
                .about = "Micro-batches of a step",
                .least = 1,
                .most = kLargestBatch},
          w.accumulation);
  archive(Field{.name = "load_factor",
                .about = "Tokens of the busiest expert over an even share; 1: "
                         "balanced",
                .low = 1,
                .high = kMostExperts},
          w.load_factor);
  archive(Field{.name = "precision",
                .about = "What matrix products are in",
                .required = true},
          w.precision);
  archive(Field{.name = "fp8", .about = "Products in 8 bits: what scales them"},
          w.fp8);
  archive(Field{.name = "wide_blocks",
                .about = "Highest blocks whose products are in 16 bits under "
                         "fp8, fp4",
                .least = 0,
                .most = kMostLayers},
          w.wide_blocks);
  archive(Field{.name = "optimizer",
                .about = "The update; forward passes need none",
                .required = true},
          w.optimizer);
  VisitFields(archive, w.stack);  // not a struct of its own in files
  archive(Field{.name = "work", .about = "What of a step is run"}, w.work);
  if constexpr (ReadingArchive<Archive>) {
    // Without an optimizer there is no update.
    if (w.optimizer.kind == OptimizerKind::kNone && w.work == Work::kTraining) {
      w.work = Work::kForwardBackward;
    }
  }
  archive(Field{.name = "predictions_per_sequence",
                .about = "Positions at which a vocabulary is predicted; 0: all",
                .most = kLongestSequence},
          w.predictions_per_sequence);
  archive(
      Field{
          .name = "gradient_checkpointing",
          .about =
              "Activations of a block are computed again in the backward pass"},
      w.gradient_checkpointing);
  archive(Field{.name = "checkpointed_blocks",
                .about = "How many blocks do so, from the lowest; 0 = all",
                .most = kMostLayers},
          w.checkpointed_blocks);
  archive(Field{.name = "attention_checkpointing",
                .about = "Of other blocks attention's core is computed again"},
          w.attention_checkpointing);
  archive(Field{.name = "operation_checkpointing",
                .about = "Of other blocks every second product, and what is no "
                         "product, is computed again"},
          w.operation_checkpointing);
  archive(
      Field{
          .name = "trainable",
          .about =
              "What trains, frozen_layers or lora; all where it is not there"},
      w.trainable);
  if constexpr (ReadingArchive<Archive>) {
    NameUsualMatrices(w.architecture, w.trainable);
  }
  archive(Field{.name = "gradient_compression",
                .about = "What is done to gradients before they are sent"},
          w.compression);
  archive(Field{.name = "parallel",
                .about = "How ranks that train data parallel share state"},
          w.parallel);
  archive(Field{.name = "power_limit",
                .about = "What each device may draw (nvidia-smi -pl); 0: as "
                         "much as its board allows",
                .most_base = kMostPower,
                .may_be_zero = true,
                .json = "power_limit_w"},
          w.power_limit);
}

// The parts of a block as texts, by the field's name; and all dimensions.
std::map<std::string, std::string> BlockTexts(const Architecture& architecture);
std::map<std::string, std::string> DimensionTexts(
    const Architecture& architecture);

// Whether all parts of the blocks are those of BERT, GPT-2 and Vaswani et al.
bool HasPlainBlock(const Architecture& architecture);

// Every field as a text, by its path: {"model.layers", "12"}.
std::map<std::string, std::string> FieldTexts(const Workload& workload);

}  // namespace trainfare::model
