#pragma once

// Logits over a vocabulary, and the losses of all heads.

#include <cstdint>

#include "model/internal/passes/pass.h"

namespace trainfare::model::internal {

// Log-softmax and negative log-likelihood, in fp32.
void Loss(Pass& pass, int64_t rows, int64_t classes);
void LossBackward(Pass& pass, int64_t rows, int64_t classes);

// Logits of a vocabulary and their loss.
void VocabularyForward(Pass& pass, int64_t rows);
void VocabularyBackward(Pass& pass, int64_t rows);

}  // namespace trainfare::model::internal
