#pragma once

// One training step as asked for: model, shape, precision, optimizer, stack.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/architecture.h"
#include "model/units.h"
#include "model/words.h"

namespace trainfare::model {

enum class Precision {
  kFp32,
  kTf32,
  kFp16,
  kBf16,
  // The products of the blocks have operands of 8 bits, cast for each of them;
  // all else is as in bf16 (Micikevicius et al. 2022; Transformer Engine).
  kFp8,
};
template <>
inline constexpr auto kWords<Precision> =
    Words<Precision>("precision",
                     {{Precision::kFp32, "fp32"},
                      {Precision::kTf32, "tf32"},
                      {Precision::kFp16, "fp16"},
                      {Precision::kBf16, "bf16"},
                      {Precision::kFp8, "fp8"}});
// Of PyTorch, Transformers, Lightning and Composer.
template <>
inline constexpr auto kWordAliases<Precision> =
    std::to_array<Word<Precision>>({{Precision::kFp32, "float32"},
                                    {Precision::kFp32, "float"},
                                    {Precision::kFp16, "float16"},
                                    {Precision::kFp16, "half"},
                                    {Precision::kFp16, "mixed_fp16"},
                                    {Precision::kFp16, "fp16-mixed"},
                                    {Precision::kFp16, "16-mixed"},
                                    {Precision::kFp16, "amp_fp16"},
                                    {Precision::kBf16, "bfloat16"},
                                    {Precision::kBf16, "mixed_bf16"},
                                    {Precision::kBf16, "bf16-mixed"},
                                    {Precision::kBf16, "amp_bf16"},
                                    {Precision::kFp8, "float8"}});
inline constexpr std::string_view kHintOfBase =
    "weights of 4 or 8 bits are those beside adapters, "
    "trainable.lora.base_bits "
    "with precision bf16";
inline constexpr std::string_view kHintOfMx =
    "precision fp8 with fp8.scaling=blocks";
inline constexpr std::string_view kHintOfFour =
    "training in 4 bits is not modelled; fp8 is the narrowest";
template <>
inline constexpr auto kWordHints<Precision> =
    std::to_array<WordHint>({{"amp", "fp16 or bf16, each mixed with fp32"},
                             {"mixed", "fp16 or bf16, each mixed with fp32"},
                             {"fp4", kHintOfBase},
                             {"nf4", kHintOfBase},
                             {"int4", kHintOfBase},
                             {"int8", kHintOfBase},
                             {"4bit", kHintOfBase},
                             {"8bit", kHintOfBase},
                             {"mxfp8", kHintOfMx},
                             {"mxfp4", kHintOfFour},
                             {"nvfp4", kHintOfFour}});

enum class OptimizerKind {
  kNone,
  kSgd,
  kAdamW,
  kAdan,
  kLamb,
  kLion,
  kMuon,  // of matrices of the blocks; all else AdamW (model/muon.h)
  // Second moments by row and column of a matrix, no momentum (Shazeer & Stern
  // 2018).
  kAdafactor,
  // As in the first BERT repositories: no bias correction, and each tensor is
  // clipped to its own norm before its update.
  kBertAdam,
};
template <>
inline constexpr auto kWords<OptimizerKind> =
    Words<OptimizerKind>("optimizer",
                         {{OptimizerKind::kNone, "none"},
                          {OptimizerKind::kSgd, "sgd"},
                          {OptimizerKind::kAdamW, "adamw"},
                          {OptimizerKind::kAdan, "adan"},
                          {OptimizerKind::kLamb, "lamb"},
                          {OptimizerKind::kLion, "lion"},
                          {OptimizerKind::kMuon, "muon"},
                          {OptimizerKind::kAdafactor, "adafactor"},
                          {OptimizerKind::kBertAdam, "bert_adam"}});
// Adam and AdamW read and write the same; the decay is a factor between.
template <>
inline constexpr auto kWordAliases<OptimizerKind> =
    std::to_array<Word<OptimizerKind>>({{OptimizerKind::kAdamW, "adam"},
                                        {OptimizerKind::kAdamW,
                                         "adamw_torch"}});
inline constexpr std::string_view kHintOfFused =
    "name adamw, implementation fused";
inline constexpr std::string_view kHintOfEightBits =
    "name adamw, state_bits 8, implementation fused";
template <>
inline constexpr auto kWordHints<OptimizerKind> = std::to_array<WordHint>(
    {{"adamw_torch_fused", kHintOfFused},
     {"adamw_apex_fused", kHintOfFused},
     {"fused_adam", kHintOfFused},
     {"fused_adamw", kHintOfFused},
     {"fusedadam", kHintOfFused},
     {"adamw_hf", "name adamw, implementation for_loop"},
     {"adamw8bit", kHintOfEightBits},
     {"adamw_8bit", kHintOfEightBits},
     {"adamw_bnb_8bit", kHintOfEightBits},
     {"adam8bit", kHintOfEightBits},
     {"adam_8bit", kHintOfEightBits},
     {"paged_adamw", "name adamw; its paging is not counted"},
     {"paged_adamw_32bit", "name adamw; its paging is not counted"},
     {"paged_adamw_8bit",
      "name adamw, state_bits 8, implementation fused; its paging is not "
      "counted"},
     {"lion_8bit", "name lion, state_bits 8, implementation fused"}});
enum class OptimizerImplementation {
  kForLoop,      // one small kernel per operation and tensor
  kMultiTensor,  // one kernel per operation over chunks of tensors (_foreach)
  kFused,        // one kernel for the whole update
};
template <>
inline constexpr auto kWords<OptimizerImplementation> =
    Words<OptimizerImplementation>(
        "optimizer implementation",
        {{OptimizerImplementation::kForLoop, "for_loop"},
         {OptimizerImplementation::kMultiTensor, "multi_tensor"},
         {OptimizerImplementation::kFused, "fused"}});
template <>
inline constexpr auto kWordAliases<OptimizerImplementation> =
    std::to_array<Word<OptimizerImplementation>>(
        {{OptimizerImplementation::kForLoop, "for-loop"},
         {OptimizerImplementation::kForLoop, "forloop"},
         {OptimizerImplementation::kMultiTensor, "foreach"}});

// Where narrow gradients meet the fp32 masters of narrow weights.
enum class Masters {
  // In passes of their own: gradients to fp32 before the update, parameters
  // back to 16 bits after it (Apex O2, DeepSpeed, Megatron).
  kApart,
  // In the update, which reads narrow gradients and writes narrow parameters
  // beside the masters: trainfare-trainer. One pass where it is fused, a tensor
  // at a time in a for-loop.
  kInUpdate,
  // There are none: the update is of the narrow weights, and its state as
  // narrow as they ("pure bf16": PyTorch over weights loaded in 16 bits).
  kNone,
};
template <>
inline constexpr auto kWords<Masters> =
    Words<Masters>("place of masters",
                   {{Masters::kApart, "apart"},
                    {Masters::kInUpdate, "in_update"},
                    {Masters::kNone, "none"}});

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
     {"neuronx", "compiled, by the chips' compiler"},
     {"neuronx_distributed", "compiled, by the chips' compiler"}});
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
template <>
inline constexpr auto kWordAliases<LossKernels> =
    std::to_array<Word<LossKernels>>(
        {{LossKernels::kChunked, "fused_linear_cross_entropy"},
         {LossKernels::kChunked, "liger_fused_linear_cross_entropy"}});
