#pragma once

// What decoders of a config.json share.

#include <cstdint>
#include <optional>
#include <string_view>

#include "hardware/files/config_json.h"
#include "model/architecture.h"

namespace trainfare::hardware {

// How many of a list of words, one a block, are this one; nullopt without the
// list.
std::optional<int64_t> CountWords(const ConfigJson& c,
                                  const char* key,
                                  std::string_view word,
                                  int64_t layers);

// What a type's class has where its file does not say (its defaults in
// Transformers); null is as many keys as heads, and as wide as they divide.
model::Architecture UsualHeads(int64_t key_value_heads, int64_t head_size = 0);

// A decoder that predicts the next token, with nothing behind its words, of which
// no more is known.
model::Architecture NextTokenDecoder();

// What the decoders of Llama's kind share.
model::Architecture ReadLlama(const ConfigJson& c,
                              bool tied = false,
                              const model::Architecture& usual = {});

// `layers`: those with a window where the file does not list them; `usual`: how
// long it is where the file does not say, null is none. One beyond the
// positions, as classes have it for small models, sees them all.
void ReadWindow(const ConfigJson& c,
                int64_t layers,
                model::Architecture& a,
                int64_t usual = 0);

// Of so many blocks one sees all; Transformers writes the older key with a line
// before it.
int64_t WindowPeriod(const ConfigJson& c, int64_t usual);

// Queries, keys and values are cut off beyond a number, whichever; null is none.
bool ClipsProjections(const ConfigJson& c);

// Blocks without positions: of so many one, or those that a list of 0 and 1
// says.
int64_t UnrotatedLayers(const ConfigJson& c, int64_t layers);

// A window counts only where use_sliding_window says so, above the first
// max_window_layers blocks.
model::Architecture ReadQwen(const ConfigJson& c,
                             bool version_3,
                             int64_t key_value_heads = 32);

// What all of Gemma's have: tied words, heads of 256, GELU's approximation.
model::Architecture ReadGemmas(const ConfigJson& c,
                               const model::Architecture& usual);
// Whether something goes through tanh: null is no; how high the cap is changes
// no count.
bool HasCap(const ConfigJson& c, const char* key);

// Keys that scale what a block adds, in passes that are there anyway.
model::Architecture ReadGranites(const ConfigJson& c,
                                 bool tied = false,
                                 const model::Architecture& usual = {});

// Sun et al. 2024, "Hunyuan-Large", and the smaller ones after it: norms of
// queries and keys behind the rotation, which takes the same passes.
model::Architecture ReadHunYuan(const ConfigJson& c);

// The part of each head that carries its position, 0 where all of it does: by
// the key that says it, or by Transformers 5's map (rope_parameters), which
// counts first.
int64_t RotarySize(const ConfigJson& c,
                   const model::Architecture& a,
                   const char* key,
                   double usual);
int64_t RotarySize(const model::Architecture& a, double share);

// The first blocks that have no experts: those that a list of words says, which
// have to come first, or as many as usual.
int64_t DenseBlocks(const ConfigJson& c, int64_t layers, int64_t usual);

// Of how many experts there are, by the name that the file has for it.
const char* ExpertsKey(const ConfigJson& c);

// Routed experts and those beside them, under the names that either half of the
// types has. Of a type's class, where its file does not say; 0 of the first
// two: it has to.
struct ExpertsOfType {
  int64_t count = 0;
  int64_t per_token = 0;
  int64_t intermediate = 0;
  int64_t shared = 0;
  int64_t dense = 0;  // first blocks without experts
};
void ReadExperts(const ConfigJson& c,
                 const ExpertsOfType& usual,
                 model::Architecture& a);

// Blocks whose base of angles is 0, which have no positions.
int64_t BlocksWithoutBase(const ConfigJson& c, int64_t layers);

}  // namespace trainfare::hardware
