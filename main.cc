// The command line: a subcommand a function of its folder.

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.h"
#include "model/nearest.h"
#include "scenarios/output.h"
#include "scenarios/predict.h"
#include "scenarios/recommend.h"
#include "scenarios/validate.h"

namespace {

using trainfare::model::InputError;
using trainfare::model::NothingFits;
namespace scenarios = trainfare::scenarios;

int Fail(std::string_view message, int code) {
  std::cerr << "trainfare: " << message << "\n";
  return code;
}

// What every subcommand takes.
struct Common {
  std::string format = "table";
  std::string colour = "auto";
  scenarios::OutputOptions output;

  void AddTo(CLI::App& app) {
    app.add_option("--format", format, "table, json, csv or markdown")
        ->type_name("FORMAT");
    app.add_option("--export",
                   output.exports,
                   "Also write FILE; .json, .csv or .md decides what; may be "
                   "repeated. Machine formats have base units (s, B, J, USD)")
        ->type_name("FILE")
        ->expected(1)
        ->take_all();
    app.add_option("--color", colour, "auto, always or never")
        ->type_name("WHEN")
        ->check(CLI::IsMember({"auto", "always", "never"}));
    app.add_flag(
        "--quiet", output.quiet, "Nothing on standard error but errors");
  }

  void Finish() {
    output.format = scenarios::FormatFromText(format);
    scenarios::CheckExports(output.exports);
    const bool terminal = ::isatty(STDOUT_FILENO) != 0;
    const auto is_set = [](const char* name) {
      const char* value = std::getenv(name);
      return value != nullptr && *value != '\0';
    };
    const char* kind = std::getenv("TERM");
    const bool dumb = kind != nullptr && std::string_view(kind) == "dumb";
    output.colour = colour == "always" || (colour == "auto" && terminal &&
                                           !is_set("NO_COLOR") && !dumb);
    if (terminal) {
      winsize size{};
      if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        output.width = size.ws_col;
      }
    }
  }
};

using Command = std::function<int()>;

int Show(Common& common, const std::function<scenarios::Report()>& make) {
  common.Finish();
  const scenarios::Report report = make();
  scenarios::Write(report, common.output, std::cout, std::cerr);
  if (!report.complaint.empty()) Fail(report.complaint, report.exit_code);
  return report.exit_code;
}

void AddOverrides(CLI::App& app, scenarios::Overrides& overrides) {
  app.add_option("--batch", overrides.batches, "Batch per device: 8,16,32")
      ->type_name("N,..")
      ->delimiter(',');
  app.add_option("--seq", overrides.lengths, "Static length: 32,128")
      ->type_name("N,..")
      ->delimiter(',');
  app.add_option("--precision", overrides.precision, "fp32, tf32, fp16 or bf16")
      ->type_name("NAME");
  app.add_option("--epochs", overrides.epochs, "Epochs")->type_name("N");
}

Command AddPredict(CLI::App& app, Common& common) {
  auto options = std::make_shared<scenarios::PredictOptions>();
  CLI::App* sub = app.add_subcommand(
      "predict", "Time, cost, energy and memory of a training run");
  sub->add_option("SCENARIO",
                  options->scenario,
                  "A file, or the name of a shipped scenario")
      ->required();
  sub->add_option("--device", options->device, "Device (default: this CPU)")
      ->type_name("NAME");
  sub->add_option("--instance", options->instance, "Cloud instance")
      ->type_name("NAME");
  sub->add_option("--fit", options->fit, "Fit to use")->type_name("FILE");
  sub->add_option("--devices", options->devices, "Devices, data parallel")
      ->type_name("N");
  sub->add_flag("--spot", options->spot, "Spot prices");
  AddOverrides(*sub, options->overrides);
  common.AddTo(*sub);
  return [options, &common, sub] {
    if (!*sub) return -1;
    return Show(common, [&] { return scenarios::Predict(*options); });
  };
}

Command AddRecommend(CLI::App& app, Common& common) {
  struct Flags {
    scenarios::RecommendOptions options;
    std::string deadline;
    std::string budget;
    std::string objective = "cost";
  };
  auto flags = std::make_shared<Flags>();
  scenarios::RecommendOptions& options = flags->options;
  CLI::App* sub = app.add_subcommand(
      "recommend", "The cheapest instance that fits and meets the limits");
  sub->add_option("SCENARIO",
                  options.scenario,
                  "A file, or the name of a shipped scenario")
      ->required();
  sub->add_option("--deadline", flags->deadline, "Longest run, such as 4h")
      ->type_name("TIME");
  sub->add_option("--budget", flags->budget, "Highest cost, such as 20usd")
      ->type_name("USD");
  sub->add_option("--objective", flags->objective, "cost, time or energy")
      ->type_name("WHAT");
  sub->add_flag("--spot", options.spot, "Spot prices");
  sub->add_option("--cloud", options.clouds, "Only these: aws,gcp")
      ->type_name("NAME,..")
      ->delimiter(',');
  AddOverrides(*sub, options.overrides);
  common.AddTo(*sub);
  return [flags, &options, &common, sub] {
    if (!*sub) return -1;
    options.objective = scenarios::ObjectiveFromText(flags->objective);
    if (!flags->deadline.empty()) {
      options.deadline = scenarios::TimeFlag("--deadline", flags->deadline);
    }
    if (!flags->budget.empty()) {
      options.budget = scenarios::MoneyFlag("--budget", flags->budget);
    }
    return Show(common, [&] { return scenarios::Recommend(options); });
  };
}

