#pragma once

// Flags that predict and recommend share.

#include <string>
#include <vector>

#include "scenarios/commands/predict.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name is the library's.
namespace CLI {
class App;
}  // namespace CLI

namespace trainfare::scenarios {

void AddPriceFlags(CLI::App& app,
                   std::vector<std::string>& files,
                   std::vector<std::string>& regions);
// What of a scenario the command line may change.
void AddOverrides(CLI::App& app, Overrides& overrides);

}  // namespace trainfare::scenarios
