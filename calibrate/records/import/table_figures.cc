#include "calibrate/records/import/table_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "calibrate/records/import/table_said.h"
#include "model/error.h"
#include "model/hardware_flops.h"
#include "model/kernels.h"
#include "model/letters.h"
#include "model/limits.h"
#include "model/parallel.h"

namespace trainfare::calibrate {
namespace {

using model::Workload;

// Of an epoch.
double SamplesOf(const TableRow& row) {
  for (const EpochRule& rule : RulesOfTables().epochs) {
    if (Contains(row["notes"], rule.words)) {
      return static_cast<double>(rule.samples);
    }
  }
  throw Unused{"an epoch whose samples are not stated"};
}

// Time of the evaluations that a rate holds, in that of its steps. A forward
// pass is a third of the FLOPs of a training step, and an evaluated sequence a
// row by itself, padded, where those that are trained are packed.
//
// MLPerf's BERT evaluates 10,000 sequences each 150,000 of small batches: 2.2 %
// unpacked and 4.4 % packed two a row. Rates with and without differ by 2.1 and
// 2.5 % on L40s and L4s, by 7 % on H100s, which evaluate small batches.
double EvaluationShare(const TableRow& row,
                       const Workload& workload,
                       double samples_of_step) {
  const Benchmark* of = BenchmarkOf(row);
  if (of == nullptr) throw Unused{"holds evaluations besides steps"};
  constexpr double kForwardShare = 1.0 / 3.0;
  const auto step = static_cast<double>(of->every_step);
  const double trained = std::floor((static_cast<double>(of->every) +
                                     of->every_of_batch * samples_of_step) /
                                    step) *
                         step;
  return kForwardShare * static_cast<double>(of->evaluated) *
         static_cast<double>(workload.documents) / trained;
}

bool HoldsEvaluations(const TableRow& row, const MetricRule& metric) {
  return metric.holds_evaluations ||
         ContainsAny(row["notes"], RulesOfTables().with_evaluations);
}

// Whether a clause of notes says that a rate is of one device: "per GPU", or
// beside a word of rates ("max tokens per GPU" is a size).
bool OfOneDevice(std::string_view notes) {
  const TableRules& rules = RulesOfTables();
  constexpr std::string_view kEnds = ";,.()";
  while (!notes.empty()) {
    const size_t end = std::min(notes.find_first_of(kEnds), notes.size());
    const std::string clause = WordsApart(notes.substr(0, end));
    notes.remove_prefix(std::min(end + 1, notes.size()));
    for (const std::string& of : rules.one_device) {
      if (!SaysWhole(clause, of)) continue;
      if (clause == " " + of + " " || SaysAny(clause, rules.rates)) return true;
    }
  }
  return false;
}

void RefuseOtherDevices(const TableRow& row, Metric metric, int64_t devices) {
  const bool of_all = metric == Metric::kTokens || metric == Metric::kSequences;
  if (devices == 1 || !of_all || !OfOneDevice(row.AllNotes())) return;
  throw Unused{
      fmt::format("metric {} is of all devices, its notes say of one: "
                  "tokens_per_s_per_device, or the value times its devices",
                  row["metric"])};
}

// Of a device's step, as the row counts them.
double CountedFlops(const TableRow& row, const Workload& workload) {
  const FlopsRule& rule = FlopsOf(row);
  return static_cast<double>(
      rule.recomputed ? model::StepHardwareFlops(workload, rule.pairs)
                      : workload.accumulation *
                            model::MicroBatchModelFlops(workload, rule.pairs));
}

// What a step takes by a figure of such a metric, in seconds; `sequences`: of
// all its copies.
double SecondsBy(const TableRow& row,
                 const MetricRule& metric,
                 double value,
                 const Workload& workload,
                 int64_t devices,
                 double sequences) {
  const double tokens =
      sequences * static_cast<double>(workload.sequence_length);
  switch (metric.metric) {
    case Metric::kTime:
    case Metric::kMicroTime:
      return value * metric.unit;
    case Metric::kSteps:
      return 1.0 / value;
    case Metric::kSequences:
      // Documents are what is counted where several are packed.
      return sequences * static_cast<double>(workload.documents) / value;
    case Metric::kTokens:
      return tokens / value;
    case Metric::kTokensOfDevice:
      return tokens / (static_cast<double>(devices) * value);
    case Metric::kEpoch:
      return value * metric.unit * sequences / SamplesOf(row);
    case Metric::kFlopsOfDevice:
      return model::OfEachRank(CountedFlops(row, workload), workload.parallel) /
             (value * metric.unit);
    case Metric::kShareOfPeak:
    case Metric::kPowerOfDevice:
    case Metric::kPeakAllocated:
    case Metric::kPeakReserved:
    case Metric::kPeakUsed:
    case Metric::kPeakUnstated:
    case Metric::kOutOfMemory:
    case Metric::kFailed:
      break;
  }
  ENSURE(false, "no metric of a time");
}

MemoryFigure FigureOf(Metric metric, const std::string& framework) {
  switch (metric) {
    case Metric::kPeakReserved:
      return MemoryFigure::kReserved;
    case Metric::kPeakUsed:
      return MemoryFigure::kUsed;
    case Metric::kPeakUnstated:
      return MemoryFigure::kUnstated;
    case Metric::kOutOfMemory:
      return MemoryFigure::kOutOfMemory;
    default:
      return ContainsAny(framework, RulesOfTables().reserved_peaks)
                 ? MemoryFigure::kReserved
                 : MemoryFigure::kAllocated;
  }
}

}  // namespace

const Benchmark* BenchmarkOf(const TableRow& row) {
  const std::vector<Benchmark>& known = RulesOfTables().benchmarks;
  const auto found =
      std::find_if(known.begin(), known.end(), [&](const Benchmark& one) {
        return Contains(row["stack_notes"], one.words) &&
               Contains(model::Lowered(row["model"]), one.model);
      });
  return found == known.end() ? nullptr : &*found;
}

const FlopsRule& FlopsOf(const TableRow& row) {
  const std::string notes = Lowered(row["notes"]);
  for (const FlopsRule& rule : RulesOfTables().flops) {
    if (Says(notes, rule.words)) return rule;
  }
  throw Unused{
      fmt::format("metric {}: by which convention its FLOPs are counted is not "
                  "stated",
                  row["metric"])};
}

model::Seconds<> TimeOf(const TableRow& row,
                        const MetricRule& metric,
                        double value,
                        const Workload& workload,
                        int64_t devices) {
  RefuseOtherDevices(row, metric.metric, devices);
  const int64_t copies = devices / model::RanksOfModel(workload.parallel);
  const auto sequences = static_cast<double>(model::CheckedProduct(
      {workload.batch, workload.accumulation, copies}, "batch per device"));
  double seconds = SecondsBy(row, metric, value, workload, devices, sequences);
  if (HoldsEvaluations(row, metric)) {
    seconds /=
        1.0 +
        EvaluationShare(
            row, workload, sequences * static_cast<double>(workload.documents));
  }
  const model::Seconds<> time = model::Second(seconds);
  if (!model::IsPlausible(time)) {
    row.Fail("value",
             fmt::format("a step between {} s and {} s",
                         model::kShortestTime,
                         model::kLongestTime));
  }
  return time;
}

MemoryObservation MemoryOf(UsedRow used) {
  Observation& o = used.observation;
  MemoryObservation memory;
  memory.label = std::move(o.label);
  memory.group = std::move(o.group);
  memory.device = std::move(o.device);
  memory.device_count = o.device_count;
  memory.workload = std::move(o.workload);
  memory.figure = FigureOf(used.metric, o.framework);
  if (memory.figure != MemoryFigure::kOutOfMemory) {
    memory.measured = model::Byte(used.value);
  }
  memory.framework = std::move(o.framework);
  memory.source = std::move(o.source);
  return memory;
}

PowerObservation PowerOf(UsedRow used) {
  Observation& o = used.observation;
  PowerObservation power;
  power.label = std::move(o.label);
  power.device = std::move(o.device);
  power.device_count = o.device_count;
  power.workload = std::move(o.workload);
  power.measured = model::Watt(used.value);
  return power;
}

}  // namespace trainfare::calibrate
