#pragma once

// The kernels of a forward and a backward pass, block by block: what
// ExpandKernels() in model/kernels.h is made of. The forward pass is in
// forward_kernels.cc, the backward pass in backward_kernels.cc, what both are
// made of in pass_kernels.cc.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/kernel_list.h"
#include "model/stack_rules.h"
#include "model/workload.h"

namespace trainfare::model::internal {

// Arithmetic an element, from the textbook form of each operation; a
// transcendental is counted apart as a special operation.
inline constexpr int64_t kLayerNormForwardFlops = 8;  // mean, variance, affine
inline constexpr int64_t kLayerNormBackwardFlops =
    14;  // two sums, two products
inline constexpr int64_t kSoftmaxForwardFlops =
    4;  // max, subtract, sum, divide
inline constexpr int64_t kSoftmaxBackwardFlops = 4;  // dot, subtract, multiply
inline constexpr int64_t kGeluForwardFlops = 4;  // x (1 + erf(x / sqrt 2)) / 2
inline constexpr int64_t kGeluBackwardFlops = 8;
inline constexpr int64_t kRmsNormForwardFlops = 4;   // square, sum, two scales
inline constexpr int64_t kRmsNormBackwardFlops = 8;  // one sum, two products
inline constexpr int64_t kRotaryFlops = 3;   // x cos + rotate(x) sin, a pair: 6
inline constexpr int64_t kDropoutFlops = 2;  // compare, scale

// Launches of PyTorch's operations on indices, by its sources: the places of
// what is not zero (Nonzero.cu: two to count, two to select, one to lay out),
// and rows added by index with a sort of it (Indexing.cu: the index, its order,
// the sums).
inline constexpr int64_t kNonzeroLaunches = 5;
inline constexpr int64_t kIndexPutLaunches = 10;
// From a pair of positions to its bucket, an operation at a time
// (_relative_position_bucket of Transformers' modeling_t5.py).
inline constexpr int64_t kBucketLaunches = 18;

inline constexpr int64_t kIndexBytes = 8;  // token ids are int64
inline constexpr int64_t kMaskBytes = 1;   // a dropout mask element
// The number of partial sums over rows in the trainer's fused kernels
// (kFusedChunks there).
inline constexpr int64_t kPartialSums = 32;

// Extents of one attention block: queries of one side, keys of another.
struct AttentionShape {
  int64_t batch;
  int64_t heads;
  int64_t query_length;
  int64_t key_length;
  int64_t head_size;  // of queries and keys
  // Grouped attention has fewer heads of keys and values; values may have a
  // size of their own.
  int64_t key_heads;
  int64_t value_size;
  // Pairs of a query and a key that see each other, in one sequence: all of
  // them, s (s + 1) / 2 where attention is causal, less within a window.
  int64_t seen;
  // Positions enter here: not across two sides, and not in every block.
  bool positions;

  int64_t seen_scores() const { return products() * seen; }
  int64_t products() const { return batch * heads; }
  int64_t scores() const { return products() * query_length * key_length; }
  int64_t query_elements() const {
    return products() * query_length * head_size;
  }
  int64_t context_elements() const {
    return products() * query_length * value_size;
  }
  // Keys and values together.
  int64_t key_value_elements() const {
    return batch * key_heads * key_length * (head_size + value_size);
  }
};

// Matrices of a model, as far as training tells them apart.
enum class Matrix {
  kNextToken,  // joins what a block of that sort is given
  kQuery,
  kKey,
  kValue,
  kQueryDown,
  kQueryUp,
  kKeyValueDown,
  kKeyValueUp,
  kOutput,
  kFeedForwardGate,
  kFeedForwardIn,
  kFeedForwardOut,
  kPooler,
  kTaskHead,        // trains beside adapters
  kVocabularyHead,  // the transform before the logits
  kEmbeddings,      // widens them
  kVocabulary,      // tied to the word embeddings
};

// Blocks that are alike: with experts or a plain feed-forward, with a window or
// without, with positions or without.
struct LayerGroup {
  int64_t count = 0;
  bool experts = false;
  bool windowed = false;
  bool positions = true;
};
// In model order, those from `first` up to `end`.
std::vector<LayerGroup> LayerGroupsOf(const Architecture& a,
                                      int64_t first,
                                      int64_t end);

// Appends kernels in the order in which a stack launches them.
class PassKernels {
 public:
  explicit PassKernels(const Workload& w)
      : w_(w),
        a_(w.architecture),
        rules_(RulesOf(w)),
        element_(BytesPerElement(w.precision)),
        // Autocast keeps LayerNorm and softmax results in fp32; hand-fused and
        // compiled stacks keep them in the narrow type.
        wide_(Autocasts(w) ? 4 : element_),
        autocast_(Autocasts(w)),
        casts_weights_(CastsWeights(w)),
        fp8_(w.precision == Precision::kFp8),
        dropout_(a_.dropout > 0 && w.work != Work::kForward) {
    list_.kernels.reserve(128);
    list_.segments.reserve(12);
  }

