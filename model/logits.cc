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

int64_t LogitBytes(const Workload& w) {
  const Logits logits = LogitsOf(w);
  const int64_t rows = logits.heads * logits.rows;
  const int64_t kept = w.work == Work::kForward ? 1 : 2;
  // Eager causal models widen narrow logits and let these go: what stands at
  // once is widened logits, a copy of them without the last position or their
  // gradient, and, unless one kernel has them all or they are made in place,
  // log-probabilities (modeling_llama.py of Transformers 4.40). A plain loss
  // behind compiled blocks has log-probabilities, their gradient and the logits'.
  const bool in_place = w.stack.loss == LossKernels::kInPlace;
  const bool plain =
      LossOf(w).shifts || in_place || w.stack.loss == LossKernels::kPlain;
  const bool widened = plain && kept == 2 &&
                       BytesPerElement(w.precision) < kSingle &&
                       w.architecture.head == Head::kCausalLanguageModel;
  if (widened && w.stack.loss == LossKernels::kFusedCast) {
    // What it took, and what it made of that, in which its gradient stands.
    return rows * logits.classes *
           (BytesPerElement(w.precision) + BytesOfLossLogit(w));
  }
  const int64_t tensors = LossOf(w).fuses || in_place ? 2 : 3;
  if (widened && w.architecture.narrow_logits) {
    // One more, since logits stay; where the loss is wider, what they were
    // widened from, too. Seen in fms-acceleration's runs.
    const int64_t element = BytesPerElement(w.precision);
    const int64_t width = BytesOfLossLogit(w);
    return rows * logits.classes *
           ((tensors + 1) * width + (width > element ? element : 0));
  }
  if (widened) return tensors * rows * logits.classes * kSingle;
  if (ChunksLoss(w)) {
    // In place, with one fp32 copy; beside them the rows' own gradient.
    return LossChunk(w.architecture, logits.rows) * logits.classes *
               (BytesPerElement(w.precision) + kSingle) +
           rows * w.architecture.word_width() * BytesPerElement(w.precision);
  }
  if (LossOf(w).fuses && logits.vocabulary) {
    return rows * logits.classes * BytesPerElement(w.precision);
  }
  if (LossOf(w).keeps_row_sums && kept == 2) {
    // Beside them their gradient.
    return rows * logits.classes * 2 * BytesPerElement(w.precision);
  }
  return rows * logits.classes *
         (BytesPerElement(w.precision) + kept * kSingle);
}

}  // namespace trainfare::model
