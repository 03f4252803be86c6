#include "scenarios/report/answer_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/error.h"
#include "model/kernels.h"
#include "scenarios/job/energy.h"
#include "scenarios/job/memory_range.h"
#include "scenarios/report/column_unit.h"

namespace trainfare::scenarios {
namespace {

using Value = std::optional<double>;

std::string Rate(double value) {
  return value < 100 ? fmt::format("{:.1f}", value)
                     : fmt::format("{:.0f}", value);
}

std::string Percent(double share) {
  return fmt::format("{:.1f}", 100.0 * share);
}

std::string Money(double dollars) { return PlainNumber(dollars, 3); }

Value Dollars(const Answered& a, model::Usd<> RunCost::*part) {
  if (!a.cost) return std::nullopt;
  return ToDollars((*a.cost).*part);
}

Value Joules(const std::optional<EnergyRange>& range,
             model::Joules<> EnergyRange::*end) {
  if (!range) return std::nullopt;
  return ToJoules((*range).*end);
}

// Bytes through a device's memory in a step, where its model has them: of the
// longest batch, which is every one where all have one length.
Value Traffic(const Answered& a) {
  if (a.job.lengths.size() > 1) return std::nullopt;
  if (!a.job.engines || !a.job.engines->traffic) return std::nullopt;
  return ToBytes(*a.job.engines->traffic);
}

constexpr auto kFigures = std::to_array<AnswerFigure>({
    {.part = FigurePart::kMemory,
     .key = "memory_bytes",
     .about = "Memory of one device at the moment that it holds most",
     .of = [](const Answered& a) -> Value {
       return ToBytes(a.job.memory.total());
     },
     .unit = &JobUnits::memory,
     .column = FigureColumn{.title = "memory", .drop = 2}},
    {.part = FigurePart::kMemory,
     .key = "memory_low_bytes",
     .about = "Low end of its 80 % interval",
     .of = [](const Answered& a) -> Value {
       return ToBytes(MemoryRangeOf(a.job.memory, a.job.capacity).low);
     },
     .unit = &JobUnits::memory,
     .column =
         FigureColumn{.title = "80 % from", .drop = 11, .names_unit = false}},
    {.part = FigurePart::kMemory,
     .key = "memory_high_bytes",
     .about = "High end of its 80 % interval",
     .of = [](const Answered& a) -> Value {
       return ToBytes(MemoryRangeOf(a.job.memory, a.job.capacity).high);
     },
     .unit = &JobUnits::memory,
     .column = FigureColumn{.title = "to", .drop = 11, .names_unit = false}},
    {.part = FigurePart::kMemory,
     .key = "memory_capacity_bytes",
     .about = "Memory that one device has",
     .of = [](const Answered& a) -> Value { return ToBytes(a.job.capacity); },
     .unit = &JobUnits::memory},
    {.part = FigurePart::kMemory,
     .key = "memory_of_other_streams_bytes",
     .about = "What PyTorch's allocator holds besides, for streams of FSDP",
     .of = [](const Answered& a) -> Value {
       return ToBytes(a.job.memory.of_other_streams);
     },
     .unit = &JobUnits::memory},
    {.part = FigurePart::kMemory,
     .key = "memory_in_gaps_bytes",
     .about = "What PyTorch's allocator holds at most in gaps between tensors",
     .of = [](const Answered& a) -> Value {
       return ToBytes(a.job.memory.in_gaps);
     },
     .unit = &JobUnits::memory},
    {.part = FigurePart::kStep,
     .key = "step_time_s",
     .about = "One optimizer step, with all of its micro-batches",
     .of = [](const Answered& a) -> Value {
       return ToSeconds(a.job.step.total());
     },
     .unit = &JobUnits::step,
     .column = FigureColumn{.title = "step"}},
    {.part = FigurePart::kStep,
     .key = "step_time_low_s",
     .about = "Low end of its 80 % interval",
     .of = [](const Answered& a) -> Value {
       return ToSeconds(a.job.step.total()) * a.job.step.low_factor;
     },
     .unit = &JobUnits::step,
     .column =
         FigureColumn{.title = "80 % from", .drop = 4, .names_unit = false}},
    {.part = FigurePart::kStep,
     .key = "step_time_high_s",
     .about = "High end of its 80 % interval",
     .of = [](const Answered& a) -> Value {
       return ToSeconds(a.job.step.total()) * a.job.step.high_factor;
     },
     .unit = &JobUnits::step,
     .column = FigureColumn{.title = "to", .drop = 4, .names_unit = false}},
    {.part = FigurePart::kStep,
     .key = "step_time_low_95_s",
     .about = "Low end of its 95 % interval",
     .of = [](const Answered& a) -> Value {
       return ToSeconds(a.job.step.total()) *
              a.job.step.LowFactor95(a.job.step.log_sigma);
     },
     .unit = &JobUnits::step},
    {.part = FigurePart::kStep,
     .key = "step_time_high_95_s",
     .about = "High end of its 95 % interval",
     .of = [](const Answered& a) -> Value {
       return ToSeconds(a.job.step.total()) *
              a.job.step.HighFactor95(a.job.step.log_sigma);
     },
     .unit = &JobUnits::step},
    {.part = FigurePart::kEpoch,
     .key = "epoch_time_s",
     .about = "One epoch, with its evaluation and checkpoint",
     .of = [](const Answered& a) -> Value {
       return ToSeconds(a.job.run.epoch(a.epochs));
     },
     .unit = &JobUnits::run,
     .column = FigureColumn{.title = "epoch", .drop = 7}},
    {.part = FigurePart::kRun,
     .key = "run_time_s",
     .about = "The run, from renting to its end",
     .of = [](const Answered& a) -> Value {
       return ToSeconds(a.job.run.total());
     },
     .unit = &JobUnits::run,
     .column = FigureColumn{.title = "in all"}},
    {.part = FigurePart::kRun,
     .key = "run_time_low_s",
     .about = "Low end of its 80 % interval",
     .of = [](const Answered& a) -> Value { return ToSeconds(a.job.run_low); },
     .unit = &JobUnits::run},
    {.part = FigurePart::kRun,
     .key = "run_time_high_s",
     .about = "High end of its 80 % interval",
     .of = [](const Answered& a) -> Value { return ToSeconds(a.job.run_high); },
     .unit = &JobUnits::run},
    {.part = FigurePart::kRun,
     .key = "run_time_low_95_s",
     .about = "Low end of its 95 % interval",
     .of = [](const Answered& a) -> Value {
       return ToSeconds(a.job.run_low_95);
     },
     .unit = &JobUnits::run},
    {.part = FigurePart::kRun,
     .key = "run_time_high_95_s",
     .about = "High end of its 95 % interval",
     .of = [](const Answered& a) -> Value {
       return ToSeconds(a.job.run_high_95);
     },
     .unit = &JobUnits::run},
    {.part = FigurePart::kSpeed,
     .key = "samples_per_s",
     .about = "Samples of all devices, within steps",
     .of = [](const Answered& a) -> Value { return a.job.samples_per_second; },
     .text = Rate,
     .column =
         FigureColumn{.title = "samples/s", .drop = 8, .align = Align::kRight}},
    {.part = FigurePart::kSpeed,
     .key = "tokens_per_s",
     .about = "Tokens of these samples, padding included",
     .of = [](const Answered& a) -> Value { return a.job.tokens_per_second; },
     .text = Rate,
     .column =
         FigureColumn{.title = "tokens/s", .drop = 5, .align = Align::kRight}},
    {.part = FigurePart::kSpeed,
     .key = "mfu",
     .about = "Model FLOPs over peak, by mfu_rule",
     .of = [](const Answered& a) -> Value { return a.job.mfu; },
     .text = Percent,
     .column = FigureColumn{.title = "MFU (%)", .drop = 6}},
    {.part = FigurePart::kSpeed,
     .key = "mfu_causal",
     .about = "The same of the pairs of positions that a model sees: half in "
              "causal attention, as Megatron-LM counts, fewer in windows and "
              "packed documents; null where it sees all",
     .of = [](const Answered& a) -> Value { return a.job.mfu_causal; }},
    {.part = FigurePart::kWork,
     .key = "step_flops",
     .about = "Model FLOPs of a rank in a step, the mean over its lengths",
     .of = [](const Answered& a) -> Value { return a.job.model_flops; }},
    {.part = FigurePart::kWork,
     .key = "flops_per_s",
     .about = "These FLOPs over the step's time",
     .of = [](const Answered& a) -> Value {
       return a.job.model_flops / ToSeconds(a.job.step.total());
     }},
    {.part = FigurePart::kWork,
     .key = "matrix_share",
     .about = "Matrix products' share of what a device is busy with in a step",
     .of = [](const Answered& a) -> Value {
       const model::Seconds<> busy = a.job.step.busy();
       if (busy <= model::Seconds<>()) return std::nullopt;
       return a.job.step.matrix() / busy;
     }},
    {.part = FigurePart::kWork,
     .key = "optimizer_busy_s",
     .about = "Of the update, what a device is busy with and not its host",
     .of = [](const Answered& a) -> Value {
       return ToSeconds(a.job.step.optimizer.working());
     }},
    {.part = FigurePart::kWork,
     .key = "optimizer_busy_share",
     .about = "Its share of the update",
     .of = [](const Answered& a) -> Value {
       const auto& update = a.job.step.optimizer;
       if (update.total() <= model::Seconds<>()) return std::nullopt;
       return update.working() / update.total();
     }},
    {.part = FigurePart::kWork,
     .key = "optimizer_launches",
     .about = "Kernels that an update launches",
     .of = [](const Answered& a) -> Value {
       return static_cast<double>(model::ExpandKernels(a.job.workload)
                                      .Counts(model::Phase::kOptimizer)
                                      .launches);
     }},
    {.part = FigurePart::kWork,
     .key = "flops_per_byte",
     .about = "Model FLOPs over bytes through memory, where these are modelled",
     .of = [](const Answered& a) -> Value {
       const Value traffic = Traffic(a);
       if (!traffic) return std::nullopt;
       return a.job.model_flops / *traffic;
     }},
    {.part = FigurePart::kWork,
     .key = "bandwidth_share",
     .about = "These bytes over the step's time, of the datasheet's bandwidth",
     .of = [](const Answered& a) -> Value {
       const Value traffic = Traffic(a);
       if (!traffic || !a.memory_bandwidth) return std::nullopt;
       return *traffic / ToSeconds(a.job.step.total()) /
              a.memory_bandwidth->base();
     }},
    {.part = FigurePart::kEnergy,
     .key = "energy_j",
     .about = "Energy of all devices over the run",
     .of = [](const Answered& a) -> Value {
       if (!a.job.energy) return std::nullopt;
       return ToJoules(*a.job.energy);
     },
     .unit = &JobUnits::energy,
     .column = FigureColumn{.title = "energy", .drop = 3}},
    {.part = FigurePart::kEnergy,
     .key = "energy_low_j",
     .about = "Low end of its 80 % interval",
     .of = [](const Answered& a) -> Value {
       return Joules(EnergyRangeOf(a.job), &EnergyRange::low);
     },
     .unit = &JobUnits::energy,
     .column = FigureColumn{.title = "80 % from",
                            .drop = 10,
                            .audience = Audience::kPeople,
                            .names_unit = false}},
    {.part = FigurePart::kEnergy,
     .key = "energy_high_j",
     .about = "High end of its 80 % interval",
     .of = [](const Answered& a) -> Value {
       return Joules(EnergyRangeOf(a.job), &EnergyRange::high);
     },
     .unit = &JobUnits::energy,
     .column = FigureColumn{.title = "to",
                            .drop = 10,
                            .audience = Audience::kPeople,
                            .names_unit = false}},
    {.part = FigurePart::kCost,
     .key = "cost_usd",
     .about = "What renting takes for the time of the run",
     .of = [](const Answered& a) -> Value {
       return Dollars(a, &RunCost::usual);
     },
     .text = Money,
     .column = FigureColumn{.title = "cost ($)", .drop = 1}},
    {.part = FigurePart::kCost,
     .key = "cost_low_usd",
     .about = "Low end of its 80 % interval",
     .of = [](const Answered& a) -> Value { return Dollars(a, &RunCost::low); },
     .text = Money,
     .column =
         FigureColumn{.title = "80 % from", .drop = 9, .names_unit = false}},
    {.part = FigurePart::kCost,
     .key = "cost_high_usd",
     .about = "High end of its 80 % interval",
     .of = [](const Answered& a) -> Value {
       return Dollars(a, &RunCost::high);
     },
     .text = Money,
     .column = FigureColumn{.title = "to", .drop = 9, .names_unit = false}},
});

}  // namespace

std::span<const AnswerFigure> AnswerFigures() { return kFigures; }

const AnswerFigure& FigureOf(std::string_view key) {
  const auto* const found = std::find_if(
      kFigures.begin(), kFigures.end(), [&](const AnswerFigure& f) {
        return f.key == key;
      });
  ENSURE(found != kFigures.end(), "a figure has a row");
  return *found;
}

Column ColumnOf(const AnswerFigure& figure,
                const FigureColumn& column,
                const JobUnits& units) {
  const std::string title(column.title);
  const bool names_unit =
      figure.unit != nullptr && column.names_unit && !title.empty();
  return {names_unit ? (units.*figure.unit).Title(title) : title,
          std::string(figure.key),
          column.align,
          column.drop,
          column.audience};
}

std::optional<double> ValueOf(const AnswerFigure& figure,
                              const Answered& answered) {
  if (figure.part != FigurePart::kMemory && !answered.job.fits()) {
    return std::nullopt;
  }
  return figure.of(answered);
}

Cell CellOf(const AnswerFigure& figure,
            const Answered& answered,
            const JobUnits& units) {
  const std::optional<double> value = ValueOf(figure, answered);
  if (!value) return {"-", std::string()};
  const bool bound =
      figure.part == FigurePart::kEnergy && answered.job.energy_is_bound;
  return {(bound ? "< " : "") + (figure.unit != nullptr
                                     ? (units.*figure.unit).Text(*value)
                                     : figure.text(*value)),
          *value};
}

}  // namespace trainfare::scenarios
