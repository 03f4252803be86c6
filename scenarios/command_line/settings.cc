#include "scenarios/command_line/settings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

#include "hardware/files/yaml_reader.h"
#include "model/error.h"
#include "model/nearest.h"
#include "scenarios/command_line/arguments.h"

namespace trainfare::scenarios {
namespace {

using hardware::Reader;
using model::InputError;

std::vector<const CLI::App*> CommandsOf(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (TakesSettings(*command)) commands.push_back(command);
    for (const CLI::App* part : CommandsOf(*command)) commands.push_back(part);
  }
  return commands;
}

// Names of the options that files and environment may set.
std::set<std::string> OptionsOf(const std::vector<const CLI::App*>& commands) {
  std::set<std::string> names;
  for (const CLI::App* command : commands) {
    for (const CLI::Option* option : command->get_options()) {
      if (!IsSettable(*option)) continue;
      names.insert(option->get_lnames().begin(), option->get_lnames().end());
    }
  }
  return names;
}

constexpr std::string_view kPrefix = "TRAINFARE_";

// Variables of the program, of its set-up and of its tests that set no option.
bool IsOtherVariable(std::string_view name) {
  constexpr std::array<std::string_view, 26> kOthers = {"BENCHMARKS",
                                                        "CACHE",
                                                        "COMMIT",
                                                        "CUDA",
                                                        "DATA_DIR",
                                                        "FAKE_NVML",
                                                        "FITS",
                                                        "FUZZ",
                                                        "FUZZ_MUTATIONS",
                                                        "FUZZ_SEED",
                                                        "FUZZ_TARGET",
                                                        "LIBTORCH_DIR",
                                                        "NCCL_INCLUDE",
                                                        "PACKAGES",
                                                        "PROPERTY_QUESTIONS",
                                                        "PROPERTY_SEED",
                                                        "RANKS_SECRET",
                                                        "RECORDS",
                                                        "SANITIZE",
                                                        "SANITIZED",
                                                        "SHARED",
                                                        "SKYPILOT_PYTHON",
                                                        "TRAINER",
                                                        "UNITY",
                                                        "VERSIONS",
                                                        "WERROR"};
  return std::find(kOthers.begin(),
                   kOthers.end(),
                   name.substr(kPrefix.size())) != kOthers.end();
}

// Names of the environment's variables that look like settings.
std::vector<std::string_view> SettingVariables() {
  std::vector<std::string_view> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (name.starts_with(kPrefix) && !IsOtherVariable(name)) {
      names.push_back(name);
    }
  }
  return names;
}

std::string VariableOf(std::string_view option) {
  std::string name(kPrefix);
  for (const char letter : option) {
    const bool is_lower = letter >= 'a' && letter <= 'z';
    name += letter == '-' ? '_'
            : is_lower    ? static_cast<char>(letter - 'a' + 'A')
                          : letter;
  }
  return name;
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Empty: nowhere to look for one.
std::string UserFile() {
  std::filesystem::path folder = Variable("XDG_CONFIG_HOME");
  if (folder.empty()) {
    const std::string home = Variable("HOME");
    if (home.empty()) return "";
    folder = std::filesystem::path(home) / ".config";
  }
  return (folder / "trainfare" / "config.yaml").string();
}

std::vector<std::string> ValuesOf(const Reader& map, const std::string& key) {
  if (map.IsList(key)) return map.Texts(key);
  return {map.Text(key)};
}

// What a map of a file says of the options of the commands. It is asked for all
// of them, so that a key which is none is found out.
std::vector<Setting> ReadOptions(const Reader& map,
                                 const std::vector<const CLI::App*>& commands,
                                 const std::string& command) {
  std::vector<Setting> settings;
  for (const std::string& option : OptionsOf(commands)) {
    if (!map.Has(option)) continue;
    settings.push_back(
        {command, option, ValuesOf(map, option), map.Position(option), false});
  }
  return settings;
}

}  // namespace

std::string Setting::Key() const {
  return command.empty() ? option : command + "." + option;
}

std::string NameOf(const CLI::App& command) {
  std::string name = command.get_name();
  for (const CLI::App* part = command.get_parent();
       part != nullptr && part->get_parent() != nullptr;
       part = part->get_parent()) {
    name.insert(0, part->get_name() + " ");
  }
  return name;
}

bool IsSettable(const CLI::Option& option) {
  constexpr std::array<std::string_view, 4> kOfTheLine = {
      "help", "config", "no-config", "origin"};
  const std::vector<std::string>& names = option.get_lnames();
  return !names.empty() && !WritesFile(option) &&
         std::find(kOfTheLine.begin(), kOfTheLine.end(), names.front()) ==
             kOfTheLine.end();
}

