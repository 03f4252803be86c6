#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

Pass::Pass(const Workload& of)
    : workload(of),
      architecture(of.architecture),
      rules(RulesOf(of)),
      experts(ExpertsOf(of)),
      element(Widths(of).element),
      wide(Widths(of).wide),
      autocast(Autocasts(of)),
      casts_weights(CastsWeights(of)),
      dropout(of.architecture.dropout > 0 && of.work != Work::kForward),
      narrows_operands(NarrowsOperands(of.precision)) {
  list.kernels.reserve(128);
  list.segments.reserve(12);
}

void Pass::Open(Phase phase, SegmentRole role, int64_t repeat) {
  Segment segment;
  segment.phase = phase;
  segment.role = role;
  segment.repeat = repeat;
  segment.begin = static_cast<int64_t>(next());
  list.segments.push_back(segment);
}

void Pass::Close() { list.segments.back().end = static_cast<int64_t>(next()); }

Kernel& Pass::Push(KernelName name, KernelKind kind, int64_t work_items) {
  Kernel& kernel = list.kernels.emplace_back();
  kernel.name = name;
  kernel.kind = kind;
  kernel.work_items = work_items;
  return kernel;
}

// C (m, n) = A (m, k) B (k, n).
void Pass::Gemm(
    KernelName name, int64_t m, int64_t n, int64_t k, int64_t batch) {
  Kernel& kernel =
      Push(name,
           batch == 1 ? KernelKind::kGemm : KernelKind::kBatchedGemm,
           batch * m * n);
  kernel.gemm = {batch, m, n, k};
  kernel.matrix_flops = 2 * batch * m * n * k;
  kernel.bytes_read = batch * (m * k + k * n) * element;
  kernel.bytes_written = batch * m * n * element;
  if (batch == 1) kernel.parameter_bytes = k * n * element;
}

void Pass::Elementwise(KernelName name,
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

void Pass::Copy(KernelName name,
                int64_t elements,
                int64_t read_bytes,
                int64_t written_bytes) {
  Kernel& kernel = Push(name, KernelKind::kCopy, elements);
  kernel.bytes_read = read_bytes * elements;
  kernel.bytes_written = written_bytes * elements;
}

void Pass::Reduction(KernelName name,
                     int64_t rows,
                     int64_t elements,
                     int64_t read_bytes,
                     int64_t written_bytes,
                     int64_t flops,
                     int64_t special,
                     int64_t random) {
  Elementwise(
      name, elements, read_bytes, written_bytes, flops, special, random);
  last().kind = KernelKind::kReduction;
  last().work_items = rows;
}

// Adds the partial sums that the trainer's fused kernels leave.
void Pass::AddPartialSums(int64_t sums) {
  Reduction("add partial sums", sums, sums * kPartialSums, 4, 0, 1);
  last().bytes_written = sums * 4;
}

// Each of the kernels from number `first` on is launched so many times as
// often.
void Pass::RepeatSince(size_t first, int64_t times) {
  for (size_t i = first; i < next(); ++i) {
    list.kernels[i].launches *= times;
  }
}

}  // namespace trainfare::model::internal
