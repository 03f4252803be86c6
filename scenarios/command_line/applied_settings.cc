#include "scenarios/command_line/applied_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <system_error>

#include "hardware/files/text_file.h"
#include "hardware/files/yaml_reader.h"
#include "model/error.h"
#include "model/presets.h"
#include "scenarios/job/named_model.h"
#include "scenarios/published/published_job.h"

namespace trainfare::scenarios {
namespace {

using model::InputError;

bool IsFlag(const CLI::Option& option) {
  return option.get_items_expected_max() == 0;
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
// file a line could land in a message. Names of presets are no files, and a
// folder is read of a model alone.
void RequireBeside(const std::string& option,
                   const std::string& value,
                   bool of_model) {
  if (of_model && (IsConfigText(value) || model::TryFindArchitecture(value))) {
    return;
  }
  std::error_code ignored;
  const bool is_there =
      std::filesystem::exists(value, ignored) &&
      (of_model || !std::filesystem::is_directory(value, ignored));
  const bool is_preset =
      of_model && model::SpelledArchitecture(value) != nullptr;
  if (!is_there && (is_preset || value.find('/') == std::string::npos)) return;
  try {
    hardware::PathBeside(kProjectFile,
                         of_model ? ConfigNamed(value).value_or(value) : value);
  } catch (const InputError& error) {
    throw InputError(fmt::format("--{}: {}", option, error.what()));
  }
}

// The same of every file that a setting of the folder's file may name.
void RequireFilesBeside(const Setting& setting, const CLI::Option& option) {
  if (!setting.of_folder) return;
  const std::string type = option.get_type_name();
  for (const std::string& text : setting.values) {
    if (type.find("FILE") != std::string::npos) {
      RequireBeside(
          setting.option, text, type.find("FOLDER") != std::string::npos);
    }
    const size_t equals = text.find('=');
    if (type != "KEY=VALUE" || equals == std::string::npos) continue;
    // What is read in the end: in quotes a path may stand in escapes.
    const std::string key = text.substr(0, equals);
    for (const std::string& value : hardware::TextsOf(
             {key, text.substr(equals + 1), "--" + setting.option})) {
      RequireBeside(setting.option, value, key == "model" || key == "model.of");
    }
  }
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
    {"predict", "--device", "--fit"},
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
  RequireFilesBeside(setting, option);
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

// Flags of prices, which `predict` refuses of a line that names no instance: of
// settings, which are for all lines, they wait for one that does.
bool IsOfPrices(const CLI::Option& option) {
  constexpr std::array<std::string_view, 4> kOfPrices = {
      "--spot", "--prices", "--region", "--discount"};
  return std::find(kOfPrices.begin(), kOfPrices.end(), option.get_name()) !=
         kOfPrices.end();
}

// Whether it is a published run that says on which instance it ran.
bool NamesRentedRun(const std::string& scenario) {
  if (!NamesPublishedRun(scenario)) return false;
  try {
    return LoadPublishedJob(scenario).instance != nullptr;
  } catch (const InputError&) {
    return false;  // which the command says itself
  }
}

// Whether there is something that has a price.
bool MayBeRented(const CLI::App& command) {
  if (NameOf(command) != "predict") return true;
  const auto given = [&](const char* option) {
    return command.get_option(option)->count() > 0;
  };
  if (given("--instance")) return true;
  if (!given("SCENARIO") || given("--device") || given("--fit")) return false;
  return NamesRentedRun(command.get_option("SCENARIO")->as<std::string>());
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

// Sets those of the options that the line leaves out, each by the first layer
// that says anything of it, and adds what did to `applied`.
void ApplyTo(const std::vector<CLI::Option*>& options,
             const std::vector<std::vector<Setting>>& layers,
             const CLI::App& command,
             std::vector<Setting>& applied) {
  std::set<const CLI::Option*> decided;
  for (const CLI::Option* option : options) {
    if (option->count() > 0) decided.insert(option);
  }
  for (const std::vector<Setting>& layer : layers) {
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
}

}  // namespace

std::vector<Setting> Apply(const Settings& settings, CLI::App& command) {
  std::vector<CLI::Option*> open =
      command.get_options([](CLI::Option* one) { return IsSettable(*one); });
  const auto priced =
      std::stable_partition(open.begin(), open.end(), [](CLI::Option* one) {
        return !IsOfPrices(*one);
      });
  const std::vector<std::vector<Setting>> layers = LayersFor(settings, command);
  std::vector<Setting> applied;
  ApplyTo({open.begin(), priced}, layers, command, applied);
  if (MayBeRented(command)) {
    ApplyTo({priced, open.end()}, layers, command, applied);
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
