#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hardware/files/unit_text.h"
#include "model/sharding.h"
#include "scenarios/commands/kernel_groups.h"
#include "scenarios/commands/prediction_report.h"
#include "scenarios/job/energy.h"
#include "scenarios/job/memory_range.h"
#include "scenarios/report/answer_figures.h"

namespace trainfare::scenarios {
namespace {

using hardware::FormatBytes;
using hardware::FormatTime;

std::string Percent(double share) {
  return fmt::format("{:.1f} %", 100.0 * share);
}

using PredictionColumn = ColumnWith<Prediction>;

// People see what is not the same in all rows.
Audience SeenIf(bool several) {
  return several ? Audience::kAll : Audience::kMachines;
}

std::vector<PredictionColumn> SettingColumns(bool several_instances,
                                             bool several_devices,
                                             bool several_precisions) {
  return {
      {{"instance", "instance", Align::kLeft, 0, SeenIf(several_instances)},
       [](const Prediction& p) -> Cell {
         const hardware::Instance* instance = p.target->instance;
         return instance != nullptr ? instance->FullName() : "";
       }},
      {{"device", "device", Align::kLeft, 0, SeenIf(several_devices)},
       [](const Prediction& p) -> Cell {
         return p.target->predictor.device().name;
       }},
      {{"precision", "precision", Align::kLeft, 0, SeenIf(several_precisions)},
       [](const Prediction& p) -> Cell {
         return std::string(model::ToText(p.job.workload.precision));
       }},
      {{"batch", "batch", Align::kRight},
       [](const Prediction& p) -> Cell {
         return CountCell(p.job.workload.batch);
       }},
      {{"length", "sequence_length", Align::kRight},
       [](const Prediction& p) -> Cell {
         const auto& lengths = p.job.own_lengths;
         const double mean = model::MeanLength(lengths);
         return {
             lengths.size() == 1
                 ? fmt::format("{}", lengths.front().length)
                 : fmt::format(
                       "{:.1f} of {}", mean, p.job.workload.sequence_length),
             mean};
       }}};
}

std::vector<PredictionColumn> FigureColumns(int64_t epochs,
                                            const JobUnits& units) {
  std::vector<PredictionColumn> columns;
  for (const FigurePart part : {FigurePart::kStep,
                                FigurePart::kEpoch,
                                FigurePart::kRun,
                                FigurePart::kSpeed,
                                FigurePart::kMemory,
                                FigurePart::kEnergy,
                                FigurePart::kCost}) {
    for (const AnswerFigure& figure : AnswerFigures()) {
      if (figure.part != part || !figure.column) continue;
      columns.push_back({ColumnOf(figure, *figure.column, units),
                         [&figure, &units, epochs](const Prediction& p) {
                           return CellOf(
                               figure,
                               {p.job, CostOf(p.job, p.target->tariff), epochs},
                               units);
                         }});
    }
  }
  return columns;
}

std::vector<PredictionColumn> WordColumns() {
  return {{{"grade", "grade", Align::kLeft, 3},
           [](const Prediction& p) {
             return p.job.fits() ? Cell(GradeWords(p.job.step, p.job.devices))
                                 : Cell("-", std::string());
           }},
          {{"bottleneck", "bottleneck", Align::kLeft},
           [](const Prediction& p) -> Cell {
             return p.job.fits() ? p.job.Bottleneck() : p.job.Obstacle();
           }}};
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

Table KernelTable(const KernelGroups& groups) {
  Table table;
  table.title = "kernels of a micro-batch by kind, each by itself";
  table.columns = {{"kind", "kind", Align::kLeft},
                   {"forward", "forward_s", Align::kRight},
                   {"backward", "backward_s", Align::kRight},
                   {"update", "optimizer_s", Align::kRight},
                   {"share", "share", Align::kRight}};
  for (const KindTime& time : TimesByKind(groups)) {
    std::vector<Cell> cells = {std::string(model::ToText(time.kind))};
    for (const double seconds : time.seconds) {
      cells.push_back(seconds > 0
                          ? Cell(FormatTime(model::Second(seconds)), seconds)
                          : Cell("-", std::string()));
    }
    cells.emplace_back(Percent(time.share), time.share);
    table.Add(std::move(cells));
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

// What the collectives of a step take by size: a row a size, with the bandwidth
// of the bus that nccl-tests print.
Table CollectiveTable(const std::vector<CollectiveTime>& times) {
  Table table;
  table.title =
      "what a collective of one size takes, nothing beside it, and its bus "
      "bandwidth";
  table.columns = {{"size", "message_bytes", Align::kRight}};
  std::vector<model::Bytes<>> sizes;
  for (const CollectiveTime& one : times) {
    if (std::find(sizes.begin(), sizes.end(), one.size) == sizes.end()) {
      sizes.push_back(one.size);
    }
    if (one.size != sizes.front()) continue;
    const std::string name(model::ToText(one.collective));
    std::string words = name;
    std::replace(words.begin(), words.end(), '_', '-');
    table.columns.push_back({fmt::format("{} over {}", words, one.ranks),
                             name + "_s",
                             Align::kRight});
    table.columns.push_back(
        {"bus (GB/s)", name + "_bus_bytes_per_s", Align::kRight});
  }
  for (const model::Bytes<>& size : sizes) {
    std::vector<Cell> row = {Cell(FormatBytes(size), ToBytes(size))};
    for (const CollectiveTime& one : times) {
      if (one.size != size) continue;
      row.emplace_back(FormatTime(one.time), ToSeconds(one.time));
      row.emplace_back(fmt::format("{:.3g}", one.bus.base() / 1e9),
                       one.bus.base());
    }
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
  if (workload.operation_checkpointing) words += ", operations checkpointed";
  if (workload.power_limit.base() > 0.0) {
    words += fmt::format(", within {} a device",
                         hardware::FormatPower(workload.power_limit));
  }
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
  const MemoryRange range = MemoryRangeOf(job.memory, job.capacity);
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

std::vector<CollectiveTime> CollectivesOf(const Prediction& prediction) {
  return CollectiveTimesOf(prediction.target->predictor,
                           prediction.job.workload,
                           prediction.target->cluster);
}

Table PredictionTable(const std::vector<Prediction>& predictions,
                      int64_t epochs) {
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
  std::vector<PredictionColumn> columns = SettingColumns(
      instances.size() > 1, devices.size() > 1, precisions.size() > 1);
  for (auto& more : {FigureColumns(epochs, units), WordColumns()}) {
    columns.insert(columns.end(), more.begin(), more.end());
  }
  return TableOf(columns, predictions);
}

std::vector<Table> DetailTables(const Prediction& prediction,
                                const std::optional<KernelGroups>& kernels,
                                int64_t epochs) {
  const JobEstimate& job = prediction.job;
  std::vector<Table> tables;
  if (job.fits()) {
    tables.push_back(StepTable(job.step));
    if (kernels) tables.push_back(KernelTable(*kernels));
    if (!job.step.traffic.empty()) tables.push_back(TrafficTable(job));
    const std::vector<CollectiveTime> collectives = CollectivesOf(prediction);
    if (!collectives.empty()) tables.push_back(CollectiveTable(collectives));
    tables.push_back(RunTable(job, epochs));
    if (job.engines) tables.push_back(EngineTable(*job.engines));
  }
  tables.push_back(MemoryTable(job));
  if (job.host) tables.push_back(HostTable(*job.host));
  return tables;
}

}  // namespace trainfare::scenarios
