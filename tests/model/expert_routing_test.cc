#include "model/expert_routing.h"

#include <doctest/doctest.h>

#include "tests/near.h"

namespace trainfare::model {
namespace {

// docs/models/splits.md: 8 of 256 experts, all of them in 4 of 8 groups.
constexpr ExpertRouting kDeepSeek{256, 8, 8, 4};

TEST_CASE("places that a token's experts lie on, by hand") {
  // Of 256 experts without groups 8 hosts have 32 each:
  // 8 (1 - (224 x .. x 217) / (256 x .. x 249)).
  const ExpertRouting free{256, 8, 1, 1};
  CHECK(PlacesOfToken(free, 8) == Near(5.29465, 1e-6));
  // A group in each host: 4 of them, of whose 128 experts one has 32:
  // 4 (1 - (96 x .. x 89) / (128 x .. x 121)) = 4 (1 - 0.0927473).
  CHECK(PlacesOfToken(kDeepSeek, 8) == Near(3.62901, 1e-6));
  // 64 ranks of 4 experts, of half of which the group is chosen:
  // 32 (1 - (120 x 119 x 118 x 117) / (128 x 127 x 126 x 125)).
  CHECK(PlacesOfToken(kDeepSeek, 64) == Near(7.35937, 1e-6));
  // Two groups in each of four hosts: none of these is chosen 3 times of 14,
  // one 8 of 14, both 3 of 14; then none of 8 experts is of 32 or 64 of 128:
  // 4 (1 - 3/14 - 8/14 x 0.0927473 - 3/14 x 0.0030959).
  CHECK(PlacesOfToken(kDeepSeek, 4) == Near(2.92821, 1e-6));
}

TEST_CASE("a token meets one place at least, and as many as it has experts") {
  CHECK(PlacesOfToken(kDeepSeek, 1) == Near(1.0, 1e-5));
  CHECK(PlacesOfToken({128, 1, 1, 1}, 16) == Near(1.0, 1e-5));
  CHECK(PlacesOfToken({8, 8, 1, 1}, 8) == Near(8.0, 1e-5));
  // Groups that neither divide hosts nor are divided by them are left out.
  CHECK(PlacesOfToken({192, 8, 8, 4}, 6) ==
        Near(PlacesOfToken({192, 8, 1, 1}, 6), 1e-5));
}

}  // namespace
}  // namespace trainfare::model
