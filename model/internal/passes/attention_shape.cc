#include "model/internal/passes/attention_shape.h"

#include <algorithm>

namespace trainfare::model::internal {

bool Biased(const Pass& pass, const AttentionShape& shape) {
  return pass.architecture.position_kind == PositionKind::kRelative &&
         shape.positions;
}

bool BiasTrains(const Pass& pass, const AttentionShape& shape) {
  return Biased(pass, shape) && pass.workload.trainable.everything();
}

bool Rotates(const Pass& pass, const AttentionShape& shape) {
  return pass.architecture.position_kind == PositionKind::kRotary &&
         shape.positions;
}

AttentionShape SelfAttention(const Pass& pass,
                             int64_t length,
                             bool windowed,
                             bool positions) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  AttentionShape shape{w.batch,
                       a.heads,
                       length,
                       length,
                       a.query_head_size(),
                       a.key_heads(),
                       a.context_head_size(),
                       0,
                       positions};
  const int64_t document = std::max<int64_t>(1, length / w.documents);
  int64_t seen = document * document;
  if (a.family == Family::kDecoder) {
    const int64_t window = windowed ? std::min(a.window, document) : document;
    seen = window * (window + 1) / 2 + (document - window) * window;
  } else if (windowed) {
    // To both sides.
    seen = document * std::min(document, 2 * (a.window / 2) + 1);
  }
  shape.seen = seen * w.documents;
  return shape;
}

AttentionShape CrossAttention(const Pass& pass) {
  const Workload& w = pass.workload;
  const Architecture& a = pass.architecture;
  return {w.batch,
          a.heads,
          w.decoder_length(),
          w.sequence_length,
          a.query_head_size(),
          a.key_heads(),
          a.context_head_size(),
          w.decoder_length() * w.sequence_length,
          /*positions=*/false};
}

}  // namespace trainfare::model::internal
