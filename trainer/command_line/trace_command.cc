#include <CLI/CLI.hpp>
#include <memory>

#include "trainer/command_line/commands.h"
#include "trainer/measure/trace.h"

namespace trainfare::trainer {

void AddTrace(CLI::App& app) {
  const auto options = std::make_shared<TraceOptions>();
  CLI::App* trace = app.add_subcommand(
      "trace", "A step recorded with --layers as a Chrome trace");
  trace->add_option("RECORDS", options->records, "Measurement records")
      ->required();
  trace
      ->add_option(
          "--out", options->out, "The trace, for ui.perfetto.dev; - is stdout")
      ->required();
  trace->add_option(
      "--line", options->line, "Of the record; the last of a step");
  trace->add_option("--step", options->step, "Of the record; the last");
  trace->callback([options] { WriteTrace(*options); });
}

}  // namespace trainfare::trainer
