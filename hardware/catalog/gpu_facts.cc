#include "hardware/catalog/gpu_facts.h"

#include <fmt/format.h>

#include <bit>
#include <string_view>

#include "hardware/files/yaml_reader.h"

namespace trainfare::hardware {
namespace {

// The formula divides by a side with a shift.
int64_t ReadSide(const Reader& tile, std::string_view key) {
  const int64_t side = tile.Integer(key, 1, 4096);
  if (!std::has_single_bit(static_cast<uint64_t>(side))) {
    tile.Fail(key, fmt::format("expected a power of two, got {}", side));
  }
  return side;
}

GpuEngineFacts ReadEngine(const Reader& map) {
  GpuEngineFacts engine;
  engine.reach = map.Number("reach", 0.01, 1.0);
  engine.pipeline_depth = map.Number("pipeline_depth", 0.0, 1e4);
  for (const Reader& tile : map.Maps("tiles")) {
    engine.tiles.push_back({ReadSide(tile, "rows"),
                            ReadSide(tile, "columns"),
                            tile.Integer("threads", 32, 1024),
                            tile.Number("rate", 0.01, 1.0)});
  }
  const size_t count = engine.tiles.size();
  if (count == 0 || count > kMostTiles) {
    map.Fail("tiles",
             fmt::format("expected 1 to {} tiles, got {}", kMostTiles, count));
  }
  const auto all = static_cast<int64_t>(count);
  engine.tiles_of_batches = static_cast<size_t>(
      map.OptionalInteger("tiles_of_batches", 1, all).value_or(all));
  return engine;
}

}  // namespace

GpuFacts ReadGpuFacts(const Reader& root) {
  GpuFacts facts;
  const Reader engines = root.Map("engines");
  facts.lanes = ReadEngine(engines.Map("lanes"));
  facts.tensor_cores = ReadEngine(engines.Map("tensor_cores"));
  const Reader products = root.Map("products");
  const Reader split = products.Map("split");
  facts.split_depth = split.Number("depth", 1.0, 1e6);
  facts.most_splits = split.Number("most", 1.0, 1e4);
  facts.other_registers = products.Integer("other_registers", 0, 255);
  facts.other_instructions = products.Number("other_instructions", 0.0, 10.0);
  const Reader unaligned = products.Map("unaligned");
  facts.flops_of_odd_rows = unaligned.Number("odd", 1.0, 1e6);
  facts.flops_of_even_rows = unaligned.Number("even", 1.0, 1e6);
  const Reader cores = root.Map("cores");
  facts.blocks_per_core = cores.Integer("blocks", 1, 1024);
  facts.register_unit = cores.Integer("register_unit", 1, 65536);
  facts.bytes_per_thread = cores.Integer("bytes_under_way", 1, 1024);
  const Reader elementwise = root.Map("elementwise");
  facts.flops_per_special_op = elementwise.Number("special_op", 0.0, 1e4);
  facts.flops_per_random_draw = elementwise.Number("random_draw", 0.0, 1e4);
  const Reader rows = root.Map("rows");
  facts.norm_warps = rows.Integer("norm_warps", 1, 64);
  facts.softmax_warps = rows.Integer("softmax_warps", 1, 64);
  facts.held_row_bytes = rows.Integer("held_bytes", 0, 1 << 20);
  facts.cache_of_rows = rows.Number("cache_share", 0.01, 1.0);
  const Reader attention = root.Map("attention");
  facts.flash_1_share = attention.Number("flash_1", 0.01, 1.0);
  facts.waiting_backward = attention.Number("waiting_backward", 0.01, 1.0);
  const Reader memory = root.Map("memory");
  facts.memory_gaps = memory.Number("gaps", 0.0, 1.0);
  facts.memory_gaps_anew = memory.Number("gaps_anew", 0.0, 1.0);
  const Reader power = root.Map("power");
  facts.least_voltage = power.Number("least_voltage", 0.1, 1.0);
  facts.fp8_energy = power.Number("fp8_energy", 0.01, 1.0);
  facts.fp4_energy = power.Number("fp4_energy", 0.01, 1.0);
  return facts;
}

}  // namespace trainfare::hardware
