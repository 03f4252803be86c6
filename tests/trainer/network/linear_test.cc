#include "trainer/network/linear.h"

#include <doctest/doctest.h>

namespace trainfare::trainer {
namespace {

DOCTEST_TEST_CASE("products and gradients are those of LibTorch in fp64") {
  at::manual_seed(1);
  struct Shape {
    int64_t sequences, rows, features;
  };
  // Few rows take the transposed product; 7 x 37 and 13 x 37 are padded.
  for (const auto [sequences, rows, features] : {Shape{2, 5, 3},
                                                 Shape{2, 5, 16},
                                                 Shape{2, 5, 40},
                                                 Shape{2, 5, 96},
                                                 Shape{2, 31, 96},
                                                 Shape{2, 32, 96},
                                                 Shape{2, 50, 40},
                                                 Shape{7, 37, 96},
                                                 Shape{13, 37, 40}}) {
    const at::Tensor input =
        at::randn({sequences, rows, 48}).requires_grad_(true);
    const at::Tensor weight = at::randn({features, 48}).requires_grad_(true);
    const at::Tensor bias = at::randn({features}).requires_grad_(true);
    const at::Tensor scale = at::randn({sequences, rows, features});
    const at::Tensor output = Linear(input, weight, bias);
    (output * scale).sum().backward();

    std::vector<at::Tensor> exact;
    for (const at::Tensor& leaf : {input, weight, bias}) {
      exact.push_back(leaf.detach().to(at::kDouble).requires_grad_(true));
    }
    const at::Tensor expected = at::linear(exact[0], exact[1], exact[2]);
    (expected * scale).sum().backward();
    const auto close = [](const at::Tensor& got, const at::Tensor& want) {
      return at::allclose(got.to(at::kDouble), want, 1e-5, 1e-4);
    };
    DOCTEST_CHECK(output.sizes() == expected.sizes());
    DOCTEST_CHECK(close(output, expected));
    DOCTEST_CHECK(close(input.grad(), exact[0].grad()));
    DOCTEST_CHECK(close(weight.grad(), exact[1].grad()));
    DOCTEST_CHECK(close(bias.grad(), exact[2].grad()));
  }
}

}  // namespace
}  // namespace trainfare::trainer
