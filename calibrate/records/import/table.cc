#include "calibrate/records/import/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "calibrate/records/import/system_name.h"
#include "calibrate/records/import/table_columns.h"
#include "calibrate/records/import/table_figures.h"
#include "calibrate/records/import/table_model.h"
#include "calibrate/records/import/table_network.h"
#include "calibrate/records/import/table_row.h"
#include "calibrate/records/import/table_rules.h"
#include "calibrate/records/import/table_said.h"
#include "calibrate/records/import/table_words.h"
#include "calibrate/records/import/table_workload.h"
#include "calibrate/records/import/timed_parts.h"
#include "calibrate/records/observation.h"
#include "hardware/catalog/device.h"
#include "hardware/files/csv_file.h"
#include "hardware/files/data_directory.h"
#include "hardware/files/foreign_text.h"
#include "hardware/files/text_file.h"
#include "hardware/models/time_at_peak.h"
#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::calibrate {
namespace {

using hardware::CsvFile;
using hardware::CsvRow;
using model::InputError;
using model::Work;
using model::Workload;

// What a metric that is not known may mean, by its letters without case and
// marks: other programs' names are listed, others may be mistyped.
std::string MetricNotKnown(const std::string& metric) {
  if (metric.empty()) return "metric (none): no time of a step";
  const TableRules& rules = RulesOfTables();
  const auto other = rules.other_metrics.find(Lowered(metric));
  if (other != rules.other_metrics.end()) {
    return fmt::format(
        "metric {}: not read; is {} meant?", metric, other->second);
  }
  std::vector<std::string_view> known;
  for (const auto& [name, rule] : rules.metrics) known.emplace_back(name);
  const std::vector<std::string> near =
      model::Nearest(Lowered(metric), known, 1);
  return near.empty()
             ? fmt::format("metric {}: no time of a step", metric)
             : fmt::format(
                   "metric {}: not read; is {} meant?", metric, near.front());
}

const MetricRule& MetricOf(const TableRow& row) {
  const std::string& metric = row["metric"];
  const TableRules& rules = RulesOfTables();
  const auto known = rules.metrics.find(metric);
  if (known != rules.metrics.end()) return known->second;
  const auto unused = rules.unused_metrics.find(metric);
  if (unused != rules.unused_metrics.end()) {
    throw Unused{fmt::format("metric {}: {}", metric, unused->second)};
  }
  throw Unused{MetricNotKnown(metric)};
}

// Catalog name where there is one, else as the table says.
std::string DeviceName(const std::string& text) {
  const auto known = [](std::string_view name) {
    return hardware::DeviceCatalog::Shipped().TryFind(name);
  };
  if (const hardware::Device* device = known(text)) return device->name;
  // "V100-32GB (assumed; ...)", "A10G (24GB)": a remark about the name, not
  // part of it.
  const size_t remark = text.find(" (");
  if (remark == std::string::npos) return text;
  const std::string bare = text.substr(0, remark);
  // "A100 (80GB inferred)": the size belongs to it.
  const std::string size = text.substr(
      remark + 2, text.find_first_of(" )", remark + 2) - remark - 2);
  if (const hardware::Device* device = known(bare + "-" + size)) {
    return device->name;
  }
  if (const hardware::Device* device = known(bare)) return device->name;
  return text.find(" (assumed") == std::string::npos ? text : bare;
}

// Whether a row says that something that makes its step is assumed: of its
// device or model beside the name, of the rest in a column for it.
bool SaysAssumed(const TableRow& row) {
  constexpr auto kNothing =
      std::to_array<std::string_view>({"0", "no", "none", "nothing", "false"});
  if (!row.Blank("assumed") &&
      std::find(kNothing.begin(), kNothing.end(), Lowered(row["assumed"])) ==
          kNothing.end()) {
    return true;
  }
  constexpr auto kWords =
      std::to_array<std::string_view>({"assumed", "inferred"});
  const auto remarked = [&](std::string_view name) {
    const size_t remark = name.find(" (");
    return remark != std::string_view::npos &&
           ContainsAny(name.substr(remark), kWords);
  };
  return remarked(row["device"]) || remarked(row["model"]);
}

const SourceRule* RuleOfSource(const std::string& source) {
  for (const SourceRule& rule : RulesOfTables().sources) {
    if (Contains(source, rule.source)) return &rule;
  }
  return nullptr;
}

// Who measured a row. Revisions of a source are of the same people; a round
// that many submit to is of each of them.
std::string SourceOf(const TableRow& row) {
  const std::string& source = row["source"];
  std::string people = source.substr(0, source.find('@'));
  const std::string& file = row["source_file"];
  const size_t folder = file.find('/');
  if (RuleOfSource(source) != nullptr && folder != std::string::npos) {
    people += "/" + Lowered(file.substr(0, folder));
  }
  return people;
}

// A step that its device cannot do so fast was counted in another unit, or of
// other devices, than its metric says. Model FLOPs count all pairs of a causal
// sequence, of which attention may leave out half and more.
constexpr double kLeastOfModelTime = 0.5;
void RefuseImpossible(const Observation& observation) {
  if (observation.quantity != Quantity::kStep) return;
  const hardware::Device* device =
      hardware::DeviceCatalog::Shipped().TryFind(observation.device);
  if (device == nullptr) return;
  const auto least = hardware::TimeAtPeak(*device, observation.workload);
  if (least && observation.measured < *least * kLeastOfModelTime) {
    throw Unused{"faster than the device's peak"};
  }
}

// So is a peak of more than its device has.
void RefuseImpossiblePeak(const UsedRow& used) {
  if (!IsMemory(used.metric) || used.metric == Metric::kOutOfMemory) return;
  const hardware::Device* device =
      hardware::DeviceCatalog::Shipped().TryFind(used.observation.device);
  if (device == nullptr || model::Byte(used.value) <= device->memory_capacity) {
    return;
  }
  throw Unused{fmt::format("a peak above the {:.1f} GiB that {} has",
                           device->memory_capacity.base() / 0x1p30,
                           device->name)};
}

// A rate in FLOPs is read where its run has no other figure of its time, and
// the row says how they were counted; a share of a peak says it of none.
void RefuseUncounted(const TableRow& row, Metric metric, bool timed) {
  const std::string& name = row["metric"];
  if (timed) {
    throw Unused{fmt::format(
        "metric {}: a rate in FLOPs, whose convention differs: the same runs' "
        "tokens/s or step times are read",
        name)};
  }
  FlopsOf(row);
  if (metric == Metric::kShareOfPeak) {
    throw Unused{fmt::format(
        "metric {}: of which peak it is a share is not stated", name)};
  }
}

// Throws Unused where what makes the row's step is not predicted.
void RefuseUnknownMechanisms(const TableRow& row) {
  const std::string stack = Lowered(row.StackWords());
  for (const Refusal& unknown : RulesOfTables().unknown_mechanisms) {
    if (!Says(stack, unknown.words)) continue;
    throw Unused{fmt::format("not predicted: {}", unknown.reason)};
  }
  const std::string all = WordsApart(row.StackWords() + "; " + row.AllNotes());
  for (const Refusal& other : RulesOfTables().other_trainings) {
    if (!SaysWhole(all, other.words)) continue;
    throw Unused{fmt::format(
        "not predicted: {} (by its words, \"{}\")", other.reason, other.words)};
  }
}

// A peak of which the source does not say who counted it is one of its own.
Metric MetricSaid(const TableRow& row, Metric metric) {
  const bool unstated = metric == Metric::kPeakAllocated &&
                        ContainsAny(row["source"] + "; " + row["notes"],
                                    RulesOfTables().unstated_peaks);
  return unstated ? Metric::kPeakUnstated : metric;
}

// Throws Unused where the device is not said, or not the same twice.
void SetDevice(const TableRow& row, Observation& observation) {
  const std::string& device = row["device"];
  observation.device = DeviceName(device);
  if (observation.device_count > 1) SetHosts(row, observation);
  if (device.empty()) throw Unused{"device not stated"};
  if (Lowered(device) == "cpu") throw Unused{"device: which cpu not stated"};
  const std::string other =
      OtherDeviceNamed(row["system_name"], observation.device);
  if (!other.empty()) {
    throw Unused{"system_name and device name two devices"};
  }
}

// Who measured a row, and how surely.
void SetOrigin(const TableRow& row, Observation& observation) {
  observation.framework = row["framework"];
  observation.assumed = SaysAssumed(row);
  for (const ReadOff& rule : RulesOfTables().read_off) {
    if (Contains(row["notes"], rule.words)) {
      observation.relative_noise = rule.noise;
    }
  }
  observation.group = hardware::Stem(row.file);
  if (row.Has("source")) observation.source = SourceOf(row);
}

// Words that rows of one run, or of its repetitions, have alike.
std::string RunWords(const TableRow& row,
                     int64_t devices,
                     const Workload& workload) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}",
                     row["source"],
                     row["source_file"],
                     row["system_name"],
                     row["model"],
                     row["device"],
                     devices,
                     row.StackWords(),
                     Describe(workload));
}

