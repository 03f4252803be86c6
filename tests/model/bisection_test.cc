#include "model/bisection.h"

#include <doctest/doctest.h>

namespace trainfare::model {

TEST_CASE("the largest number that holds, wherever it is looked for first") {
  for (int64_t largest = 16; largest < 32; ++largest) {
    int asked = 0;
    const auto holds = [&](int64_t number) {
      ++asked;
      return number <= largest;
    };
    CHECK(LargestThat(16, 32, holds) == largest);
    for (int64_t guess = 10; guess < 40; ++guess) {
      CHECK(LargestNear(guess, 16, 32, holds) == largest);
    }
    asked = 0;
    LargestNear(largest, 16, 32, holds);
    CHECK(asked <= 2);
  }
}

}  // namespace trainfare::model
