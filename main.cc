// The program: reads the command line, runs one command, and turns what went
// wrong into one line and an exit code.

#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <filesystem>
#include <string>
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

enum class SettingUse { kRead, kIgnore };

int Run(const std::vector<std::string>& asked, SettingUse use);

// A saved answer has all that it was asked in its arguments.
int RunAgain(const std::vector<std::string>& arguments) {
  return Run(arguments, SettingUse::kIgnore);
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
  app.footer(std::string("trainfare COMMAND --help says more. Every answer has "
                         "--format, --export, --color, --quiet, --now and "
                         "--config; those with figures --fail-if.\n\n") +
             scenarios::kStreamsAndCodes);
  scenarios::CommonOptions common;
  const std::vector<scenarios::Command> commands = {
      AddCalibrate(app, common),
      AddPredict(app, common),
      AddRecommend(app, common),
      AddValidate(app, common),
      AddDiff(app, common),
      AddReplay(app, common, RunAgain),
      AddList(app, common),
      scenarios::AddImport(app),
      scenarios::AddInit(app),
      AddShow(app, common),
      AddPrices(app, common),
      AddConfig(app, common),
      scenarios::AddCompletion(app),
      scenarios::AddMan(app)};
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
