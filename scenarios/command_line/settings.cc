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

#include "hardware/files/text_file.h"
#include "hardware/files/yaml_reader.h"
#include "model/error.h"
#include "model/nearest.h"
#include "model/presets.h"
#include "scenarios/job/named_model.h"

namespace trainfare::scenarios {
namespace {

using hardware::Reader;
using model::InputError;

constexpr const char* kProjectFile = "trainfare.yaml";

bool IsFlag(const CLI::Option& option) {
  return option.get_items_expected_max() == 0;
}

// Not where settings come from, and no files to write: whoever runs a command
// in a folder that others made does not expect them.
bool IsSettable(const CLI::Option& option) {
  constexpr std::array<std::string_view, 8> kOfTheLine = {"help",
                                                          "config",
                                                          "no-config",
                                                          "export",
                                                          "output",
                                                          "plan",
                                                          "script",
                                                          "origin"};
  const std::vector<std::string>& names = option.get_lnames();
  return !names.empty() &&
         std::find(kOfTheLine.begin(), kOfTheLine.end(), names.front()) ==
             kOfTheLine.end();
}

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

// Throws at the first key of a file that no command has; where there is none
// such, does nothing. A reader points at a key that nobody asked for, and this
// one is asked for all that there are.
void RefuseUnknownKey(const std::string& path,
                      const std::vector<const CLI::App*>& commands) {
  const Reader root = Reader::FromFile(path);
  for (const std::string& option : OptionsOf(commands)) root.Has(option);
  for (const CLI::App* command : commands) {
    if (!root.IsMap(NameOf(*command))) continue;
    const Reader map = root.Map(NameOf(*command));
    for (const std::string& option : OptionsOf({command})) map.Has(option);
  }
  root.Finish();
}

// Settings of one map of a file, whose keys are options of the commands.
std::vector<Setting> ReadOptions(const Reader& map,
                                 const std::vector<std::string>& keys,
                                 const std::vector<const CLI::App*>& commands,
                                 const std::vector<const CLI::App*>& all,
                                 const std::string& command) {
  const std::set<std::string> known = OptionsOf(commands);
  std::vector<Setting> settings;
  for (const std::string& key : keys) {
    if (!known.contains(key)) {
      RefuseUnknownKey(map.file(), all);
      map.Fail(key, "expected a map of options");
    }
    settings.push_back(
        {command, key, ValuesOf(map, key), map.Position(key), false});
  }
  return settings;
}

void SetOption(const Setting& setting, CLI::Option& option) {
  if (IsFlag(option)) {
    const std::string& word = setting.values.front();
    if (setting.values.size() != 1 || (word != "true" && word != "false")) {
      throw InputError(fmt::format(
          "--{}: expected true or false, got \"{}\"", setting.option, word));
    }
    if (word == "false") return;
    option.add_result(option.get_flag_value("", "true"));
  } else {
    if (setting.values.size() > 1 && option.get_items_expected_max() == 1 &&
        option.get_multi_option_policy() != CLI::MultiOptionPolicy::TakeAll) {
      throw InputError(
          fmt::format("--{}: expected one value, got a list", setting.option));
    }
    option.add_result(setting.values);
  }
  option.run_callback();
}

// A file that others wrote names only what lies within its folder: of any other
// file a line could land in a message. Names of presets are no files.
void RequireBeside(const Setting& setting, const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const bool is_file = type.find("FILE") != std::string::npos;
  const bool sets_key = type == "KEY=VALUE";
  if (!setting.of_folder || (!is_file && !sets_key)) return;
  for (const std::string& text : setting.values) {
    std::string value = sets_key ? text.substr(text.find('=') + 1) : text;
    const bool of_model = sets_key ? text.starts_with("model=")
                                   : type.find("FOLDER") != std::string::npos;
    std::error_code ignored;
    const bool is_there = std::filesystem::exists(value, ignored);
    const bool is_preset =
        of_model && model::SpelledArchitecture(value) != nullptr;
    if (!is_there && (is_preset || value.find('/') == std::string::npos)) {
      continue;
    }
    if (of_model) value = ConfigNamed(value).value_or(value);
    try {
      hardware::PathBeside(kProjectFile, value);
    } catch (const InputError& error) {
      throw InputError(fmt::format("--{}: {}", setting.option, error.what()));
    }
  }
}

// The option that was given beside which this one has no use; nullptr: none.
const CLI::Option* GivenInstead(const CLI::Option& option) {
  for (const CLI::Option* other : option.get_excludes()) {
    if (other->count() > 0) return other;
  }
  return nullptr;
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
  std::vector<std::string> plain;  // keys of options
  std::vector<Setting> source;
  for (const std::string& key : root.Keys()) {
    const auto named = std::find_if(
        commands.begin(), commands.end(), [&](const CLI::App* command) {
          return NameOf(*command) == key;
        });
    if (named == commands.end() || !root.IsMap(key)) {
      plain.push_back(key);
      continue;
    }
    const Reader map = root.Map(key);
    for (Setting& setting :
         ReadOptions(map, map.Keys(), {*named}, commands, key)) {
      source.push_back(std::move(setting));
    }
  }
  for (Setting& setting : ReadOptions(root, plain, commands, commands, "")) {
    source.push_back(std::move(setting));
  }
  root.Finish();
  for (Setting& setting : source) setting.of_folder = of_folder;
  sources_.push_back(std::move(source));
  files_.push_back({path, true});
}

std::vector<std::string> UnknownVariables(const CLI::App& app) {
  // Without what all of them begin with, which would make all alike.
  std::vector<std::string> settings;
  for (const std::string& option : OptionsOf(CommandsOf(app))) {
    settings.push_back(VariableOf(option).substr(kPrefix.size()));
  }
  std::vector<std::string> lines;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with(kPrefix) || IsOtherVariable(name)) continue;
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
  const std::vector<std::string>& names = option.get_lnames();
  for (const std::vector<Setting>& source : sources_) {
    const Setting* of_all = nullptr;
    for (const Setting& setting : source) {
      if (std::find(names.begin(), names.end(), setting.option) ==
          names.end()) {
        continue;
      }
      if (setting.command.empty()) {
        of_all = &setting;
      } else if (setting.command == NameOf(command)) {
        return &setting;
      }
    }
    if (of_all != nullptr) return of_all;
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

std::vector<Setting> Apply(const Settings& settings, CLI::App& command) {
  std::vector<Setting> applied;
  std::vector<const CLI::Option*> set;
  for (CLI::Option* option :
       command.get_options([](CLI::Option* one) { return IsSettable(*one); })) {
    if (option->count() > 0) continue;
    const Setting* setting = settings.Of(command, *option);
    if (setting == nullptr) continue;
    // The library, and SetOption(), name the option in what they say.
    const auto refuse = [&](const std::string& what) {
      throw InputError(setting->origin + ": " + what);
    };
    if (const CLI::Option* other = GivenInstead(*option)) {
      // What the line says goes first.
      if (std::find(set.begin(), set.end(), other) == set.end()) continue;
      refuse(fmt::format("{}: not with {}, which {} says",
                         option->get_name(),
                         other->get_name(),
                         settings.Of(command, *other)->origin));
    }
    try {
      RequireBeside(*setting, *option);
      SetOption(*setting, *option);
    } catch (const CLI::Error& error) {
      refuse(error.what());
    } catch (const InputError& error) {
      refuse(error.what());
    }
    set.push_back(option);
    applied.push_back(*setting);
    applied.back().option = option->get_lnames().front();
  }
  return applied;
}

std::vector<Setting> Apply(const SettingFiles& files,
                           CLI::App& app,
                           std::vector<std::string>& arguments) {
  CLI::App& command = AskedCommand(app);
  if (!TakesSettings(command)) return {};
  std::vector<Setting> applied = Apply(Settings(app, files), command);
  for (const Setting& setting : applied) {
    for (const std::string& value : setting.values) {
      arguments.push_back("--" + setting.option + "=" + value);
    }
  }
  return applied;
}

std::string WithOrigin(const std::vector<Setting>& applied,
                       const std::string& message) {
  for (const Setting& setting : applied) {
    const std::string flag = "--" + setting.option;
    if (!message.starts_with(flag + ":") && !message.starts_with(flag + " ")) {
      continue;
    }
    return setting.origin + ": " + message;
  }
  return message;
}

}  // namespace trainfare::scenarios
