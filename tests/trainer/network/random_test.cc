#include "trainer/network/random.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace trainfare::trainer {
namespace {

DOCTEST_TEST_CASE("weights are normal, whatever the number of threads") {
  const auto draw = [](int threads, uint64_t seed) {
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    // Several chunks and a tail, one chunk, and a few elements.
    std::vector<at::Tensor> tensors = {
        at::empty({1000, 1001}), at::empty({64, 64}), at::empty({3, 3})};
    DrawNormal(tensors, {0.02, 0.5, 1.0}, seed);
    at::set_num_threads(before);
    return tensors;
  };
  const auto one = draw(1, 7);
  const auto two = draw(2, 7);
  const auto other = draw(2, 8);
  for (size_t i = 0; i < one.size(); ++i) {
    DOCTEST_CHECK(one[i].equal(two[i]));
    DOCTEST_CHECK_FALSE(one[i].equal(other[i]));
  }
  const auto check = [](const at::Tensor& values, double deviation) {
    const double n = static_cast<double>(values.numel());
    // Five standard errors.
    DOCTEST_CHECK(std::abs(values.mean().item<double>()) <
                  5 * deviation / std::sqrt(n));
    DOCTEST_CHECK(std::abs(values.std().item<double>() / deviation - 1) <
                  5 / std::sqrt(2 * n));
  };
  check(one[0], 0.02);
  check(one[1], 0.5);
  // Chunks have draws of their own.
  const at::Tensor flat = one[0].flatten();
  DOCTEST_CHECK_FALSE(
      flat.narrow(0, 0, 1000).equal(flat.narrow(0, 1 << 18, 1000)));
}

}  // namespace
}  // namespace trainfare::trainer
