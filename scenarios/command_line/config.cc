#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "scenarios/command_line/commands.h"
#include "scenarios/command_line/settings.h"
#include "scenarios/report/result_json.h"

namespace trainfare::scenarios {
namespace {

Table SettingTable(const std::vector<const Setting*>& in_force, bool origin) {
  Table table;
  table.columns = {{"setting", "setting", Align::kLeft},
                   {"value", "value", Align::kLeft},
                   {"origin",
                    "origin",
                    Align::kLeft,
                    0,
                    origin ? Audience::kAll : Audience::kMachines}};
  for (const Setting* setting : in_force) {
    table.Add({setting->Key(),
               fmt::format("{}", fmt::join(setting->values, ", ")),
               setting->origin});
  }
  return table;
}

Report SettingReport(const Settings& settings,
                     const CLI::App& app,
                     bool with_origin,
                     const Origin& origin) {
  const std::vector<const Setting*> in_force = settings.InForce(app);
  Report report;
  if (in_force.empty()) report.headline.emplace_back("nothing is set");
  report.tables.push_back(SettingTable(in_force, with_origin));
  Json json = ResultHead("trainfare.config/1", origin);
  json["settings"] = Json::array();
  for (const Setting* setting : in_force) {
    json["settings"].push_back({{"setting", setting->Key()},
                                {"values", setting->values},
                                {"origin", setting->origin}});
  }
  json["files"] = Json::array();
  for (const Settings::File& file : settings.files()) {
    json["files"].push_back({{"path", file.path}, {"read", file.read}});
    report.notes.emplace_back(
        fmt::format("{}: {}", file.path, file.read ? "read" : "not there"));
  }
  report.json = AnswerText(std::move(json), report);
  return report;
}

}  // namespace

Command AddConfig(CLI::App& sub, CommonOptions& common) {
  auto with_origin = std::make_shared<bool>(false);
  sub.require_subcommand(1);
  CLI::App* show = sub.add_subcommand("show", "What is set, and by whom");
  AddExamples(*show,
              {"config show --origin",
               "config show --origin --config team.yaml --format json"});
  show->add_flag(
      "--origin", *with_origin, "Also which file or variable says so");
  common.AddTo(*show);
  return [&app = *sub.get_parent(), with_origin, &common, show] {
    if (!*show) return -1;
    return Show(common, *show, [&](const Origin& origin) {
      return SettingReport(
          Settings(app, common.setting_files()), app, *with_origin, origin);
    });
  };
}

}  // namespace trainfare::scenarios
