#pragma once

// Training on one batch over and over, until the model knows it by heart.

#include "trainer/training/session.h"

namespace trainfare::trainer {

struct Overfitted {
  double first_loss = 0;
  double last_loss = 0;
  double accuracy = 0;  // of the labels that count, after the last step
};

inline Overfitted Overfit(Session& session, const Batch& batch, int steps) {
  const auto step = [&] {
    return session.Step(1, [&](int64_t) { return batch; }).loss;
  };
  Overfitted result;
  result.first_loss = step();
  for (int i = 0; i < steps; ++i) result.last_loss = step();
  const at::Tensor counted = batch.labels.ne(kNoLabel);
  result.accuracy = session.Predict(batch)
                        .argmax(-1)
                        .eq(batch.labels)
                        .masked_select(counted)
                        .to(at::kDouble)
                        .mean()
                        .item<double>();
  return result;
}

}  // namespace trainfare::trainer
