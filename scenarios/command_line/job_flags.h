#pragma once

// Flags that predict and recommend share.

#include <string>
#include <vector>

#include "scenarios/command_line/commands.h"
#include "scenarios/commands/predict_options.h"
#include "scenarios/job/pricing.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name is the library's.
namespace CLI {
class App;
}  // namespace CLI

namespace trainfare::scenarios {

void AddPriceFlags(CLI::App& app, PriceOptions& prices);
// What of a scenario the command line may change.
void AddOverrides(CLI::App& app, Overrides& overrides);
// A config.json that comes through a pipe is read, once, and stands in its place
// as text: in what is asked, in the arguments of the answer, in its command.
void HoldModelText(CLI::App& app, CommonOptions& common, Overrides& overrides);
// --baseline of a command whose answers `diff` compares.
void AddBaselineFlag(CLI::App& app, std::string& file);
// --dry-run of a command that answers for jobs, behind the options of its
// output, which it has no use for.
void AddDryRun(CLI::App& app, bool& dry_run);
// What would be asked, as `show` writes it: a YAML document for each job.
// Returns the exit code.
int PrintJobs(const std::string& scenario, const Overrides& overrides);

}  // namespace trainfare::scenarios
