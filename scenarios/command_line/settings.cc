#include "scenarios/command_line/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "hardware/files/text_file.h"
#include "hardware/files/yaml_reader.h"
#include "model/error.h"
#include "model/nearest.h"
#include "model/presets.h"
#include "scenarios/command_line/arguments.h"
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
  constexpr std::array<std::string_view, 4> kOfTheLine = {
      "help", "config", "no-config", "origin"};
  const std::vector<std::string>& names = option.get_lnames();
  return !names.empty() && !WritesFile(option) &&
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

// Gives the option the values, which it has not read yet.
void AddValues(const Setting& setting, CLI::Option& option) {
  if (IsFlag(option)) {
    if (setting.values != std::vector<std::string>{"true"}) {
      throw InputError(fmt::format("--{}: expected true or false, got \"{}\"",
                                   setting.option,
                                   fmt::join(setting.values, ", ")));
    }
    option.add_result(option.get_flag_value("", "true"));
    return;
  }
  if (setting.values.size() > 1 && option.get_items_expected_max() == 1 &&
      option.get_multi_option_policy() != CLI::MultiOptionPolicy::TakeAll) {
    throw InputError(
        fmt::format("--{}: expected one value, got a list", setting.option));
  }
  option.add_result(setting.values);
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
    // In quotes a path may stand in escapes: "\x2e\x2e".
    if (sets_key && value.find_first_of("\"'") == 0) {
      throw InputError(
          fmt::format("--{}: expected a value without quotes in "
                      "{}, got {}",
                      setting.option,
                      kProjectFile,
                      value));
    }
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

// What one source says of an option of the command; nullptr: nothing.
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

// A switch that is off, or none of a list: goes with anything.
bool SaysNothing(const Setting& setting, const CLI::Option& option) {
  return IsFlag(option) ? setting.values == std::vector<std::string>{"false"}
                        : setting.values.empty();
}

// Options that a line may have both of, but that say one thing: where a job
// runs. What a stronger layer says of it, by either, stands alone.
struct Alternative {
  std::string_view command;
  std::string_view option;
  std::string_view other;
};
constexpr auto kAlternatives = std::to_array<Alternative>({
    {"predict", "--device", "--instance"},
    {"predict", "--instance", "--device"},
    {"recommend", "--device", "--instance"},
    {"recommend", "--instance", "--device"},
    {"recommend", "--cloud", "--instance"},
});

// The options that one layer has set, and what it said.
using SetByLayer = std::map<const CLI::Option*, const Setting*>;

// Whether the line or a stronger layer says it by another option.
bool IsSaidOtherwise(const CLI::App& command,
                     const CLI::Option& option,
                     const SetByLayer& set) {
  const std::string name = NameOf(command);
  return std::any_of(
      kAlternatives.begin(), kAlternatives.end(), [&](const Alternative& one) {
        if (one.command != name || one.option != option.get_name()) {
          return false;
        }
        const CLI::Option* other = command.get_option(std::string(one.other));
        return other->count() > 0 && !set.contains(other);
      });
}

// Whether the option gives way to what the line or a stronger layer says.
// Throws InputError where its own layer says both.
bool GivesWay(const CLI::App& command,
              const CLI::Option& option,
              const SetByLayer& set) {
  if (IsSaidOtherwise(command, option, set)) return true;
  const CLI::Option* beside = nullptr;
  for (const CLI::Option* other : option.get_excludes()) {
    if (other->count() == 0) continue;
    if (!set.contains(other)) return true;
    beside = other;
  }
  if (beside == nullptr) return false;
  throw InputError(fmt::format("{}: not with {}, which {} says",
                               option.get_name(),
                               beside->get_name(),
                               set.at(beside)->origin));
}

// Sets an option that nothing stronger has set; returns whether it did, or gave
// way. Throws InputError or the library's error, which name the option.
bool SetOption(const Setting& setting,
               const SetByLayer& set,
               const CLI::App& command,
               CLI::Option& option) {
  if (SaysNothing(setting, option)) return true;
  if (GivesWay(command, option, set)) return false;
  RequireBeside(setting, option);
  AddValues(setting, option);
  // Its value may say beside what it has no use.
  (void)option.reduced_results();
  if (GivesWay(command, option, set)) {
    option.clear();
    return false;
  }
  option.run_callback();
  return true;
}

// What each source says of a command alone, then of every one: what is said of
// less goes first.
std::vector<std::vector<Setting>> LayersFor(const Settings& settings,
                                            const CLI::App& command) {
  const std::string name = NameOf(command);
  std::vector<std::vector<Setting>> layers;
  for (const std::vector<Setting>& source : settings.sources()) {
    for (const std::string& of : {name, std::string()}) {
      std::vector<Setting>& layer = layers.emplace_back();
      std::copy_if(source.begin(),
                   source.end(),
                   std::back_inserter(layer),
                   [&](const Setting& one) { return one.command == of; });
    }
  }
  return layers;
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

std::vector<Setting> Apply(const Settings& settings, CLI::App& command) {
  std::vector<Setting> applied;
  std::set<const CLI::Option*> decided;
  const std::vector<CLI::Option*> options =
      command.get_options([](CLI::Option* one) { return IsSettable(*one); });
  for (const CLI::Option* option : options) {
    if (option->count() > 0) decided.insert(option);
  }
  for (const std::vector<Setting>& layer : LayersFor(settings, command)) {
    SetByLayer set;
    for (CLI::Option* option : options) {
      if (decided.contains(option)) continue;
      const Setting* setting = FindSetting(layer, command, *option);
      if (setting == nullptr) continue;
      try {
        if (!SetOption(*setting, set, command, *option)) continue;
      } catch (const CLI::Error& error) {
        throw InputError(setting->origin + ": " + error.what());
      } catch (const InputError& error) {
        throw InputError(setting->origin + ": " + error.what());
      }
      decided.insert(option);
      set[option] = setting;
      applied.push_back(*setting);
      applied.back().option = option->get_lnames().front();
    }
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
  if (!message.starts_with("--")) return message;
  // What it is about: a flag, or several: "--device, --instance: ..".
  const std::string about = ", " + message.substr(0, message.find(':')) + ",";
  for (const Setting& setting : applied) {
    const std::string flag = "--" + setting.option;
    if (message.starts_with(flag + " ") ||
        about.find(", " + flag + ",") != std::string::npos) {
      return setting.origin + ": " + message;
    }
  }
  return message;
}

}  // namespace trainfare::scenarios
