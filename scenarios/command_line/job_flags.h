#pragma once

// Flags that predict and recommend share.

#include <string>
#include <vector>

#include "scenarios/commands/predict.h"
#include "scenarios/job/pricing.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name is the library's.
namespace CLI {
class App;
}  // namespace CLI

namespace trainfare::scenarios {

void AddPriceFlags(CLI::App& app, PriceOptions& prices);
// What of a scenario the command line may change.
void AddOverrides(CLI::App& app, Overrides& overrides);
// --baseline of a command whose answers `diff` compares.
void AddBaselineFlag(CLI::App& app, std::string& file);
// --dry-run of a command that answers for jobs, behind the options of its
// output, which it has no use for.
void AddDryRun(CLI::App& app, bool& dry_run);
// What would be asked, as `show` writes it: a YAML document for each job.
// Returns the exit code.
int PrintJobs(const std::string& scenario, const Overrides& overrides);

}  // namespace trainfare::scenarios
