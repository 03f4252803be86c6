#include "model/logits.h"

#include <algorithm>
#include <bit>

#include "model/error.h"
#include "model/rounding.h"
#include "model/stack_rules.h"

namespace trainfare::model {

Logits LogitsOf(const Workload& w) {
  const Architecture& a = w.architecture;
  switch (a.head) {
    case Head::kNone:
      return {};
    case Head::kSequenceClassification:
      return {w.batch, a.labels, false};
    case Head::kQuestionAnswering:
      return {HeadTokens(w), 2, false};
    case Head::kMaskedLanguageModel:
    case Head::kPreTraining:
    case Head::kCausalLanguageModel:
      return {w.predictions_per_sequence > 0
                  ? w.batch * w.predictions_per_sequence
                  : HeadTokens(w),
              a.vocabulary,
              true,
              1 + a.next_token_blocks};
  }
  ENSURE(false, "a head without logits");
}

int64_t HeadTokens(const Workload& w) {
  return w.architecture.two_sided() ? w.decoder_tokens() : w.tokens();
}

bool PredictsVocabulary(const Workload& w) { return LogitsOf(w).vocabulary; }

bool ChunksLoss(const Workload& w) {
  return LossOf(w).chunks && w.architecture.head == Head::kCausalLanguageModel;
}

int64_t LossChunk(const Architecture& a, int64_t rows) {
  const int64_t parts = CeilDivide(a.vocabulary, a.word_width());
  const int64_t least = CeilDivide(rows, parts);
  return std::min(
      rows, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(least))));
}

namespace {

// Bytes of a logit at the worst moment of a loss of several operations over
// logits as they come: log-probabilities, their gradient and the logits', all in
// fp32 (tests/model/kept_by_loss.py: 12.0, also under autocast). Where one kernel
// makes both of the loss, the logits stay.
int64_t PlainLossBytes(const Workload& w) {
  const int64_t first =
      LossOf(w).shifts ? kSingle : BytesPerElement(w.precision);
  return first + 2 * kSingle;
}

// The same without a backward pass: logits, a copy of them where the loss is
// wider, and log-probabilities, which may be made in that copy (8.0, 10.3).
int64_t ForwardLossBytes(const Workload& w) {
  const int64_t element = BytesPerElement(w.precision);
  const int64_t width = BytesOfLossLogit(w);
  const bool copied = width > element && w.stack.loss != LossKernels::kInPlace;
  return element + width + (copied ? width : 0);
}

// Of a chunk, in place, with one fp32 copy; beside them the gradient of all rows.
int64_t ChunkedLossBytes(const Workload& w, const Logits& logits) {
  const int64_t element = BytesPerElement(w.precision);
  return LossChunk(w.architecture, logits.rows) * logits.classes *
             (element + kSingle) +
         logits.heads * logits.rows * w.architecture.word_width() * element;
}

// Eager causal models widen narrow logits and let these go: what stands at once
// is widened logits, a copy of them without the last position or their gradient,
// and, unless one kernel has them all or they are made in place,
// log-probabilities (modeling_llama.py of Transformers 4.40). Bytes of a logit.
int64_t WidenedLossBytes(const Workload& w) {
  const int64_t element = BytesPerElement(w.precision);
  const int64_t width = BytesOfLossLogit(w);
  // What it took, and what it made of that, in which its gradient stands.
  if (w.stack.loss == LossKernels::kFusedCast) return element + width;
  const bool in_place = w.stack.loss == LossKernels::kInPlace;
  const int64_t tensors = LossOf(w).fuses || in_place ? 2 : 3;
  if (!w.architecture.narrow_logits) return tensors * kSingle;
  // One more, since logits stay; where the loss is wider, what they were
  // widened from, too. Seen in fms-acceleration's runs.
  return (tensors + 1) * width + (width > element ? element : 0);
}

// Whether the loss is over wide copies of narrow logits; behind compiled blocks a
// plain one is, whose tensors are as many.
bool WidensLogits(const Workload& w) {
  const bool plain = LossOf(w).shifts ||
                     w.stack.loss == LossKernels::kInPlace ||
                     w.stack.loss == LossKernels::kPlain;
  return plain && BytesPerElement(w.precision) < kSingle &&
         w.architecture.head == Head::kCausalLanguageModel;
}

}  // namespace

int64_t LogitBytes(const Workload& w) {
  if (w.work == Work::kForward) return ForwardLogitBytes(w);
  const Logits logits = LogitsOf(w);
  const int64_t all = logits.heads * logits.rows * logits.classes;
  if (WidensLogits(w)) return all * WidenedLossBytes(w);
  // One kernel has no more of them for a pass backward.
  if (ChunksLoss(w) || (LossOf(w).fuses && logits.vocabulary)) {
    return ForwardLogitBytes(w);
  }
  // Beside them their gradient.
  if (LossOf(w).keeps_row_sums) return all * 2 * BytesPerElement(w.precision);
  return all * PlainLossBytes(w);
}

int64_t ForwardLogitBytes(const Workload& w) {
  const Logits logits = LogitsOf(w);
  const int64_t all = logits.heads * logits.rows * logits.classes;
  if (ChunksLoss(w)) return ChunkedLossBytes(w, logits);
  const LossRules loss = LossOf(w);
  if ((loss.fuses && logits.vocabulary) || loss.keeps_row_sums) {
    return all * BytesPerElement(w.precision);
  }
  return all * ForwardLossBytes(w);
}

}  // namespace trainfare::model
