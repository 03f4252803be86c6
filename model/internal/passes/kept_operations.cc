#include "model/internal/passes/kept_operations.h"

#include <vector>

namespace trainfare::model::internal {
namespace {

bool IsCounted(const Kernel& kernel) {
  return kernel.kind == KernelKind::kGemm && kernel.name != "router";
}

// Products in the order in which they are launched. Those of experts in turn
// stand side by side in the list, each as often as there are experts, and are
// launched expert by expert.
struct Turn {
  std::vector<size_t> kernels;
  int64_t times = 1;
};

std::vector<Turn> TurnsOf(const KernelList& list, size_t first) {
  std::vector<Turn> turns;
  for (size_t i = first; i < list.kernels.size(); ++i) {
    const Kernel& kernel = list.kernels[i];
    if (!IsCounted(kernel)) continue;
    const bool same = !turns.empty() && turns.back().times == kernel.launches;
    if (!same) turns.push_back({{}, kernel.launches});
    turns.back().kernels.push_back(i);
  }
  return turns;
}

// Calls `with` with every product, its number in the list, and how many of its
// launches are kept: those before which an even number of products ran.
template <class With>
void ForEachProduct(const KernelList& list, size_t first, const With& with) {
  int64_t before = 0;
  for (const Turn& turn : TurnsOf(list, first)) {
    const auto of_turn = static_cast<int64_t>(turn.kernels.size());
    for (const size_t number : turn.kernels) {
      int64_t kept = 0;
      for (int64_t time = 0; time < turn.times; ++time) {
        if ((before + time * of_turn) % 2 == 0) ++kept;
      }
      with(number, kept);
      ++before;
    }
    before += of_turn * (turn.times - 1);
  }
}

}  // namespace

void LeaveOutKept(KernelList& list, size_t first) {
  ForEachProduct(list, first, [&](size_t number, int64_t kept) {
    list.kernels[number].launches -= kept;
  });
  std::vector<Kernel>& kernels = list.kernels;
  // Not std::remove_if, which may copy its predicate.
  auto end = kernels.begin() + static_cast<ptrdiff_t>(first);
  for (auto at = end; at != kernels.end(); ++at) {
    const bool kept = at->launches == 0 || at->kind == KernelKind::kAttention;
    if (!kept) *end++ = *at;
  }
  kernels.erase(end, kernels.end());
}

int64_t KeptResultBytes(const KernelList& forward, int64_t element) {
  int64_t bytes = 0;
  ForEachProduct(forward, 0, [&](size_t number, int64_t kept) {
    const GemmExtents& extents = forward.kernels[number].gemm;
    bytes += kept * extents.m * extents.n * element;
  });
  return bytes;
}

}  // namespace trainfare::model::internal
