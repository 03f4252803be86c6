#include <vector>

#include "trainer/bench/programs/programs.h"

namespace trainfare::trainer::programs {
namespace {

at::Tensor RandomRows(const Setting& s, int64_t rows, int64_t below) {
  return at::randint(below, {rows}, at::kLong).to(s.device);
}

}  // namespace

Program Gather(const Setting& s) {
  const int64_t hidden = s.architecture().hidden;
  const int64_t tokens = s.kernel().work_items / hidden;
  const int64_t vocabulary = s.architecture().vocabulary;
  // Other tokens at every call, as at every step.
  std::vector<at::Tensor> ids;
  constexpr int kBatches = 16;
  for (int i = 0; i < kBatches; ++i) {
    ids.push_back(RandomRows(s, tokens, vocabulary));
  }
  return [ids, table = s.Wide({vocabulary, hidden})](int64_t call) {
    return at::embedding(table, ids[static_cast<size_t>(call) % ids.size()]);
  };
}
// Zeroing the table's gradient and adding rows to it are one operation.
Program TableGradient(const Setting& s) {
  const int64_t hidden = s.architecture().hidden;
  const int64_t rows = s.kernel().work_items / hidden;
  const int64_t tokens = s.operation.kernels.back().work_items / hidden;
  return [ids = RandomRows(s, tokens, rows),
          gradient = s.Wide({tokens, hidden}),
          rows](int64_t) {
    return at::embedding_dense_backward(gradient, ids, rows, -1, false);
  };
}

}  // namespace trainfare::trainer::programs
