#include "model/internal/passes/positions.h"

#include "model/internal/passes/casts.h"
#include "model/internal/passes/norms.h"

namespace trainfare::model::internal {
namespace {

// From a pair of positions to its bucket, an operation at a time
// (_relative_position_bucket of Transformers' modeling_t5.py).
constexpr int64_t kBucketLaunches = 18;

struct RotaryExtents {
  int64_t queries = 0;  // elements
  int64_t keys = 0;
  int64_t read = 0;  // bytes of one
  int64_t written = 0;
};

// Elements of queries and keys that carry a position.
RotaryExtents RotatedElements(const Pass& pass,
                              const AttentionShape& shape,
                              int64_t query_tokens,
                              int64_t key_tokens) {
  const Architecture& a = pass.architecture;
  const int64_t size =
      a.rotary_head_size > 0 ? a.rotary_head_size : a.query_head_size();
  const int64_t key_heads = a.latent() ? 1 : a.key_heads();
  RotaryExtents rotated;
  rotated.queries = query_tokens * a.heads * size;
  rotated.keys = a.borrows_keys() ? 0 : key_tokens * key_heads * size;
  // Behind norms queries and keys are as these leave them; Llama 4's stand
  // behind it.
  const bool normed = a.query_key_norm != QueryKeyNorm::kNone &&
                      a.query_key_norm != QueryKeyNorm::kRotated;
  rotated.read = normed ? NormWidth(pass, pass.element) : pass.element;
  rotated.written = RotatedWidth(pass, shape);
  return rotated;
}

}  // namespace

int64_t RotatedWidth(const Pass& pass, const AttentionShape& shape) {
  const bool wide =
      pass.autocast && Rotates(pass, shape) && !pass.rules.fuses_positions;
  return wide ? 4 : pass.element;
}

void RotaryForward(Pass& pass,
                   const AttentionShape& shape,
                   int64_t query_tokens,
                   int64_t key_tokens) {
  if (!Rotates(pass, shape)) return;
  constexpr KernelName kName = "rotary positions";
  const RotaryExtents r =
      RotatedElements(pass, shape, query_tokens, key_tokens);
  if (pass.rules.fuses_positions) {
    pass.Elementwise(
        kName, r.queries + r.keys, r.read, r.written, kRotaryFlops);
    return;
  }
  for (const int64_t elements : {r.queries, r.keys}) {
    if (elements == 0) continue;
    pass.Elementwise(kName, elements, r.read, r.written, 1);
    pass.Elementwise(kName, elements / 2, r.read, r.read, 1);
    pass.Copy(kName, elements, r.read, r.read);
    pass.Elementwise(kName, elements, r.read, r.written, 1);
    pass.Elementwise(kName, elements, 2 * r.written, r.written, 1);
  }
}

void RotaryBackward(Pass& pass,
                    const AttentionShape& shape,
                    int64_t query_tokens,
                    int64_t key_tokens) {
  if (!Rotates(pass, shape)) return;
  constexpr KernelName kName = "rotary gradient";
  const RotaryExtents r =
      RotatedElements(pass, shape, query_tokens, key_tokens);
  if (pass.rules.fuses_positions) {
    pass.Elementwise(
        kName, r.queries + r.keys, r.written, r.read, kRotaryFlops);
    return;
  }
  const auto times_table = [&](int64_t elements) {
    pass.Elementwise(kName, elements, r.written, r.written, 1);
    if (r.read < r.written) NarrowGradient(pass, elements);
  };
  for (const int64_t elements : {r.queries, r.keys}) {
    if (elements == 0) continue;
    times_table(elements);
    pass.Elementwise(kName, elements / 2, r.read, r.read, 1);
    for (int half = 0; half < 2; ++half) {
      pass.Elementwise(kName, elements, 0, r.read, 0);
      pass.Copy(kName, elements / 2, r.read, r.read);
    }
    times_table(elements);
    pass.Elementwise(kName, elements, 2 * r.read, r.read, 1);
    pass.Elementwise(kName, elements, 2 * r.read, r.read, 1);
  }
}

void CastRotated(Pass& pass, const AttentionShape& shape, int64_t elements) {
  if (RotatedWidth(pass, shape) > pass.element) CastOperand(pass, elements);
}

void WidenRotatedGradient(Pass& pass,
                          const AttentionShape& shape,
                          int64_t elements) {
  if (RotatedWidth(pass, shape) > pass.element) WidenGradient(pass, elements);
}

void PositionBiasForward(Pass& pass, int64_t length) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  if (a.position_kind != PositionKind::kRelative) return;
  const int64_t pairs = length * length * w.part.context;
  const int64_t width = pass.EagerOutside() ? 4 : pass.element;
  pass.Elementwise("position bias", pairs, kIndexBytes, kIndexBytes, 1);
  if (pass.EagerOutside()) pass.last().launches = kBucketLaunches;
  Kernel& gather =
      pass.Push("embedding gather", KernelKind::kEmbedding, pairs * a.heads);
  gather.bytes_read = pairs * (kIndexBytes + a.heads * 4);
  gather.bytes_written = pairs * a.heads * width;
  if (pass.EagerOutside()) {
    pass.Elementwise(
        "position bias", w.batch * pairs * a.heads, 4, pass.wide, 1);
  }
}

void PositionBiasBackward(Pass& pass, int64_t length) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  if (a.position_kind != PositionKind::kRelative) return;
  const int64_t pairs = length * length * w.part.context;
  const int64_t biases = pairs * a.heads;
  pass.Reduction("position bias gradient",
                 biases,
                 w.batch * biases,
                 pass.EagerOutside() ? pass.wide : pass.element,
                 0,
                 1);
  pass.last().bytes_written = biases * 4;
  Kernel& kernel = pass.Push("table gradient", KernelKind::kEmbedding, biases);
  kernel.vector_flops = biases;
  kernel.bytes_read = 2 * biases * 4 + pairs * kIndexBytes;
  kernel.bytes_written = biases * 4;
}

}  // namespace trainfare::model::internal
