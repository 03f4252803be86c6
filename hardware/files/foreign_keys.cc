#include "hardware/files/foreign_keys.h"

#include <algorithm>
#include <array>

namespace trainfare::hardware {
namespace {

struct ForeignKey {
  std::string_view key;
  std::string_view ours;  // beside it in the map
  std::string_view instead;
};

constexpr std::string_view kStaticPadding = "padding: { static: LENGTH }";
constexpr std::string_view kBaseBits =
    "trainable: { lora: { rank: RANK, base_bits: 4 } }";
constexpr std::string_view kTensorParallel = "parallel: { tensor: 8 }";
constexpr std::string_view kPipelineParallel = "parallel: { pipeline: 4 }";
constexpr std::string_view kInterleaved =
    "parallel: { pipeline: 4, chunks: 2 }";
constexpr std::string_view kSequenceParallel =
    "parallel: { tensor: 8, sequence: true }";
constexpr std::string_view kContextParallel = "parallel: { context: 2 }";
constexpr std::string_view kExpertParallel = "parallel: { expert: 8 }";
constexpr std::string_view kExpertTensorParallel =
    "parallel: { tensor: 8, sequence: true, expert: 8, expert_tensor: 1 }";
constexpr std::string_view kByHost =
    "parallel: { expert: 8, expert_exchange: by_host }";
constexpr std::string_view kExpertOverlap =
    "parallel: { expert: 8, expert_overlap: true }";
constexpr std::string_view kNarrowSums =
    "gradient_compression: half, beside model, for sums in 16 bits";
constexpr std::string_view kNoMagnitudes =
    "rank and matrices alone; DoRA's norms and magnitudes are not counted";
constexpr std::string_view kAdapters =
    "trainable: { lora: { rank: RANK, matrices: [query, value] } }";

// Of Transformers' TrainingArguments, TRL, PEFT, Accelerate, DeepSpeed,
// Megatron-LM and bitsandbytes.
constexpr auto kForeignKeys = std::to_array<ForeignKey>({
    {"attn_implementation", "attention", "attention: flash"},
    {"flash_attention", "attention", "attention: flash"},
    {"use_flash_attention_2", "attention", "attention: flash"},
    {"batch_size", "batch", "batch, sequences a device and micro-batch"},
    {"micro_batch_size", "batch", "batch"},
    {"per_device_train_batch_size", "batch", "batch"},
    {"train_micro_batch_size_per_gpu", "batch", "batch"},
    {"per_device_batch_size", "batch", "batch"},
    {"global_batch_size", "batch", "batch a device, and accumulation"},
    {"bf16", "precision", "precision: bf16"},
    {"num_layers_at_end_in_bf16", "wide_blocks", "wide_blocks: 4"},
    {"first_last_layers_bf16", "wide_blocks", "wide_blocks: 2"},
    {"fp16", "precision", "precision: fp16"},
    {"tf32", "precision", "precision: tf32"},
    {"mixed_precision", "precision", "precision: bf16"},
    {"torch_dtype", "precision", "precision: bf16, narrow_weights: true"},
    {"dtype", "precision", "precision"},
    {"block_size", "padding", kStaticPadding},
    {"cutoff_len", "padding", kStaticPadding},
    {"length", "padding", kStaticPadding},
    {"max_length", "padding", kStaticPadding},
    {"max_seq_length", "padding", kStaticPadding},
    {"max_seq_len", "padding", kStaticPadding},
    {"model_max_length", "padding", kStaticPadding},
    {"seq_len", "padding", kStaticPadding},
    {"seq_length", "padding", kStaticPadding},
    {"sequence_length", "padding", kStaticPadding},
    {"deepspeed", "parallel", "parallel: { shard: zero2 }"},
    {"zero_stage", "parallel", "parallel: { shard: zero2 }"},
    {"fsdp", "parallel", "parallel: { shard: fsdp }"},
    {"gradient_accumulation", "accumulation", "accumulation"},
    {"gradient_accumulation_steps", "accumulation", "accumulation"},
    {"accumulate_grad_batches", "accumulation", "accumulation"},
    {"activation_checkpointing",
     "gradient_checkpointing",
     "gradient_checkpointing"},
    {"recompute", "gradient_checkpointing", "gradient_checkpointing"},
    {"load_in_4bit", "trainable", kBaseBits},
    {"load_in_8bit",
     "trainable",
     "trainable: { lora: { rank: RANK, base_bits: 8 } }"},
    {"lora", "trainable", kAdapters},
    {"lora_r", "trainable", kAdapters},
    {"lora_rank", "trainable", kAdapters},
    {"lora_target_modules", "trainable", kAdapters},
    {"lora_dropout",
     "trainable",
     "trainable: { lora: { rank: RANK, dropout: 0.05 } }"},
    {"lora_dropout", "matrices", "dropout"},
    {"peft", "trainable", kAdapters},
    {"r", "rank", "rank"},
    {"lora_r", "rank", "rank"},
    {"target_modules", "matrices", "matrices"},
    {"modules_to_save", "embeddings", "embeddings: true"},
    {"load_in_4bit", "base_bits", "base_bits: 4"},
    {"load_in_8bit", "base_bits", "base_bits: 8"},
    {"max_steps", "epochs", "dataset.train, the sequences of all steps"},
    {"num_epochs", "epochs", "epochs"},
    {"num_train_epochs", "epochs", "epochs"},
    {"max_train_samples", "dataset", "dataset: { train: SEQUENCES }"},
    {"samples", "dataset", "dataset: { train: SEQUENCES }"},
    {"model_name", "model", "model"},
    {"model_name_or_path", "model", "model"},
    {"optim", "optimizer", "optimizer: { name: adamw, implementation: fused }"},
    {"packing", "documents", "documents, packed into a sequence"},
    {"torch_compile", "stack", "stack: compiled"},
    {"compile", "stack", "stack: compiled"},
    {"use_liger_kernel", "stack", "stack: liger"},
    {"stage", "shard", "shard: zero1, zero2 or zero3"},
    {"zero_stage", "shard", "shard: zero1, zero2 or zero3"},
    {"experts_implementation", "experts", "experts: grouped"},
    {"sharding_strategy", "shard", "shard: fsdp"},
    {"reduce_dtype", "shard", kNarrowSums},
    {"reduce_dtype", "gradient_compression", kNarrowSums},
    {"communication_data_type", "gradient_compression", kNarrowSums},
    {"quantization", "trainable", kBaseBits},
    {"quantization_config", "trainable", kBaseBits},
    {"bnb_4bit_quant_type", "trainable", kBaseBits},
    {"bnb_4bit_compute_dtype", "precision", "precision"},
    {"tp", "shard", "tensor"},
    {"tp", "parallel", kTensorParallel},
    {"tensor_parallel", "shard", "tensor"},
    {"tensor_parallel", "parallel", kTensorParallel},
    {"tensor_parallel_size", "shard", "tensor"},
    {"tensor_parallel_size", "parallel", kTensorParallel},
    {"tensor_model_parallel_size", "parallel", kTensorParallel},
    {"sequence_parallel", "shard", "sequence"},
    {"sequence_parallel", "parallel", kSequenceParallel},
    {"pp", "shard", "pipeline"},
    {"pp", "parallel", kPipelineParallel},
    {"pipeline_parallel", "shard", "pipeline"},
    {"pipeline_parallel", "parallel", kPipelineParallel},
    {"pipeline_parallel_size", "shard", "pipeline"},
    {"pipeline_parallel_size", "parallel", kPipelineParallel},
    {"pipeline_model_parallel_size", "parallel", kPipelineParallel},
    {"vpp", "shard", "chunks"},
    {"virtual_pipeline_model_parallel_size", "shard", "chunks"},
    {"virtual_pipeline_model_parallel_size", "parallel", kInterleaved},
    {"cp", "shard", "context"},
    {"cp", "parallel", kContextParallel},
    {"context_parallel", "shard", "context"},
    {"context_parallel", "parallel", kContextParallel},
    {"context_parallel_size", "shard", "context"},
    {"context_parallel_size", "parallel", kContextParallel},
    {"ep", "shard", "expert"},
    {"ep", "parallel", kExpertParallel},
    {"expert_parallel", "shard", "expert"},
    {"expert_parallel", "parallel", kExpertParallel},
    {"expert_parallel_size", "shard", "expert"},
    {"expert_parallel_size", "parallel", kExpertParallel},
    {"expert_model_parallel_size", "parallel", kExpertParallel},
    {"etp", "shard", "expert_tensor"},
    {"etp", "parallel", kExpertTensorParallel},
    {"expert_tensor_parallel_size", "shard", "expert_tensor"},
    {"expert_tensor_parallel_size", "parallel", kExpertTensorParallel},
    {"expert_tensor_parallel_degree", "parallel", kExpertTensorParallel},
    {"moe_token_dispatcher_type", "shard", "expert_exchange"},
    {"moe_token_dispatcher_type", "parallel", kByHost},
    {"moe_flex_dispatcher_backend", "parallel", kByHost},
    {"moe_enable_deepep", "parallel", kByHost},
    {"use_dora", "matrices", kNoMagnitudes},
    {"dora", "matrices", kNoMagnitudes},
    {"dora", "lora", kNoMagnitudes},
    {"optimizer_in_bwd", "optimizer", "in_backward, of the map optimizer"},
    {"overlap_moe_expert_parallel_comm", "shard", "expert_overlap"},
    {"overlap_moe_expert_parallel_comm", "parallel", kExpertOverlap},
});

struct ForeignValue {
  std::string_view key;    // of ours
  std::string_view value;  // empty: any
  std::string_view instead;
};
constexpr std::string_view kSelective =
    "operation_checkpointing or attention_checkpointing: true in its place, "
    "or beside gradient_checkpointing: true checkpointed_blocks: BLOCKS";
constexpr auto kForeignValues = std::to_array<ForeignValue>({
    {"gradient_checkpointing", "selective", kSelective},
    {"gradient_checkpointing", "partial", kSelective},
    {"gradient_checkpointing", "full", "true"},
    {"base_bits", "nf4", "4"},
    {"base_bits", "fp4", "4"},
    {"base_bits", "int4", "4"},
    {"base_bits", "4bit", "4"},
    {"base_bits", "int8", "8"},
    {"base_bits", "8bit", "8"},
    {"gradient_compression", "bf16", "half"},
    {"gradient_compression", "fp16", "half"},
    {"trainable", "dora", kNoMagnitudes},
    {"trainable", "lora", kAdapters},
    {"trainable", "qlora", kBaseBits},
    {"trainable", "all", "leave it out, and all trains"},
    {"trainable", "full", "leave it out, and all trains"},
    {"optimizer", "", "its name is optimizer.name"},
});

}  // namespace

std::string_view InsteadOfKey(std::string_view key,
                              std::span<const std::string_view> known) {
  for (const ForeignKey& foreign : kForeignKeys) {
    if (foreign.key == key &&
        std::find(known.begin(), known.end(), foreign.ours) != known.end()) {
      return foreign.instead;
    }
  }
  return "";
}

std::string_view InsteadOfValue(std::string_view key, std::string_view value) {
  const auto found = std::find_if(
      kForeignValues.begin(), kForeignValues.end(), [&](const auto& foreign) {
        return foreign.key == key &&
               (foreign.value.empty() || foreign.value == value);
      });
  return found == kForeignValues.end() ? "" : found->instead;
}

}  // namespace trainfare::hardware
