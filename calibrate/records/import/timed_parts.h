#pragma once

// What of a step a table's row timed, by the words of its notes.

#include <string_view>

#include "calibrate/records/import/table_row.h"
#include "calibrate/records/import/table_rules.h"
#include "calibrate/records/observation.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// What notes say was timed; nothing: all of what the row's task does.
struct SaidTimed {
  bool forward_alone = false;
  bool backward_alone = false;
  bool both_passes = false;  // named together, the update not denied
  bool update = false;
  bool no_update = false;
  bool inference = false;
  bool unclear = false;  // a pass beside a time, of which it is not told more
};

// "fwd+bwd without the optimizer", "FORWARD ONLY part of the step": in any
// order, by the words of `timed_parts` in tables.yaml.
SaidTimed SaidTimedOf(std::string_view notes);

struct Measured {
  model::Work work = model::Work::kTraining;
  Quantity quantity = Quantity::kStep;
};

// What of a step was timed. Throws Unused where the row's words leave that open
// or contradict each other.
Measured WorkOf(const TableRow& row, Metric metric);

}  // namespace trainfare::calibrate
