// The command line: a subcommand a function of its folder.

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/records/import/nccl_tests.h"
#include "calibrate/session/command.h"
#include "calibrate/session/launch.h"
#include "model/error.h"
#include "model/nearest.h"
#include "model/workload.h"
#include "scenarios/commands/calibration.h"
#include "scenarios/commands/list.h"
#include "scenarios/commands/predict.h"
#include "scenarios/commands/recommend.h"
#include "scenarios/commands/validate.h"
#include "scenarios/job/scenario.h"
#include "scenarios/report/output.h"

namespace {

using trainfare::model::InputError;
using trainfare::model::NothingFits;
namespace calibrate = trainfare::calibrate;
namespace scenarios = trainfare::scenarios;

int Fail(std::string_view message, int code) {
  std::cerr << "trainfare: " << message << "\n";
  return code;
}

// Of a list: "8, 16" is "8,16".
std::string Trim(std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  const size_t last = text.find_last_not_of(' ');
  text = first == std::string::npos ? "" : text.substr(first, last - first + 1);
  return "";
}

// CLI11 takes what is beyond 64 bits for the largest number there is. What a
// flag's number may be at most its command knows.
std::string WholeNumber(std::string& text) {
  Trim(text);
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && rest == end) return "";
  return "expected a whole number" +
         std::string(error == std::errc::result_out_of_range ? " of 64 bits"
                                                             : "") +
         ", got \"" + text + "\"";
}

CLI::Option* AddCount(CLI::App& app,
                      const std::string& name,
                      std::optional<int64_t>& value,
                      const std::string& help) {
  return app.add_option(name, value, help)
      ->type_name("N")
      ->transform(CLI::Validator(WholeNumber, ""));
}

// "8, 16" as values, each made of its part by `parse`, which says what is wrong
// with it. CLI11 by itself drops parts that are empty.
template <class Value, class Parse>
CLI::Option* AddList(CLI::App& app,
                     const std::string& name,
                     std::vector<Value>& values,
                     const Parse& parse,
                     const std::string& help) {
  return app.add_option_function<std::vector<std::string>>(
      name,
      [&values, parse, name](const std::vector<std::string>& lists) {
        values.clear();
        for (const std::string& list : lists) {
          size_t end = 0;
          for (size_t begin = 0; end != std::string::npos; begin = end + 1) {
            end = list.find(',', begin);
            std::string part = list.substr(begin, end - begin);
            Value value{};
            const std::string wrong = parse(part, value);
            if (!wrong.empty()) throw CLI::ValidationError(name, wrong);
            values.push_back(std::move(value));
          }
        }
      },
      help);
}

CLI::Option* AddCounts(CLI::App& app,
                       const std::string& name,
                       std::vector<int64_t>& values,
                       const std::string& help) {
  return AddList(
             app,
             name,
             values,
             [](std::string& part, int64_t& value) {
               std::string wrong = WholeNumber(part);
               if (wrong.empty()) value = std::stoll(part);
               return wrong;
             },
             help)
      ->type_name("N");
}

