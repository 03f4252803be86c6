#pragma once

// A step that somebody measured, beside what is predicted of it: whether it is
// as it should be, and what of a job would make it so.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/units.h"
#include "scenarios/commands/prediction_target.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/scenario.h"
#include "scenarios/report/json.h"
#include "scenarios/report/table.h"

namespace trainfare::scenarios {

// What was measured: the time of a step, how much went through it in a second,
// or the share of the device's peak (MFU).
enum class MeasuredAs { kStep, kTokens, kSamples, kShareOfPeak };
struct Measured {
  MeasuredAs as = MeasuredAs::kStep;
  double value = 0;        // s, tokens/s, samples/s, 1
  bool of_device = false;  // a rate of each device, not of all
};
// "1.9s", "3200tokens/s", "12samples/s/device", "38%". Throws InputError that
// names the flag.
Measured ParseMeasured(std::string_view text);

// A job that is otherwise, and the step that is predicted of it.
struct OtherStep {
  std::string settings;  // flags, or words
  model::Seconds<> step;
};

struct StepComparison {
  model::Seconds<> measured;
  model::Seconds<> predicted;
  bool inside_80 = false;
  bool inside_95 = false;
  // Those nearest to what was measured, the nearest first; none where it is
  // inside the 80 % interval, or where nothing that was tried comes near.
  std::vector<OtherStep> would_be;

  double ratio() const { return measured / predicted; }
};

// `job` fits the target. Throws InputError where no job takes such a step.
StepComparison CompareStep(const Measured& measured,
                           const PredictionTarget& target,
                           const Scenario& scenario,
                           const JobEstimate& job);

// The comparison in a line; what would make it so, a row each, where there is
// any; and the same for machines.
std::string ComparisonLine(const StepComparison& comparison);
std::optional<Table> ComparisonTable(const StepComparison& comparison);
Json ToJson(const StepComparison& comparison);

}  // namespace trainfare::scenarios
