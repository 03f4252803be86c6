#include "hardware/models/gpu/occupancy.h"

#include <doctest/doctest.h>

#include "hardware/models/device_models.h"
#include "tests/hardware/models/gpu/volta.h"

namespace trainfare::hardware::models {
namespace {

// A warp of 112 registers a thread takes 3584; eight of them 28,672 of 65,536:
// 2 blocks. 32 registers: 8 blocks fill the 64 warps. 40 KiB of 96: 2 blocks.
TEST_CASE("occupancy from registers, warps and shared memory") {
  const Device d = Volta();
  const Occupancy product = OccupancyOf(
      d, {.threads = 256, .registers_per_thread = 112, .shared_memory = 16384});
  CHECK(product.blocks == 2);
  CHECK(product.warps == 16);
  CHECK(product.limit == OccupancyLimit::kRegisters);

  const Occupancy elementwise = OccupancyOf(
      d, {.threads = 256, .registers_per_thread = 32, .shared_memory = 0});
  CHECK(elementwise.blocks == 8);
  CHECK(elementwise.warps == 64);
  CHECK(elementwise.limit == OccupancyLimit::kWarps);

  const Occupancy shared = OccupancyOf(
      d, {.threads = 128, .registers_per_thread = 32, .shared_memory = 40960});
  CHECK(shared.warps == 8);
  CHECK(shared.limit == OccupancyLimit::kSharedMemory);

  const Occupancy small = OccupancyOf(
      d, {.threads = 32, .registers_per_thread = 32, .shared_memory = 0});
  CHECK(small.blocks == 16);
  CHECK(small.limit == OccupancyLimit::kBlocks);
}

// 900 GB/s x 600 ns = 540,000 B under way, 6,750 B an SM, 512 B a warp.
TEST_CASE("warps that hide the latency of memory") {
  CHECK(WarpsToHideLatency<double>(Volta(), model::Seconds<>(600e-9)) ==
        Near(6750.0 / 512.0));
}

}  // namespace
}  // namespace trainfare::hardware::models