// One, where nobody says: but of ranks that share state there are several.
int64_t DevicesOf(const TableRow& row) {
  const auto devices = row.Count("n_devices");
  if (!devices && SharesState(row)) {
    throw Unused{fmt::format(
        "n_devices not stated, though its state is shared: sharding {}",
        row["sharding"])};
  }
  return devices.value_or(1);
}

// `timed`: other rows tell the time of the same run.
UsedRow Read(const TableRow& row, bool timed) {
  UsedRow used;
  const MetricRule& metric = MetricOf(row);
  if (IsOfFlops(metric.metric)) RefuseUncounted(row, metric.metric, timed);
  used.metric = MetricSaid(row, metric.metric);
  if (TaskOf(row["task"]) == Task::kTokenBatches) {
    throw Unused{"batch counted in tokens"};
  }
  const int64_t devices = DevicesOf(row);
  const Measured measured = WorkOf(row, metric.metric);
  Observation& observation = used.observation;
  observation.quantity = measured.quantity;
  observation.workload = WorkloadOf(row, measured, devices);
  Workload& workload = observation.workload;
  if (metric.metric == Metric::kMicroTime) workload.accumulation = 1;
  RefuseUnknownMechanisms(row);
  const auto value = row.Number("value");
  const bool needed =
      metric.metric != Metric::kFailed && metric.metric != Metric::kOutOfMemory;
  if (needed && (!value || *value <= 0.0)) {
    row.Fail("value", "a number above 0");
  }
  used.value = value.value_or(0.0) * metric.unit;
  if (IsTime(metric.metric)) {
    observation.measured = TimeOf(row, metric, *value, workload, devices);
  }
  // Replicas of a forward pass do not talk to each other.
  observation.device_count = workload.work == Work::kForward ? 1 : devices;
  SetDevice(row, observation);
  if (IsTime(metric.metric)) RefuseImpossible(observation);
  RefuseImpossiblePeak(used);
  SetOrigin(row, observation);
  used.run = RunWords(row, devices, workload);
  return used;
}

