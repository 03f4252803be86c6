// The program: reads the command line, runs one command, and turns what went
// wrong into one line and an exit code.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.h"
#include "scenarios/command_line/applied_settings.h"
#include "scenarios/command_line/commands.h"
#include "scenarios/command_line/help.h"
#include "scenarios/command_line/settings.h"
#include "scenarios/report/output.h"

namespace {

namespace scenarios = trainfare::scenarios;

// `trainfare help predict` is `trainfare predict --help`, as in git.
std::vector<std::string> Arguments(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  return arguments;
}

enum class SettingUse { kRead, kIgnore };

int Run(const std::vector<std::string>& asked, SettingUse use);

// A saved answer has all that it was asked in its arguments.
int RunAgain(const std::vector<std::string>& arguments) {
  return Run(arguments, SettingUse::kIgnore);
}

// One of the commands.
struct Entry {
  std::string_view name;
  std::string_view about;
  scenarios::Command (*add)(CLI::App& sub, scenarios::CommonOptions& common);
  bool says_of_all = false;  // what the others take
};

constexpr auto kEntries = std::to_array<Entry>({
    {"calibrate",
     "Fit this machine's model to short training runs",
     scenarios::AddCalibrate},
    {"predict",
     "Time, cost, energy and memory of a training run",
     scenarios::AddPredict},
    {"recommend",
     "The cheapest instance that fits and meets the limits",
     scenarios::AddRecommend},
    {"validate", "Predictions beside measurements", scenarios::AddValidate},
    {"diff", "What moved between two saved answers", scenarios::AddDiff},
    {"replay",
     "A saved answer once more, from its own arguments",
     [](CLI::App& sub, scenarios::CommonOptions& common) {
       return AddReplay(sub, common, RunAgain);
     }},
    {"list", "What is known by name", scenarios::AddList},
    {"import",
     "All-reduces timed by nccl-tests, as measurement records",
     [](CLI::App& sub, scenarios::CommonOptions&) {
       return scenarios::AddImport(sub);
     }},
    {"init",
     "A scenario to go on from",
     [](CLI::App& sub, scenarios::CommonOptions&) {
       return scenarios::AddInit(sub);
     }},
    {"show", "A scenario with all that it leaves unsaid", scenarios::AddShow},
    {"prices", "Price catalogs", scenarios::AddPrices},
    {"config",
     "Settings of all commands, by files and environment",
     scenarios::AddConfig,
     true},
    {"completion",
     "What a shell completes behind Tab",
     [](CLI::App& sub, scenarios::CommonOptions&) {
       return scenarios::AddCompletion(sub);
     },
     true},
    {"man",
     "A page of the manual, for man(1)",
     [](CLI::App& sub, scenarios::CommonOptions&) {
       return scenarios::AddMan(sub);
     },
     true},
});

// Those that the line has to be read with: all say of themselves in help, where
// one is misspelt and where settings may be of any. To say what every one takes
// is a sixth of the work of a prediction.
std::span<const Entry> EntriesFor(const std::vector<std::string>& arguments,
                                  SettingUse use) {
  const auto found =
      std::find_if(kEntries.begin(), kEntries.end(), [&](const Entry& entry) {
        return !arguments.empty() && entry.name == arguments.front();
      });
  if (found == kEntries.end() || found->says_of_all ||
      (use == SettingUse::kRead && scenarios::MayHaveSettings(arguments))) {
    return kEntries;
  }
  return {found, 1};
}

// The exit code of the command that was asked for; what a setting got wrong is
// said with its origin.
int RunCommand(const std::vector<scenarios::Command>& commands,
               const std::vector<scenarios::Setting>& settings) {
  try {
    for (const scenarios::Command& command : commands) {
      const int code = command();
      if (code >= 0) return code;
    }
  } catch (const scenarios::UsageError& error) {
    throw scenarios::UsageError(WithOrigin(settings, error.what()));
  } catch (const trainfare::model::InputError& error) {
    throw trainfare::model::InputError(WithOrigin(settings, error.what()));
  }
  return scenarios::kUsage;
}

int Run(const std::vector<std::string>& asked, SettingUse use) {
  std::vector<std::string> arguments = asked;
  CLI::App app{
      "What will this training run take, on which accelerator, and for how "
      "much?",
      "trainfare"};
  scenarios::FitHelp(app);
  app.set_version_flag("--version",
                       "trainfare " + std::string(scenarios::Version()));
  app.require_subcommand(1);
  app.footer(std::string("trainfare COMMAND --help says more. calibrate, "
                         "predict, recommend, validate, diff, list, prices "
                         "import and config show have --format, --export, "
                         "--color, --quiet, --now and --config; those with "
                         "figures --fail-if, as show and replay have.\n\n") +
             scenarios::kStreamsAndCodes);
  scenarios::CommonOptions common;
  std::vector<scenarios::Command> commands;
  for (const Entry& entry : EntriesFor(arguments, use)) {
    CLI::App* sub =
        app.add_subcommand(std::string(entry.name), std::string(entry.about));
    commands.push_back(entry.add(*sub, common));
  }
  const auto exit_code = scenarios::Parse(app, arguments);
  if (exit_code) return *exit_code;
  std::vector<scenarios::Setting> settings;
  if (use == SettingUse::kRead) {
    settings = scenarios::Apply(common.setting_files(), app, arguments);
    if (!common.quiet()) scenarios::WarnOfUnknownVariables(app);
  }
  common.SetCommand(arguments);
  return RunCommand(commands, settings);
}

}  // namespace

int main(int argc, char** argv) {
  using trainfare::model::InputError;
  using trainfare::model::NothingFits;
  // A file beyond the size that the shell allows (ulimit -f) is an error as a
  // full disk is: one line, and nothing half-written stays.
  (void)std::signal(SIGXFSZ, SIG_IGN);
  try {
    return Run(Arguments(argc, argv), SettingUse::kRead);
  } catch (const scenarios::UsageError& error) {
    return scenarios::Fail(error.what(), scenarios::kUsage);
  } catch (const InputError& error) {
    return scenarios::Fail(error.what(), scenarios::kInput);
  } catch (const NothingFits& error) {
    return scenarios::Fail(error.what(), scenarios::kNothingFits);
  } catch (const std::filesystem::filesystem_error& error) {
    return scenarios::Fail(
        error.path1().string() + ": " + error.code().message(),
        scenarios::kInput);
  } catch (const std::exception& error) {
    return scenarios::Fail(std::string("internal error: ") + error.what(),
                           scenarios::kInternal);
  }
}
