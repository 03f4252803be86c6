#pragma once

// What the presets of several families of decoders are made of: a block, and
// what of it is changed.

#include <cstdint>
#include <string>

#include "model/architecture.h"

namespace trainfare::model::internal {

struct Dimensions {
  int64_t layers;
  int64_t hidden;
  int64_t heads;
  int64_t key_value_heads;
  int64_t intermediate;
  int64_t vocabulary;
  int64_t positions;
};

// Touvron et al. 2023: RMSNorm before, rotary positions, SwiGLU, no biases.
Architecture Llama(std::string name, const Dimensions& d);
// Qwen Team 2024: biases of query, key and value alone.
Architecture Qwen2(std::string name, const Dimensions& d);
// Qwen Team 2025: a norm over each head instead, heads of 128.
Architecture Qwen3(std::string name, const Dimensions& d);
// GLM team 2024: biases of query, key and value, half of each head rotated.
Architecture Glm(std::string name, const Dimensions& d);

Architecture Tied(Architecture a);
Architecture HeadSize(Architecture a, int64_t size);
Architecture Windowed(Architecture a, int64_t window, int64_t layers);
// Blocks without positions.
Architecture Unrotated(Architecture a, int64_t layers);
// The part of each head that carries its position.
Architecture Rotated(Architecture a, int64_t rotary_head_size);

struct ExpertDimensions {
  int64_t count = 0;
  int64_t per_token = 0;
  int64_t intermediate = 0;
  int64_t shared = 0;  // of the shared experts together
};
Architecture Experts(Architecture a, const ExpertDimensions& e);

}  // namespace trainfare::model::internal