Command AddValidate(CLI::App& app, Common& common) {
  struct Flags {
    scenarios::ValidateOptions options;
    std::string protocol = "as-shipped";
    std::string group_by = "device";
    std::vector<std::string> fail_if;
  };
  auto flags = std::make_shared<Flags>();
  scenarios::ValidateOptions& options = flags->options;
  CLI::App* sub =
      app.add_subcommand("validate", "Predictions beside measurements");
  sub->add_option("FILE",
                  options.files,
                  "Measurements: JSON Lines of the trainer, or CSV tables")
      ->required();
  sub->add_option("--protocol",
                  flags->protocol,
                  "What predictions may have seen: as-shipped (nothing), "
                  "in-sample, leave-one-out, leave-device-out, "
                  "one-run-per-device, k-runs=N")
      ->type_name("NAME");
  sub->add_option("--group-by",
                  flags->group_by,
                  "device, precision, model, framework or source")
      ->type_name("WHAT");
  sub->add_option("--seed", options.seed, "Of the runs drawn")->type_name("N");
  sub->add_option("--fail-if",
                  flags->fail_if,
                  "Exit 4 past a limit such as 'mape>5%' of mape, median, p90, "
                  "max, bias, coverage; may be repeated")
      ->type_name("LIMIT")
      ->expected(1)
      ->take_all();
  common.AddTo(*sub);
  return [flags, &options, &common, sub] {
    if (!*sub) return -1;
    scenarios::SetProtocol(flags->protocol, options);
    options.group_by = scenarios::GroupByFromText(flags->group_by);
    for (const std::string& limit : flags->fail_if) {
      options.fail_if.push_back(scenarios::FailIfFromText(limit));
    }
    return Show(common, [&] { return scenarios::Validate(options); });
  };
}

// The option or subcommand that a stray word was meant to be.
std::string Suggestion(const CLI::App& app, const std::string& message) {
  std::vector<std::string> known;
  const CLI::App* at = &app;
  for (const CLI::App* sub : app.get_subcommands({})) {
    if (*sub) at = sub;
  }
  for (const CLI::App* sub : at->get_subcommands({})) {
    known.push_back(sub->get_name());
  }
  for (const CLI::Option* option : at->get_options()) {
    for (const std::string& name : option->get_lnames()) {
      known.push_back("--" + name);
    }
  }
  const size_t space = message.rfind(' ');
  const std::string word =
      message.substr(space == std::string::npos ? 0 : space + 1);
  return trainfare::model::DidYouMean(word.substr(0, word.find('=')),
                                      trainfare::model::NameViews(known));
}

int Run(int argc, char** argv) {
  CLI::App app{
      "What will this training run take, on which accelerator, and for how "
      "much?",
      "trainfare"};
  app.set_version_flag("--version",
                       "trainfare " + std::string(scenarios::Version()));
  app.require_subcommand(1);
  app.footer(
      "Results go to standard output, everything else to standard error.\n"
      "Exit codes: 0 ok, 1 input, 2 usage, 3 nothing fits, 4 a --fail-if limit "
      "passed, 70 internal.");
  Common common;
  const std::vector<Command> commands = {AddPredict(app, common),
                                         AddRecommend(app, common),
                                         AddValidate(app, common)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ExtrasError& error) {
    return Fail(error.what() + Suggestion(app, error.what()),
                scenarios::kUsage);
  } catch (const CLI::ParseError& error) {
    return Fail(error.what(), scenarios::kUsage);
  }
  for (const Command& command : commands) {
    const int code = command();
    if (code >= 0) return code;
  }
  return scenarios::kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const scenarios::UsageError& error) {
    return Fail(error.what(), scenarios::kUsage);
  } catch (const InputError& error) {
    return Fail(error.what(), scenarios::kInput);
  } catch (const NothingFits& error) {
    return Fail(error.what(), scenarios::kNothingFits);
  } catch (const std::exception& error) {
    return Fail(std::string("internal error: ") + error.what(),
                scenarios::kInternal);
  }
}
