#pragma once

// What a software stack makes of a step, as data: one row a stack. The counts
// of kernels and memory read rules, not the names of stacks, so that another
// stack is another row of kStackRules (and its word in workload.h).

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "model/rounding.h"
#include "model/workload.h"

namespace trainfare::model {

// How the kernels of a block come about.
enum class BlockKernels {
  kByOperation,  // one per operation of the framework
  kFusedPasses,  // bias, activation, dropout, residual and norm in one pass
  kHandFused,    // of a library of layers: norm apart, narrow throughout
  kCompiled,     // elementwise chains fused into their neighbours
};

// Who launches the kernels of a step: the host time of a launch by a framework,
// and what the others need of it, are fitted (GPUs' `launch_cost`,
// `library_launch_share` and `compiled_launch_share`).
enum class Launches {
  kByFramework,  // operation by operation, from Python
  kByModules,    // kernels of a library by Python modules, with much between
  kByLibrary,    // layers of a library, from C++
  kByGraph,      // the code that a compiler made of a graph
  kOnce,         // a step replayed whole: the host does nothing within it
};

struct StackRules {
  Fusion fusion = Fusion::kEager;
  BlockKernels block = BlockKernels::kByOperation;
  // Embeddings, head and optimizer are the framework's own operations.
  bool eager_outside = false;

  // --- widths in fp16 and bf16 ---
  bool autocasts = false;      // fp32 weights, unless narrow ones are asked for
  bool keeps_masters = false;  // narrow weights with masters, always
  bool narrow_always = false;  // narrow weights without masters

  // --- attention ---
  bool joins_projections = false;  // query, key and value: one product
  bool scales_queries = false;     // and not the scores
  bool heads_are_strides = false;  // no copies to split them

  // Flash attention reads them where the projection left them.
  bool packs_heads = false;

  // --- biases, norms, dropout, loss ---
  // Biases and their gradients belong to products (cuBLASLt's epilogues), in 8
  // bits to the cast of a gradient, which an activation's gradient takes in.
  bool biases_in_products = false;
  bool one_norm_gradient = false;  // of scale and shift with the input's
  bool lays_out_bias = false;      // a pass before the product that adds to it
  bool drops_activation = false;   // of translation models
  bool drops_activation_apart = false;  // in a kernel of its own
  bool smooths_labels = false;          // a criterion of its own, two terms
  bool one_kernel_criterion = false;    // of translation models

  // Sides of products are padded to what tensor cores read at full rate, by a
  // compiler or by a library that pads vocabularies.
  bool pads_products = false;

  // Gradients of several passes are added by the products that make them.
  bool adds_in_products = false;

  // --- host ---
  Launches launches = Launches::kByFramework;

  // --- device ---
  // Kernels reach a share of the memory rate of hand-written ones that is
  // fitted: GPUs' `compiled_efficiency`.
  bool slower_kernels = false;

  // --- optimizer ---
  bool flat_layers = false;        // all parameters of a layer: one tensor
  bool flat_masters = false;       // one tensor, copied to and from
  bool widens_parameters = false;  // before the update, without masters

  // --- blocks of today's decoders ---
  bool fuses_norm = true;       // RMSNorm in one kernel, else operations
  bool fuses_positions = true;  // rotary of queries and keys in one kernel
  bool fuses_gate = true;       // activation and product in one kernel
  bool chunks_loss = false;     // logits of a part of the rows at a time
  bool shifts_logits = false;   // copies them in fp32 without the last position
  bool fuses_loss = false;      // one kernel; its gradient replaces the logits
  // Of a loss it keeps the logits as they are and a sum a row, of which it makes
  // the gradient, not log-probabilities (Inductor and XLA fuse the casts and the
  // softmax into both passes).
  bool keeps_row_sums = false;
  ExpertKernels experts = ExpertKernels::kGrouped;

  // --- attention on chip ---
  // Flash attention multiplies by instructions for which a warp waits, as
  // FlashAttention-2 does, which LibTorch has; cuDNN's takes a generation's
  // own.
  bool synchronous_attention = false;