void RequireColumns(const CsvFile& csv, const std::string& name) {
  constexpr auto kRequired = std::to_array<std::string_view>(
      {"device", "model", "seq_len", "precision", "metric", "value"});
  for (const std::string_view column : kRequired) {
    if (csv.TryColumn(column)) continue;
    throw InputError(
        name,
        1,
        0,
        fmt::format("expected a column \"{}\"{}; a table of "
                    "measurements has: {}",
                    column,
                    ColumnMeant(csv, column),
                    model::JoinNames({kRequired.begin(), kRequired.end()})));
  }
  if (!csv.TryColumn("batch_per_device") && !csv.TryColumn("micro_batch")) {
    throw InputError(name,
                     1,
                     0,
                     fmt::format("expected a column \"batch_per_device\" or "
                                 "\"micro_batch\", got neither{}; see "
                                 "docs/guide/measurements.md",
                                 ColumnMeant(csv, "batch_per_device")));
  }
}

// With the notes that its source stands for where it has none: beside them the
// benchmark, by which the source's folders end.
CsvRow WithNotes(const CsvFile& csv, CsvRow row) {
  const auto notes = csv.TryColumn("stack_notes");
  if (!notes || *notes >= row.fields.size() || !row.fields[*notes].empty()) {
    return row;
  }
  if (const SourceRule* rule = RuleOfSource(csv.Field(row, "source"))) {
    const std::string& folder = csv.Field(row, "source_file");
    row.fields[*notes] =
        rule->notes + " " + folder.substr(folder.rfind('/') + 1);
  }
  return row;
}

