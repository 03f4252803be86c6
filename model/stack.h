#pragma once

// The software that runs a step: who makes its kernels, of layers, attention,
// loss and experts. What each of them does: model/stack_rules.h.

#include <array>
#include <cstdint>
#include <string_view>

#include "model/words.h"

namespace trainfare::model {

enum class Fusion {
  kEager,     // one kernel per framework operation
  kFairseq,   // the same over narrow weights, with a criterion and an fp16
              // optimizer of Fairseq's own
  kFused,     // of trainfare-trainer: eager but for bias, activation, dropout,
              // residual and LayerNorm, and softmax, in one pass each
  kLightSeq,  // hand-fused layers over narrow weights: LightSeq2, DeepSpeed
  kCompiled,  // elementwise chains fused by a compiler: Inductor and others of
              // PyTorch, the graph compilers of chips
  kXla,       // the same by XLA for GPUs: TensorFlow, JAX
  kLiger,     // eager but for fused norms, positions, gates and loss (Liger)
  kUnsloth,   // eager but for fused norms and positions, one kernel for a loss
  kGraphs,    // hand-fused layers, a whole step replayed as one CUDA graph
  kMegatron,  // hand-fused kernels between Python: Megatron-LM, its Core, NeMo
};
template <>
inline constexpr auto kWords<Fusion> =
    Words<Fusion>("stack",
                  {{Fusion::kEager, "eager"},
                   {Fusion::kFairseq, "fairseq"},
                   {Fusion::kFused, "fused"},
                   {Fusion::kLightSeq, "lightseq"},
                   {Fusion::kCompiled, "compiled"},
                   {Fusion::kXla, "xla"},
                   {Fusion::kLiger, "liger"},
                   {Fusion::kUnsloth, "unsloth"},
                   {Fusion::kGraphs, "graphs"},
                   {Fusion::kMegatron, "megatron"}});
template <>
inline constexpr auto kWordAliases<Fusion> =
    std::to_array<Word<Fusion>>({{Fusion::kEager, "hf"},
                                 {Fusion::kEager, "huggingface"},
                                 {Fusion::kEager, "torch"},
                                 {Fusion::kEager, "pytorch"},
                                 {Fusion::kEager, "transformers"},
                                 {Fusion::kCompiled, "compile"},
                                 {Fusion::kCompiled, "torch.compile"},
                                 {Fusion::kCompiled, "torch_compile"},
                                 {Fusion::kCompiled, "inductor"},
                                 {Fusion::kXla, "jax"},
                                 {Fusion::kLiger, "liger-kernel"},
                                 {Fusion::kLiger, "liger_kernel"},
                                 {Fusion::kMegatron, "megatron-lm"},
                                 {Fusion::kMegatron, "megatron_lm"},
                                 {Fusion::kMegatron, "megatron-core"},
                                 {Fusion::kMegatron, "megatron_core"},
                                 {Fusion::kMegatron, "nemo"}});
// Layers of a library that others call.
inline constexpr std::string_view kHintOfEngine =
    "megatron, whose layers are such, is the nearest";
inline constexpr std::string_view kHintOfLibrary =
    "lightseq, hand-fused layers over narrow weights, is the nearest";
// What shares state, under whatever runs the kernels.
inline constexpr std::string_view kHintOfShards =
    "eager, with parallel.shard=zero2, zero3 or fsdp";
// What trains PyTorch's own modules, or Transformers', as they are.
inline constexpr std::string_view kHintOfModules =
    "eager, or compiled where it calls torch.compile";
inline constexpr std::string_view kHintOfChips =
    "compiled, by the chips' compiler";
template <>
inline constexpr auto kWordHints<Fusion> = std::to_array<WordHint>(
    {{"te", kHintOfEngine},
     {"transformer_engine", kHintOfEngine},
     {"transformer-engine", kHintOfEngine},
     {"transformerengine", kHintOfEngine},
     {"accelerate", kHintOfShards},
     {"deepspeed", kHintOfShards},
     {"fsdp", kHintOfShards},
     {"fsdp2", kHintOfShards},
     {"zero", kHintOfShards},
     {"zero1", "eager, with parallel.shard=zero1"},
     {"zero2", "eager, with parallel.shard=zero2"},
     {"zero3", "eager, with parallel.shard=zero3"},
     {"ddp", "eager or compiled; parallel.data says the ranks"},
     {"axolotl", kHintOfModules},
     {"lightning", kHintOfModules},
     {"pytorch-lightning", kHintOfModules},
     {"litgpt", kHintOfModules},
     {"llama-factory", kHintOfModules},
     {"torchtune", kHintOfModules},
     {"trl", kHintOfModules},
     {"torchtitan",
      "eager, or compiled with --compile.enable, and parallel.shard=fsdp"},
     {"nanogpt", "compiled, as its train.py is"},
     {"llm.c", kHintOfLibrary},
     {"neuronx", kHintOfChips},
     {"neuronx_distributed", kHintOfChips}});
enum class Attention {
  kMaterialised,  // scores and probabilities go to memory
  kFlash,         // one kernel, scores stay on chip
  kFlash1,        // the same as first written, in CUDA or Triton
  kFlash2,        // by instructions for which a warp waits, whatever the stack
  // By those of its generation: FlashAttention-3 and -4, cuDNN's.
  kFlash3,
};
template <>
inline constexpr auto kWords<Attention> =
    Words<Attention>("attention",
                     {{Attention::kMaterialised, "materialised"},
                      {Attention::kFlash, "flash"},
                      {Attention::kFlash1, "flash_1"},
                      {Attention::kFlash2, "flash_2"},
                      {Attention::kFlash3, "flash_3"}});
template <>
inline constexpr auto kWordAliases<Attention> =
    std::to_array<Word<Attention>>({{Attention::kMaterialised, "materialized"},
                                    {Attention::kMaterialised, "eager"},
                                    {Attention::kMaterialised, "naive"},
                                    {Attention::kFlash, "sdpa"},
                                    {Attention::kFlash, "flash_attn"},
                                    {Attention::kFlash, "flash_attention"},
                                    {Attention::kFlash, "flash-attention"},
                                    {Attention::kFlash1, "fa1"},
                                    {Attention::kFlash1, "flash_attention_1"},
                                    {Attention::kFlash2, "fa2"},
                                    {Attention::kFlash2, "flash2"},
                                    {Attention::kFlash2, "flash_attention_2"},
                                    {Attention::kFlash2, "flash-attention-2"},
                                    {Attention::kFlash3, "fa3"},
                                    {Attention::kFlash3, "flash3"},
                                    {Attention::kFlash3, "flash_attention_3"},
                                    {Attention::kFlash3, "fa4"},
                                    {Attention::kFlash3, "flash_4"},
                                    {Attention::kFlash3, "flash_attention_4"},
                                    {Attention::kFlash3, "cudnn"}});
inline constexpr std::string_view kHintOfOneKernel =
    "flash, one kernel as it is";
inline constexpr std::string_view kHintOfRounds =
    "flash, with parallel.context, the ranks that have a part of a sequence";
template <>
inline constexpr auto kWordHints<Attention> =
    std::to_array<WordHint>({{"flex", kHintOfOneKernel},
                             {"flex_attention", kHintOfOneKernel},
                             {"xformers", kHintOfOneKernel},
                             {"memory_efficient", kHintOfOneKernel},
                             {"mem_efficient", kHintOfOneKernel},
                             {"ring", kHintOfRounds},
                             {"ring_attention", kHintOfRounds},
                             {"ulysses", kHintOfRounds}});
inline constexpr bool ScoresOnChip(Attention attention) {
  return attention != Attention::kMaterialised;
}

// Kernels of the loss over a vocabulary of causal models.
enum class LossKernels {
  kOfStack,  // as the stack has them
  kPlain,    // log-softmax and what the target has of it, of no compiled graph
  // The same, its copy of the logits made over in place to their softmax and that
  // to the gradient (Megatron's vocab_parallel_cross_entropy, nanotron's).
  kInPlace,
  kFused,  // one kernel; its gradient replaces the logits
  // The same behind a head that widens them and copies all but the last
  // position: a fused cross entropy under Transformers' own models.
  kFusedWidened,
  // The same behind a loss that widens the head's logits, which stay until it is
  // there, and copies none (Transformers from 4.49 on, loss/loss_utils.py).
  kFusedCast,
  kChunked,  // with the logits of some rows at a time
};
template <>
inline constexpr auto kWords<LossKernels> =
    Words<LossKernels>("loss",
                       {{LossKernels::kOfStack, "of_stack"},
                        {LossKernels::kPlain, "plain"},
                        {LossKernels::kInPlace, "in_place"},
                        {LossKernels::kFused, "fused"},
                        {LossKernels::kFusedWidened, "fused_widened"},
                        {LossKernels::kFusedCast, "fused_cast"},
                        {LossKernels::kChunked, "chunked"}});
// Liger's makes its gradient with the loss, of some rows at a time; that of
// Wijmans et al. (2025, "Cut Your Losses") has logits on the chip alone, twice.
inline constexpr std::string_view kHintOfCut =
    "chunked is the nearest, which has logits of some rows in memory";
inline constexpr std::string_view kHintOfRows =
    "chunked, with logits of some rows at a time; stack liger has it";
template <>
inline constexpr auto kWordAliases<LossKernels> =
    std::to_array<Word<LossKernels>>(
        {{LossKernels::kChunked, "fused_linear_cross_entropy"},
         {LossKernels::kChunked, "liger_fused_linear_cross_entropy"}});
template <>
inline constexpr auto kWordHints<LossKernels> =
    std::to_array<WordHint>({{"cut_cross_entropy", kHintOfCut},
                             {"cut-cross-entropy", kHintOfCut},
                             {"cce", kHintOfCut},
                             {"liger", kHintOfRows},
                             {"fused_linear", kHintOfRows},
                             {"linear_cross_entropy", kHintOfRows}});

// How the experts of a block run.
enum class ExpertKernels {
  kOfStack,  // as the stack has them
  // Rows side by side, one product of all experts: Transformers 5 where no other
  // is asked for (experts_implementation: grouped_mm), Megatron's grouped_gemm,
  // torchtitan, MegaBlocks, ScatterMoE.
  kGrouped,
  kSplit,  // rows side by side, one expert after another
  // Each expert finds and gathers its rows, and adds what it makes of them to
  // the sum (Transformers 4.40 to 4.57, modeling_mixtral.py and its like).
  kLoop,
  // Tokens stand side by side as often as they have experts, of which each masks
  // its own out of all of them (modeling_deepseek.py beside DeepSeek-V2).
  kMaskedLoop,
  // The same with the weights of ten experts in a module (XTuner's
  // moe_implementation: shard).
  kShardLoop,
};
template <>
inline constexpr auto kWords<ExpertKernels> =
    Words<ExpertKernels>("experts",
                         {{ExpertKernels::kOfStack, "of_stack"},
                          {ExpertKernels::kGrouped, "grouped"},
                          {ExpertKernels::kSplit, "split"},
                          {ExpertKernels::kLoop, "loop"},
                          {ExpertKernels::kMaskedLoop, "masked_loop"},
                          {ExpertKernels::kShardLoop, "shard_loop"}});
template <>
inline constexpr auto kWordAliases<ExpertKernels> =
    std::to_array<Word<ExpertKernels>>(
        {{ExpertKernels::kGrouped, "grouped_mm"},
         {ExpertKernels::kGrouped, "grouped_gemm"},
         {ExpertKernels::kGrouped, "megablocks"},
         {ExpertKernels::kGrouped, "scattermoe"}});
inline constexpr std::string_view kHintOfDispatch =
    "grouped, with parallel.expert_exchange=by_host";
template <>
inline constexpr auto kWordHints<ExpertKernels> = std::to_array<WordHint>(
    {{"deepep", kHintOfDispatch},
     {"hybridep", kHintOfDispatch},
     {"te", "grouped, one product of all experts"},
     {"transformer_engine", "grouped, one product of all experts"},
     {"batched_mm",
      "batches of equal products are not counted; grouped is the "
      "nearest"}});

struct Stack {
  Fusion fusion = Fusion::kEager;
  Attention attention = Attention::kMaterialised;
  LossKernels loss = LossKernels::kOfStack;
  ExpertKernels experts = ExpertKernels::kOfStack;
  // In fp16 and bf16: weights, activations and gradients are narrow throughout
  // and the optimizer keeps fp32 masters (Apex O2, DeepSpeed, Megatron).
  // Without it an eager or fused stack autocasts: fp32 weights, narrow matrix
  // products only.
  bool narrow_weights = false;
  // -O1 to -O3 of a graph compiler that has levels (Neuron); others ignore it.
  int64_t compiler_level = 2;
  // Results that are narrowed are rounded up or down by chance, instead of to
  // the nearest.
  bool stochastic_rounding = false;
  friend bool operator==(const Stack&, const Stack&) = default;
};

}  // namespace trainfare::model
