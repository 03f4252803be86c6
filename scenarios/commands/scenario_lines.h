#pragma once

// The text of a scenario that people go on from, with what the command line
// sets in it.

#include <string>
#include <string_view>
#include <vector>

#include "hardware/files/yaml_reader.h"

namespace trainfare::scenarios {

// A key with its value, which is YAML of one line, or with keys of its own.
struct ScenarioLine {
  std::string key = "";
  std::string value = "";
  std::string comment = "";  // behind it
  std::vector<ScenarioLine> lines = {};
  bool is_block = false;  // a line for each of its keys
};

// Puts a setting where its path is, or behind all that is there.
void SetLine(const hardware::YamlSetting& setting,
             std::vector<ScenarioLine>& lines);

std::string TextOf(const std::vector<ScenarioLine>& lines);

}  // namespace trainfare::scenarios