template <>
inline constexpr auto kWordHints<LossKernels> =
    std::to_array<WordHint>({{"cut_cross_entropy", kHintOfCut},
                             {"cut-cross-entropy", kHintOfCut},
                             {"cce", kHintOfCut}});

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

// What the numbers of a tensor in 8 bits are multiplied by.
enum class Fp8Scaling {
  kDelayed,  // by its largest values in steps before (Transformer Engine)
  kTensor,   // by its largest value, which is read first (Transformer Engine's
             // current scaling, torchao's tensorwise)
  kRows,    // each row by its largest value, so that what is read by columns is
            // cast once more (torchao's rowwise)
  kBlocks,  // each 32 numbers by theirs, with a byte beside them (OCP MX)
};
template <>
inline constexpr auto kWords<Fp8Scaling> =
    Words<Fp8Scaling>("scaling of 8 bits",
                      {{Fp8Scaling::kDelayed, "delayed"},
                       {Fp8Scaling::kTensor, "tensor"},
                       {Fp8Scaling::kRows, "rows"},
                       {Fp8Scaling::kBlocks, "blocks"}});

// Products of the blocks under Precision::kFp8; of no effect under others.
struct Fp8 {
  Fp8Scaling scaling = Fp8Scaling::kDelayed;
  // Those that make gradients of weights are in 8 bits, too; else in 16.
  bool weight_gradients = true;
  // Matrices of the blocks are cast before they are gathered, which halves what
  // is sent (torchtitan's enable_fsdp_float8_all_gather).
  bool gathered = false;
  friend bool operator==(const Fp8&, const Fp8&) = default;
};