const Setting* FindSetting(const std::vector<Setting>& source,
                           const CLI::App& command,
                           const CLI::Option& option) {
  const std::vector<std::string>& names = option.get_lnames();
  const Setting* of_all = nullptr;
  for (const Setting& setting : source) {
    if (std::find(names.begin(), names.end(), setting.option) == names.end()) {
      continue;
    }
    if (setting.command.empty()) {
      of_all = &setting;
    } else if (setting.command == NameOf(command)) {
      return &setting;
    }
  }
  return of_all;
}

bool TakesSettings(const CLI::App& command) {
  return command.get_option_no_throw("--config") != nullptr;
}

CLI::App& AskedCommand(CLI::App& app) {
  CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return *at;
}

Settings::Settings(const CLI::App& app, const SettingFiles& files) {
  ReadEnvironment(app);
  if (files.none) return;
  const auto read_if_there = [&](const std::string& path, bool of_folder) {
    std::error_code error;
    if (std::filesystem::exists(path, error)) {
      ReadFile(app, path, of_folder);
    } else {
      files_.push_back({path, false});
    }
  };
  if (!files.config.empty()) {
    ReadFile(app, files.config, false);
  } else {
    read_if_there(kProjectFile, true);
  }
  if (const std::string user = UserFile(); !user.empty()) {
    read_if_there(user, false);
  }
}

void Settings::ReadEnvironment(const CLI::App& app) {
  std::vector<Setting>& source = sources_.emplace_back();
  for (const std::string& option : OptionsOf(CommandsOf(app))) {
    const std::string name = VariableOf(option);
    const std::string value = Variable(name.c_str());
    if (!value.empty()) {
      source.push_back({"", option, {value}, name, false});
    }
  }
}

void Settings::ReadFile(const CLI::App& app,
                        const std::string& path,
                        bool of_folder) {
  // A queue that nobody named would be waited for.
  std::error_code ignored;
  if (of_folder && !std::filesystem::is_regular_file(path, ignored)) {
    throw InputError(path, 0, 0, "expected a regular file");
  }
  const Reader root = Reader::FromFile(path);
  const std::vector<const CLI::App*> commands = CommandsOf(app);
  std::vector<Setting> source = ReadOptions(root, commands, "");
  for (const CLI::App* command : commands) {
    const std::string name = NameOf(*command);
    if (!root.Has(name)) continue;
    if (!root.IsMap(name)) root.Fail(name, "expected a map of options");
    for (Setting& setting : ReadOptions(root.Map(name), {command}, name)) {
      source.push_back(std::move(setting));
    }
  }
  root.Finish();
  for (Setting& setting : source) setting.of_folder = of_folder;
  sources_.push_back(std::move(source));
  files_.push_back({path, true});
}

bool MayHaveSettings(const std::vector<std::string>& arguments) {
  const auto is_there = [](const std::string& path) {
    std::error_code error;
    return !path.empty() && std::filesystem::exists(path, error);
  };
  return !SettingVariables().empty() || is_there(kProjectFile) ||
         is_there(UserFile()) ||
         std::any_of(arguments.begin(),
                     arguments.end(),
                     [](const std::string& argument) {
                       return argument.starts_with("--config");
                     });
}

std::vector<std::string> UnknownVariables(const CLI::App& app) {
  // Without what all of them begin with, which would make all alike.
  std::vector<std::string> settings;
  for (const std::string& option : OptionsOf(CommandsOf(app))) {
    settings.push_back(VariableOf(option).substr(kPrefix.size()));
  }
  std::vector<std::string> lines;
  for (const std::string_view name : SettingVariables()) {
    const std::string_view rest = name.substr(kPrefix.size());
    if (std::find(settings.begin(), settings.end(), rest) != settings.end()) {
      continue;
    }
    const auto near = model::Nearest(rest, model::NameViews(settings), 1);
    lines.push_back(fmt::format(
        "{}: no setting has this name{}",
        name,
        near.empty()
            ? ""
            : fmt::format("; did you mean \"{}{}\"?", kPrefix, near.front())));
  }
  return lines;
}

const Setting* Settings::Of(const CLI::App& command,
                            const CLI::Option& option) const {
  for (const std::vector<Setting>& source : sources_) {
    const Setting* setting = FindSetting(source, command, option);
    if (setting != nullptr) return setting;
  }
  return nullptr;
}

std::vector<const Setting*> Settings::InForce(const CLI::App& app) const {
  std::vector<const Setting*> in_force;
  for (const CLI::App* command : CommandsOf(app)) {
    for (const CLI::Option* option : command->get_options()) {
      if (!IsSettable(*option)) continue;
      const Setting* setting = Of(*command, *option);
      if (setting != nullptr &&
          std::find(in_force.begin(), in_force.end(), setting) ==
              in_force.end()) {
        in_force.push_back(setting);
      }
    }
  }
  return in_force;
}

}  // namespace trainfare::scenarios
