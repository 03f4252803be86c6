#include "scenarios/commands/validate.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "model/nearest.h"
#include "scenarios/command_line/arguments.h"
#include "scenarios/command_line/commands.h"
#include "scenarios/validation/summary_json.h"

namespace trainfare::scenarios {

namespace {

struct ValidateFlags {
  ValidateOptions options;
  std::string protocol = "as-shipped";
  std::string group_by = "device";
  std::string repeats = "each";

  // The words as options. Throws InputError.
  void Parse() {
    FromValue([&] {
      SetProtocol(protocol, options);
      options.group_by = GroupByFromText(group_by);
      options.repeats = RepeatRuleFromText(repeats);
    });
  }
};

}  // namespace

Command AddValidate(CLI::App& sub, CommonOptions& common) {
  auto flags = std::make_shared<ValidateFlags>();
  ValidateOptions& options = flags->options;
  AddExamples(sub,
              {"validate runs.jsonl --repeats median",
               "validate table.csv --protocol leave-one-out --fail-if "
               "'median>5%'",
               "validate scenarios/published/ --protocol leave-one-out"});
  sub.add_option("FILE",
                 options.files,
                 "Measurements: JSON Lines of the trainer, CSV tables, or "
                 "published figures (a folder or YAML)")
      ->required();
  sub.add_option(
         "--protocol",
         flags->protocol,
         "What predictions may have seen (default: as-shipped, nothing)")
      ->type_name(Choices(model::NameViews(ProtocolWords())));
  sub.add_option("--group-by", flags->group_by, "Whose errors stand together")
      ->type_name(
          Choices({"device", "precision", "model", "framework", "source"}));
  sub.add_option("--repeats",
                 flags->repeats,
                 "Measurements of one point: each a row, or one row, their "
                 "median, with the noise between them")
      ->type_name(Choices({"each", "median"}));
  sub.add_option("--seed",
                 options.seed,
                 "Of the draw in one-run-per-device, k-runs=N and added-runs=N")
      ->type_name("N")
      ->transform(CLI::Validator(WholeNumber, ""));
  common.AddLimitsTo(sub);
  common.AddTo(sub);
  return [flags, &options, &common, &sub] {
    if (!sub) return -1;
    flags->Parse();
    RequireEachOnce("validate", options.files);
    FromValue([&] { RequireFigures(common.limits(), SummaryFigures()); });
    return Show(common, sub, [&](const Origin& origin) {
      options.origin = origin;
      options.progress = common.progress();
      return Validate(options);
    });
  };
}

}  // namespace trainfare::scenarios