CLI::Option* AddNames(CLI::App& app,
                      const std::string& name,
                      std::vector<std::string>& values,
                      const std::string& help) {
  return AddList(
             app,
             name,
             values,
             [](std::string& part, std::string& value) -> std::string {
               Trim(part);
               if (part.empty()) return "expected a name, got \"\"";
               value = part;
               return "";
             },
             help)
      ->type_name("NAME");
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
        ->type_name("WHEN");
    app.add_flag(
        "--quiet", output.quiet, "Nothing on standard error but errors");
  }

  void Finish() {
    output.format = scenarios::FormatFromText(format);
    scenarios::CheckExports(output.exports);
    if (colour != "auto" && colour != "always" && colour != "never") {
      throw scenarios::UsageError(
          "--color: expected auto, always or never, got \"" + colour + "\"");
    }
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

constexpr const char* kStreamsAndCodes =
    "Results go to standard output, everything else to standard error.\n"
    "Exit codes: 0 ok, 1 input, 2 usage, 3 nothing fits, 4 a --fail-if limit "
    "passed, 70 internal, 130 interrupted.";

int Show(Common& common, const std::function<scenarios::Report()>& make) {
  common.Finish();
  const scenarios::Report report = make();
  scenarios::Write(report, common.output, std::cout, std::cerr);
  if (!report.complaint.empty()) Fail(report.complaint, report.exit_code);
  return report.exit_code;
}

void AddExamples(CLI::App& app, const std::vector<std::string>& commands) {
  std::string text = "Examples:";
  for (const std::string& command : commands) {
    text += "\n  trainfare " + command;
  }
  app.footer(text + "\n\n" + kStreamsAndCodes);
}

void AddPriceFlags(CLI::App& app,
                   std::vector<std::string>& files,
                   std::vector<std::string>& regions) {
  app.add_option("--prices",
                 files,
                 "Prices of a cloud in place of the shipped ones, as `prices "
                 "import --output` writes them; may be repeated")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  AddNames(app,
           "--region",
           regions,
           "Prices of these regions only, the first that has one: "
           "eu-west-1,europe-west4");
}

void AddOverrides(CLI::App& app, scenarios::Overrides& overrides) {
  AddCounts(app,
            "--batch",
            overrides.batches,
            "Batch per device, or several: 8,16,32 (default: the scenario's)");
  AddCounts(app,
            "--seq",
            overrides.lengths,
            "Pad to this length, or to several: 32,128");
  app.add_option("--precision", overrides.precision, "fp32, tf32, fp16 or bf16")
      ->type_name("NAME");
  AddCount(app, "--epochs", overrides.epochs, "Instead of the scenario's");
  app.add_option("--work",
                 overrides.work,
                 "training, or forward: passes of inference alone")
      ->type_name("NAME");
}

Command AddPredict(CLI::App& app, Common& common) {
  auto options = std::make_shared<scenarios::PredictOptions>();
  CLI::App* sub = app.add_subcommand(
      "predict", "Time, cost, energy and memory of a training run");
  AddExamples(*sub,
              {"predict emotion_bert_base --batch 8,16,32 --seq 32,128",
               "predict my_job.yaml --device h100_sxm --format json",
               "predict squad_bert_large --instance aws/p4d.24xlarge"});
  sub->add_option("SCENARIO",
                  options->scenario,
                  "A file, or the name of a shipped scenario")
      ->required();
  sub->add_option("--device",
                  options->device,
                  "One of `trainfare list devices` (default: this CPU)")
      ->type_name("NAME");
  sub->add_option("--instance",
                  options->instance,
                  "One of `trainfare list instances`: its devices, its price")
      ->type_name("NAME");
  sub->add_option("--fit",
                  options->fit,
                  "A fit file of calibrate (default: yours, else the shipped "
                  "one, else the datasheet)")
      ->type_name("FILE");
  AddCount(*sub,
           "--devices",
           options->devices,
           "Train data parallel on N devices (default: all of the instance, "
           "else 1)");
  sub->add_flag("--spot", options->spot, "Spot price of the instance");
  AddPriceFlags(*sub, options->prices, options->regions);
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
  AddExamples(*sub,
              {"recommend emotion_bert_base --deadline 10min",
               "recommend my_job.yaml --objective time --budget 5usd --top 10",
               "recommend imdb_bert_base --spot --cloud aws,gcp"});
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
  sub->add_flag(
      "--spot", options.spot, "Spot prices, the highest of a region's zones");
  AddPriceFlags(*sub, options.prices, options.regions);
  AddCount(*sub, "--top", options.top, "Show the N best candidates only");
  AddNames(*sub, "--cloud", options.clouds, "Only these clouds: aws,gcp");
  AddNames(*sub,
           "--also",
           options.also,
           "Also these devices by themselves, rented out or not: "
           "cerebras_wse2,groq_lpu");
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
    std::string repeats = "each";
    std::vector<std::string> fail_if;
  };
  auto flags = std::make_shared<Flags>();
  scenarios::ValidateOptions& options = flags->options;
  CLI::App* sub =
      app.add_subcommand("validate", "Predictions beside measurements");
  AddExamples(*sub,
              {"validate runs.jsonl --repeats median",
               "validate table.csv --protocol leave-one-out --fail-if "
               "'median>5%'",
               "validate scenarios/published/ --protocol leave-one-out"});
  sub->add_option("FILE",
                  options.files,
                  "Measurements: JSON Lines of the trainer, CSV tables, or "
                  "published figures (a folder or YAML)")
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
  sub->add_option("--repeats",
                  flags->repeats,
                  "Measurements of one point: each a row, or one row, their "
                  "median, with the noise between them")
      ->type_name("each|median");
  sub->add_option("--seed",
                  options.seed,
                  "Of the draw in one-run-per-device and k-runs=N")
      ->type_name("N")
      ->transform(CLI::Validator(WholeNumber, ""));
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
    options.repeats = scenarios::RepeatRuleFromText(flags->repeats);
    for (const std::string& limit : flags->fail_if) {
      options.fail_if.push_back(scenarios::FailIfFromText(limit));
    }
    return Show(common, [&] { return scenarios::Validate(options); });
  };
}

