#pragma once

// The fields of Architecture (model/architecture_fields.h) and Workload, once:
// names, ranges, which of them a file must have, what they are. Reading and
// writing of YAML and JSON, the identity of a run and the tests that nothing is
// lost on the way are archives (model/field.h) over this list, so that a new
// field is one line here. A device has its list in
// hardware/catalog/device_fields.h, a fit in calibrate/fit/fit_fields.h, a
// measurement in model/record_fields.h.
// Where a function is longer than a screen it is a table, a statement a field.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "model/architecture_fields.h"
#include "model/field.h"
#include "model/limits.h"
#include "model/trainable.h"
#include "model/workload.h"

namespace trainfare::model {

// The words of sets, for archives.
void FromWords(const std::vector<std::string>& words, LoraMatrices& matrices);

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

// Every field as a text, by its path: {"model.layers", "12"}.
std::map<std::string, std::string> FieldTexts(const Workload& workload);

}  // namespace trainfare::model
