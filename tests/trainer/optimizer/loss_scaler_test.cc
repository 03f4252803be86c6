#include "trainer/optimizer/loss_scaler.h"

#include <doctest/doctest.h>

#include <limits>
#include <memory>

#include "trainer/network/dropout.h"
#include "trainer/network/encoder.h"
#include "trainer/network/make_transformer.h"
#include "trainer/training/session.h"

namespace trainfare::trainer {
namespace {

DOCTEST_TEST_CASE("finite gradients are divided, others skip the step") {
  LossScaler scaler;
  DOCTEST_CHECK(scaler.Scaled(at::ones({1})).item<float>() == 65536.0F);
  std::vector<at::Tensor> gradients = {at::full({3}, 65536.0F),
                                       at::full({2, 2}, -131072.0F)};
  DOCTEST_CHECK(scaler.Unscale(gradients));
  DOCTEST_CHECK(gradients[0].equal(at::ones({3})));
  DOCTEST_CHECK(gradients[1].equal(at::full({2, 2}, -2.0F)));
  DOCTEST_CHECK(scaler.state().good_steps == 1);
  DOCTEST_CHECK(scaler.state().skipped_steps == 0);

  for (const float bad : {std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    gradients[1][1][0] = bad;
    DOCTEST_CHECK_FALSE(scaler.Unscale(gradients));
    DOCTEST_CHECK(scaler.state().good_steps == 0);
    gradients[1][1][0] = 1.0F;
  }
  DOCTEST_CHECK(scaler.state().skipped_steps == 2);
  DOCTEST_CHECK(scaler.state().scale == 16384.0);
}

DOCTEST_TEST_CASE("the scale doubles after 2000 good steps in a row") {
  LossScaler scaler;
  scaler.Restore({1024, 0, 5});
  const std::vector<at::Tensor> gradients = {at::zeros({1})};
  for (int i = 0; i < 1999; ++i) scaler.Unscale(gradients);
  DOCTEST_CHECK(scaler.state().scale == 1024);
  scaler.Unscale(gradients);
  DOCTEST_CHECK(scaler.state().scale == 2048);
  DOCTEST_CHECK(scaler.state().good_steps == 0);
  DOCTEST_CHECK(scaler.state().skipped_steps == 5);
}

DOCTEST_TEST_CASE("fp16 trains, and a step that overflows changes nothing") {
  model::Architecture a;
  a.name = "small";
  a.layers = 1;
  a.hidden = 32;
  a.heads = 4;
  a.intermediate = 64;
  a.vocabulary = 100;
  a.positions = 32;
  a.token_types = 2;
  Batch batch;
  batch.input_ids = at::arange(1, 65, at::kLong).view({8, 8});
  batch.labels = at::arange(8, at::kLong).remainder(2);
  OptimizerOptions optimizer;
  optimizer.learning_rate = 2e-3;
  for (const model::Fusion fusion :
       {model::Fusion::kEager, model::Fusion::kFused}) {
    SeedDropout(1);
    TransformerOptions options = DefaultOptions(a);
    options.fusion = fusion;
    Session session(MakeTransformer(a, options, at::kCPU, 1),
                    model::Precision::kFp16,
                    optimizer);
    const auto step = [&] {
      return session.Step(1, [&](int64_t) { return batch; }).loss;
    };
    const auto weights = [&] {
      std::vector<at::Tensor> all;
      for (const Parameter& p : session.transformer().parameters()) {
        all.push_back(p.value.detach().clone());
      }
      return all;
    };
    const auto same = [](const std::vector<at::Tensor>& x,
                         const std::vector<at::Tensor>& y) {
      for (size_t i = 0; i < x.size(); ++i) {
        if (!x[i].equal(y[i])) return false;
      }
      return true;
    };
    // No fp16 gradient survives this.
    session.set_loss_scale({1e30, 0, 0});
    const std::vector<at::Tensor> before = weights();
    step();
    DOCTEST_CHECK(same(weights(), before));
    DOCTEST_CHECK(session.optimizer().steps() == 0);
    DOCTEST_CHECK(session.loss_scale()->skipped_steps == 1);
    DOCTEST_CHECK(session.loss_scale()->scale == 5e29);

    session.set_loss_scale({65536, 0, 1});
    double loss = 0;
    for (int i = 0; i < 120; ++i) loss = step();
    DOCTEST_CHECK_FALSE(same(weights(), before));
    DOCTEST_CHECK(loss < 0.1);
    DOCTEST_CHECK(session.loss_scale()->skipped_steps < 20);
  }
}

}  // namespace
}  // namespace trainfare::trainer