// All that a row says but of what figure it is.
std::string RunOf(const CsvFile& csv, const CsvRow& row) {
  std::string run;
  for (size_t column = 0; column < row.fields.size(); ++column) {
    const std::string& name = csv.header()[column];
    if (name == "metric" || name == "value" || name == "notes") continue;
    run += row.fields[column] + '\n';
  }
  return run;
}

// Runs of which a row tells the time otherwise than by FLOPs; none where no row
// of the table is of FLOPs, which alone ask.
std::set<std::string> TimedRuns(const CsvFile& csv) {
  const auto& metrics = RulesOfTables().metrics;
  bool asked = false;
  std::vector<const CsvRow*> timed;
  for (const CsvRow& row : csv.rows()) {
    const auto known = metrics.find(csv.Field(row, "metric"));
    if (known == metrics.end()) continue;
    const Metric metric = known->second.metric;
    if (IsOfFlops(metric)) {
      asked = true;
    } else if (IsTime(metric)) {
      timed.push_back(&row);
    }
  }
  std::set<std::string> runs;
  if (!asked) return runs;
  for (const CsvRow* row : timed) runs.insert(RunOf(csv, *row));
  return runs;
}

// A fault with its place, where whoever found it did not know that.
InputError Placed(const InputError& fault, const TableRow& row) {
  const std::string_view text = fault.what();
  if (text.starts_with(row.file + ":")) return fault;
  return InputError(row.file, row.row.line, 0, text);
}

// Why a row is left out, of cells that may be of any length.
std::string Reason(const std::string& why) {
  constexpr size_t kMost = 200;
  return hardware::OneLine(why, kMost);
}

// "value: expected ...", of a fault with its place in `file`.
std::string WithoutPlace(const InputError& fault, const std::string& file) {
  const std::string text = fault.what();
  const size_t place_end = text.find(": ", file.size());
  return place_end == std::string::npos ? text : text.substr(place_end + 2);
}

// A table row by row. Rows of one run are told from each other at its end: its
// throughputs and its step time are one measurement, and a throughput may
// include its start-up.
class TableReader {
 public:
  TableReader(const CsvFile& csv, const std::string& name)
      : csv_(csv), name_(name), timed_(TimedRuns(csv)), widths_(csv) {
    table_.rows = static_cast<int64_t>(csv.rows().size());
    table_.unread = UnreadColumns(csv);
  }

  Table ReadAll() {
    for (const CsvRow& row : csv_.rows()) Add(row);
    if (first_fault_ && faults_ == table_.rows) {
      throw InputError(*first_fault_);
    }
    KeepBestTimes();
    KeepPowers();
    KeepMemory();
    return std::move(table_);
  }

