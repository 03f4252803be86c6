#pragma once

// The fields of Architecture and Workload, once: names, ranges, which of them a
// file must have. Reading and writing of YAML and JSON, the identity of a run
// and the tests that nothing is lost on the way are archives over this list, so
// that a new field is one line here. A device has its list in
// hardware/catalog/device_fields.h, a fit in calibrate/fit/fit_fields.h.
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
// YamlFieldWriter (hardware/files/yaml_fields.h), FieldTexts() below.

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
#include "model/workload.h"

namespace trainfare::model {

struct Field {
  std::string_view name;
  bool required = false;  // of a file that is read
  int64_t least = 0;      // of a count, inclusive
  int64_t most = kLargestDimension;
  double low = 0.0;  // of a number, inclusive
  double high = 1.0;
  // Of a quantity, in base units, inclusive; it is above 0 unless it may be 0.
  double least_base = 0.0;
  double most_base = std::numeric_limits<double>::infinity();
  bool may_be_zero = false;
  // How it is written: a struct on one line; what stands above the field, for
  // whoever reads the file.
  bool one_line = false;
  bool plain = false;  // a text that is a word of ours, and needs no quotes
  std::string_view comment = {};
};

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

// What a block is made of.
template <class Archive, Of<Architecture> A>
void VisitBlock(Archive& archive, A& a) {
  archive(Field{.name = "norm"}, a.norm);
  archive(Field{.name = "norm_bias"}, a.norm_bias);
  archive(Field{.name = "norm_placement"}, a.norm_placement);
  archive(Field{.name = "query_key_norm"}, a.query_key_norm);
  archive(Field{.name = "position_kind"}, a.position_kind);
  archive(Field{.name = "relative_buckets"}, a.relative_buckets);
  archive(Field{.name = "key_value_heads"}, a.key_value_heads);
  archive(Field{.name = "head_size"}, a.head_size);
  archive(Field{.name = "value_head_size"}, a.value_head_size);
  archive(Field{.name = "latent_query"}, a.latent_query);
  archive(Field{.name = "latent_key_value"}, a.latent_key_value);
  archive(Field{.name = "rotary_head_size"}, a.rotary_head_size);
  archive(Field{.name = "attention_bias"}, a.attention_bias);
  archive(Field{.name = "output_bias"}, a.output_bias);
  archive(Field{.name = "attention_sinks"}, a.attention_sinks);
  archive(Field{.name = "window"}, a.window);
  archive(Field{.name = "windowed_layers"}, a.windowed_layers);
  archive(Field{.name = "activation"}, a.activation);
  archive(Field{.name = "gated"}, a.gated);
  archive(Field{.name = "feed_forward_bias"}, a.feed_forward_bias);
  archive(Field{.name = "parallel_block"}, a.parallel_block);
  archive(Field{.name = "shared_norm"}, a.shared_norm);
  archive(Field{.name = "experts"}, a.experts);
  archive(Field{.name = "experts_per_token"}, a.experts_per_token);
  archive(Field{.name = "expert_intermediate"}, a.expert_intermediate);
  archive(Field{.name = "shared_intermediate"}, a.shared_intermediate);
  archive(Field{.name = "shared_expert_gate"}, a.shared_expert_gate);
  archive(Field{.name = "router_bias"}, a.router_bias);
  archive(Field{.name = "expert_bias"}, a.expert_bias);
  archive(Field{.name = "dense_layers"}, a.dense_layers);
  archive(Field{.name = "untied_output"}, a.untied_output);
  archive(Field{.name = "output_soft_cap"}, a.output_soft_cap);
  archive(Field{.name = "attention_soft_cap"}, a.attention_soft_cap);
  archive(Field{.name = "final_norm"}, a.final_norm);
}

// Dimensions, without the task: what `model:` of a scenario spells out.
template <class Archive, Of<Architecture> A>
void VisitDimensions(Archive& archive, A& a) {
  archive(Field{.name = "name"}, a.name);
  archive(Field{.name = "family", .required = true}, a.family);
  if constexpr (ReadingArchive<Archive>) SetFamilyDefaults(a);
  const bool two_sided = a.family == Family::kEncoderDecoder;
  archive(
      Field{
          .name = "layers", .required = true, .least = 1, .most = kMostLayers},
      a.layers);
  archive(Field{.name = "decoder_layers",
                .required = two_sided,
                .least = two_sided ? 1 : 0,
                .most = kMostLayers},
          a.decoder_layers);
  archive(Field{.name = "hidden", .required = true, .least = 1}, a.hidden);
  archive(Field{.name = "heads", .required = true, .least = 1}, a.heads);
  if constexpr (ReadingArchive<Archive>) a.intermediate = 4 * a.hidden;
  archive(Field{.name = "intermediate", .least = 1}, a.intermediate);
  archive(Field{.name = "vocabulary", .required = true, .least = 1},
          a.vocabulary);
  archive(Field{.name = "positions"}, a.positions);
  archive(Field{.name = "position_offset"}, a.position_offset);
  archive(Field{.name = "token_types"}, a.token_types);
  archive(Field{.name = "embedding_layer_norm"}, a.embedding_layer_norm);
  archive(Field{.name = "pooler"}, a.pooler);
  archive(Field{.name = "separate_projections"}, a.separate_projections);
  archive(Field{.name = "classifier_dense"}, a.classifier_dense);
  VisitBlock(archive, a);
}

// What the model is trained for. `head`: the name of that field.
template <class Archive, Of<Architecture> A>
void VisitTask(Archive& archive, A& a, std::string_view head = "head") {
  archive(Field{.name = head, .required = true}, a.head);
  archive(Field{.name = "labels", .least = 1}, a.labels);
  archive(Field{.name = "dropout", .high = 0.99}, a.dropout);
}

template <class Archive, Of<Architecture> A>
void VisitFields(Archive& archive, A& a) {
  VisitDimensions(archive, a);
  VisitTask(archive, a);
}

template <class Archive, Of<Optimizer> O>
void VisitFields(Archive& archive, O& o) {
  archive(Field{.name = "name", .required = true}, o.kind);
  archive(Field{.name = "implementation", .required = true}, o.implementation);
  archive(Field{.name = "by_layer"}, o.by_layer);
  archive(Field{.name = "masters"}, o.masters);
}

// The adapters of Trainable, a struct of their own in files.
template <class TrainableLike>
struct Lora {
  TrainableLike& trainable;
};

template <class Archive, class TrainableLike>
void VisitFields(Archive& archive, const Lora<TrainableLike>& lora) {
  archive(Field{.name = "rank"}, lora.trainable.lora_rank);
  // The matrices of the paper where none is named (Hu et al. 2021, 7.1).
  if constexpr (ReadingArchive<Archive>) {
    lora.trainable.lora.query = lora.trainable.lora.value =
        lora.trainable.lora_rank > 0;
  }
  archive(Field{.name = "matrices"}, lora.trainable.lora);
  archive(Field{.name = "base_bits", .most = 8}, lora.trainable.base_bits);
}

template <class Archive, Of<Trainable> T>
void VisitFields(Archive& archive, T& t) {
  archive(Field{.name = "frozen_layers"}, t.frozen_layers);
  const Lora<T> lora{t};
  archive(Field{.name = "lora"}, lora);
}

template <class Archive, Of<GradientCompression> C>
void VisitFields(Archive& archive, C& c) {
  archive(Field{.name = "name", .required = true}, c.kind);
  archive(Field{.name = "rank"}, c.rank);
}

template <class Archive, Of<Parallel> P>
void VisitFields(Archive& archive, P& p) {
  archive(Field{.name = "data", .most = kMostDevices}, p.data);
  archive(Field{.name = "shard"}, p.shard);
  archive(Field{.name = "replicate", .least = 1, .most = kMostDevices},
          p.replicate);
  archive(Field{.name = "reshard_after_forward"}, p.reshard_after_forward);
}

template <class Archive, Of<Stack> S>
void VisitFields(Archive& archive, S& s) {
  archive(Field{.name = "stack", .required = true}, s.fusion);
  archive(Field{.name = "attention"}, s.attention);
  archive(Field{.name = "narrow_weights"}, s.narrow_weights);
  archive(Field{.name = "compiler_level", .least = 1, .most = 3},
          s.compiler_level);
  archive(Field{.name = "stochastic_rounding"}, s.stochastic_rounding);
}

template <class Archive, Of<Workload> W>
void VisitFields(Archive& archive, W& w) {
  archive(Field{.name = "model", .required = true}, w.architecture);
  archive(
      Field{
          .name = "batch", .required = true, .least = 1, .most = kLargestBatch},
      w.batch);
  archive(Field{.name = "sequence_length",
                .required = true,
                .least = 1,
                .most = kLongestSequence},
          w.sequence_length);
  archive(Field{.name = "target_length", .most = kLongestSequence},
          w.target_length);
  archive(Field{.name = "documents", .least = 1, .most = kLongestSequence},
          w.documents);
  archive(Field{.name = "accumulation", .least = 1, .most = kLargestBatch},
          w.accumulation);
  archive(Field{.name = "precision", .required = true}, w.precision);
  archive(Field{.name = "optimizer", .required = true}, w.optimizer);
  VisitFields(archive, w.stack);  // not a struct of its own in files
  archive(Field{.name = "work"}, w.work);
  if constexpr (ReadingArchive<Archive>) {
    // Without an optimizer there is no update.
    if (w.optimizer.kind == OptimizerKind::kNone && w.work == Work::kTraining) {
      w.work = Work::kForwardBackward;
    }
  }
  archive(Field{.name = "predictions_per_sequence", .most = kLongestSequence},
          w.predictions_per_sequence);
  archive(Field{.name = "gradient_checkpointing"}, w.gradient_checkpointing);
  archive(Field{.name = "trainable"}, w.trainable);
  archive(Field{.name = "gradient_compression"}, w.compression);
  archive(Field{.name = "parallel"}, w.parallel);
}

// The parts of a block as texts, by the field's name.
std::map<std::string, std::string> BlockTexts(const Architecture& architecture);

// Whether all parts of the blocks are those of BERT, GPT-2 and Vaswani et al.
bool HasPlainBlock(const Architecture& architecture);

// Every field as a text, by its path: {"model.layers", "12"}.
std::map<std::string, std::string> FieldTexts(const Workload& workload);

}  // namespace trainfare::model
