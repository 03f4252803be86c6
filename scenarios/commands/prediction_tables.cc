#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "hardware/files/unit_text.h"
#include "model/sharding.h"
#include "scenarios/commands/job_units.h"
#include "scenarios/commands/prediction_report.h"
#include "scenarios/job/energy.h"
#include "scenarios/job/memory_range.h"
#include "scenarios/report/column_unit.h"

namespace trainfare::scenarios {
namespace {

using hardware::FormatBytes;
using hardware::FormatTime;

std::string Percent(double share) {
  return fmt::format("{:.1f} %", 100.0 * share);
}

std::string Count(double value) {
  return value < 100 ? fmt::format("{:.1f}", value)
                     : fmt::format("{:.0f}", value);
}

// People see what is not the same in all rows.
std::vector<Column> Columns(const JobUnits& units,
                            bool several_instances,
                            bool several_devices,
                            bool several_precisions) {
  const auto seen_if = [](bool several) {
    return several ? Audience::kAll : Audience::kMachines;
  };
  return {
      {"instance", "instance", Align::kLeft, 0, seen_if(several_instances)},
      {"device", "device", Align::kLeft, 0, seen_if(several_devices)},
      {"precision", "precision", Align::kLeft, 0, seen_if(several_precisions)},
      {"batch", "batch", Align::kRight},
      {"length", "sequence_length", Align::kRight},
      {units.step.Title("step"), "step_time_s", Align::kDecimal},
      {"80 % from", "step_time_low_s", Align::kDecimal, 4},
      {"to", "step_time_high_s", Align::kDecimal, 4},
      {units.run.Title("epoch"), "epoch_time_s", Align::kDecimal, 7},
      {units.run.Title("in all"), "run_time_s", Align::kDecimal},
      {"samples/s", "samples_per_s", Align::kRight, 8},
      {"tokens/s", "tokens_per_s", Align::kRight, 5},
      {"MFU (%)", "mfu", Align::kDecimal, 6},
      {units.memory.Title("memory"), "memory_bytes", Align::kDecimal, 2},
      {"80 % from", "memory_low_bytes", Align::kDecimal, 11},
      {"to", "memory_high_bytes", Align::kDecimal, 11},
      {units.energy.Title("energy"), "energy_j", Align::kDecimal, 3},
      {"80 % from", "", Align::kDecimal, 10, Audience::kPeople},
      {"to", "", Align::kDecimal, 10, Audience::kPeople},
      {"cost ($)", "cost_usd", Align::kDecimal, 1},
      {"80 % from", "cost_low_usd", Align::kDecimal, 9},
      {"to", "cost_high_usd", Align::kDecimal, 9},
      {"grade", "grade", Align::kLeft, 3},
      {"bottleneck", "bottleneck", Align::kLeft}};
}

std::vector<Cell> SettingCells(const Prediction& prediction) {
  const JobEstimate& job = prediction.job;
  const double length = model::MeanLength(job.lengths);
  const hardware::Instance* instance = prediction.target->instance;
  return {instance != nullptr ? instance->FullName() : "",
          prediction.target->predictor.device().name,
          std::string(model::ToText(job.workload.precision)),
          Cell(fmt::format("{}", job.workload.batch),
               static_cast<double>(job.workload.batch)),
          Cell(job.lengths.size() == 1
                   ? fmt::format("{}", job.lengths.front().length)
                   : fmt::format(
                         "{:.1f} of {}", length, job.workload.sequence_length),
               length)};
}

std::vector<Cell> Row(const Prediction& prediction,
                      int64_t epochs,
                      const JobUnits& units) {
  const JobEstimate& job = prediction.job;
  std::vector<Cell> row = SettingCells(prediction);
  const Cell none("-", std::string());
  const auto add = [&](const ColumnUnit& unit, double base_value) {
    row.emplace_back(unit.Text(base_value), base_value);
  };
  const auto add_memory = [&] {
    const MemoryRange range = MemoryRangeOf(job.memory.total());
    for (const model::Bytes<> size :
         {job.memory.total(), range.low, range.high}) {
      add(units.memory, ToBytes(size));
    }
  };
  if (!job.fits()) {
    row.insert(row.end(), 8, none);
    add_memory();
    row.insert(row.end(), 7, none);
    row.emplace_back(job.Obstacle());
    return row;
  }
  const StepEstimate& step = job.step;
  const double seconds = ToSeconds(step.total());
  add(units.step, seconds);
  add(units.step, seconds * step.low_factor);
  add(units.step, seconds * step.high_factor);
  add(units.run, ToSeconds(job.run.epoch(epochs)));
  add(units.run, ToSeconds(job.run.total()));
  row.emplace_back(Count(job.samples_per_second), job.samples_per_second);
  row.emplace_back(Count(job.tokens_per_second), job.tokens_per_second);
  row.emplace_back(fmt::format("{:.1f}", 100.0 * job.mfu), job.mfu);
  add_memory();
  if (job.energy) {
    const double joules = ToJoules(*job.energy);
    row.emplace_back(
        (job.energy_is_bound ? "< " : "") + units.energy.Text(joules), joules);
  } else {
    row.push_back(none);
  }
  if (const auto range = EnergyRangeOf(job)) {
    add(units.energy, ToJoules(range->low));
    add(units.energy, ToJoules(range->high));
  } else {
    row.insert(row.end(), 2, none);
  }
  if (const auto cost = CostOf(job, prediction.target->tariff)) {
    for (const model::Usd<> part : {cost->usual, cost->low, cost->high}) {
      row.emplace_back(PlainNumber(ToDollars(part), 3), ToDollars(part));
    }
  } else {
    row.insert(row.end(), 3, none);
  }
  row.emplace_back(GradeWords(step, job.devices));
  row.emplace_back(job.Bottleneck());
  return row;
}

Table StepTable(const StepEstimate& step) {
  Table table;
  table.title = "where a step goes";
  table.columns = {{"term", "name", Align::kLeft},
                   {"time", "time_s", Align::kRight},
                   {"share", "share", Align::kRight}};
  for (const Term& term : TermsOf(step)) {
    if (term.time.base() == 0) continue;
    const double share = term.time / step.total();
    table.Add({std::string(term.name),
               Cell(FormatTime(term.time), ToSeconds(term.time)),
               Cell(Percent(share), share)});
  }
  return table;
}

std::string TrafficTitle(const JobEstimate& job) {
  if (job.devices == 1) return "what goes to and from the host in a step";
  const model::Parallel& parallel = job.workload.parallel;
  return fmt::format("what each of {} ranks sends in a step: {} over {}{}",
                     job.devices,
                     model::ToText(parallel.shard),
                     model::ShardsOf(parallel),
                     parallel.replicate > 1
                         ? fmt::format(" in {} copies", parallel.replicate)
                         : "");
}

// What ranks that share state send, what goes to and from their host, and what
// of it no computation hides.
Table TrafficTable(const JobEstimate& job) {
  const bool offloads = model::Offloads(job.workload.parallel);
  Table table;
  table.title = TrafficTitle(job);
  table.columns = {{"in", "name", Align::kLeft},
                   {"bytes", "sent_bytes", Align::kRight}};
  if (offloads) {
    table.columns.push_back({"host", "host_bytes", Align::kRight});
  }
  table.columns.push_back({"takes", "time_s", Align::kRight});
  table.columns.push_back({"exposed", "exposed_s", Align::kRight});
  for (const calibrate::ShardTraffic& part : job.step.traffic) {
    std::vector<Cell> row = {std::string(part.part),
                             Cell(FormatBytes(part.sent), ToBytes(part.sent))};
    if (offloads) {
      row.emplace_back(FormatBytes(part.copied), ToBytes(part.copied));
    }
    row.emplace_back(FormatTime(part.sending), ToSeconds(part.sending));
    row.emplace_back(FormatTime(part.exposed), ToSeconds(part.exposed));
    table.Add(std::move(row));
  }
  return table;
}

Table RunTable(const JobEstimate& job, int64_t epochs) {
  Table table;
  table.title = fmt::format("where the run goes ({}, {} each)",
                            hardware::Plural(epochs, "epoch"),
                            hardware::Plural(job.run.steps_per_epoch, "step"));
  table.columns = {{"term", "name", Align::kLeft},
                   {"time", "time_s", Align::kRight}};
  const std::vector<std::pair<std::string, model::Seconds<>>> terms = {
      {"start-up", job.run.start_up},
      {fmt::format("compiling {:.0f} shapes", job.run.distinct_shapes),
       job.run.compile},
      {job.workload.work == model::Work::kForward ? "forward passes"
                                                  : "training steps",
       job.run.training - job.run.input_wait},
      {"waiting for input", job.run.input_wait},
      {"evaluation", job.run.evaluation},
      {"checkpoints", job.run.checkpoint}};
  for (const auto& [name, time] : terms) {
    if (time.base() == 0) continue;
    table.Add({name, Cell(FormatTime(time), ToSeconds(time))});
  }
  return table;
}

// Busy shares of a step, of one of a chip's parts.
Table EngineTable(const calibrate::EngineProfile& engines) {
  Table table;
  table.title = "engines of a part in a step";
  table.columns = {{"engine", "name", Align::kLeft},
                   {"busy", "share", Align::kRight}};
  const auto add = [&](const char* name, const std::optional<double>& busy) {
    if (busy) table.Add({name, Cell(Percent(*busy), *busy)});
  };
  add("tensor", engines.tensor);
  add("vector", engines.vector);
  add("scalar", engines.scalar);
  add("DMA", engines.dma);
  return table;
}

// What of the activations is kept, behind other settings.
std::string KeptWords(const model::Workload& workload) {
  if (workload.work == model::Work::kForward) return "";
  std::string words =
      workload.attention_checkpointing ? ", attention checkpointed" : "";
  if (workload.gradient_checkpointing) {
    words += workload.checkpointed_blocks == 0
                 ? ", activations checkpointed"
                 : fmt::format(", activations of {} blocks checkpointed",
                               workload.checkpointed_blocks);
  }
  return words.empty() ? ", all activations kept" : words;
}

Table MemoryTable(const JobEstimate& job) {
  Table memory;
  memory.title = fmt::format(
      "memory of one device at the {}: batch {}, length {}, {}, {}{}",
      model::ToText(job.memory.moment),
      job.workload.batch,
      job.workload.sequence_length,
      model::ToText(job.workload.precision),
      DescribeUpdate(job.workload),
      KeptWords(job.workload));
  memory.columns = {{"term", "name", Align::kLeft},
                    {"size", "memory_bytes", Align::kRight}};
  for (const model::MemoryTerm& term : job.memory.terms) {
    memory.Add({std::string(term.name),
                Cell(FormatBytes(term.size), ToBytes(term.size))});
  }
  memory.Add(
      {"in all",
       Cell(FormatBytes(job.memory.total()), ToBytes(job.memory.total()))});
  const MemoryRange range = MemoryRangeOf(job.memory.total());
  memory.Add({"80 % from", Cell(FormatBytes(range.low), ToBytes(range.low))});
  memory.Add({"to", Cell(FormatBytes(range.high), ToBytes(range.high))});
  memory.Add(
      {"capacity", Cell(FormatBytes(job.capacity), ToBytes(job.capacity))});
  return memory;
}

Table HostTable(const HostHolding& host) {
  Table table;
  table.title = fmt::format("memory of the host: what each of {} offloads",
                            hardware::Plural(host.ranks, "rank"));
  table.columns = {{"term", "name", Align::kLeft},
                   {"size", "memory_bytes", Align::kRight}};
  const auto add = [&](std::string name, model::Bytes<> size) {
    table.Add({std::move(name), Cell(FormatBytes(size), ToBytes(size))});
  };
  for (const model::MemoryTerm& term : host.terms) {
    add(std::string(term.name), term.size);
  }
  add("of all ranks", host.total());
  if (host.capacity) add("capacity", *host.capacity);
  return table;
}

}  // namespace

std::optional<RunCost> CostOf(const JobEstimate& job,
                              const std::optional<Tariff>& tariff) {
  if (!job.fits() || !tariff) return std::nullopt;
  const auto of = [&](model::Seconds<> time) {
    return model::RentalCost(time, tariff->price, tariff->billing);
  };
  return RunCost{of(job.run.total()), of(job.run_low), of(job.run_high)};
}

Table PredictionTable(const std::vector<Prediction>& predictions,
                      int64_t epochs) {
  Table table;
  std::vector<const JobEstimate*> jobs;
  std::set<const hardware::Instance*> instances;
  std::set<std::string> devices;
  std::set<model::Precision> precisions;
  for (const Prediction& prediction : predictions) {
    jobs.push_back(&prediction.job);
    instances.insert(prediction.target->instance);
    devices.insert(prediction.target->predictor.device().name);
    precisions.insert(prediction.job.workload.precision);
  }
  const JobUnits units = UnitsOf(jobs);
  table.columns = Columns(
      units, instances.size() > 1, devices.size() > 1, precisions.size() > 1);
  for (const Prediction& prediction : predictions) {
    table.Add(Row(prediction, epochs, units));
  }
  return table;
}

std::vector<Table> DetailTables(const JobEstimate& job, int64_t epochs) {
  std::vector<Table> tables;
  if (job.fits()) {
    tables.push_back(StepTable(job.step));
    if (!job.step.traffic.empty()) tables.push_back(TrafficTable(job));
    tables.push_back(RunTable(job, epochs));
    if (job.engines) tables.push_back(EngineTable(*job.engines));
  }
  tables.push_back(MemoryTable(job));
  if (job.host) tables.push_back(HostTable(*job.host));
  return tables;
}

}  // namespace trainfare::scenarios
