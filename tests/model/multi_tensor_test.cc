#include "model/multi_tensor.h"

#include <doctest/doctest.h>

#include <numeric>

#include "model/presets.h"

namespace trainfare::model {

// Published (s003, table 4.6): the fused kernel of Adan over six lists shows
// grids of 320, 177 and 52 blocks on bert-base-cased.
TEST_CASE("six lists of bert-base-cased leave in ten launches") {
  const auto tensors = ParameterTensorsOf(FindArchitecture("bert-base-cased"));
  CHECK(MultiTensorLaunches(tensors, 6) ==
        std::vector<int64_t>{320, 166, 177, 177, 177, 177, 177, 177, 177, 52});
}

TEST_CASE("up to three lists are packed by chunks, more by tensors") {
  const auto tensors = ParameterTensorsOf(FindArchitecture("bert-base-cased"));
  const std::vector<int64_t> full = {320, 320, 320, 320, 320, 177};
  for (const int64_t lists : {1, 2, 3}) {
    CAPTURE(lists);
    CHECK(MultiTensorLaunches(tensors, lists) == full);
  }
  for (const int64_t lists : {4, 5, 6}) {
    CAPTURE(lists);
    const auto launches = MultiTensorLaunches(tensors, lists);
    CHECK(launches.size() > full.size());
    // Every chunk leaves once, however packed.
    CHECK(std::accumulate(launches.begin(), launches.end(), int64_t{0}) ==
          1777);
  }
}

TEST_CASE("a tensor larger than a launch goes on in the next") {
  const std::vector<ParameterTensor> one = {
      {"weight", 321 * kElementsPerChunk, 0}};
  CHECK(MultiTensorLaunches(one, 1) == std::vector<int64_t>{320, 1});
  CHECK(MultiTensorLaunches({{"weight", 1, 0}}, 1) == std::vector<int64_t>{1});
}

}  // namespace trainfare::model
