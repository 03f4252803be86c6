#pragma once

// What a command answers, before it is written in any format.

#include <optional>
#include <string>
#include <vector>

#include "scenarios/report/chart.h"
#include "scenarios/report/note.h"
#include "scenarios/report/table.h"
#include "scenarios/report/trace.h"

namespace trainfare::scenarios {

// A result in all its forms.
struct Report {
  std::string json;
  // Where in it the figures stand that --fail-if names first: JSON pointers of
  // objects, "/predictions/0".
  std::vector<std::string> answers;
  // The same of what moved since a baseline: looked at next.
  std::vector<std::string> changes;
  bool answers_in_percent = false;  // their numbers, whatever their keys say
  std::vector<std::string> headline;
  std::vector<Table> tables;  // the first one is what CSV has
  std::vector<Note> notes;
  // Charts are of the page alone; made where one is asked for.
  std::vector<Chart> charts;
  std::vector<Table> page_tables;
  std::vector<Note> page_notes;
  // A step of what was asked about; absent: the command has none.
  std::optional<std::vector<TraceProcess>> trace;
  std::string command;  // that gives the report again
  // The answer once more, below everything that a person reads; may be empty.
  std::string closing;
  // For standard error: "warning: ..." lines.
  std::vector<Note> warnings;
  // The exit code of the program, once all is written; `complaint` says on
  // standard error why it is not 0.
  int exit_code = 0;
  std::string complaint;
};

}  // namespace trainfare::scenarios
