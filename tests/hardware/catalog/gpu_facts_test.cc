#include "hardware/catalog/gpu_facts.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "hardware/catalog/kind_facts.h"
#include "hardware/files/yaml_reader.h"
#include "model/error.h"

namespace trainfare::hardware {
namespace {

GpuFacts ReadFacts(const std::string& tiles) {
  return ReadGpuFacts(Reader::FromText(
      fmt::format(
          "engines:\n"
          "  lanes: {{ reach: 0.9, pipeline_depth: 8, tiles_of_batches: 1,\n"
          "           tiles: [ {0} ] }}\n"
          "  tensor_cores: {{ reach: 0.6, pipeline_depth: 32,\n"
          "                  tiles: [ {{ rows: 64, columns: 64, threads: 128,\n"
          "                             rate: 1 }} ] }}\n"
          "products: {{ split: {{ depth: 512, most: 16 }},\n"
          "            other_registers: 48, other_instructions: 0.25,\n"
          "            unaligned: {{ odd: 460, even: 1000 }} }}\n"
          "cores: {{ blocks: 16, register_unit: 256, bytes_under_way: 16 }}\n"
          "attention: {{ flash_1: 0.5, waiting_backward: 0.75 }}\n"
          "elementwise: {{ special_op: 16, random_draw: 20 }}\n"
          "rows: {{ norm_warps: 4, softmax_warps: 16, held_bytes: 4096,\n"
          "        cache_share: 0.55 }}\n"
          "memory: {{ gaps: 0.04, gaps_anew: 0.17 }}\n"
          "power: {{ least_voltage: 0.7, fp8_energy: 0.5, fp4_energy: 0.25 "
          "}}\n",
          tiles),
      "gpu.yaml"));
}

}  // namespace

TEST_CASE(
    "tiles of a GPU are read, all of them for batches unless it is said") {
  const GpuFacts facts =
      ReadFacts("{ rows: 128, columns: 64, threads: 128, rate: 0.98 }");
  CHECK(facts.lanes.tiles_of_batches == 1);
  CHECK(facts.lanes.tiles.front().relative_rate == 0.98);
  CHECK(facts.tensor_cores.tiles_of_batches == 1);
  CHECK(FactsOfGpus().tensor_cores.tiles_of_batches ==
        FactsOfGpus().tensor_cores.tiles.size());
}

TEST_CASE("a side of a tile is a power of two") {
  CHECK_THROWS_WITH_AS(
      ReadFacts("{ rows: 96, columns: 64, threads: 128, rate: 1 }"),
      "gpu.yaml:3:29: engines.lanes.tiles[0].rows: expected a power of two, "
      "got 96",
      model::InputError);
}

}  // namespace trainfare::hardware
