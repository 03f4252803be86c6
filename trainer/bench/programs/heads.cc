#include "trainer/bench/programs/programs.h"
#include "trainer/network/gated_block.h"
#include "trainer/network/rotary.h"

namespace trainfare::trainer::programs {
namespace {

// Queries and keys of one block, (B, heads, T, head size).
struct RotatedHeads {
  at::Tensor queries;
  at::Tensor keys;
  RotaryTable table;
};
RotatedHeads HeadsToRotate(const Setting& s) {
  const model::Architecture& a = s.architecture();
  const int64_t size = a.query_head_size();
  const int64_t length = s.workload.sequence_length;
  const auto heads = [&](int64_t count) {
    return s.Wide({s.workload.batch, count, length, size});
  };
  return {heads(a.heads),
          heads(a.key_heads()),
          MakeRotaryTable(RotaryOptions(),
                          size,
                          length,
                          at::TensorOptions(s.wide).device(s.device))};
}

// Keys or values of one block, as often side by side as queries want them.
at::Tensor HeadsToRepeat(const Setting& s, int64_t elements) {
  const int64_t keys = s.architecture().key_heads();
  const int64_t length = s.workload.sequence_length;
  return s.Wide({s.workload.batch,
                 keys,
                 length,
                 elements / (s.workload.batch * keys * length)});
}
int64_t QueriesOfKey(const Setting& s) {
  return s.architecture().heads / s.architecture().key_heads();
}

}  // namespace

Program RotaryForward(const Setting& s) {
  return [heads = HeadsToRotate(s)](int64_t) {
    Rotate(heads.keys, heads.table);
    return Rotate(heads.queries, heads.table);
  };
}
Program RotaryGradient(const Setting& s) {
  const RotatedHeads heads = HeadsToRotate(s);
  return BackwardOfAll({heads.queries, heads.keys}, [&] {
    return std::vector<at::Tensor>{Rotate(heads.queries, heads.table),
                                   Rotate(heads.keys, heads.table)};
  });
}

Program RepeatForward(const Setting& s) {
  const int64_t times = QueriesOfKey(s);
  return [heads = HeadsToRepeat(s, s.kernel().work_items / times),
          times](int64_t) { return RepeatHeads(heads, times); };
}
Program RepeatGradient(const Setting& s) {
  const int64_t times = QueriesOfKey(s);
  const at::Tensor heads = HeadsToRepeat(s, s.kernel().work_items);
  return [gradient =
              RepeatHeads(heads, times).unflatten(1, {heads.size(1), times})](
             int64_t) { return gradient.sum(2); };
}

}  // namespace trainfare::trainer::programs
