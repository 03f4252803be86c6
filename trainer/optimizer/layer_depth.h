#pragma once

// How deep in a model a parameter stands, by its name.

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/network/transformer.h"

namespace trainfare::trainer {

// Blocks of a model; those of a decoder stand above those of its encoder.
struct Blocks {
  int64_t layers = 0;  // of the encoder, or of a model of one side
  int64_t decoder_layers = 0;
};
Blocks BlocksOf(const std::vector<Parameter>& parameters);

// Depth of a parameter, from its name: 0 for embeddings, then a number a block,
// and one more for what stands above.
int64_t DepthOf(const std::string& parameter, const Blocks& blocks);

}  // namespace trainfare::trainer
