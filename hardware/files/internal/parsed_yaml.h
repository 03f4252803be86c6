#pragma once

// YAML that was parsed when trainfare was built. Parsing takes longer than all
// else that a prediction does, and what ships does not change: beside the
// program lies each shipped file's tree, under a name made of the file's text.

#include <optional>
#include <string>
#include <string_view>

#include "hardware/files/internal/yaml_tree.h"

namespace trainfare::hardware::internal {

// Where, below a folder that ships.
inline constexpr std::string_view kParsedYaml = "parsed";

// "3f2a..", by the text alone.
std::string ParsedName(std::string_view text);

// `document`, which was parsed from `text`, as bytes.
std::string WriteParsed(std::string_view text, const YamlDocument& document);

// The same tree again, its file without a name. nullopt: the bytes are of
// another text, or not whole.
std::optional<YamlDocument> ReadParsed(std::string_view bytes,
                                       std::string_view text);

// From the folder that ships; nullopt: nothing there is of this text.
std::optional<YamlDocument> FindParsed(std::string_view text);

}  // namespace trainfare::hardware::internal
