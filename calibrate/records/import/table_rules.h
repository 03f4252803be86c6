#pragma once

// The rules by which a row of a table becomes a workload, as data: what words
// and columns mean. docs/guide/measurements.md says how a table is read.

#include <array>
#include <optional>
#include <string_view>

#include "model/workload.h"

namespace trainfare::calibrate {

// How a framework turns the graph into kernels, from words of `framework` and
// `stack_notes`. The first rule whose words stand there decides.
struct FusionWords {
  std::string_view words;
  model::Fusion fusion;
  std::string_view why;
};
inline constexpr auto kFusionWords = std::to_array<FusionWords>({
    {"DeepSpeed stochastic", model::Fusion::kLightSeq, "hand-fused layers"},
    {"DeepSpeed deterministic", model::Fusion::kLightSeq, "hand-fused layers"},
    {"DeepSpeed fused transformer",
     model::Fusion::kLightSeq,
     "hand-fused layers"},
    {"DeepSpeed transformer kernel",
     model::Fusion::kLightSeq,
     "hand-fused layers"},
    {"LightSeq", model::Fusion::kLightSeq, "hand-fused layers"},
    {"FasterTransformer", model::Fusion::kLightSeq, "hand-fused layers"},
    {"foak", model::Fusion::kUnsloth, "Unsloth's kernels in fms-acceleration"},
    {"Liger", model::Fusion::kLiger, "Liger's kernels and chunked loss"},
    {"Unsloth", model::Fusion::kUnsloth, "Triton kernels"},
    {"torch.compile", model::Fusion::kCompiled, "Inductor"},
    {"+ Compile", model::Fusion::kCompiled, "Inductor"},
    {"Thunder", model::Fusion::kCompiled, "Lightning Thunder"},
    {"NVFuser", model::Fusion::kCompiled, "TorchScript with nvFuser"},
    {"nvFuser", model::Fusion::kCompiled, "TorchScript with nvFuser"},
    {"XLA", model::Fusion::kXla, "TensorFlow with XLA"},
    {"JAX", model::Fusion::kXla, "XLA"},
    {"NeuronX", model::Fusion::kCompiled, "the Neuron compiler"},
    {"HPU", model::Fusion::kCompiled, "the graph compiler of SynapseAI"},
    {"optimum-habana",
     model::Fusion::kCompiled,
     "the graph compiler of SynapseAI"},
    {"OneFlow",
     model::Fusion::kFused,
     "fused bias, GELU, dropout and softmax kernels"},
    {"Megatron",
     model::Fusion::kLightSeq,
     "fused softmax, bias and GELU kernels"},
    {"MLPerf BERT", model::Fusion::kGraphs, "fused layers in one CUDA graph"},
    {"MLPerf", model::Fusion::kLightSeq, "fused layers of the submissions"},
    {"", model::Fusion::kEager, "one kernel an operation"},
});

// What a framework keeps of 16-bit runs, and how it updates: the first row
// whose words stand in `framework`, `stack_notes` or `notes` says it.
struct WeightWords {
  std::string_view words;
  bool narrow = false;  // 16-bit weights
  model::Masters masters = model::Masters::kApart;
};
inline constexpr auto kWeightWords = std::to_array<WeightWords>({
    // Loaded in 16 bits and updated as they are.
    {"all bfloat16", true, model::Masters::kNone},
    {"all float16", true, model::Masters::kNone},
    {"bf16-true", true, model::Masters::kNone},
    {"torchtune", true, model::Masters::kNone},
    // fp16 or bf16 weights with fp32 masters: Apex O2 and what came of it.
    {"apex", true, model::Masters::kApart},
    {"O2 AMP", true, model::Masters::kApart},
    {"DeepSpeed", true, model::Masters::kApart},
    {"Megatron", true, model::Masters::kApart},
    {"MLPerf", true, model::Masters::kApart},
    {"NVIDIA BERT", true, model::Masters::kApart},
    {"Bing", true, model::Masters::kApart},
    {"nanotron", true, model::Masters::kApart},
    {"InternEvo", true, model::Masters::kApart},
});

// Frameworks of PyTorch 2, whose AdamW goes over lists of tensors
// (torch.optim: foreach is the default on accelerators since 2.0).
inline constexpr auto kMultiTensorUpdate = std::to_array<std::string_view>({
    "HF Trainer",
    "HF Transformers",
    "HF PEFT",
    "litgpt",
    "ms-swift",
    "torchtune",
    "fsdp_qlora",
});

// Attention in one kernel, from words of `framework` and `stack_notes` in
// lower case.
inline constexpr auto kFlashWords = std::to_array<std::string_view>({
    "flashattention",
    "flash attention",
    "flash-attn",
    "sdpa",
    "torchtitan",
    "torchtune",
    "nanotron",
    "litgpt",
    "xtuner",
    "mlperf",
    // cuDNN's attention by Transformer Engine.
    "nemo",
    "megatron-core",
    "maxtext",
    "paxml",
});

// How devices share a model where a column for sharding says nothing, from
// words of `stack_notes`.
struct ShardWords {
  std::string_view words;
  model::Shard shard;
};
inline constexpr auto kShardWords = std::to_array<ShardWords>({
    // --distributed_lamb of NVIDIA's submissions.
    {"MLPerf BERT", model::Shard::kZero1},
    {"MLPerf", model::Shard::kNone},
});

// What waits in the host's memory, by words of stack_notes in lower case; of
// other words with `kOffloaded` it is not told.
struct OffloadWords {
  std::string_view words;
  model::Offload offload;
  bool activations;
};
inline constexpr std::string_view kOffloaded = "offload";
inline constexpr auto kOffloadWords = std::to_array<OffloadWords>({
    {"cpu offload of parameters and activations",
     model::Offload::kParameters,
     true},
    {"cpu offload of parameters", model::Offload::kParameters, false},
    // torchtune's fsdp_cpu_offload, with the fused update on the host.
    {"cpu offload with fused optimizer", model::Offload::kParameters, false},
    {"activation offloading", model::Offload::kNone, true},
});

// Matrices that adapters stand beside, by their names in Transformers.
struct AdapterWords {
  std::string_view word;
  bool model::LoraMatrices::*matrix;
};
inline constexpr auto kAdapterWords = std::to_array<AdapterWords>({
    {"q_proj", &model::LoraMatrices::query},
    {"k_proj", &model::LoraMatrices::key},
    {"v_proj", &model::LoraMatrices::value},
    {"o_proj", &model::LoraMatrices::output},
    {"gate_proj", &model::LoraMatrices::feed_forward_gate},
    {"up_proj", &model::LoraMatrices::feed_forward_in},
    {"down_proj", &model::LoraMatrices::feed_forward_out},
    // The benchmark's reference: beside all four of attention.
    {"llama2_70b_lora", &model::LoraMatrices::query},
    {"llama2_70b_lora", &model::LoraMatrices::key},
    {"llama2_70b_lora", &model::LoraMatrices::value},
    {"llama2_70b_lora", &model::LoraMatrices::output},
});

// What a column `precision` says that is no precision of products.
struct PrecisionWords {
  std::string_view word;
  model::Precision precision;
  int64_t base_bits;
};
inline constexpr auto kPrecisionWords = std::to_array<PrecisionWords>({
    // The bits of a frozen base beside adapters; its products are in 16 bits.
    {"int4", model::Precision::kBf16, 4},
    {"int8", model::Precision::kBf16, 8},
    // Scaled a block of 32 (OCP MX): the same products, more scales.
    {"mxfp8", model::Precision::kFp8, 0},
});

// What of a model is computed again in the backward pass: "full 21 layers".
inline constexpr std::string_view kFullRecomputation = "full ";
inline constexpr std::string_view kRecomputedLayers = " layers";

// Frameworks whose recipes over ranks that share state compute all blocks again
// unless a row says otherwise.
inline constexpr auto kRecomputingRecipes = std::to_array<std::string_view>({
    // recipes/configs/llama3/70B_full.yaml: enable_activation_checkpointing.
    "torchtune",
});

// How notes say what joins hosts: "1600 Gbit/s RoCE between nodes".
inline constexpr std::string_view kBetweenHosts = "between nodes";
inline constexpr std::string_view kHostRate = "Gbit/s";
// And a column of a host's adapters: "Storage: .., Compute: 8x .. 400Gb/s".
inline constexpr std::string_view kComputeAdapters = "Compute:";
inline constexpr std::string_view kAdapterRate = "Gb";

// What `metric` is and in what unit. Of several times of one run the first
// here is used: the others say the same again, or hold a start-up.
enum class Metric {
  kTime,            // of a step
  kMicroTime,       // of a micro-batch, without the update
  kSteps,           // a second
  kTokens,          // a second, of all devices
  kTokensOfDevice,  // a second
  kSequences,       // a second, of all devices
  kPeakAllocated,   // memory, of the fullest device, of tensors
  kPeakReserved,    // with what the allocator keeps
  kPeakUsed,        // with what the driver and the framework take
  kOutOfMemory,     // the run died for want of memory
  kFailed,          // the run died, the cause not stated
  kUnused,
};
struct MetricWords {
  std::string_view name;
  Metric metric;
  double unit = 1;          // in s, B or 1/s
  std::string_view reason;  // of kUnused
};
inline constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
inline constexpr std::string_view kFlopsUnused =
    "a rate in FLOPs, whose convention differs: the same runs' tokens/s or "
    "step times are read";
inline constexpr std::string_view kEvaluationUnused =
    "holds evaluations besides steps";
inline constexpr auto kMetricWords = std::to_array<MetricWords>({
    {"step_ms", Metric::kTime, 1e-3, {}},
    {"step_s", Metric::kTime, 1, {}},
    {"micro_step_s", Metric::kMicroTime, 1, {}},
    {"steps_per_s", Metric::kSteps, 1, {}},
    {"tokens_per_s", Metric::kTokens, 1, {}},
    {"tokens_per_s_per_device", Metric::kTokensOfDevice, 1, {}},
    {"sequences_per_s", Metric::kSequences, 1, {}},
    {"sequences_per_s_steady", Metric::kSequences, 1, {}},
    {"samples_per_s", Metric::kSequences, 1, {}},
    {"peak_memory_gib", Metric::kPeakAllocated, kGiB, {}},
    {"peak_reserved_gib", Metric::kPeakReserved, kGiB, {}},
    {"nvidia_smi_memory_gib", Metric::kPeakUsed, kGiB, {}},
    {"oom", Metric::kOutOfMemory, 1, {}},
    {"failed", Metric::kFailed, 1, {}},
    {"tflops_per_device", Metric::kUnused, 1, kFlopsUnused},
    {"mfu_pct", Metric::kUnused, 1, kFlopsUnused},
    {"effective_tokens_per_s_per_device",
     Metric::kUnused,
     1,
     "padding is not counted: real length not known"},
    {"sequences_per_s_incl_eval", Metric::kUnused, 1, kEvaluationUnused},
    {"sequences_per_s_logged", Metric::kUnused, 1, kEvaluationUnused},
    {"tokens_per_s_incl_eval", Metric::kUnused, 1, kEvaluationUnused},
    {"tokens_per_s_logged", Metric::kUnused, 1, kEvaluationUnused},
    {"step_ms_logged",
     Metric::kUnused,
     1,
     "the submitter's own figure of a step that step_ms has"},
    {"run_s", Metric::kUnused, 1, "a whole run, whose steps are not stated"},
    {"time_to_train_s",
     Metric::kUnused,
     1,
     "a whole run, whose steps are not stated"},
    {"epoch_s",
     Metric::kUnused,
     1,
     "an epoch, whose samples are not stated in a column"},
    {"end_memory_gib", Metric::kUnused, 1, "memory after a run, no peak"},
    {"resident_memory_gib",
     Metric::kUnused,
     1,
     "memory between steps, no peak"},
    {"mean_reserved_gib", Metric::kUnused, 1, "a mean of memory, no peak"},
    {"mean_allocated_gib", Metric::kUnused, 1, "a mean of memory, no peak"},
    {"peak_memory_total_gib",
     Metric::kUnused,
     1,
     "memory of all devices together"},
});

inline constexpr bool IsMemory(Metric metric) {
  return metric == Metric::kPeakAllocated || metric == Metric::kPeakReserved ||
         metric == Metric::kPeakUsed || metric == Metric::kOutOfMemory;
}

// Words of the notes, in lower case: a sequence is a row of several documents,
// or only real tokens are computed; tokens_per_sample says how many they have.
inline constexpr std::string_view kPackedDocuments = "packed: a row of";
inline constexpr std::string_view kUnpadded = "unpadded";

// Words of the notes, in lower case, that say that samples are shorter than
// seq_len.
inline constexpr auto kUnequalLengths = std::to_array<std::string_view>({
    "variable length",
    "variable-length",
    "samples are shorter",
    "real lengths vary",
    "unpacked",
    "packing or unpadding not stated",
});

// What a run does that no Workload says, by words of stack_notes in lower case.
struct UnknownMechanism {
  std::string_view words;
  std::string_view name;
};
inline constexpr auto kUnknownMechanisms = std::to_array<UnknownMechanism>({
    {"8-bit adamw", "8-bit optimizer states"},
    {"8-bit or fused-in-backward", "an update inside the backward pass"},
    {"optimizer step into backward", "an update inside the backward pass"},
    {"dora", "DoRA"},
    {"muon", "Muon"},
    {"soap", "SOAP"},
    {"scattermoe", "ScatterMoE"},
    {"tinygrad", "tinygrad"},
});

// Models whose blocks are those of a preset, dimensions by columns: by how the
// name begins, in lower case, '_' as '-'. Longer beginnings stand first.
struct ModelFamily {
  std::string_view prefix;
  std::string_view preset;
};
inline constexpr auto kModelFamilies = std::to_array<ModelFamily>({
    {"codellama", "llama-2-7b"},
    {"llama", "llama-2-7b"},
    {"internlm-", "llama-2-7b"},
    {"baichuan2-7b", "llama-2-7b"},
    {"yi-", "llama-2-7b"},
    {"openbuddy-zephyr-7b", "mistral-7b"},
    {"mistral", "mistral-7b"},
    {"mixtral", "mixtral-8x7b"},
    {"powerlm", "smollm2-1.7b"},  // tied
    {"granite-3.0-3b-a800m", "mixtral-8x7b"},
    {"qwen3-moe", "qwen3-30b-a3b"},
    {"qwen3-", "qwen3-8b"},
    {"qwen2.5-", "qwen2.5-7b"},
    {"qwen2-", "qwen2.5-7b"},
    {"qwen-", "qwen2.5-7b"},  // biases of query, key and value alone
    {"gemma-", "gemma-7b"},
    {"olmo2-", "olmo-2-7b"},
    {"pythia", "pythia-6.9b"},
    {"gpt-neox", "gpt-neox-20b"},
    {"stablelm-base-alpha", "pythia-6.9b"},
    {"gpt-bigcode", "gpt2"},
    {"mpt-", "mpt-7b"},
});

}  // namespace trainfare::calibrate
