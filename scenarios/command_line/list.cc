#include "scenarios/commands/list.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/command_line/arguments.h"
#include "scenarios/command_line/commands.h"

namespace trainfare::scenarios {

Command AddList(CLI::App& sub, CommonOptions& common) {
  struct Flags {
    std::string what;
    std::vector<std::string> words;
  };
  auto flags = std::make_shared<Flags>();
  sub.add_option("WHAT", flags->what, "Of which kind")
      ->type_name(Choices(ListingWords()))
      ->required();
  sub.add_option(
      "WORD", flags->words, "Only rows in which every word stands: h100 aws");
  common.AddLimitsTo(sub);
  common.AddTo(sub);
  return [flags, &common, &sub] {
    if (!sub) return -1;
    const Listing listing =
        FromValue([&] { return ListingFromText(flags->what); });
    return Show(common, sub, [&](const Origin& origin) {
      return List(listing, flags->words, origin);
    });
  };
}

}  // namespace trainfare::scenarios
