#include "hardware/models/gpu/tiling.h"

#include <doctest/doctest.h>

#include "hardware/models/device_models.h"
#include "tests/hardware/models/gpu/volta.h"

namespace trainfare::hardware::models {
namespace {

// 1024 x 1024 x 1024 in fp32: 64 tiles of 128 x 128 on 80 SMs are one wave,
// 64/80 full; the pipeline of depth 8 leaves 1024/1032 of it. 128 tiles of
// 128 x 64 are two waves, equally full, at 0.98 of the rate.
TEST_CASE("the tile with the most useful work") {
  const TileChoice choice =
      GemmTiles(Volta(), GpuEngine::kLanes, 14e12, 4.0)
          .Choose({.batch = 1, .m = 1024, .n = 1024, .k = 1024});
  CHECK(choice.waves == 1);
  CHECK(choice.share == Near(0.8 * 1024.0 / 1032.0));
  CHECK(choice.operand_bytes_per_flop == Near(1.0 / 32.0));
  CHECK(choice.active_warps == Near(8.0));
}

// 512 x 512 x 8192: 16 tiles of 128 x 128 would leave 64 SMs idle; k is split
// 80/16 = 5 times, so that 80 blocks of depth 1638.4 fill one wave.
TEST_CASE("a deep product is split along k") {
  const TileChoice choice =
      GemmTiles(Volta(), GpuEngine::kLanes, 14e12, 4.0)
          .Choose({.batch = 1, .m = 512, .n = 512, .k = 8192});
  CHECK(choice.waves == 1);
  CHECK(choice.share == Near(1638.4 / 1646.4));
}

// One tile more than a wave holds costs a wave.
TEST_CASE("a wave for one tile") {
  const auto waves = [](int64_t m) {
    return GemmTiles(Volta(), GpuEngine::kLanes, 14e12, 4.0)
        .Choose({.batch = 2, .m = m, .n = 128, .k = 64})
        .waves;
  };
  CHECK(waves(40 * 128) == 1);
  CHECK(waves(40 * 128 + 1) > 1);
}

// 160 products of 128 x 64: two waves of 80 tiles of 128 x 64, each full, at
// 0.98; in tiles of 128 x 128 the same two waves, half of each empty.
TEST_CASE("a generation whose batched products have the largest tile alone") {
  const model::GemmExtents heads = {.batch = 160, .m = 128, .n = 64, .k = 1024};
  Device device = Volta();
  const auto share = [&](GpuEngine engine) {
    return GemmTiles(device, engine, 14e12, 4.0).Choose(heads).share;
  };
  const double pipeline = 1024.0 / (1024.0 + 8.0);
  CHECK(share(GpuEngine::kLanes) == Near(0.98 * pipeline));
  const double on_tensor_cores = share(GpuEngine::kTensorCores);
  device.generation->one_batched_tile = true;
  CHECK(share(GpuEngine::kLanes) == Near(0.5 * pipeline));
  CHECK(share(GpuEngine::kTensorCores) == on_tensor_cores);
}

}  // namespace
}  // namespace trainfare::hardware::models
