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
};
MuonParts MuonPartsOf(const Workload& workload);

// The update of these matrices alone.
void AppendMuonKernels(const Workload& workload,
                       const MuonParts& parts,
                       std::vector<Kernel>& kernels);

}  // namespace trainfare::model
