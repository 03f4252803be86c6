#pragma once

// Architectures by name.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/architecture.h"

namespace trainfare::model {

// The presets that ship with the tool, sorted by name.
std::span<const Architecture> ArchitecturePresets();
// Checkpoints of their architectures that were trained for other lengths.
std::vector<Architecture> CheckpointsOfOtherLengths();
// What else a preset is called, and other checkpoints of its architecture.
std::vector<std::string_view> AliasesOf(std::string_view preset);
// By exact name or alias.
std::optional<Architecture> TryFindArchitecture(std::string_view name);
// Also as people spell it: letter case, what separates words and the
// organisation before a slash do not count, nor do words of a checkpoint that
// has the same architecture ("meta-llama/Llama-3.1-8B-Instruct"). Sizes count
// to their points ("qwen3-17b" is not Qwen3 1.7B). nullptr where there is none,
// or more than one.
const Architecture* SpelledArchitecture(std::string_view name);
// The same; throws InputError naming the nearest presets.
const Architecture& FindArchitecture(std::string_view name);
// The same, where something else may be given, too: ", or its file".
const Architecture& FindArchitectureOr(std::string_view name,
                                       std::string_view or_else);
// "; did you mean "gpt2"?" for a name that no preset has; empty where none is
// near.
std::string ArchitecturesMeant(std::string_view name);
// Bits of the weights that such a name says ("-bnb-4bit", "-GPTQ") and its
// architecture does not; 0: it says none below 16.
int64_t BitsInName(std::string_view name);

}  // namespace trainfare::model
