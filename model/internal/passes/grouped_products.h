#pragma once

// Products of rows in groups, each by a matrix of its own: those of experts, and
// those of one group, which are all others.

#include <cstdint>

#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// Rows of experts, each of which has a product of its own.
struct Routed {
  int64_t rows;    // of all experts that are asked
  int64_t groups;  // experts
  int64_t each;    // rows of one, balanced
};
inline Routed OneGroup(int64_t rows) { return {rows, 1, rows}; }

// How often a kernel of experts is launched, over how many of their rows, and
// of how many experts it has the products side by side.
int64_t ExpertLaunches(const Pass& pass, const Routed& r);
int64_t ExpertRows(const Pass& pass, const Routed& r);
int64_t SideBySide(const Pass& pass, const Routed& r);

// A product for each group, by a matrix of its own: side by side in one kernel,
// or that of one group.
void GroupGemm(
    Pass& pass, KernelName name, const Routed& r, int64_t n, int64_t k);

// W (k, n) = X^T (k, rows) Y (rows, n) of each group.
void GroupWeightGradient(
    Pass& pass, KernelName name, const Routed& r, int64_t k, int64_t n);

// The same of one group.
inline void WeightGradientGemm(
    Pass& pass, KernelName name, int64_t k, int64_t n, int64_t m) {
  GroupWeightGradient(pass, name, OneGroup(m), k, n);
}

}  // namespace trainfare::model::internal