struct Optimizer {
  OptimizerKind kind = OptimizerKind::kAdamW;
  OptimizerImplementation implementation =
      OptimizerImplementation::kMultiTensor;
  // A learning rate for each layer (layer-wise decay): its tensors, those with
  // and those without weight decay, are an update of their own.
  bool by_layer = false;
  Masters masters = Masters::kApart;  // where there are any
  // Narrow weights' gradients are added to sums in fp32, which stand from the
  // beginning and are what ranks send (nanotron's accumulate_grad_in_fp32).
  bool wide_gradients = false;
  // Bits of a number of its state: 8 with constants a group (Dettmers et al.
  // 2022), 16 in bf16 (DeepSeek-V3's moments); 0 = as wide as the update.
  int64_t state_bits = 0;
  friend bool operator==(const Optimizer&, const Optimizer&) = default;
};

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

// Matrices of a block that low-rank adapters stand beside (LoRA).
struct LoraMatrices {
  bool query = false;
  bool key = false;
  bool value = false;
  bool output = false;
  bool feed_forward_gate = false;
  bool feed_forward_in = false;
  bool feed_forward_out = false;
  // Of latent attention, which has no plain key and value.
  bool query_down = false;
  bool query_up = false;
  bool key_value_down = false;
  bool key_value_up = false;
  friend bool operator==(const LoraMatrices&, const LoraMatrices&) = default;
};

// What of the model trains (model/trainable.h).
struct Trainable {
  // The embeddings and so many first blocks (of the encoder, where there is a
  // decoder too) keep their weights; 0 = all trains, the embeddings as well.
  int64_t frozen_layers = 0;
  // Rank of adapters; all else but the task's own layer is frozen then.
  int64_t lora_rank = 0;
  LoraMatrices lora;
  // Share of what adapters take that is dropped out before they take it.
  double lora_dropout = 0.0;
  // Adapters in fp32, to which PEFT widens what they take.
  bool wide_adapters = false;
  // Both matrices of each adapter are units of their own of PyTorch's FSDP.
  bool adapters_as_units = false;
  // Word embeddings and output layer train whole beside adapters, as copies of
  // what stays frozen (PEFT's modules_to_save).
  bool embeddings_beside_adapters = false;
  // Bits of the frozen matrices of blocks beside adapters, with constants a
  // group (QLoRA: 4); 0 = as the stack keeps weights.
  int64_t base_bits = 0;
  // These constants are kept in 8 bits, with constants of their own.
  bool double_quantised = true;
  // Operations one by one make narrow weights of the base's, which the product
  // keeps for its gradient (GPTQ's layers in PyTorch); else one kernel, each
  // time that a product reads them.
  bool base_by_operations = false;

  bool everything() const { return frozen_layers == 0 && lora_rank == 0; }
  friend bool operator==(const Trainable&, const Trainable&) = default;
};

// What is done to gradients before they are sent to the other devices.
enum class CompressionKind {
  kNone,
  kHalf,      // cast to 16 bits and back
  kPowerSgd,  // a low-rank approximation of every matrix
};
template <>
inline constexpr auto kWords<CompressionKind> =
    Words<CompressionKind>("gradient compression",
                           {{CompressionKind::kNone, "none"},
                            {CompressionKind::kHalf, "half"},
                            {CompressionKind::kPowerSgd, "power_sgd"}});
struct GradientCompression {
  CompressionKind kind = CompressionKind::kNone;
  int64_t rank = 0;  // of kPowerSgd
  friend bool operator==(const GradientCompression&,
                         const GradientCompression&) = default;
};

