#pragma once

// NOLINTNEXTLINE(readability-identifier-naming): the name is the library's.
namespace CLI {
class App;
}  // namespace CLI

namespace trainfare::scenarios {

// Has --help of the program, and of the commands that are added to it later,
// keep to the width of the terminal; elsewhere its lines are as they come. What
// an option is not for beside is left out.
void FitHelp(CLI::App& app);

}  // namespace trainfare::scenarios