Command AddList(CLI::App& app, Common& common) {
  auto what = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("list", "What is known by name");
  sub->add_option(
         "WHAT", *what, "devices, instances, models, fits, scenarios or prices")
      ->required();
  common.AddTo(*sub);
  return [what, &common, sub] {
    if (!*sub) return -1;
    const scenarios::Listing listing = scenarios::ListingFromText(*what);
    return Show(common, [&] { return scenarios::List(listing); });
  };
}

Command AddImport(CLI::App& app) {
  struct Flags {
    std::vector<std::string> files;
    std::string output;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* sub = app.add_subcommand(
      "import", "All-reduces timed by nccl-tests, as measurement records");
  AddExamples(*sub,
              {"import all_reduce_perf.txt >> network.jsonl",
               "import 2_nodes.txt 4_nodes.txt --output network.jsonl"});
  sub->add_option("FILE",
                  flags->files,
                  "What all_reduce_perf printed (text; not the JSON of -J)")
      ->required();
  sub->add_option("--output",
                  flags->output,
                  "Where the records go (default: standard output)")
      ->type_name("FILE");
  return [flags, sub] {
    if (!*sub) return -1;
    std::string records;
    for (const std::string& file : flags->files) {
      const auto runs = calibrate::ReadNcclTests(file);
      records += calibrate::ToRecords(runs);
      for (const calibrate::NcclTestsRun& run : runs) {
        if (run.ended) continue;
        std::cerr << "trainfare: warning: " << file
                  << ": the end of a run is missing; what stands before it is "
                     "used\n";
      }
    }
    if (!flags->output.empty()) {
      scenarios::WriteFile(flags->output, records);
      return 0;
    }
    std::cout << records << std::flush;
    if (!std::cout) throw InputError("standard output: cannot be written");
    return 0;
  };
}

Command AddPrices(CLI::App& app, Common& common) {
  struct Flags {
    std::string file;
    std::string cloud;
    std::string date;
    std::string output;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* sub = app.add_subcommand("prices", "Price catalogs");
  sub->require_subcommand(1);
  CLI::App* import =
      sub->add_subcommand("import", "Read a SkyPilot catalog (vms.csv)");
  AddExamples(*import,
              {"prices import vms.csv --cloud gcp --date 2026-05-20 --output "
               "gcp.yaml",
               "recommend emotion_bert_base --prices gcp.yaml"});
  import->add_option("FILE", flags->file, "The catalog")->required();
  import
      ->add_option("--cloud", flags->cloud, "Whose it is: aws, gcp, azure, ..")
      ->required()
      ->type_name("NAME");
  import->add_option("--date", flags->date, "Day of the data, 2026-05-20")
      ->required()
      ->type_name("DATE");
  import->add_option("--output", flags->output, "Write the prices as YAML")
      ->type_name("FILE");
  common.AddTo(*import);
  return [flags, &common, import] {
    if (!*import) return -1;
    return Show(common, [&] {
      return scenarios::ImportPrices(
          flags->file, flags->cloud, flags->date, flags->output);
    });
  };
}

Command AddCalibrate(CLI::App& app, Common& common) {
  struct Flags {
    calibrate::CalibrateOptions options;
    std::string budget = "120s";
    std::vector<std::string> precisions;
    std::string scenario;
    std::optional<int64_t> batch;
    std::string launch;
    std::vector<std::string> instances;
    std::string script;
    std::string plan;
  };
  auto flags = std::make_shared<Flags>();
  calibrate::CalibrateOptions& options = flags->options;
  CLI::App* sub = app.add_subcommand(
      "calibrate", "Fit this machine's model to short training runs");
  AddExamples(
      *sub,
      {"calibrate",
       "calibrate --from runs.jsonl --device h100_sxm",
       "calibrate --from trainer_state.json --scenario my_job --device l4",
       "calibrate --launch slurm --instances aws/g5.xlarge --script run.sh"});
  sub->add_option("--from",
                  options.from,
                  "Fit to these measurements instead: JSON Lines, CSV, "
                  "trainer_state.json, an MLPerf log")
      ->type_name("FILE");
  sub->add_option("--scenario",
                  flags->scenario,
                  "What a log of --from trained, where it does not say so "
                  "(trainer_state.json, MLPerf)")
      ->type_name("NAME");
  AddCount(*sub,
           "--batch",
           flags->batch,
           "Per device, where it is not that scenario's");
  sub->add_option("--device",
                  options.device,
                  "Device (default: the GPUs here, else this CPU)")
      ->type_name("NAME");
  sub->add_option("--output",
                  options.output,
                  "Where the fit goes (default: where predict looks for it)")
      ->type_name("FILE");
  sub->add_option("--budget", flags->budget, "Time of the runs, such as 120s")
      ->type_name("TIME");
  sub->add_option("--target",
                  options.target_interval,
                  "Stop once the interval is below this share of the time")
      ->type_name("SHARE");
  AddNames(*sub, "--precision", flags->precisions, "To run: fp32,bf16");
  AddNames(*sub,
           "--models",
           options.models,
           "Presets to run (default: bert-tiny to bert-base-uncased)");
  AddCounts(*sub,
            "--ranks",
            options.ranks,
            "Also over so many ranks on this machine, data parallel: 2,4 "
            "(default: over all GPUs; 1: none)");
  sub->add_flag("--fresh",
                options.fresh,
                "Forget the runs of a calibration that was interrupted");
  sub->add_option("--plan",
                  flags->plan,
                  "Write the runs of a calibration of --device, for a machine "
                  "that has the trainer alone")
      ->type_name("FILE");
  sub->add_option("--launch",
                  flags->launch,
                  "Write a script that measures --instances elsewhere: "
                  "torchrun, slurm or skypilot")
      ->type_name("NAME");
  AddNames(*sub,
           "--instances",
           flags->instances,
           "What --launch measures: aws/g5.xlarge,gcp/g2-standard-4")
      ->needs("--launch");
  sub->add_option("--script",
                  flags->script,
                  "Where --launch writes (default: standard output)")
      ->type_name("FILE")
      ->needs("--launch");
  common.AddTo(*sub);
  return [flags, &options, &common, sub] {
    if (!*sub) return -1;
    options.budget = scenarios::TimeFlag("--budget", flags->budget);
    if (!(options.target_interval >= 0.0 && options.target_interval <= 1.0)) {
      throw scenarios::UsageError(
          "--target: expected a share from 0 to 1, such as 0.05");
    }
    if (!flags->scenario.empty()) {
      if (options.from.empty()) {
        throw scenarios::UsageError(
            "--scenario: says what a log of --from trained, and there is none");
      }
      scenarios::Overrides overrides;
      if (flags->batch) overrides.batches = {*flags->batch};
      options.workload =
          scenarios::Variants(scenarios::LoadScenario(flags->scenario),
                              overrides)
              .front()
              .workload;
    }
    if (!flags->precisions.empty()) {
      options.precisions.clear();
      for (const std::string& name : flags->precisions) {
        options.precisions.push_back(trainfare::model::PrecisionFromText(name));
      }
    }
    if (!flags->launch.empty()) {
      calibrate::WriteLaunchScript({calibrate::LauncherFromText(flags->launch),
                                    flags->instances,
                                    options.models,
                                    options.precisions},
                                   flags->script,
                                   std::cout);
      return 0;
    }
    if (!flags->plan.empty()) {
      calibrate::WritePlan(options, flags->plan);
      return 0;
    }
    const bool terminal =
        ::isatty(STDERR_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
    options.progress = common.output.quiet ? calibrate::Progress::kNone
                       : terminal          ? calibrate::Progress::kBar
                                           : calibrate::Progress::kLines;
    return Show(common, [&] {
      return scenarios::CalibrationReport(
          calibrate::Calibrate(options, std::cerr));
    });
  };
}

std::vector<std::string> SubcommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands({})) {
    names.push_back(sub->get_name());
  }
  return names;
}

// What of the command line CLI11 did not expect, in words.
std::string Unexpected(const CLI::App& app,
                       const std::vector<std::string>& arguments) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  std::vector<std::string> known;
  for (const CLI::Option* option : at->get_options()) {
    for (const std::string& name : option->get_lnames()) {
      known.push_back("--" + name);
    }
  }
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (name.size() < 2 || name.front() != '-' ||
        std::find(known.begin(), known.end(), name) != known.end()) {
      continue;
    }
    return "unknown option \"" + name + "\"" +
           trainfare::model::DidYouMean(name,
                                        trainfare::model::NameViews(known)) +
           "; " + (at == &app ? "" : "trainfare ") + at->get_name() +
           " --help lists them";
  }
  const std::vector<std::string> rest = app.remaining(true);
  return "unexpected argument \"" + (rest.empty() ? "" : rest.front()) + "\"";
}

