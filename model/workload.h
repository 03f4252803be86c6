#pragma once

// One training step as asked for: model, shape, what of it trains, over which
// ranks, and by the precision, optimizer and stack of the headers below.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/architecture.h"
#include "model/optimizer.h"
#include "model/precision.h"
#include "model/rounding.h"
#include "model/stack.h"
#include "model/units.h"
#include "model/words.h"

namespace trainfare::model {

// Matrices of a block that low-rank adapters stand beside (LoRA).
struct LoraMatrices {
  bool query = false;
  bool key = false;
  bool value = false;
  bool output = false;
  bool attention_gate = false;  // of attention's result, where it is separate
  bool feed_forward_gate = false;
  bool feed_forward_in = false;
  bool feed_forward_out = false;
  // Of latent attention, which has no plain key and value.
  bool query_down = false;
  bool query_up = false;
  bool key_value_down = false;
  bool key_value_up = false;
  // The first and the last product of a state space.
  bool state_space_in = false;
  bool state_space_out = false;
  // Of the delta rule: what makes queries, keys and values, and their gate where
  // that comes with them; that gate apart; how heads write, and decay with it or
  // apart; and the last product.
  bool delta_rule_in = false;
  bool delta_rule_gate = false;
  bool delta_rule_write = false;
  bool delta_rule_decay = false;
  bool delta_rule_out = false;
  // The first and the last product around a short convolution.
  bool convolution_in = false;
  bool convolution_out = false;
  // What narrows tokens for experts of a latent width, and widens their sum.
  bool expert_latent_in = false;
  bool expert_latent_out = false;
  // What makes a gate of a block's embeddings, what widens these behind it, and
  // what makes a part of those of all blocks.
  bool layer_gate = false;
  bool layer_projection = false;
  bool layer_embeddings = false;
  // What Transformers calls so, which is one matrix in one model and another, or
  // one more, in another (NameUsualMatrices).
  bool in_proj = false;
  bool out_proj = false;
  bool gate_proj = false;
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
  kTo16Bits,  // cast to 16 bits and back
  kPowerSgd,  // a low-rank approximation of every matrix
};
template <>
inline constexpr auto kWords<CompressionKind> =
    Words<CompressionKind>("gradient compression",
                           {{CompressionKind::kNone, "none"},
                            {CompressionKind::kTo16Bits, "half"},
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

  // The same ranks, none of which has a part of a model: of the above what is
  // before `tensor`, and nothing of what is from there on.
  Parallel OfWholeModels() const {
    Parallel whole;
    whole.data = data;
    whole.shard = shard;
    whole.replicate = replicate;
    whole.reshard_after_forward = reshard_after_forward;
    whole.offload = offload;
    whole.offload_activations = offload_activations;
    whole.embedding_units = embedding_units;
    return whole;
  }
  friend bool operator==(const Parallel&, const Parallel&) = default;
};

// What one rank has of a step that others have parts of; all of it where none
// do. No file says it: model/split.h makes it of Parallel.
struct RankPart {
  // Ranks that divide the tokens between products, and this one's share of so
  // many.
  int64_t token_shares = 1;
  int64_t OfTokens(int64_t tokens) const {
    return CeilDivide(tokens, token_shares);
  }
  // Ranks of a layer that have other experts each, to which each sends its own
  // share of the tokens alone.
  int64_t expert_folds = 1;
  // Ranks that divide each sequence, so many times as long as this one's part;
  // and each layer.
  int64_t context = 1;
  int64_t tensor = 1;
  // Passes of its chunks of blocks, whose activations it keeps at once for their
  // backward passes, and how many chunks its blocks are.
  int64_t passes_kept = 1;
  int64_t chunks = 1;
  // What ranks divide of weights and gradients is whole from the first
  // micro-batch of a step to its last.
  bool gathered_once = false;
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
  // The highest blocks of the (encoder's) stack whose products stay in 16 bits
  // where others narrow their operands to 8 or 4 (arXiv:2509.25149, section 4).
  int64_t wide_blocks = 0;
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

// Turns on one of the matrices, by its member's name, or those that other
// programs' name of a module means ("q_proj"); "all": each that there can be
// (NameAllMatrices). These names; those of the matrices that are on.
void AddLoraMatrix(std::string_view name, LoraMatrices& matrices);
std::vector<std::string_view> LoraMatrixNames();
std::vector<std::string> ToWords(const LoraMatrices& matrices);

// What a step asks of blocks of such parts: of a model whose blocks differ that
// of theirs, as if all were such. The step itself, which has to outlive this,
// where they are as its architecture says.
class WorkloadOfParts {
 public:
  WorkloadOfParts(const Workload& workload, const BlockParts& parts)
      : workload_(workload) {
    if (!parts.sees_all && !parts.borrows_keys) return;
    own_ = workload;
    own_->architecture = WithParts(workload.architecture, parts);
  }
  const Workload& get() const { return own_ ? *own_ : workload_; }

 private:
  const Workload& workload_;
  std::optional<Workload> own_;
};

}  // namespace trainfare::model
