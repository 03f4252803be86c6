#include "scenarios/validation/memory_validation.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "hardware/catalog/device.h"
#include "hardware/files/unit_text.h"
#include "hardware/models/device_memory.h"
#include "hardware/models/memory_plan.h"
#include "model/error.h"
#include "scenarios/job/memory_range.h"
#include "scenarios/report/result_json.h"
#include "scenarios/validation/error_summary.h"
#include "scenarios/validation/summary_json.h"

namespace trainfare::scenarios {
namespace {

using calibrate::MemoryFigure;
using calibrate::MemoryObservation;

struct Verdicts {
  int64_t right = 0;
  int64_t fitted = 0;   // runs that did fit
  int64_t ran_out = 0;  // runs that did not
  int64_t wrongly_fits = 0;
  int64_t wrongly_out = 0;
};

std::string_view ToText(MemoryFigure figure) {
  switch (figure) {
    case MemoryFigure::kAllocated:
      return "allocated";
    case MemoryFigure::kReserved:
      return "reserved";
    case MemoryFigure::kUsed:
      return "used";
    case MemoryFigure::kUnstated:
      return "unstated";
    case MemoryFigure::kOutOfMemory:
      return "out of memory";
  }
  ENSURE(false, "a figure without a name");
}

void Judge(bool fits, const MemoryObservation& o, Verdicts& verdicts) {
  const bool fitted = o.figure != MemoryFigure::kOutOfMemory;
  ++(fitted ? verdicts.fitted : verdicts.ran_out);
  if (fits == fitted) {
    ++verdicts.right;
  } else {
    ++(fits ? verdicts.wrongly_fits : verdicts.wrongly_out);
  }
}

Json RowJson(const MemoryObservation& o,
             const hardware::Device& device,
             const hardware::MemoryPlan& plan) {
  Json json = RunJson(o.label, device, o.device_count, o.workload);
  json["framework"] = o.framework;
  json["source"] = o.group;
  json["measured_by"] = o.source;
  json["figure"] = ToText(o.figure);
  json["measured_bytes"] = o.figure == MemoryFigure::kOutOfMemory
                               ? Json(nullptr)
                               : Json(o.measured.base());
  const CountedMemory counted = CountedBy(o.figure, plan.needed);
  json["predicted_bytes"] = counted.predicted.base();
  json["predicted_low_bytes"] = counted.range.low.base();
  json["predicted_high_bytes"] = counted.range.high.base();
  json["fits"] = plan.fits();
  json["moment"] = model::ToText(plan.needed.moment);
  Json terms;
  for (const model::MemoryTerm& term : plan.needed.terms) {
    terms[std::string(term.name)] = term.size.base();
  }
  json["terms"] = std::move(terms);
  return json;
}

// The errors of what can be compared, and why the rest cannot.
struct MemoryTally {
  ErrorGroups groups;
  std::vector<RowError> errors;
  std::map<std::string, int64_t> reasons;  // rows that were skipped for each
  Verdicts verdicts;
  Json rows = Json::array();
};

MemoryTally TallyOf(const std::vector<MemoryObservation>& memory,
                    GroupBy group_by) {
  MemoryTally tally;
  for (const MemoryObservation& o : memory) {
    const hardware::Device* device =
        hardware::DeviceCatalog::Shipped().TryFind(o.device);
    if (device == nullptr) {
      ++tally.reasons[fmt::format("unknown device \"{}\"", o.device)];
      continue;
    }
    const hardware::MemoryPlan plan =
        hardware::PlanMemory(*device, o.workload, o.device_count, 1);
    Judge(plan.fits(), o, tally.verdicts);
    tally.rows.push_back(RowJson(o, *device, plan));
    if (o.figure == MemoryFigure::kOutOfMemory) continue;
    const CountedMemory counted = CountedBy(o.figure, plan.needed);
    const RowError error{
        100.0 * (counted.predicted / o.measured - 1.0),
        counted.range.low <= o.measured && o.measured <= counted.range.high};
    tally.errors.push_back(error);
    tally
        .groups[fmt::format(
            "{}, {}", GroupOf(o, device->name, group_by), ToText(o.figure))]
        .push_back(error);
  }
  return tally;
}

Json ToJson(const Verdicts& verdicts) {
  return {{"fitted", verdicts.fitted},
          {"ran_out", verdicts.ran_out},
          {"right", verdicts.right},
          {"wrongly_fits", verdicts.wrongly_fits},
          {"wrongly_out", verdicts.wrongly_out}};
}

}  // namespace

void AppendMemory(const std::vector<MemoryObservation>& memory,
                  GroupBy group_by,
                  Report& report,
                  Json& json) {
  if (memory.empty()) return;
  MemoryTally tally = TallyOf(memory, group_by);
  const Verdicts& verdicts = tally.verdicts;
  report.tables.push_back(
      SummaryTable("memory", tally.groups, {{"all", Summarise(tally.errors)}}));
  report.notes.push_back(fmt::format(
      "memory: of {} runs that fitted and {} that ran out, {} are said right: "
      "{} are said to fit and ran out, {} to run out and fitted",
      verdicts.fitted,
      verdicts.ran_out,
      verdicts.right,
      verdicts.wrongly_fits,
      verdicts.wrongly_out));
  for (const auto& [reason, count] : tally.reasons) {
    report.notes.emplace_back(
        fmt::format(
            "{} of memory skipped: {}", hardware::Plural(count, "row"), reason),
        Caution::kRowsSkipped);
  }
  Json result;
  result["overall"] = ToJson(Summarise(tally.errors));
  result["groups"] = GroupList(tally.groups);
  result["verdicts"] = ToJson(verdicts);
  result["rows"] = std::move(tally.rows);
  json["memory"] = std::move(result);
}

}  // namespace trainfare::scenarios