  KernelList Expand();

 private:
  // pass_kernels.cc: what the passes are made of.
  int64_t SourceTokens() const { return w_.batch * w_.sequence_length; }
  int64_t TargetLength() const;
  // Which side attention takes its keys and values from: the queries' own, or
  // the encoder's.
  enum class Attends { kSelf, kCross };
  bool Joint(Attends attends) const;
  bool TwoSided() const { return a_.family == Family::kEncoderDecoder; }
  int64_t HeadTokens() const;

  void Open(Phase phase, SegmentRole role, int64_t repeat);
  void Close();
  Kernel& Push(KernelName name, KernelKind kind, int64_t work_items);
  void Gemm(
      KernelName name, int64_t m, int64_t n, int64_t k, int64_t batch = 1);
  void Elementwise(KernelName name,
                   int64_t elements,
                   int64_t read_bytes,
                   int64_t written_bytes,
                   int64_t flops,
                   int64_t special = 0,
                   int64_t random = 0);
  void Copy(KernelName name,
            int64_t elements,
            int64_t read_bytes,
            int64_t written_bytes);
  void Reduction(KernelName name,
                 int64_t rows,
                 int64_t elements,
                 int64_t read_bytes,
                 int64_t written_bytes,
                 int64_t flops,
                 int64_t special = 0,
                 int64_t random = 0);
  // How often the reduction just listed goes over a row.
  void ReadRows(RowReads reads) { list_.kernels.back().row_reads = reads; }
  void BiasGradient(int64_t rows, int64_t columns);

  bool EagerOutside() const { return rules_.eager_outside; }
  bool ByOperation() const {
    return rules_.block == BlockKernels::kByOperation;
  }
  bool FusedPasses() const {
    return rules_.block == BlockKernels::kFusedPasses;
  }
  bool HandFused() const { return rules_.block == BlockKernels::kHandFused; }
  // Hand-fused norms and activations leave 8 bits, twice, in the place of 16,
  // where the scales are known before they are done.
  bool NarrowedByProducer() const {
    return HandFused() && w_.fp8.scaling != Fp8Scaling::kTensor &&
           w_.fp8.scaling != Fp8Scaling::kRows;
  }
  bool Compiled() const { return rules_.block == BlockKernels::kCompiled; }
  void LaidOutBias(int64_t elements);
  bool DropsActivation() const;
  bool Trains(Matrix matrix) const;
  // LayerNorm's scales and shifts.
  bool NormsTrain() const {
    return a_.norm_scale && w_.trainable.lora_rank == 0;
  }
  // Rows of experts, each of which has a product of its own.
  struct Routed {
    int64_t rows;    // of all experts that are asked
    int64_t groups;  // experts
    int64_t each;    // rows of one, balanced
  };
  static Routed OneGroup(int64_t rows) { return {rows, 1, rows}; }
  bool GroupedExperts() const {
    return rules_.experts == ExpertKernels::kGrouped;
  }
  // How often a kernel of experts is launched, over how many of their rows, and
  // of how many experts it has the products side by side.
  int64_t ExpertLaunches(const Routed& r) const {
    return GroupedExperts() ? 1 : r.groups;
  }
  int64_t ExpertRows(const Routed& r) const {
    return GroupedExperts() ? r.rows : r.each;
  }
  int64_t SideBySide(const Routed& r) const {
    return GroupedExperts() ? r.groups : 1;
  }
  void RepeatSince(size_t first, int64_t times);
  void GroupGemm(KernelName name, const Routed& r, int64_t n, int64_t k);
  void GroupWeightGradient(KernelName name,
                           const Routed& r,
                           int64_t k,
                           int64_t n);
  bool HasAdapter(Matrix matrix) const;
  void AdapterForward(Matrix matrix, const Routed& r, int64_t n, int64_t k);
  void AdapterForward(Matrix matrix, int64_t m, int64_t n, int64_t k) {
    AdapterForward(matrix, OneGroup(m), n, k);
  }
  void WideAdapterInput(int64_t elements);
  void AdapterBackward(Matrix matrix, const Routed& r, int64_t n, int64_t k);
  void WeightGradientGemm(KernelName name, int64_t k, int64_t n, int64_t m) {
    GroupWeightGradient(name, OneGroup(m), k, n);
  }
  int64_t DropoutDraws() const { return dropout_ ? 1 : 0; }
  int64_t DropoutFlops() const { return dropout_ ? kDropoutFlops : 0; }
  int64_t DropoutMask() const { return dropout_ ? kMaskBytes : 0; }

