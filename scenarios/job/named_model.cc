#include "scenarios/job/named_model.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "hardware/files/json_text.h"
#include "hardware/files/model_config.h"
#include "hardware/files/text_file.h"
#include "hardware/files/yaml_reader.h"
#include "model/error.h"
#include "model/presets.h"

namespace trainfare::scenarios {

namespace fs = std::filesystem;

std::optional<std::string> ConfigNamed(const std::string& name,
                                       const std::string& folder) {
  if (model::TryFindArchitecture(name)) return std::nullopt;
  std::error_code ignored;
  if (fs::is_directory(fs::path(folder) / name, ignored)) {
    return (fs::path(name) / "config.json").string();
  }
  if (name.ends_with(".json")) return name;
  return std::nullopt;
}

std::optional<std::string> ConfigAsked(const std::string& name) {
  if (IsConfigText(name)) return std::nullopt;
  if (auto config = ConfigNamed(name)) return config;
  std::error_code ignored;
  // A pipe has no name that tells what is in it: "/dev/fd/63".
  if (model::SpelledArchitecture(name) == nullptr &&
      fs::exists(name, ignored)) {
    return name;
  }
  return std::nullopt;
}

bool IsConfigText(std::string_view name) {
  const size_t start = name.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && name[start] == '{';
}

namespace {

// What is found under the name once only: a pipe, what this program has open.
bool IsPassing(const std::string& file) {
  std::error_code ignored;
  const fs::file_status status = fs::status(file, ignored);
  return fs::exists(status) &&
         (!fs::is_regular_file(status) || hardware::IsOpenFile(file));
}

// A model as scenarios spell it, { of: NAME, .. }, is no config.json.
void RefuseMapOf(const std::string& text) {
  const std::optional<std::string> of = ModelOfMap(text);
  if (!of) return;
  throw model::InputError(fmt::format(
      "--model: expected a name or a config.json, got a map with \"{}\"; hint: "
      "--model {} --set model.KEY=VALUE",
      kModelOf,
      *of));
}

std::string OnOneLine(const std::string& text, const std::string& file) {
  hardware::ParseModelConfig(text, file);
  return hardware::WriteJson(hardware::ParseJson(text, file));
}

}  // namespace

std::optional<std::string> ModelOfMap(const std::string& text) {
  try {
    const auto root = hardware::Reader::FromText(text, "--model");
    if (root.IsText(kModelOf)) return root.Text(kModelOf);
  } catch (const model::InputError&) {
    // It is read as what it is instead.
  }
  return std::nullopt;
}

std::optional<std::string> ConfigTextOf(const std::string& name) {
  if (IsConfigText(name)) {
    RefuseMapOf(name);
    return OnOneLine(name, "--model");
  }
  const std::optional<std::string> config = ConfigAsked(name);
  if (!config || !IsPassing(*config)) return std::nullopt;
  return OnOneLine(hardware::ModelConfigText(*config), *config);
}

NamedModel ReadNamedModel(const std::string& name, const std::string& text) {
  if (IsConfigText(name)) {
    return {name, std::nullopt, hardware::ParseModelConfig(name, text)};
  }
  NamedModel model{name, ConfigAsked(name), {}};
  model.architecture = model.config
                           ? hardware::ReadModelConfig(*model.config)
                           : model::FindArchitectureOr(name, kOrConfig);
  return model;
}

}  // namespace trainfare::scenarios