// CLI11's messages where they say too little.
std::string InOurWords(const CLI::App& app, const std::string& message) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  if (message == "A subcommand is required") {
    const std::vector<std::string> names = SubcommandNames(*at);
    return at->get_name() + ": expected a subcommand: " +
           trainfare::model::JoinNames(trainfare::model::NameViews(names));
  }
  // All that is converted are numbers.
  constexpr std::string_view kUnread = "Could not convert: ";
  // "--device: At Most 1 required but received 2"
  if (const size_t many = message.find(": At Most 1 required");
      many != std::string::npos) {
    return message.substr(0, many) + ": expected once, given several times";
  }
  // "--format: 1 required FORMAT missing"
  constexpr std::string_view kMissing = " missing";
  if (const size_t none = message.find(": 1 required ");
      none != std::string::npos && message.ends_with(kMissing)) {
    return message.substr(0, none) + ": expected a value, got nothing";
  }
  const size_t equals = message.find(" = ");
  if (message.starts_with(kUnread) && equals != std::string::npos) {
    return message.substr(kUnread.size(), equals - kUnread.size()) +
           ": expected a number, got \"" + message.substr(equals + 3) + "\"";
  }
  return message;
}

// "" when the first word is a subcommand or an option.
std::string UnknownSubcommand(const CLI::App& app,
                              const std::vector<std::string>& arguments) {
  const std::vector<std::string> names = SubcommandNames(app);
  const auto known = trainfare::model::NameViews(names);
  if (arguments.empty()) {
    return "expected a subcommand: " + trainfare::model::JoinNames(known) +
           "; trainfare --help says more";
  }
  const std::string& word = arguments.front();
  if (word.front() == '-' ||
      std::find(names.begin(), names.end(), word) != names.end()) {
    return "";
  }
  return "unknown subcommand \"" + word + "\"" +
         scenarios::OfKnown(word, known);
}

