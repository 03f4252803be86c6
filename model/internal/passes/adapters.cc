#include "model/internal/passes/adapters.h"

#include "model/element_widths.h"
#include "model/frozen_base.h"
#include "model/rounding.h"
#include "model/trainable.h"

namespace trainfare::model::internal {
namespace {

// PEFT widens what an adapter in fp32 takes, and autocast narrows it for the
// product; the gradient goes back through both. Dropout, where there is any, is
// between them, as wide as the adapter: `drop` of so many bytes an element.
template <class Drop>
void AdapterInput(Pass& pass,
                  Matrix matrix,
                  int64_t elements,
                  const Drop& drop) {
  const Workload& w = pass.workload;
  if (!AdapterTakesInput(w, matrix)) return;
  const bool widens = WidensAdapterInputs(w);
  if (widens) {
    pass.Copy("cast adapter input", elements, pass.element, kSingle);
  }
  if (DropsAdapterInputs(w)) {
    drop(pass, elements, widens || pass.autocast ? kSingle : pass.element);
  }
  if (widens) {
    pass.Copy("cast adapter input", elements, kSingle, pass.element);
  }
}

// What makes the tensor is a compiler's to write dropped out, too: nothing is
// read for it.
void DropInput(Pass& pass, int64_t elements, int64_t width) {
  pass.Elementwise("dropout",
                   elements,
                   pass.Compiled() ? 0 : width,
                   (pass.Compiled() ? pass.element : width) + kMaskBytes,
                   kDropoutFlops,
                   0,
                   1);
}

// A compiler drops out once more what A's gradient reads, and X's gradient in
// the pass that adds it up, as of scores (model/internal/block_activations.cc).
void DropInputBackward(Pass& pass, int64_t elements, int64_t width) {
  const int64_t times = pass.Compiled() ? 2 : 1;
  const int64_t moved = pass.Compiled() ? pass.element : width;
  pass.Elementwise("dropout gradient",
                   elements,
                   moved + times * kMaskBytes,
                   moved,
                   times * kDropoutFlops);
}

// What the adapter beside this matrix of `n` outputs makes: all that the joint
// matrix does which it stands for.
int64_t OutputsOf(const Workload& w, Matrix matrix, int64_t n) {
  const Architecture& a = w.architecture;
  if (matrix == Matrix::kQuery && OneAdapterOfProjections(w)) {
    return a.projections_width();
  }
  return matrix == Matrix::kFeedForwardGate && OneAdapterOfGate(w) ? 2 * n : n;
}

// Words of 32 bits are shifted once for each number in them, narrowed and
// masked; zeros, of a group of 128, likewise and one more, which are taken off;
// scales multiply. Source: AutoGPTQ, nn_modules/qlinear/qlinear_cuda_old.py.
void DequantiseByOperations(Pass& pass, int64_t elements) {
  const Workload& w = pass.workload;
  constexpr KernelName kName = "dequantise weights";
  constexpr int64_t kWord = 4;
  constexpr int64_t kGroup = 128;
  const int64_t narrow = w.trainable.base_bits == 8 ? 2 : 1;
  const size_t first = pass.next();
  const auto unpack = [&](int64_t numbers) {
    pass.Elementwise(kName, numbers, 0, kWord, 1);
    pass.last().bytes_read = numbers * w.trainable.base_bits / 8;
    pass.Copy(kName, numbers, kWord, narrow);
    pass.Elementwise(kName, numbers, narrow, narrow, 1);
  };
  const int64_t groups = CeilDivide(elements, kGroup);
  unpack(groups);
  pass.Elementwise(kName, groups, narrow, narrow, 1);
  unpack(elements);
  pass.Elementwise(kName, elements, narrow, narrow, 1);
  pass.Elementwise(kName, elements, narrow, pass.element, 1);
  for (size_t i = first; i < pass.next(); ++i) {
    pass.list.kernels[i].parameter_bytes = pass.list.kernels[i].bytes();
  }
}

}  // namespace

void AdapterForward(
    Pass& pass, Matrix matrix, const Routed& r, int64_t outputs, int64_t k) {
  const Workload& w = pass.workload;
  if (!HasAdapter(w, matrix)) return;
  const int64_t rank = w.trainable.lora_rank;
  const int64_t n = OutputsOf(w, matrix, outputs);
  const int64_t rows = ExpertRows(pass, r);
  const size_t first = pass.next();
  AdapterInput(pass, matrix, rows * k, DropInput);
  GroupGemm(pass, "adapter down", r, rank, k);
  GroupGemm(pass, "adapter up", r, n, rank);
  if (!pass.Compiled()) {
    pass.Elementwise(
        "adapter add", rows * n, 2 * pass.element, pass.element, 2);
  }
  pass.RepeatSince(first, ExpertLaunches(pass, r));
}

void AdapterBackward(
    Pass& pass, Matrix matrix, const Routed& r, int64_t outputs, int64_t k) {
  const Workload& w = pass.workload;
  if (!HasAdapter(w, matrix)) return;
  const int64_t rank = w.trainable.lora_rank;
  const int64_t n = OutputsOf(w, matrix, outputs);
  const int64_t rows = ExpertRows(pass, r);
  const size_t first = pass.next();
  GroupWeightGradient(pass, "adapter up gradient", r, rank, n);
  GroupGemm(pass, "adapter inner gradient", r, rank, n);
  GroupWeightGradient(pass, "adapter down gradient", r, k, rank);
  GroupGemm(pass, "adapter input gradient", r, k, rank);
  AdapterInput(pass, matrix, rows * k, DropInputBackward);
  if (!pass.Compiled()) {
    pass.Elementwise(
        "adapter gradient add", rows * k, 2 * pass.element, pass.element, 1);
  }
  pass.RepeatSince(first, ExpertLaunches(pass, r));
}

void Dequantise(Pass& pass, int64_t elements) {
  const Workload& w = pass.workload;
  if (!WidensBase(w)) return;
  if (w.trainable.base_by_operations) {
    DequantiseByOperations(pass, elements);
    return;
  }
  Kernel& kernel =
      pass.Push("dequantise weights", KernelKind::kElementwise, elements);
  kernel.vector_flops = 2 * elements;  // a table's value, its group's scale
  kernel.bytes_read = BaseBytes(w, elements);
  kernel.bytes_written = elements * pass.element;
  kernel.parameter_bytes = kernel.bytes();
}

void DequantiseAgain(Pass& pass, int64_t elements) {
  const Workload& w = pass.workload;
  if (!w.trainable.base_by_operations) Dequantise(pass, elements);
}

}  // namespace trainfare::model::internal
