#pragma once

// The fields of a generation of GPUs, once (model/fields.h).

#include <string_view>

#include "hardware/catalog/gpu_generation.h"
#include "model/fields.h"

namespace trainfare::hardware {

template <class Archive, model::Of<GpuGeneration> G>
void VisitFields(Archive& archive, G& generation) {
  // What one FLOP takes.
  model::Joules<> lanes(generation.lanes.base());
  archive(model::Field{.name = "lanes",
                       .about = "Of a FLOP in fp32 on the lanes",
                       .required = true},
          lanes);
  if constexpr (model::ReadingArchive<Archive>) {
    generation.lanes = model::JoulesPerFlop<>(lanes.base());
  }
  const auto share =
      [&](std::string_view name, std::string_view about, auto& value) {
        archive(model::Field{.name = name,
                             .about = about,
                             .required = true,
                             .low = 0.001,
                             .high = 10.0},
                value);
      };
  share("tensor_tf32",
        "Of a FLOP in tf32 on tensor cores, as a share of lanes",
        generation.tensor_tf32);
  share("tensor_half",
        "Of a FLOP in fp16 or bf16 on tensor cores, as a share of lanes",
        generation.tensor_half);
  archive(
      model::Field{.name = "tensor_cores_at_limit",
                   .about = "Products on tensor cores draw what the board may"},
      generation.tensor_cores_at_limit);
  archive(model::Field{.name = "synchronous",
                       .about = "Rate of instructions for which a warp waits, "
                                "as a share of the peak",
                       .low = 0.1,
                       .high = 1.0},
          generation.synchronous);
  archive(model::Field{.name = "exposed_overlap",
                       .about = "Of softmax beside asynchronous products, the "
                                "share that is not hidden",
                       .high = 1.0},
          generation.exposed_overlap);
  archive(model::Field{.name = "asynchronous_library",
                       .about = "LibTorch's attention is by these"},
          generation.asynchronous_library);
  archive(model::Field{.name = "special_op",
                       .about = "FLOPs on the lanes for one special function",
                       .low = 1.0,
                       .high = 100.0},
          generation.special_op);
  const auto of_board = [&](std::string_view name,
                            std::string_view about,
                            auto& value) {
    archive(model::Field{.name = name, .about = about, .low = 0.1, .high = 1.0},
            value);
  };
  of_board("least_voltage",
           "Of a board over that at its full clock",
           generation.least_voltage);
  of_board("other_work",
           "Power of work other than products over the limit",
           generation.other_work);
  archive(model::Field{.name = "workspace",
                       .about = "Workspaces of the matrix libraries"},
          generation.workspace);
  archive(model::Field{.name = "slow_half",
                       .about = "Rate of fp16 over that of fp32 where it is "
                                "the slower one",
                       .low = 0.001,
                       .high = 1.0},
          generation.slow_half);
  archive(
      model::Field{.name = "one_batched_tile",
                   .about = "Batched products on the lanes have the largest "
                            "tile alone"},
      generation.one_batched_tile);
}

}  // namespace trainfare::hardware