// What of the training state each data-parallel rank keeps a share of.
enum class Shard {
  kNone,
  kZero1,  // optimizer state and fp32 masters (Rajbhandari et al. 2020)
  kZero2,  // gradients, too
  kZero3,  // parameters, too: gathered where they are used
  kFsdp,   // the same as PyTorch has it: the shard of narrow parameters is that
           // of their fp32 masters, gradients are summed in fp32
};
template <>
inline constexpr auto kWords<Shard> = Words<Shard>("shard",
                                                   {{Shard::kNone, "none"},
                                                    {Shard::kZero1, "zero1"},
                                                    {Shard::kZero2, "zero2"},
                                                    {Shard::kZero3, "zero3"},
                                                    {Shard::kFsdp, "fsdp"}});
// Of PyTorch's FSDP and of DeepSpeed.
template <>
inline constexpr auto kWordAliases<Shard> =
    std::to_array<Word<Shard>>({{Shard::kNone, "ddp"},
                                {Shard::kNone, "no_shard"},
                                {Shard::kZero1, "zero-1"},
                                {Shard::kZero1, "zero_1"},
                                {Shard::kZero2, "zero-2"},
                                {Shard::kZero2, "zero_2"},
                                {Shard::kZero3, "zero-3"},
                                {Shard::kZero3, "zero_3"},
                                {Shard::kFsdp, "fsdp2"},
                                {Shard::kFsdp, "full_shard"},
                                {Shard::kFsdp, "fully_shard"}});
template <>
inline constexpr auto kWordHints<Shard> = std::to_array<WordHint>(
    {{"hsdp", "fsdp, with parallel.replicate copies of the whole state"},
     {"hybrid_shard",
      "fsdp, with parallel.replicate copies of the whole state"},
     {"shard_grad_op", "fsdp, with parallel.reshard_after_forward: false"},
     {"zero1_offload", "zero1, with parallel.offload: optimizer"},
     {"zero2_offload", "zero2, with parallel.offload: optimizer"},
     {"zero3_offload",
      "zero3, with parallel.offload: optimizer, or parameters, too"},
     {"zero_offload", "zero2, with parallel.offload: optimizer"},
     {"zero_infinity", "zero3, with parallel.offload: parameters"},
     {"deepspeed", "zero1, zero2 or zero3, by its stage"}});

// What of the training state waits in the host's memory (model/offload.h).
enum class Offload {
  kNone,
  // Masters and optimizer state, which the host updates; gradients go to it as
  // they come (Ren et al. 2021, "ZeRO-Offload").
  kOptimizer,
  kParameters,  // too: copied to the device where they are used
};
template <>
inline constexpr auto kWords<Offload> =
    Words<Offload>("offload",
                   {{Offload::kNone, "none"},
                    {Offload::kOptimizer, "optimizer"},
                    {Offload::kParameters, "parameters"}});
inline constexpr std::string_view kHintOfOffload =
    "parameters, which has the optimizer state, too; what blocks keep: "
    "parallel.offload_activations";
template <>
inline constexpr auto kWordAliases<Offload> = std::to_array<Word<Offload>>(
    {{Offload::kParameters, "params"}, {Offload::kParameters, "parameter"}});
template <>
inline constexpr auto kWordHints<Offload> =
    std::to_array<WordHint>({{"all", kHintOfOffload},
                             {"cpu", kHintOfOffload},
                             {"true", kHintOfOffload},
                             {"activations", kHintOfOffload}});

// Which sums within layers go on while products of their own compute.
enum class TensorOverlap {
  kNone,
  // Of gradients of what products take, beside their weights' gradients
  // (Megatron-LM's asynchronous all-reduce, nanotron's async).
  kGradients,
  // All, in as many parts as there are ranks (Transformer Engine's user buffers,
  // PyTorch's asynchronous tensor parallelism).
  kProducts,
};
template <>
inline constexpr auto kWords<TensorOverlap> =
    Words<TensorOverlap>("overlap of sums",
                         {{TensorOverlap::kNone, "none"},
                          {TensorOverlap::kGradients, "gradients"},
                          {TensorOverlap::kProducts, "products"}});