  // forward_kernels.cc
  void Forward();
  AttentionShape SelfAttention(int64_t length,
                               bool windowed = false,
                               bool positions = true) const;
  AttentionShape CrossAttention() const;
  // Vaswani et al. 2017: word vectors times sqrt(h), plus fixed sinusoids.
  bool Sinusoids() const {
    return TwoSided() && a_.position_kind == PositionKind::kTable &&
           a_.positions == 0;
  }
  void GatherRows(int64_t tables, int64_t tokens, int64_t width);
  void WidenEmbeddings(int64_t tokens);
  void EmbeddingsForward(int64_t tokens);
  // A bias a head and pair of positions, which scores have added to them.
  bool Biased(const AttentionShape& shape) const {
    return a_.position_kind == PositionKind::kRelative && shape.positions;
  }
  // It has a gradient of its own in each block.
  bool BiasTrains(const AttentionShape& shape) const {
    return Biased(shape) && w_.trainable.everything();
  }
  void PositionBiasForward(int64_t length);
  // fp32 weights that are narrowed in so many launches.
  struct WeightCasts {
    int64_t elements = 0;
    int64_t launches = 0;
    void Add(int64_t more_elements, int64_t more_launches) {
      elements += more_elements;
      launches += more_launches;
    }
  };
  // A compiled graph casts a bias in passing.
  int64_t CastLaunches(bool bias) const { return bias && !Compiled() ? 2 : 1; }
  WeightCasts CastsOfBlocks() const;
  WeightCasts CastsOfHead() const;
  void CastWeights();
  void PushCasts(const WeightCasts& casts);
  void CastWeightsAgain();
  // `read`: bytes of an element of what is normed.
  void NormForward(int64_t rows, int64_t width, int64_t read);
  void RmsNormForward(int64_t rows, int64_t width, int64_t read);
  void LayerNormForward(int64_t rows) { NormForward(rows, a_.hidden, wide_); }
  int64_t NormWidth(int64_t read) const;
  using NormPass = void (PassKernels::*)(int64_t, int64_t, int64_t);
  void HeadNorms(NormPass pass, int64_t query_tokens, int64_t key_tokens);
  struct Rotated {
    int64_t queries = 0;  // elements
    int64_t keys = 0;
    int64_t read = 0;  // bytes of one
    int64_t written = 0;
  };
  Rotated RotatedElements(const AttentionShape& shape,
                          int64_t query_tokens,
                          int64_t key_tokens) const;
  bool Rotates(const AttentionShape& shape) const {
    return a_.position_kind == PositionKind::kRotary && shape.positions;
  }
  int64_t RotatedWidth(const AttentionShape& shape) const;
  void RotaryForward(const AttentionShape& shape,
                     int64_t query_tokens,
                     int64_t key_tokens);
  void CastRotated(const AttentionShape& shape, int64_t elements);
  void Dequantise(int64_t elements);
  void DequantiseByOperations(int64_t elements);
  void DequantiseAgain(int64_t elements);
  void BlockGemm(KernelName name, int64_t m, int64_t n, int64_t k);
  void CastToFp8(KernelName name, int64_t elements);
  enum class Reads { kWeights, kGradient };
  void ReadFp8(Reads second);
  void LatentProjections(const AttentionShape& shape, int64_t tokens);
  void GeluByOperations(int64_t elements);
  void ActivationAlone(KernelName name, int64_t elements);
  void GatedActivation(int64_t elements);
  void DropActivation(int64_t elements);
  void ActivationForward(int64_t elements);
  void DenseForward(int64_t tokens);
  void ExpertsForward(int64_t tokens);
  void SharedExpertForward(int64_t tokens);
  Routed RoutedRows(int64_t tokens) const;
  void ExpertGemm(KernelName name, const Routed& r, int64_t n, int64_t k);
  void RoutingForward(const Routed& r, int64_t tokens);
  void GatherRows(const Routed& r);
  void AddRows(const Routed& r, int64_t tokens);
  void CastOperand(int64_t elements);
  void Dropout(int64_t elements, int64_t width);
  void LayerForward(const LayerGroup& group, int64_t tokens);
  void DecoderLayerForward();
  LayerGroup NextTokenGroup() const {
    return {a_.next_token_blocks, a_.experts > 0};
  }
  void NextTokenInputForward();
  void ProjectionsForward(Attends attends,
                          const AttentionShape& shape,
                          int64_t query_tokens,
                          int64_t key_tokens);
  void AttentionForward(Attends attends,
                        const AttentionShape& shape,
                        int64_t query_tokens,
                        int64_t key_tokens);
  void AttentionCoreForward(const AttentionShape& shape,
                            int64_t queries,
                            int64_t keys);
  bool CopiesHeads() const;
  void FlashAttentionForward(const AttentionShape& shape);
  void CopyHeads(const AttentionShape& shape, int64_t queries, int64_t keys);
  void SoftmaxForward(const AttentionShape& shape);
  void MaterialisedAttentionForward(const AttentionShape& shape,
                                    int64_t queries,
                                    int64_t keys);
  void ResidualAndNormForward(int64_t tokens);
  void FeedForwardForward(int64_t tokens, bool experts = false);
  bool VocabularyHead() const;
  int64_t PredictedTokens() const;
  void HeadForward();
  // The norm behind the last block has no residual to go with, unless the first
  // block does without: each block has two of them, and one is left over.
  bool NormOfItsOwn() const { return a_.closing_norm() && a_.first_norm; }
  void HeadTransformForward(int64_t rows, int64_t width);
  void VocabularyForward(int64_t rows);
  void Loss(int64_t rows, int64_t classes);
  bool ChunkedLoss() const;
  void ChunkedVocabulary(int64_t rows);
  bool TwoKernelLoss() const;
  bool FusedLoss(int64_t classes) const;
  int64_t FusedLossWidth() const;
  bool OneKernelCriterion() const;

