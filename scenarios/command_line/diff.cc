#include "scenarios/commands/diff.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "scenarios/command_line/commands.h"

namespace trainfare::scenarios {

Command AddDiff(CLI::App& sub, CommonOptions& common) {
  struct Files {
    std::string before;
    std::string after;
  };
  auto files = std::make_shared<Files>();
  AddExamples(sub,
              {"diff before.json after.json",
               "diff main.json branch.json --format markdown"});
  sub.add_option("BEFORE",
                 files->before,
                 "What predict or recommend wrote with --format json or "
                 "--export FILE.json")
      ->required();
  sub.add_option("AFTER", files->after, "The same of another time or job")
      ->required();
  common.AddLimitsTo(sub);
  common.AddTo(sub);
  return [files, &common, &sub] {
    if (!sub) return -1;
    return Show(common, sub, [&](const Origin& origin) {
      return Diff(files->before, files->after, origin);
    });
  };
}

}  // namespace trainfare::scenarios
