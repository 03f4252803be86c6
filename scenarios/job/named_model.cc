#include "scenarios/job/named_model.h"

#include <filesystem>
#include <system_error>

#include "hardware/files/model_config.h"
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
  if (auto config = ConfigNamed(name)) return config;
  std::error_code ignored;
  // A pipe has no name that tells what is in it: "/dev/fd/63".
  if (model::SpelledArchitecture(name) == nullptr &&
      fs::exists(name, ignored)) {
    return name;
  }
  return std::nullopt;
}

NamedModel ReadNamedModel(const std::string& name) {
  NamedModel model{name, ConfigAsked(name), {}};
  model.architecture = model.config
                           ? hardware::ReadModelConfig(*model.config)
                           : model::FindArchitectureOr(name, kOrConfig);
  return model;
}

}  // namespace trainfare::scenarios
