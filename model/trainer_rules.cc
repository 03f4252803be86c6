#include "model/trainer_rules.h"

#include <fmt/format.h>

#include <string>

#include "model/error.h"
#include "model/fields.h"
#include "model/parallel.h"
#include "model/stack_rules.h"
#include "model/words.h"

namespace trainfare::model {
namespace {

void Require(bool holds, const std::string& message) {
  if (!holds) throw InputError(message);
}

void RequireDimensions(const Architecture& a) {
  const auto require_positive = [&](const char* key, int64_t value) {
    Require(value > 0,
            fmt::format("model {}: {}: expected a positive count, got {}",
                        a.name,
                        key,
                        value));
  };
  require_positive("layers", a.layers);
  Require(!a.shared_blocks,
          fmt::format("model {}: shared_blocks: the trainer's blocks have "
                      "weights of their own, expected false, got true",
                      a.name));
  require_positive("hidden", a.hidden);
  require_positive("heads", a.heads);
  require_positive("intermediate", a.intermediate);
  require_positive("vocabulary", a.vocabulary);
  Require(!a.projects_embeddings(),
          fmt::format("model {}: embedding_size: the trainer's tables are as "
                      "wide as its blocks ({}), got {}",
                      a.name,
                      a.hidden,
                      a.embedding_size));
  if (a.family == Family::kEncoderDecoder) {
    require_positive("decoder_layers", a.decoder_layers);
  } else {
    if (a.position_kind == PositionKind::kTable) {
      require_positive("positions", a.positions);
    }
    Require(a.decoder_layers == 0,
            fmt::format(
                "model {}: decoder_layers: expected an encoder-decoder, got {}",
                a.name,
                ToText(a.family)));
  }
  Require(
      a.head_size != 0 || a.hidden % a.heads == 0,
      fmt::format("model {}: hidden: expected a multiple of heads ({}), got {}",
                  a.name,
                  a.heads,
                  a.hidden));
}

void RequireEncoder(const Architecture& a) {
  Require(a.head == Head::kSequenceClassification ||
              a.head == Head::kQuestionAnswering,
          fmt::format("model {}: head: encoders have sequence-classification "
                      "and question-answering here, got {}",
                      a.name,
                      ToText(a.head)));
  Require(a.head != Head::kSequenceClassification || a.labels > 0,
          fmt::format("model {}: labels: expected a positive count, got {}",
                      a.name,
                      a.labels));
  Require(
      a.embedding_layer_norm,
      fmt::format(
          "model {}: embedding_layer_norm: encoders have one here, got false",
          a.name));
  const bool bert = LayoutOf(a) == EncoderLayout::kBert;
  Require(
      a.head != Head::kSequenceClassification ||
          (a.pooler == bert && a.classifier_dense != bert),
      fmt::format("model {}: expected a pooler in BERT and a dense layer in "
                  "the classifier of RoBERTa and DistilBERT, got pooler {}, "
                  "classifier_dense {}",
                  a.name,
                  a.pooler,
                  a.classifier_dense));
}

void RequireDecoder(const Architecture& a) {
  Require(a.head == Head::kCausalLanguageModel,
          fmt::format("model {}: head: decoders have causal-language-model "
                      "here, got {}",
                      a.name,
                      ToText(a.head)));
  Require(
      a.token_types == 0 && a.position_offset == 0 && !a.embedding_layer_norm,
      fmt::format("model {}: expected GPT-2's embeddings, without token types, "
                  "a position offset and a LayerNorm; got token_types {}, "
                  "position_offset {}, embedding_layer_norm {}",
                  a.name,
                  a.token_types,
                  a.position_offset,
                  a.embedding_layer_norm));
  Require(!a.separate_projections,
          fmt::format("model {}: separate_projections: blocks like GPT-2's "
                      "have queries, keys and values of one matrix, expected "
                      "false, got true",
                      a.name));
}

void RequireEncoderDecoder(const Architecture& a) {
  Require(a.head == Head::kCausalLanguageModel,
          fmt::format("model {}: head: encoder-decoders have "
                      "causal-language-model here, got {}",
                      a.name,
                      ToText(a.head)));
  Require(a.positions == 0 && a.token_types == 0 && !a.embedding_layer_norm,
          fmt::format("model {}: expected the embeddings of the first "
                      "Transformer, without position table, token types and "
                      "LayerNorm; got positions {}, token_types {}, "
                      "embedding_layer_norm {}",
                      a.name,
                      a.positions,
                      a.token_types,
                      a.embedding_layer_norm));
  Require(a.hidden % 2 == 0,
          fmt::format("model {}: hidden: expected an even count, for sines and "
                      "cosines, got {}",
                      a.name,
                      a.hidden));
}

// The parts of a block that Architecture can ask for and that are not here.
struct MissingPart {
  const char* part;
  bool asked;
};

void RequireLlamaBlock(const Architecture& a) {
  const auto& placement = a.norm_placement;
  const MissingPart missing[] = {
      {"a head other than causal-language-model",
       a.head != Head::kCausalLanguageModel},
      {"LayerNorm with gated or rotary blocks", a.norm != Norm::kRms},
      {"norms elsewhere than before",
       placement != NormPlacement::kBefore &&
           placement != NormPlacement::kByFamily},
      {"a norm over all queries or keys at once",
       a.query_key_norm == QueryKeyNorm::kWhole},
      {"a norm of queries or keys with weights of each head's own",
       a.query_key_norm == QueryKeyNorm::kEachHead},
      {"a norm of queries or keys that rotate alone",
       a.query_key_norm == QueryKeyNorm::kRotated},
      {"clipped queries, keys and values", a.clipped_projections},
      {"positions that are not rotary",
       a.position_kind != PositionKind::kRotary},
      {"rotary positions of a part of a head",
       a.rotary_head_size != 0 && !a.latent()},
      {"latent attention", a.latent()},
      {"attention sinks", a.attention_sinks},
      {"blocks with a window between those without",
       a.window > 0 && a.windowed_layers != a.layers},
      {"windows that are chunks", a.chunked_window && a.window > 0},
      {"blocks without positions", a.unrotated_layers > 0},
      {"state spaces", a.state_space_layers > 0},
      {"the delta rule", a.delta_rule_layers > 0},
      {"short convolutions", a.convolution_layers > 0},
      {"xIELU", a.activation == Activation::kXielu},
      {"gated attention", a.gated_attention},
      {"norms of values", a.value_norm},
      {"keys that are values", a.keys_are_values},
      {"keys and values that blocks share", a.shared_key_value_layers > 0},
      {"embeddings of each block", a.layer_embedding_size > 0},
      {"norms of experts", a.expert_norms},
      {"experts of a latent width", a.expert_latent > 0},
      {"blocks of single parts", a.single_part_blocks},
      {"scores as they are", !a.scaled_scores},
      {"norms without weights", !a.norm_scale},
      {"queries, keys and values of one matrix", a.joint_projection()},
      {"joined projections of a gate", a.joint_gate},
      {"dropout of the activation", a.drops_activation},
      {"biases of logits", a.logits_bias},
      {"logits by rows of unit length", a.unit_output_rows},
      {"a loss of logits as products make them", a.narrow_logits},
      {"a feed-forward without a gate", !a.gated},
      {"attention and feed-forward side by side", a.parallel_block},
      {"biases of experts or their router", a.expert_bias || a.router_bias},
      {"experts that are chosen by groups", a.expert_groups > 1},
      {"capped logits", a.output_soft_cap || a.attention_soft_cap},
      {"a block without a final norm", !a.final_norm},
      {"blocks that predict a token further", a.next_token_blocks > 0},
      {"a norm of embeddings", a.embedding_layer_norm},
      {"token types", a.token_types != 0},
      {"values narrower or wider than keys",
       a.context_head_size() != a.query_head_size()},
      {"heads of an odd size", a.query_head_size() % 2 != 0},
      {"queries that are no multiple of the keys",
       a.heads % a.key_heads() != 0},
  };
  for (const MissingPart& one : missing) {
    Require(!one.asked,
            fmt::format("model {}: the trainer has decoders like Llama's, "
                        "without {}",
                        a.name,
                        one.part));
  }
}

// The network, and the words that are drawn for it.
void RequireMeasurableModel(const Workload& workload) {
  const Architecture& a = workload.architecture;
  Require(workload.target_length == 0 || a.family == Family::kEncoderDecoder,
          fmt::format("target_length: expected an encoder-decoder, got {} ({})",
                      a.name,
                      ToText(a.family)));
  // Words are drawn behind those with a meaning of their own.
  Require(a.vocabulary >= 8,
          fmt::format("model.vocabulary: expected at least 8, got {}",
                      a.vocabulary));
  Require(a.family == Family::kEncoderDecoder || a.positions > 0 ||
              a.position_kind != PositionKind::kTable,
          "model.positions: expected a table of positions, got 0 rows");
  RequireTrainerNetwork(a);
}

// What a step does, and with which kernels.
void RequireMeasurableStep(const Workload& workload) {
  Require(workload.work != Work::kForward,
          "work: the trainer has no passes of inference alone");
  Require(workload.documents == 1,
          "documents: the trainer packs none into a sequence");
  Require(workload.load_factor == 1,
          "load_factor: the trainer's router sends tokens where it does");
  Require(workload.power_limit.base() == 0.0,
          "power_limit: the trainer takes the device as it is set; set it by "
          "nvidia-smi -pl");
  Require(workload.predictions_per_sequence == 0,
          "predictions_per_sequence: the trainer predicts everywhere");
  const Attention attention = workload.stack.attention;
  Require(
      attention == Attention::kMaterialised || attention == Attention::kFlash,
      "attention: the trainer has materialised and flash, got another");
  Require(workload.stack.loss == LossKernels::kOfStack,
          "loss: the trainer has the stack's own, got another");
  const ExpertKernels experts = workload.stack.experts;
  Require(
      experts == ExpertKernels::kOfStack || experts == ExpertKernels::kSplit,
      fmt::format("experts: the trainer has split, got {}", ToText(experts)));
  Require(!workload.attention_checkpointing,
          "attention_checkpointing: the trainer computes whole blocks again");
  Require(!workload.operation_checkpointing,
          "operation_checkpointing: the trainer computes whole blocks again");
  Require(!workload.stack.stochastic_rounding,
          "stochastic_rounding: the trainer rounds to the nearest");
  RequireTrainerStack(workload.stack.fusion);
  RequireTrainerPrecision(workload.precision);
}

// What trains, and how wide its state is.
void RequireMeasurableState(const Workload& workload) {
  RequireTrainerOptimizer(workload.optimizer);
  Require(!KeepsMasters(workload) || MastersInUpdate(workload),
          "optimizer.masters: the trainer has in_update, got apart");
  Require(!workload.optimizer.wide_gradients,
          "optimizer.wide_gradients: the trainer has gradients as weights are");
  Require(
      !workload.optimizer.in_backward,
      "optimizer.in_backward: the trainer updates behind the pass backward");
  Require(workload.optimizer.state_bits == 0,
          "optimizer.state_bits: the trainer keeps state as wide as weights");
  Require(!workload.trainable.embeddings_beside_adapters,
          "trainable.lora.embeddings: the trainer freezes them beside "
          "adapters");
  Require(!workload.trainable.wide_adapters,
          "trainable.lora.wide: the trainer keeps adapters as weights are");
  Require(workload.trainable.lora_dropout == 0.0,
          fmt::format("trainable.lora.dropout: the trainer's adapters drop "
                      "nothing out, got {}",
                      workload.trainable.lora_dropout));
  Require(!workload.trainable.adapters_as_units,
          "trainable.lora.as_units: the trainer gathers whole blocks");
  RequireTrainerParts(workload.architecture,
                      workload.trainable,
                      workload.gradient_checkpointing);
  RequireTrainerWeights(workload);
}

// How ranks share a step.
void RequireMeasurableRanks(const Workload& workload) {
  Require(!workload.parallel.embedding_units,
          "parallel.embedding_units: the trainer has them in the root");
  Require(!Offloads(workload.parallel),
          "parallel.offload: the trainer keeps all on its devices");
  Require(workload.compression.kind == CompressionKind::kNone,
          "gradient_compression: the trainer has none");
  Require(
      !DividesModel(workload.parallel),
      "parallel.tensor: expected each of the trainer's ranks to have a whole "
      "model and whole sequences, so tensor, context, expert and pipeline "
      "1");
  Require(workload.parallel.replicate == 1,
          fmt::format("parallel.replicate: the trainer divides one copy over "
                      "all ranks, got {}",
                      workload.parallel.replicate));
  Require(workload.parallel.shard == Shard::kNone ||
              workload.precision != Precision::kFp16,
          "parallel.shard: ranks that share state train in fp32, tf32 or bf16 "
          "here, got fp16");
}

}  // namespace

EncoderLayout LayoutOf(const Architecture& architecture) {
  if (architecture.token_types == 0) return EncoderLayout::kDistilBert;
  if (architecture.position_offset > 0) return EncoderLayout::kRoberta;
  return EncoderLayout::kBert;
}

void RequireTrainerNetwork(const Architecture& architecture) {
  RequireDimensions(architecture);
  if (!HasPlainBlock(architecture)) {
    Require(architecture.family == Family::kDecoder,
            fmt::format("model {}: the trainer has the blocks of BERT, GPT-2, "
                        "Transformer base and big, and of decoders like "
                        "Llama's",
                        architecture.name));
    RequireLlamaBlock(architecture);
    return;
  }
  switch (architecture.family) {
    case Family::kEncoder:
      return RequireEncoder(architecture);
    case Family::kDecoder:
      return RequireDecoder(architecture);
    case Family::kEncoderDecoder:
      return RequireEncoderDecoder(architecture);
  }
  ENSURE(false, "unknown family");
}

void RequireTrainerParts(const Architecture& architecture,
                         const Trainable& trainable,
                         bool recompute) {
  Require(
      !HasPlainBlock(architecture) || (trainable.everything() && !recompute),
      fmt::format("model {}: the trainer has frozen weights, adapters and "
                  "gradient_checkpointing in decoders like Llama's alone",
                  architecture.name));
  Require(trainable.base_bits == 0,
          fmt::format("trainable.base_bits: the trainer keeps frozen weights "
                      "as they are, got {}",
                      trainable.base_bits));
}

void RequireTrainerOptimizer(const Optimizer& optimizer) {
  const OptimizerKind kind = optimizer.kind;
  Require(kind == OptimizerKind::kAdamW || kind == OptimizerKind::kAdan ||
              kind == OptimizerKind::kSgd,
          fmt::format("optimizer: the trainer has adamw, adan and sgd, got {}",
                      ToText(kind)));
  Require(kind != OptimizerKind::kSgd ||
              optimizer.implementation != OptimizerImplementation::kFused,
          "optimizer: sgd has for_loop and multi_tensor, got fused");
}

void RequireTrainerStack(Fusion stack) {
  Require(stack == Fusion::kEager || stack == Fusion::kFused,
          fmt::format("stack: the trainer has eager and fused, got {}",
                      ToText(stack)));
}

void RequireTrainerPrecision(Precision precision) {
  Require(!NarrowsOperands(precision),
          fmt::format("precision: the trainer has fp32, tf32, fp16 and bf16, "
                      "got {}",
                      ToText(precision)));
}

void RequireTrainerWeights(const Workload& workload) {
  Require(
      !workload.stack.narrow_weights || BytesPerElement(workload.precision) < 4,
      fmt::format("narrow_weights: expected precision bf16 or fp16, got {}",
                  ToText(workload.precision)));
}

void RequireTrainerRun(const Workload& workload) {
  RequireMeasurableModel(workload);
  RequireMeasurableStep(workload);
  RequireMeasurableState(workload);
  RequireMeasurableRanks(workload);
}

}  // namespace trainfare::model
