#pragma once

// Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon), as
// torch.optim.Muon runs it, a tensor at a time: the momentum of each matrix of
// the blocks is made orthogonal by five Newton-Schulz iterations in bf16. Of a
// matrix of m x n, m <= n:
//
//   X = U / |U|            U = g + mu (m - g)
//   A = X X^T              2 m^2 n FLOPs
//   B = b A + c A A        2 m^3
//   X = a X + B X          2 m^2 n          five times these three
//   p = (1 - lr wd) p - lr X
//
// What is no matrix of a block (embeddings, head, norms, biases) has AdamW.
//
// Ranks that share the state make each matrix orthogonal whole, on one of them,
// the costliest first on whoever has the least so far. Under zero1 and zero2
// that rank has its momentum and updates it, and parameters are gathered as
// with any optimizer; where parameters are divided too all ranks keep shards of
// the momentum, send them to it in bf16, and get their shards of X back.
// Sources: NVIDIA/Megatron-LM pull requests 4509 (no matrix is divided, sums
// and gathers as of any optimizer) and 6683 (whose matrices are whose, shards
// to it and back); Liu et al. 2025 (arXiv 2502.16982), section 2.3 (bf16).
// Check: tests/model/optimizers_test.cc, docs/models/counts.md.

#include <cstdint>
#include <map>
#include <vector>

#include "model/kernel_list.h"
#include "model/workload.h"

namespace trainfare::model {

inline constexpr int64_t kNewtonSchulzIterations = 5;

// The sides of a matrix of m x n, m <= n.
struct MatrixShape {
  int64_t short_side = 0;
  int64_t long_side = 0;
  bool operator<(const MatrixShape& other) const {
    return short_side < other.short_side ||
           (short_side == other.short_side && long_side < other.long_side);
  }
};

// The matrices that Muon updates, and what it leaves to AdamW.
struct MuonParts {
  std::map<MatrixShape, int64_t> matrices;  // how many of each
  int64_t matrix_count = 0;
  int64_t matrix_elements = 0;
  int64_t other_tensors = 0;
  int64_t other_elements = 0;
  int64_t largest_other = 0;
};
MuonParts MuonPartsOf(const Workload& workload);

// So many matrices, or shards of them.
struct MatrixSet {
  int64_t count = 0;
  int64_t elements = 0;
};

// What the rank with the most work has of these matrices.
struct MuonShare {
  std::map<MatrixShape, int64_t> orthogonalised;  // whole, how many of each
  MatrixSet whole;                                // these
  MatrixSet kept;  // whose momentum and parameters it updates
};
MuonShare MuonShareOf(const Workload& workload, const MuonParts& parts);

// Whether its products are narrower than those of the step: they are in bf16
// whatever the model is in.
bool MuonNarrows(const Workload& workload);

// Bytes of all matrices as ranks that keep shards of them send them, each to
// one rank, and then back. 0: they keep them whole.
int64_t MuonExchangedBytes(const Workload& workload);

// Bytes that the update of a matrix makes and drops: its update, and the same
// narrow before and after an iteration.
int64_t MuonTemporaries(const Workload& workload, const MuonParts& parts);

// The update of these matrices alone.
void AppendMuonKernels(const Workload& workload,
                       const MuonParts& parts,
                       std::vector<Kernel>& kernels);

}  // namespace trainfare::model
