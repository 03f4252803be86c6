#include "scenarios/commands/list.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "scenarios/command_line/commands.h"

namespace trainfare::scenarios {

Command AddList(CLI::App& app, CommonOptions& common) {
  auto what = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("list", "What is known by name");
  sub->add_option(
         "WHAT", *what, "devices, instances, models, fits, scenarios or prices")
      ->required();
  common.AddTo(*sub);
  return [what, &common, sub] {
    if (!*sub) return -1;
    const Listing listing = ListingFromText(*what);
    return Show(common, [&] { return List(listing); });
  };
}

}  // namespace trainfare::scenarios
