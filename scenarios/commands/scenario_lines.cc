#include "scenarios/commands/scenario_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace trainfare::scenarios {
namespace {

constexpr size_t kCommentColumn = 32;

ScenarioLine& LineOf(std::string_view key, std::vector<ScenarioLine>& lines) {
  const auto found =
      std::find_if(lines.begin(), lines.end(), [&](const ScenarioLine& line) {
        return line.key == key;
      });
  if (found != lines.end()) return *found;
  return lines.emplace_back(ScenarioLine{std::string(key), ""});
}

void SetAt(std::string_view path,
           const hardware::YamlSetting& setting,
           std::vector<ScenarioLine>& lines) {
  const size_t dot = path.find('.');
  ScenarioLine& line = LineOf(path.substr(0, dot), lines);
  if (dot == std::string_view::npos) {
    line.value = setting.value;
    line.lines.clear();
    line.is_block = false;
    return;
  }
  // What stood there alone keeps its place in the map that it becomes.
  if (!line.value.empty() && !setting.single_key.empty()) {
    line.lines.push_back({setting.single_key, line.value});
  }
  line.value.clear();
  line.is_block = true;
  SetAt(path.substr(dot + 1), setting, line.lines);
}

// "{ name: adamw, implementation: fused }".
std::string FlowOf(const ScenarioLine& line) {
  if (line.lines.empty()) return line.value;
  std::vector<std::string> parts;
  for (const ScenarioLine& one : line.lines) {
    parts.push_back(fmt::format("{}: {}", one.key, FlowOf(one)));
  }
  return fmt::format("{{ {} }}", fmt::join(parts, ", "));
}

void Write(const std::vector<ScenarioLine>& lines,
           size_t depth,
           std::string& text) {
  for (const ScenarioLine& line : lines) {
    text += fmt::format("{:{}}{}:", "", 2 * depth, line.key);
    if (line.is_block) {
      text += '\n';
      Write(line.lines, depth + 1, text);
      continue;
    }
    const std::string value = FlowOf(line);
    text += fmt::format(" {}", value);
    if (!line.comment.empty()) {
      const size_t width = 2 * depth + line.key.size() + 2 + value.size();
      const size_t space =
          width + 2 < kCommentColumn ? kCommentColumn - width : 2;
      text += fmt::format("{:{}}# {}", "", space, line.comment);
    }
    text += '\n';
  }
}

}  // namespace

void SetLine(const hardware::YamlSetting& setting,
             std::vector<ScenarioLine>& lines) {
  SetAt(setting.path, setting, lines);
}

std::string TextOf(const std::vector<ScenarioLine>& lines) {
  std::string text;
  Write(lines, 0, text);
  return text;
}

}  // namespace trainfare::scenarios
