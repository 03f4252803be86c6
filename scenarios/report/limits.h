#pragma once

// Limits on the figures of an answer, such as "cost_usd>100": what --fail-if
// takes, in every command that answers.

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/report/output.h"

namespace trainfare::scenarios {

// Passed when the figure is beyond it.
struct Limit {
  std::string text;
  std::string
      figure;  // a key of the JSON, or the end of a path: "run.compile_s"
  bool above = true;  // beyond: > or >=; below: < or <=
  bool inclusive = false;
  double value = 0;      // in the figure's base unit
  bool percent = false;  // written with %
};

// The number may have a unit where the figure has one: "run_time_s>4h",
// "memory_bytes>80GiB", "mfu<40%". Throws UsageError.
Limit LimitFromText(std::string_view text);

// Throws UsageError for a figure that is none of `known`; a path is left to
// CheckLimits.
void RequireFigures(const std::vector<Limit>& limits,
                    const std::vector<std::string>& known);

// What becomes of a limit on a figure that an answer has not: of a report alone
// it is a word that is wrong; where an example has it, it is not known of this
// one, which lacks a part.
enum class Unfound { kRefused, kNotKnown };

// Sets the exit code and the complaint of a report where a limit is passed; one
// that has failed already keeps them. Every answer of the report is held to a
// limit (Report::answers), else what moved since a baseline (Report::changes),
// else the report itself; what is not known cannot be shown to be within.
// Throws UsageError for a figure that is not there (kRefused), no number, or one
// of several.
void CheckLimits(const std::vector<Limit>& limits,
                 Report& report,
                 Unfound unfound = Unfound::kRefused);

}  // namespace trainfare::scenarios
