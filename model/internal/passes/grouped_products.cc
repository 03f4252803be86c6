#include "model/internal/passes/grouped_products.h"

namespace trainfare::model::internal {
namespace {

bool GroupedExperts(const Pass& pass) {
  return pass.experts == ExpertKernels::kGrouped;
}

}  // namespace

int64_t ExpertLaunches(const Pass& pass, const Routed& r) {
  return GroupedExperts(pass) ? 1 : r.groups;
}
int64_t ExpertRows(const Pass& pass, const Routed& r) {
  return GroupedExperts(pass) ? r.rows : r.each;
}
int64_t SideBySide(const Pass& pass, const Routed& r) {
  return GroupedExperts(pass) ? r.groups : 1;
}

void GroupGemm(
    Pass& pass, KernelName name, const Routed& r, int64_t n, int64_t k) {
  const int64_t groups = SideBySide(pass, r);
  pass.Gemm(name, r.each, n, k, groups);
  pass.last().parameter_bytes = groups * n * k * pass.element;
}

void GroupWeightGradient(
    Pass& pass, KernelName name, const Routed& r, int64_t k, int64_t n) {
  const int64_t groups = SideBySide(pass, r);
  pass.Gemm(name, k, n, r.each, groups);
  pass.last().parameter_bytes = groups * k * n * pass.element;
  pass.last().parameter_bytes_written = groups * k * n * pass.element;
}

}  // namespace trainfare::model::internal
