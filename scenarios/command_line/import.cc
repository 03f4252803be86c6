#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "calibrate/records/import/nccl_tests.h"
#include "hardware/files/unwritten.h"
#include "scenarios/command_line/commands.h"

namespace trainfare::scenarios {
namespace {

struct ImportFlags {
  std::vector<std::string> files;
  std::string output;
};

int Import(const ImportFlags& flags) {
  // What the trainer recorded took hours, and is never replaced.
  RequireOurs("--output",
              flags.output,
              "records of `import`",
              calibrate::AreNcclTestsRecords);
  std::string records;
  for (const std::string& file : flags.files) {
    const auto runs = calibrate::ReadNcclTests(file);
    records += calibrate::ToRecords(runs);
    for (const calibrate::NcclTestsRun& run : runs) {
      if (run.ended) continue;
      Fail("warning: " + file +
               ": the end of a run is missing; what stands before it is used",
           kOk);
    }
  }
  if (!flags.output.empty()) {
    WriteFile(flags.output, records);
    return kOk;
  }
  hardware::WriteOut(std::cout, records);
  return kOk;
}

}  // namespace

Command AddImport(CLI::App& sub) {
  auto flags = std::make_shared<ImportFlags>();
  AddExamples(sub,
              {"import all_reduce_perf.txt >> network.jsonl",
               "import 2_nodes.txt 4_nodes.txt --output network.jsonl"});
  sub.add_option("FILE",
                 flags->files,
                 "What all_reduce_perf printed (text; not the JSON of -J)")
      ->required();
  sub.add_option("--output",
                 flags->output,
                 "Where the records go (default: standard output)")
      ->type_name("FILE");
  return [flags, &sub] { return sub ? Import(*flags) : -1; };
}

}  // namespace trainfare::scenarios