// What stages of a pipeline have alike.
enum class StageCut {
  kBlocks,  // so many each; where they do not divide, first and last have fewer
  kTables,  // the same with embeddings and head as a block each
  kCost,    // products: a head over a large vocabulary is worth some blocks
};
template <>
inline constexpr auto kWords<StageCut> =
    Words<StageCut>("cut of stages",
                    {{StageCut::kBlocks, "blocks"},
                     {StageCut::kTables, "tables"},
                     {StageCut::kCost, "cost"}});

// How tokens go to experts of other ranks.
enum class ExpertExchange {
  kAllToAll,  // a copy for each of a token's experts (NCCL)
  // One to each host, and there one to each rank (DeepSeek's DeepEP).
  kByHost,
};
template <>
inline constexpr auto kWords<ExpertExchange> =
    Words<ExpertExchange>("exchange between experts",
                          {{ExpertExchange::kAllToAll, "all_to_all"},
                           {ExpertExchange::kByHost, "by_host"}});
template <>
inline constexpr auto kWordAliases<ExpertExchange> =
    std::to_array<Word<ExpertExchange>>(
        {{ExpertExchange::kAllToAll, "alltoall"},
         {ExpertExchange::kByHost, "deepep"},
         {ExpertExchange::kByHost, "hybridep"}});

// Ranks that train data parallel, and what they share (model/sharding.h); and
// those that have a part of the model each (model/split.h), so many beside each
// of them.
struct Parallel {
  int64_t data = 0;  // ranks; 0: as many as there are devices
  Shard shard = Shard::kNone;
  // Copies of the whole state, each over data / replicate ranks; their
  // gradients are averaged (hybrid sharding).
  int64_t replicate = 1;
  // Under kZero3 and kFsdp parameters are gathered again for the backward pass.
  // Without it a rank holds all gathered parameters in between.
  bool reshard_after_forward = true;
  // What is kept on the host, also by one rank alone.
  Offload offload = Offload::kNone;
  // What blocks keep for the backward pass is in the host's memory meanwhile.
  bool offload_activations = false;
  // Under kFsdp embeddings and output layer are a unit each, gathered where they
  // are used (torchtune's custom_sharded_layers), not of the root.
  bool embedding_units = false;
  // Ranks that have a part of every layer each: of heads, inner widths and the
  // vocabulary (Shoeybi et al. 2019, "Megatron-LM").
  int64_t tensor = 1;
  // These divide tokens between the products, too: in norms, dropout and
  // residuals (Korthikanti et al. 2022, "sequence parallelism").
  bool sequence = false;
  TensorOverlap tensor_overlap = TensorOverlap::kNone;
  // Ranks that have a part of every sequence each; keys and values go from one
  // to the next (Liu et al. 2023, "Ring Attention"). Weights are whole on each.
  int64_t context = 1;
  // Of ranks with the same weights so many have other experts each, to which
  // the others send their tokens (Lepikhin et al. 2021, "GShard").
  int64_t expert = 1;
  // Ranks that have a part of every expert each; 0: as many as `tensor`. Fewer
  // have other experts in turn, so that ranks of a layer are among those of
  // `expert` (Liu et al. 2025, "MoE Parallel Folding").
  int64_t expert_tensor = 0;
  ExpertExchange expert_exchange = ExpertExchange::kAllToAll;
  // Tokens of one micro-batch are exchanged beside the blocks of another, which
  // goes the other way (Megatron-LM's overlap_moe_expert_parallel_comm).
  bool expert_overlap = false;
  // Stages of consecutive blocks, through which micro-batches go one behind the
  // other (model/pipeline.h), and in how many chunks each has its blocks.
  int64_t pipeline = 1;
  int64_t chunks = 1;
  StageCut stages = StageCut::kBlocks;
  friend bool operator==(const Parallel&, const Parallel&) = default;
};

// What one rank has of a step that others have parts of; all of it where none
// do. No file says it: model/split.h makes it of Parallel.
struct RankPart {
  // Ranks that divide the tokens between products.
  int64_t token_shares = 1;
  // Ranks of a layer that have other experts each, to which each sends its own
  // share of the tokens alone.
  int64_t expert_folds = 1;
  // Ranks that divide each sequence, so many times as long as this one's part.
  int64_t context = 1;
  // Passes of its chunks of blocks, whose activations it keeps at once for their
  // backward passes, and how many chunks its blocks are.
  int64_t passes_kept = 1;
  int64_t chunks = 1;
  friend bool operator==(const RankPart&, const RankPart&) = default;
};