  // backward_kernels.cc
  void Backward();
  // Blocks from `first` up to `end`; `again`: after one more forward pass.
  void BlocksBackward(int64_t first, int64_t end, bool again);
  void OperationsAgain(const LayerGroup& group);
  // `core_again`: after attention's core has run once more.
  void LayerBackward(const LayerGroup& group, bool core_again);
  enum class Input { kAsItIs, kNarrowed };
  void LinearBackward(Matrix matrix,
                      int64_t m,
                      int64_t n,
                      int64_t k,
                      bool bias = true,
                      Input input = Input::kAsItIs);
  void WidenGradient(int64_t elements);
  void NarrowGradient(int64_t elements);
  void WidenParameterGradient(int64_t elements);
  void AddPartialSums(int64_t sums);
  void NormBackward(int64_t rows, int64_t width, int64_t read);
  void RmsNormBackward(int64_t rows, int64_t width, int64_t read);
  void LayerNormBackward(int64_t rows) { NormBackward(rows, a_.hidden, wide_); }
  void RotaryBackward(const AttentionShape& shape,
                      int64_t query_tokens,
                      int64_t key_tokens);
  void WidenRotatedGradient(const AttentionShape& shape, int64_t elements);
  void SumRepeatedHeads(const AttentionShape& shape);
  void LatentBackward(const AttentionShape& shape, int64_t tokens);
  void GeluByOperationsBackward(int64_t elements);
  void ActivationAloneBackward(KernelName name, int64_t elements);
  void GatedActivationBackward(int64_t elements);
  void DenseBackward(int64_t tokens);
  void GatedInputsBackward(int64_t tokens, bool bias);
  void ExpertsBackward(int64_t tokens);
  void GatherRowGradients(const Routed& r);
  void AddRowGradients(const Routed& r, int64_t tokens);
  void SharedExpertBackward(int64_t tokens);
  void DropoutBackward(int64_t elements, int64_t width);
  void ResidualAndNormBackward(int64_t tokens);
  void ResidualGradientAdd(int64_t tokens);
  void FeedForwardBackward(int64_t tokens, bool experts = false);
  void FlashAttentionBackward(const AttentionShape& shape);
  void ProjectionsBackward(Attends attends,
                           const AttentionShape& shape,
                           int64_t query_tokens,
                           int64_t key_tokens);
  void AttentionBackward(Attends attends,
                         const AttentionShape& shape,
                         int64_t query_tokens,
                         int64_t key_tokens);
  int64_t WidthOf(Matrix matrix) const;
  void MergedLinearBackward(std::span<const Matrix> matrices,
                            int64_t tokens,
                            bool bias);
  void SoftmaxBackward(const AttentionShape& shape);
  void MaterialisedAttentionBackward(const AttentionShape& shape);
  void HeadBackward();
  void HeadTransformBackward(Matrix matrix, int64_t rows, int64_t width);
  void VocabularyBackward(int64_t rows);
  void NextTokenBackward();
  void ScatterFirstTokens();
  void LossBackward(int64_t rows, int64_t classes);
  void EmbeddingsBackward(int64_t tokens);
  void AddTiedGradient();
  void PositionBiasBackward(int64_t length);
  void TableGradient(int64_t rows, int64_t tokens, int64_t width);
  void AddWeightGradient(KernelName name, int64_t elements);

  const Workload& w_;
  const Architecture& a_;
  const StackRules& rules_;
  const int64_t element_;  // bytes of a matrix-product operand
  const int64_t wide_;     // bytes of a LayerNorm or softmax result
  const bool autocast_;
  const bool casts_weights_;
  const bool fp8_;  // the operands of the blocks' products
  const bool dropout_;
  KernelList list_;
};

}  // namespace trainfare::model::internal
