#pragma once

// How the types of model_config.h are read: a function a type, by sort of model
// a file. What none of them asks for and does not stand among the keys that
// change no count is refused.

#include <initializer_list>
#include <span>
#include <string_view>

#include "hardware/files/config_json.h"
#include "model/architecture.h"

namespace trainfare::hardware {

struct ModelType {
  std::string_view type;  // of `model_type`
  model::Architecture (*read)(const ConfigJson&);
};

std::span<const ModelType> LlamaKinTypes();          // llama_kin_config.cc
std::span<const ModelType> LayerNormDecoderTypes();  // layer_norm_config.cc
std::span<const ModelType> ExpertDecoderTypes();     // expert_config.cc
std::span<const ModelType> LatentTypes();            // latent_config.cc
std::span<const ModelType> StateSpaceTypes();        // state_space_config.cc
std::span<const ModelType> DeltaRuleTypes();         // delta_rule_config.cc
std::span<const ModelType> ConvolutionTypes();       // convolution_config.cc
std::span<const ModelType> FullAttentionTypes();     // full_attention_config.cc
std::span<const ModelType> OwnCodeTypes();           // own_code_config.cc
// encoder_config.cc: those of two sides, too.
std::span<const ModelType> EncoderTypes();

// A type that is known and cannot be described (uncounted_types.cc): what of it
// is not counted, and the nearest that is read.
struct UncountedType {
  std::string_view type;
  std::string_view what;
  std::string_view nearest;  // empty: none
};
std::span<const UncountedType> UncountedTypes();

// Blocks, width, heads, inner width, words and positions, by the names that most
// types have for them.
// `usual`: the sizes of a type whose files leave out those of its class; 0: the
// file has to say it.
void ReadSizes(const ConfigJson& config,
               model::Architecture& architecture,
               const model::Architecture& usual = {});

// Names a key that nobody asked for and that may change the computation.
void RefuseUnknown(const ConfigJson& config, std::string_view type);

// A word of the feed-forward's function.
void SetActivation(const ConfigJson& config,
                   const char* key,
                   std::string_view name,
                   model::Architecture& architecture);
void ReadActivation(const ConfigJson& config,
                    const char* key,
                    const char* fallback,
                    model::Architecture& architecture);

// One share of dropout is counted for all of a model: that of hidden states.
struct CountedDropout {
  const char* key;
  double share;
};

// The share of another key has to drop out where the counted one does, and
// nowhere else. `fallback`: of the type's class.
void ExpectDropout(const ConfigJson& config,
                   const char* key,
                   double fallback,
                   const CountedDropout& counted);
// The same of a type whose published files drop nothing out there beside hidden
// states that are: it is counted with those.
void ExpectDropoutOrNone(const ConfigJson& config,
                         const char* key,
                         double fallback,
                         const CountedDropout& counted);

// The keys say nothing that a step computes.
void Ignore(const ConfigJson& config, std::initializer_list<const char*> keys);

}  // namespace trainfare::hardware