int Run(int argc, char** argv) {
  CLI::App app{
      "What will this training run take, on which accelerator, and for how "
      "much?",
      "trainfare"};
  app.set_version_flag("--version",
                       "trainfare " + std::string(scenarios::Version()));
  app.require_subcommand(1);
  app.footer(std::string("trainfare COMMAND --help says more.\n\n") +
             kStreamsAndCodes);
  Common common;
  const std::vector<Command> commands = {AddCalibrate(app, common),
                                         AddPredict(app, common),
                                         AddRecommend(app, common),
                                         AddValidate(app, common),
                                         AddList(app, common),
                                         AddImport(app),
                                         AddPrices(app, common)};
  std::vector<std::string> arguments(argv + 1, argv + argc);
  // `trainfare help predict`, as in git.
  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  if (const std::string message = UnknownSubcommand(app, arguments);
      !message.empty()) {
    return Fail(message, scenarios::kUsage);
  }
  try {
    // CLI11 takes them from the back.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ExtrasError&) {
    return Fail(Unexpected(app, arguments), scenarios::kUsage);
  } catch (const CLI::ParseError& error) {
    if (app.get_subcommands().empty()) {
      return Fail(Unexpected(app, arguments), scenarios::kUsage);
    }
    return Fail(InOurWords(app, error.what()), scenarios::kUsage);
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
