#include <CLI/CLI.hpp>
#include <memory>

#include "scenarios/command_line/commands.h"
#include "scenarios/commands/list.h"

namespace trainfare::scenarios {

Command AddPrices(CLI::App& sub, CommonOptions& common) {
  struct Flags {
    std::string file;
    std::string cloud;
    std::string date;
    std::string output;
  };
  auto flags = std::make_shared<Flags>();
  sub.require_subcommand(1);
  CLI::App* import =
      sub.add_subcommand("import", "Read a SkyPilot catalog (vms.csv)");
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
  common.AddLimitsTo(*import);
  common.AddTo(*import);
  return [flags, &common, import] {
    if (!*import) return -1;
    const hardware::ImportedPrices imported =
        ReadCatalog(flags->file, flags->cloud, flags->date);
    const auto import_to = [&](const std::string& output) {
      return [&, output](const Origin& origin) {
        return ImportPrices(flags->file, imported, output, origin);
      };
    };
    return Show(common, *import, import_to(flags->output), import_to(""));
  };
}

}  // namespace trainfare::scenarios