  // Its kernels are written for GPUs: no other device has them.
  bool of_gpus = false;
};

inline constexpr std::array kStackRules = {
    StackRules{.fusion = Fusion::kEager,
               .eager_outside = true,
               .autocasts = true,
               .fuses_norm = false,
               .fuses_positions = false,
               .fuses_gate = false,
               .shifts_logits = true,
               .experts = ExpertKernels::kLoop,
               .synchronous_attention = true},
    // Ott et al. 2019, with its fp16 optimizer and criterion; PyTorch before
    // CUDA 11.4. Tokens come before sentences, so that heads are one stride.
    StackRules{.fusion = Fusion::kFairseq,
               .eager_outside = true,
               .keeps_masters = true,
               .scales_queries = true,
               .heads_are_strides = true,
               .lays_out_bias = true,
               .drops_activation = true,
               .drops_activation_apart = true,
               .smooths_labels = true,
               .pads_products = true,
               .flat_masters = true,
               .fuses_norm = false,
               .fuses_positions = false,
               .fuses_gate = false,
               .experts = ExpertKernels::kSplit},
    StackRules{.fusion = Fusion::kFused,
               .block = BlockKernels::kFusedPasses,
               .eager_outside = true,
               .autocasts = true,
               .experts = ExpertKernels::kSplit,
               .synchronous_attention = true,
               .of_gpus = true},
    // Wang et al. 2022 (LightSeq2); DeepSpeed's layers are alike.
    StackRules{.fusion = Fusion::kLightSeq,
               .block = BlockKernels::kHandFused,
               .narrow_always = true,
               .joins_projections = true,
               .drops_activation = true,
               .one_kernel_criterion = true,
               .pads_products = true,
               .launches = Launches::kByLibrary,
               .flat_layers = true,
               .widens_parameters = true,
               .of_gpus = true},
    StackRules{.fusion = Fusion::kCompiled,
               .block = BlockKernels::kCompiled,
               .pads_products = true,
               .launches = Launches::kByGraph,
               .keeps_row_sums = true,
               .synchronous_attention = true},
    StackRules{.fusion = Fusion::kXla,
               .block = BlockKernels::kCompiled,
               .pads_products = true,
               .adds_in_products = true,
               .launches = Launches::kByGraph,
               .slower_kernels = true,
               .keeps_row_sums = true},
    // Hsu et al. 2024 (Liger Kernel) in an eager model.
    StackRules{.fusion = Fusion::kLiger,
               .eager_outside = true,
               .autocasts = true,
               .chunks_loss = true,
               .experts = ExpertKernels::kLoop,
               .synchronous_attention = true,
               .of_gpus = true},
    // Triton kernels of unslothai/unsloth in an eager model, as
    // fms-acceleration takes them (FOAK: cross_entropy_loss.py,
    // rms_layernorm.py, rope_embedding.py).
    StackRules{.fusion = Fusion::kUnsloth,
               .eager_outside = true,
               .autocasts = true,
               .fuses_gate = false,
               .fuses_loss = true,
               .experts = ExpertKernels::kLoop,
               .synchronous_attention = true,
               .of_gpus = true},
    // NVIDIA's submissions to MLPerf: --cuda_graph_mode full_iteration
    // --fused_bias_fc --fused_bias_mha --fused_dropout_add of
    // mlcommons/training_results_v3.1@f33f9444, benchmarks/bert.
    StackRules{.fusion = Fusion::kGraphs,
               .block = BlockKernels::kHandFused,
               .joins_projections = true,
               .packs_heads = true,
               .biases_in_products = true,
               .one_norm_gradient = true,
               .pads_products = true,
               .launches = Launches::kOnce,
               .of_gpus = true},
    // Shoeybi et al. 2019: fused softmax, bias, GELU and dropout, FusedAdam over
    // fp32 masters.
    StackRules{.fusion = Fusion::kMegatron,
               .block = BlockKernels::kHandFused,
               .keeps_masters = true,
               .joins_projections = true,
               .adds_in_products = true,  // gradient_accumulation_fusion
               .launches = Launches::kByModules,
               .flat_layers = true,
               .of_gpus = true},
};

// A stack's row stands at its place among the stacks.
constexpr const StackRules& RulesOf(Fusion fusion) {
  return kStackRules[static_cast<size_t>(fusion)];
}
constexpr bool EveryStackHasItsRow() {
  for (const Word<Fusion>& word : kWords<Fusion>.words) {
    const auto place = static_cast<size_t>(word.value);
    if (place >= kStackRules.size() ||
        kStackRules[place].fusion != word.value) {
      return false;
    }
  }
  return true;
}
static_assert(EveryStackHasItsRow(), "a stack without a row in kStackRules");
constexpr const StackRules& RulesOf(const Workload& workload) {
  return RulesOf(workload.stack.fusion);
}

// How the loss over a vocabulary is made: the stack's own way, or another that
// was asked for.
struct LossRules {
  bool chunks = false;
  bool shifts = false;
  bool fuses = false;
  bool keeps_row_sums = false;
};
constexpr LossRules LossOf(const Workload& workload) {
  const StackRules& rules = RulesOf(workload);
  switch (workload.stack.loss) {
    case LossKernels::kPlain:
    case LossKernels::kInPlace:  // as many passes, over fewer tensors
      return {false, rules.eager_outside, false, false};
    case LossKernels::kFused:
      return {false, false, true, false};
    case LossKernels::kFusedWidened:
    case LossKernels::kFusedCast:
      return {false, true, true, false};
    case LossKernels::kChunked:
      return {true, false, false, false};
    case LossKernels::kOfStack:
      break;
  }
  return {rules.chunks_loss,
          rules.shifts_logits,
          rules.fuses_loss,
          rules.keeps_row_sums};
}

// How the experts of a block run, the stack's own way or another that was asked
// for.
constexpr ExpertKernels ExpertsOf(const Workload& workload) {
  const ExpertKernels asked = workload.stack.experts;
  return asked == ExpertKernels::kOfStack ? RulesOf(workload).experts : asked;
}

// Of a rank's tokens those that it sends to experts: its own share where ranks
// of its layer have other experts.
inline int64_t TokensOfExperts(const Workload& workload, int64_t tokens) {
  return CeilDivide(tokens, workload.part.expert_folds);
}

// Rows that a rank's experts compute of so many tokens of each rank: as many
// as each sends away, or of the busiest where others have experts, too.
inline int64_t RowsOfExperts(const Workload& workload, int64_t tokens) {
  const Architecture& a = workload.architecture;
  const int64_t even = tokens * a.experts_per_token;
  if (a.expert_ranks == 1) return even;
  return std::llround(
      std::ceil(workload.load_factor * static_cast<double>(even)));
}
// Whether each expert finds its rows by itself, and whether it does so among
// rows of all of them.
constexpr bool FindsRows(ExpertKernels experts) {
  return experts == ExpertKernels::kLoop ||
         experts == ExpertKernels::kMaskedLoop ||
         experts == ExpertKernels::kShardLoop;
}
constexpr bool MasksRows(ExpertKernels experts) {
  return FindsRows(experts) && experts != ExpertKernels::kLoop;
}
// Experts of a module under kShardLoop (expert_in_one_shard of XTuner's
// DeepSeek-V2).
inline constexpr int64_t kExpertsOfShard = 10;

// Bytes of each logit of a loss that is not fused: four where the model widens
// them, or autocast does, under which Transformers' Trainer trains adapters
// beside a base of few bits.
int64_t BytesOfLossLogit(const Workload& workload);

// One kernel per framework operation in the layers.
constexpr bool OperationByOperation(const Stack& stack) {
  return RulesOf(stack.fusion).block == BlockKernels::kByOperation;
}

// Whether one product makes the queries, keys and values of one side.
bool JoinsProjections(const Workload& workload);

// Whether GELU by tanh is one operation after another (Activation::kGeluNew), not
// in a kernel of its own or of a gate's.
bool WritesGeluOut(const Workload& workload);
// The same of the square of ReLU (Activation::kReluSquared).
bool WritesSquareOut(const Workload& workload);
// And of xIELU (Activation::kXielu).
bool WritesXieluOut(const Workload& workload);

// Whether weights and gradients are as narrow as the matrix products' operands.
bool NarrowWeights(const Workload& workload);

// Whether the optimizer keeps fp32 masters of narrow weights.
bool KeepsMasters(const Workload& workload);

// Whether gradients of narrow weights are summed in fp32 beside them
// (Optimizer::wide_gradients).
bool SumsGradientsWide(const Workload& workload);

// Whether narrow weights are updated as they are, without masters
// (Masters::kNone).
bool UpdatesNarrow(const Workload& workload);

// Bytes of an element of the optimizer's state, and of what it updates.
int64_t BytesOfState(const Workload& workload);
// Bytes of so many numbers of an optimizer's state: of 8 bits with an fp32
// constant a group of 256 (bitsandbytes), else as above.
int64_t StateBytesOf(const Workload& workload, int64_t numbers);

// Whether the update itself reads narrow gradients and writes narrow
// parameters.
bool MastersInUpdate(const Workload& workload);

// Whether the stack casts fp32 tensors to a narrow type for matrix products.
bool Autocasts(const Workload& workload);

// Whether weights are wide and a pass makes narrow copies of them: autocast,
// and compiled graphs of mixed precision.
bool CastsWeights(const Workload& workload);

}  // namespace trainfare::model