 private:
  // What a row gets wrong costs the row.
  void Add(const CsvRow& as_published) {
    const CsvRow csv_row = widths_.Fill(WithNotes(csv_, as_published));
    const MoreWords more = MoreWordsOf(csv_, csv_row);
    const TableRow row{csv_, csv_row, name_, more.stack, more.notes};
    try {
      UsedRow read = Read(row, IsTimed(as_published));
      read.line = csv_row.line;
      Sort(std::move(read));
    } catch (const Unused& unused) {
      LeaveOut(Reason(unused.reason), csv_row.line);
    } catch (const InputError& fault) {
      const InputError placed = Placed(fault, row);
      if (!first_fault_) first_fault_ = placed;
      ++faults_;
      const std::string fault_words = Reason(WithoutPlace(placed, name_));
      table_.faults.insert(fault_words);
      LeaveOut(fault_words, csv_row.line);
    }
  }

  bool IsTimed(const CsvRow& row) const {
    return !timed_.empty() && timed_.contains(RunOf(csv_, row));
  }

  // Rows of a run have the label of the first that tells its time.
  void Sort(UsedRow read) {
    std::string label = fmt::format("{}:{}", name_, read.line);
    if (IsMemory(read.metric)) {
      read.observation.label = std::move(label);
      memory_.push_back(std::move(read));
      return;
    }
    if (read.metric == Metric::kPowerOfDevice) {
      powers_.push_back(std::move(read));
      return;
    }
    if (read.metric == Metric::kFailed) {
      failed_.insert(read.run);
      throw Unused{"a run that failed, the cause not stated"};
    }
    read.observation.place = label;
    read.observation.label =
        first_of_.emplace(read.run, std::move(label)).first->second;
    Metric& metric = best_.emplace(read.run, read.metric).first->second;
    metric = std::min(metric, read.metric);
    times_.push_back(std::move(read));
  }

  void KeepBestTimes() {
    for (UsedRow& row : times_) {
      const Metric metric = best_.at(row.run);
      if (row.metric == metric) {
        table_.observations.push_back(std::move(row.observation));
      } else {
        LeaveOut(metric == Metric::kTime
                     ? "throughput of a run whose step time is there too"
                     : "throughput of a run in another unit",
                 row.line);
      }
    }
  }

  // Power and time of one run have one label.
  void KeepPowers() {
    for (UsedRow& row : powers_) {
      const auto time = first_of_.find(row.run);
      if (time == first_of_.end()) {
        LeaveOut("power of a run whose time is not there", row.line);
        continue;
      }
      row.observation.label = time->second;
      table_.powers.push_back(PowerOf(std::move(row)));
    }
  }

  void KeepMemory() {
    for (UsedRow& row : memory_) {
      if (failed_.contains(row.run)) {
        LeaveOut("memory of a run that failed, the cause not stated", row.line);
      } else {
        table_.memory.push_back(MemoryOf(std::move(row)));
      }
    }
  }

  void LeaveOut(const std::string& reason, int64_t line) {
    table_.unused[reason].push_back(line);
  }

  const CsvFile& csv_;
  const std::string& name_;
  const std::set<std::string> timed_;
  const StatedWidths widths_;
  Table table_;
  std::vector<UsedRow> times_;
  std::vector<UsedRow> powers_;
  std::vector<UsedRow> memory_;
  std::map<std::string, std::string> first_of_;  // run to its first row
  std::map<std::string, Metric> best_;           // of a run's rows of time
  std::set<std::string> failed_;                 // runs
  std::optional<InputError> first_fault_;
  int64_t faults_ = 0;
};

}  // namespace

Table ParseTable(std::string_view text, const std::string& name) {
  const CsvFile csv = CsvFile::Parse(text, name, CsvFile::Rows::kAsHeader);
  RequireColumns(csv, name);
  return TableReader(csv, name).ReadAll();
}

Table ReadTable(const std::string& path) {
  return ParseTable(hardware::ReadTextFile(path, "a CSV file"), path);
}

}  // namespace trainfare::calibrate
