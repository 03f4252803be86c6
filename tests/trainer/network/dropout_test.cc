#include "trainer/network/dropout.h"

#include <doctest/doctest.h>

#include "tests/near.h"

namespace trainfare::trainer {
namespace {

DOCTEST_TEST_CASE("dropout zeroes its share and keeps the mean") {
  SeedDropout(3);
  const int64_t count = 1'000'003;  // not a multiple of any block
  const at::Tensor kept = Dropout(at::ones({count}, at::kFloat), 0.1, true);
  const double zeros = kept.eq(0).to(at::kDouble).mean().item<double>();
  // Standard deviation of the share: sqrt(0.1 * 0.9 / 1e6) = 3e-4.
  DOCTEST_CHECK(zeros == Near(0.1, 0.015));
  DOCTEST_CHECK(kept.max().item<float>() == Near(1 / 0.9, 1e-5));
  // Neighbours, and the lanes of the generator, are independent.
  for (const int64_t distance : {1, 16, 4096}) {
    const at::Tensor first = kept.narrow(0, 0, count - distance).eq(0);
    const at::Tensor second = kept.narrow(0, distance, count - distance).eq(0);
    const double both =
        first.logical_and(second).to(at::kDouble).mean().item<double>();
    DOCTEST_CHECK(both == Near(0.01, 0.05));
  }
}

DOCTEST_TEST_CASE("masks are new at each call, and the same for any threads") {
  const at::Tensor input = at::ones({70'001}, at::kFloat);
  const int threads = at::get_num_threads();
  SeedDropout(9);
  const at::Tensor first = Dropout(input, 0.3, true);
  const at::Tensor second = Dropout(input, 0.3, true);
  DOCTEST_CHECK_FALSE(at::equal(first, second));
  at::set_num_threads(1);
  SeedDropout(9);
  DOCTEST_CHECK(at::equal(first, Dropout(input, 0.3, true)));
  DOCTEST_CHECK(at::equal(second, Dropout(input, 0.3, true)));
  at::set_num_threads(threads);
}

DOCTEST_TEST_CASE("the gradient passes where the value passed") {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor input =
        at::ones({300, 70}, at::TensorOptions(type)).requires_grad_(true);
    const at::Tensor output = Dropout(input, 0.25, true);
    const at::Tensor scale = at::rand({300, 70}).to(type);
    (output * scale).sum().backward();
    const at::Tensor expected = output.detach() * scale;
    DOCTEST_CHECK(at::allclose(
        input.grad().to(at::kFloat), expected.to(at::kFloat), 1e-2, 1e-6));
  }
}

DOCTEST_TEST_CASE("without training or probability it is the identity") {
  const at::Tensor input = at::rand({5});
  DOCTEST_CHECK(Dropout(input, 0.5, false).is_same(input));
  DOCTEST_CHECK(Dropout(input, 0.0, true).is_same(input));
}

}  // namespace
}  // namespace trainfare::trainer
