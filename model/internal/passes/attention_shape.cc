#include "model/internal/passes/attention_shape.h"

#include <algorithm>

namespace trainfare::model::internal {
namespace {

// Pairs of a query and a key at or before it within so many positions.
int64_t CausalPairs(int64_t positions) {
  return positions * (positions + 1) / 2;
}

// The same where a query sees `window` keys, or those of its chunk.
int64_t CausalPairsWithin(int64_t window, bool chunked, int64_t positions) {
  if (positions <= window) return CausalPairs(positions);
  if (chunked) {
    return positions / window * CausalPairs(window) +
           CausalPairs(positions % window);
  }
  return CausalPairs(window) + (positions - window) * window;
}

// Pairs within so many positions to either side, of which those at the ends of
// a sequence have fewer.
int64_t TwoSidedPairsWithin(int64_t reach, int64_t positions) {
  reach = std::min(reach, positions);
  return positions * (2 * reach + 1) - reach * (reach + 1);
}

}  // namespace

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
                       length * w.part.context,
                       a.query_head_size(),
                       a.key_heads(),
                       a.context_head_size(),
                       0,
                       positions};
  shape.seen = PairsSeen(w, length, windowed);
  return shape;
}

int64_t PairsSeen(const Workload& w, int64_t length, bool windowed) {
  const Architecture& a = w.architecture;
  const int64_t document =
      std::max<int64_t>(1, length * w.part.context / w.documents);
  int64_t seen = document * document;
  if (a.family == Family::kDecoder) {
    seen = windowed ? CausalPairsWithin(a.window, a.chunked_window, document)
                    : CausalPairs(document);
  } else if (windowed) {
    seen = TwoSidedPairsWithin(a.window / 2, document);
  }
  return CeilDivide(seen * w.documents, w.part.context);
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