// What of a step is run: inference tables have a forward pass only.
enum class Work { kTraining, kForwardBackward, kForward };
template <>
inline constexpr auto kWords<Work> = Words<Work>("work",
                                                 {{Work::kTraining, "training"},
                                                  {Work::kForwardBackward,
                                                   "forward-backward"},
                                                  {Work::kForward, "forward"}});
template <>
inline constexpr auto kWordAliases<Work> = std::to_array<Word<Work>>(
    {{Work::kTraining, "train"}, {Work::kForward, "inference"}});

struct Workload {
  Architecture architecture;
  int64_t batch = 1;            // sequences per device and micro-batch
  int64_t sequence_length = 1;  // tokens per sequence, padding included
  // Tokens on the decoder side of an encoder-decoder; 0 = sequence_length.
  int64_t target_length = 0;
  // Packed into each sequence, equally long; attention stays inside them.
  int64_t documents = 1;
  int64_t accumulation = 1;  // micro-batches per optimizer step
  // Tokens of the busiest expert over those of an even share. One device has
  // all experts, and so as many rows however they are routed.
  double load_factor = 1;
  Precision precision = Precision::kFp32;
  Fp8 fp8;
  Optimizer optimizer;
  Stack stack;
  Work work = Work::kTraining;
  // Positions a sequence at which a vocabulary head predicts; 0 = all of them.
  int64_t predictions_per_sequence = 0;
  // Blocks keep their input alone, and are computed again in the backward pass:
  // so many of those that have one, from the lowest; 0 = all.
  bool gradient_checkpointing = false;
  int64_t checkpointed_blocks = 0;
  // Attention's core alone of the other blocks, from queries, keys and values
  // on (Korthikanti et al. 2022, "selective").
  bool attention_checkpointing = false;
  // Every second product of the other blocks, and all that is no product, but
  // not attention's core (torchtitan's "selective op").
  bool operation_checkpointing = false;
  Trainable trainable;
  // What data-parallel training does to gradients; its kernels are part of
  // every step, so that a caller with one device leaves it out.
  GradientCompression compression;
  Parallel parallel;
  RankPart part;
  // What each device may draw; 0: as much as its board allows. A setting of the
  // device: kernels stay what they are, and take longer.
  Watts<> power_limit;

  // Tokens of a micro-batch: of the encoder's side, where there are two.
  int64_t tokens() const { return batch * sequence_length; }
  // Those of the decoder's side, and of one of its sequences.
  int64_t decoder_length() const {
    return target_length > 0 ? target_length : sequence_length;
  }
  int64_t decoder_tokens() const { return batch * decoder_length(); }
  // Keys that attention has for the queries of one sequence: those of other
  // ranks' parts of it, too.
  int64_t key_length() const { return sequence_length * part.context; }
  friend bool operator==(const Workload&, const Workload&) = default;
};

// Bytes of an fp32 number, as gradients and master parameters are kept.
inline constexpr int64_t kSingle = 4;
// Bytes of an fp16 or bf16 number.
inline constexpr int64_t kHalf = 2;
// Bytes of one element of the tensors that go from kernel to kernel.
constexpr int64_t BytesPerElement(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
    case Precision::kTf32:
      return kSingle;
    case Precision::kFp16:
    case Precision::kBf16:
    case Precision::kFp8:
      break;
  }
  return kHalf;
}
// Bytes of an operand that was cast for a product.
inline constexpr int64_t kBytesOfFp8 = 1;
// Of blocks of them; a scale is a byte (OCP Microscaling Formats 1.0, 5.1).
inline constexpr int64_t kNumbersOfFp8Scale = 32;
// What all but the products of the blocks are in: bf16 for fp8, else the same.
Precision OutsideBlockProducts(Precision precision);

// Turns on one of the matrices, by its member's name, or those that other
// programs' name of a module means ("q_proj"); "all": each that there can be
// (NameAllMatrices). These names; those of the matrices that are on.
void AddLoraMatrix(std::string_view name, LoraMatrices& matrices);
std::vector<std::string_view> LoraMatrixNames();
std::vector<std::string> ToWords(const LoraMatrices& matrices);

}  // namespace trainfare::model
