#include "model/internal/pass_kernels.h"

#include <algorithm>
#include <utility>

#include "model/error.h"
#include "model/gradient_compression.h"
#include "model/optimizer_kernels.h"

namespace trainfare::model::internal {

KernelList PassKernels::Expand() {
  Forward();
  if (w_.work != Work::kForward) Backward();
  if (w_.work == Work::kTraining && w_.parallel.offload == Offload::kNone) {
    if (w_.compression.kind != CompressionKind::kNone) {
      Open(Phase::kOptimizer, SegmentRole::kCompression, 1);
      AppendCompressionKernels(w_, list_.kernels);
      Close();
    }
    Open(Phase::kOptimizer, SegmentRole::kOptimizer, 1);
    AppendOptimizerKernels(w_, list_.kernels);
    Close();
  }
  return std::move(list_);
}

int64_t PassKernels::TargetLength() const {
  return w_.target_length > 0 ? w_.target_length : w_.sequence_length;
}

// Whether one product makes queries, keys and values.
bool PassKernels::Joint(Attends attends) const {
  return attends == Attends::kSelf &&
         (rules_.joins_projections || a_.joint_projection());
}

int64_t PassKernels::HeadTokens() const {
  return w_.batch * (TwoSided() ? TargetLength() : w_.sequence_length);
}

void PassKernels::Open(Phase phase, SegmentRole role, int64_t repeat) {
  Segment segment;
  segment.phase = phase;
  segment.role = role;
  segment.repeat = repeat;
  segment.begin = static_cast<int64_t>(list_.kernels.size());
  list_.segments.push_back(segment);
}

void PassKernels::Close() {
  list_.segments.back().end = static_cast<int64_t>(list_.kernels.size());
}

Kernel& PassKernels::Push(KernelName name,
                          KernelKind kind,
                          int64_t work_items) {
  Kernel& kernel = list_.kernels.emplace_back();
  kernel.name = name;
  kernel.kind = kind;
  kernel.work_items = work_items;
  return kernel;
}

std::vector<LayerGroup> LayerGroupsOf(const Architecture& a,
                                      int64_t first,
                                      int64_t end) {
  // Which of the blocks have a window is not told: the first of each sort.
  const int64_t plain = a.layers - a.expert_layers();
  int64_t windowed = a.windowed_layers;
  int64_t unrotated = a.unrotated_layers;
  std::vector<LayerGroup> groups;
  int64_t at = 0;
  const auto add = [&](const LayerGroup& group) {
    const int64_t inside =
        std::min(at + group.count, end) - std::max(at, first);
    at += group.count;
    if (inside <= 0) return;
    groups.push_back(group);
    groups.back().count = inside;
  };
  const auto add_sorts = [&](int64_t count, bool experts) {
    const int64_t narrow = std::min(count, windowed);
    const int64_t bare = std::min(count - narrow, unrotated);
    windowed -= narrow;
    unrotated -= bare;
    add({narrow, experts, true, true});
    add({bare, experts, false, false});
    add({count - narrow - bare, experts, false, true});
  };
  add_sorts(plain, false);
  add_sorts(a.expert_layers(), true);
  return groups;
}

// C (m, n) = A (m, k) B (k, n).
void PassKernels::Gemm(
    KernelName name, int64_t m, int64_t n, int64_t k, int64_t batch) {
  Kernel& kernel =
      Push(name,
           batch == 1 ? KernelKind::kGemm : KernelKind::kBatchedGemm,
           batch * m * n);
  kernel.gemm = {batch, m, n, k};
  kernel.matrix_flops = 2 * batch * m * n * k;
  kernel.bytes_read = batch * (m * k + k * n) * element_;
  kernel.bytes_written = batch * m * n * element_;
  if (batch == 1) kernel.parameter_bytes = k * n * element_;
}

void PassKernels::Elementwise(KernelName name,
                              int64_t elements,
                              int64_t read_bytes,
                              int64_t written_bytes,
                              int64_t flops,
                              int64_t special,
                              int64_t random) {
  Kernel& kernel = Push(name, KernelKind::kElementwise, elements);
  kernel.vector_flops = flops * elements;
  kernel.special_ops = special * elements;
  kernel.random_draws = random * elements;
  kernel.bytes_read = read_bytes * elements;
  kernel.bytes_written = written_bytes * elements;
}

void PassKernels::Copy(KernelName name,
                       int64_t elements,
                       int64_t read_bytes,
                       int64_t written_bytes) {
  Kernel& kernel = Push(name, KernelKind::kCopy, elements);
  kernel.bytes_read = read_bytes * elements;
  kernel.bytes_written = written_bytes * elements;
}

void PassKernels::Reduction(KernelName name,
                            int64_t rows,
                            int64_t elements,
                            int64_t read_bytes,
                            int64_t written_bytes,
                            int64_t flops,
                            int64_t special,
                            int64_t random) {
  Elementwise(
      name, elements, read_bytes, written_bytes, flops, special, random);
  list_.kernels.back().kind = KernelKind::kReduction;
  list_.kernels.back().work_items = rows;
}

// Bias gradients: column sums of (rows, columns).
void PassKernels::BiasGradient(int64_t rows, int64_t columns) {
  Reduction("bias gradient", columns, rows * columns, element_, 0, 1);
  list_.kernels.back().bytes_written = columns * element_;
}

// Before CUDA 11.4 PyTorch lays a bias out as the result of its product,
// which adds to it.
void PassKernels::LaidOutBias(int64_t elements) {
  if (rules_.lays_out_bias)
    Elementwise("bias", elements, element_, element_, 1);
}

// The translation models that Fairseq and LightSeq2 are compared with drop out
// the activation, too (`transformer_wmt_en_de_big_t2t`: activation_dropout
// 0.1).
bool PassKernels::DropsActivation() const {
  return dropout_ &&
         (a_.drops_activation || (TwoSided() && rules_.drops_activation));
}

// Whether a weight has a gradient, in a block that has a backward pass.
bool PassKernels::Trains(Matrix matrix) const {
  if (w_.trainable.lora_rank > 0) {
    return matrix == Matrix::kTaskHead ||
           (matrix == Matrix::kVocabulary &&
            w_.trainable.embeddings_beside_adapters);
  }
  const bool of_tables =
      matrix == Matrix::kVocabulary || matrix == Matrix::kEmbeddings;
  return !of_tables || w_.trainable.everything();
}

bool PassKernels::HasAdapter(Matrix matrix) const {
  const LoraMatrices& m = w_.trainable.lora;
  if (w_.trainable.lora_rank == 0) return false;
  switch (matrix) {
    case Matrix::kQuery:
      return m.query;
    case Matrix::kKey:
      return m.key;
    case Matrix::kValue:
      return m.value;
    case Matrix::kQueryDown:
      return m.query_down;
    case Matrix::kQueryUp:
      return m.query_up;
    case Matrix::kKeyValueDown:
      return m.key_value_down;
    case Matrix::kKeyValueUp:
      return m.key_value_up;
    case Matrix::kOutput:
      return m.output;
    case Matrix::kFeedForwardGate:
      return m.feed_forward_gate;
    case Matrix::kFeedForwardIn:
      return m.feed_forward_in;
    case Matrix::kFeedForwardOut:
      return m.feed_forward_out;
    case Matrix::kNextToken:
    case Matrix::kPooler:
    case Matrix::kTaskHead:
    case Matrix::kVocabularyHead:
    case Matrix::kEmbeddings:
    case Matrix::kVocabulary:
      return false;
  }
  ENSURE(false, "a matrix without an answer");
}

// Each of the kernels from number `first` on is launched so many times as
// often.
void PassKernels::RepeatSince(size_t first, int64_t times) {
  for (size_t i = first; i < list_.kernels.size(); ++i) {
    list_.kernels[i].launches *= times;
  }
}

// A product for each group, by a matrix of its own: side by side in one kernel,
// or that of one group.
void PassKernels::GroupGemm(KernelName name,
                            const Routed& r,
                            int64_t n,
                            int64_t k) {
  const int64_t groups = SideBySide(r);
  Gemm(name, r.each, n, k, groups);
  list_.kernels.back().parameter_bytes = groups * n * k * element_;
}

// W (k, n) = X^T (k, rows) Y (rows, n) of each group.
void PassKernels::GroupWeightGradient(KernelName name,
                                      const Routed& r,
                                      int64_t k,
                                      int64_t n) {
  const int64_t groups = SideBySide(r);
  Gemm(name, k, n, r.each, groups);
  list_.kernels.back().parameter_bytes = groups * k * n * element_;
  list_.kernels.back().parameter_bytes_written = groups * k * n * element_;
}

// (X A) B s, added to X W: two thin products and a pass over the result,
// which a compiler fuses into the second.
void PassKernels::AdapterForward(Matrix matrix,
                                 const Routed& r,
                                 int64_t n,
                                 int64_t k) {
  if (!HasAdapter(matrix)) return;
  const int64_t rank = w_.trainable.lora_rank;
  const int64_t rows = ExpertRows(r);
  const size_t first = list_.kernels.size();
  WideAdapterInput(rows * k);
  GroupGemm("adapter down", r, rank, k);
  GroupGemm("adapter up", r, n, rank);
  if (!Compiled()) {
    Elementwise("adapter add", rows * n, 2 * element_, element_, 2);
  }
  RepeatSince(first, ExpertLaunches(r));
}

// PEFT widens what an adapter in fp32 takes, and autocast narrows it for the
// product; the gradient goes back through both (peft/tuners/lora/layer.py,
// _cast_input_dtype).
void PassKernels::WideAdapterInput(int64_t elements) {
  if (!w_.trainable.wide_adapters || element_ >= 4) return;
  Copy("cast adapter input", elements, element_, 4);
  Copy("cast adapter input", elements, 4, element_);
}

// The backward pass of the same: B's gradient, that of X A, A's gradient, and
// X's, added.
void PassKernels::AdapterBackward(Matrix matrix,
                                  const Routed& r,
                                  int64_t n,
                                  int64_t k) {
  if (!HasAdapter(matrix)) return;
  const int64_t rank = w_.trainable.lora_rank;
  const int64_t rows = ExpertRows(r);
  const size_t first = list_.kernels.size();
  GroupWeightGradient("adapter up gradient", r, rank, n);
  GroupGemm("adapter inner gradient", r, rank, n);
  GroupWeightGradient("adapter down gradient", r, k, rank);
  GroupGemm("adapter input gradient", r, k, rank);
  WideAdapterInput(rows * k);
  if (!Compiled()) {
    Elementwise("adapter gradient add", rows * k, 2 * element_, element_, 1);
  }
  RepeatSince(first, ExpertLaunches(r));
}

}  // namespace trainfare::model::internal
