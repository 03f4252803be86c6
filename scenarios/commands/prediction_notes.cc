#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "hardware/catalog/device.h"
#include "hardware/files/unit_text.h"
#include "hardware/models/device_models.h"
#include "model/presets.h"
#include "model/stack_rules.h"
#include "scenarios/commands/memory_advice.h"
#include "scenarios/commands/prediction_report.h"
#include "scenarios/job/energy.h"
#include "scenarios/job/memory_range.h"
#include "scenarios/job/open_times.h"
#include "scenarios/report/column_unit.h"
#include "scenarios/report/job_units.h"

namespace trainfare::scenarios {
namespace {

using hardware::FormatBytes;
using hardware::FormatTime;

template <class Holds>
bool AnyFitting(const std::vector<JobEstimate>& jobs, const Holds& holds) {
  return std::any_of(jobs.begin(), jobs.end(), [&](const JobEstimate& job) {
    return job.fits() && holds(job);
  });
}

bool AnyFits(const std::vector<JobEstimate>& jobs) {
  return AnyFitting(jobs, [](const JobEstimate&) { return true; });
}

// "; a smaller batch is safe": what takes less memory than `w`, and is not
// asked for already; empty where nothing is.
std::string SaferSettings(const model::Workload& w) {
  std::vector<std::string_view> settings;
  if (w.batch > 1) settings.emplace_back("a smaller batch");
  if (!w.gradient_checkpointing && w.work != model::Work::kForward) {
    settings.emplace_back("gradient_checkpointing");
  }
  if (settings.empty()) return "";
  return fmt::format("; {} is safe", fmt::join(settings, " or "));
}

}  // namespace

std::optional<Note> MemoryNote(const JobEstimate& job) {
  if (!job.fits()) return std::nullopt;
  const model::Workload& w = job.workload;
  const model::MemoryEstimate& memory = job.memory;
  const model::Bytes<> high = MemoryRangeOf(memory.total()).high;
  const model::Bytes<> besides = memory.of_other_streams + memory.in_gaps;
  const bool is_full = memory.total() + besides > job.capacity;
  if (!is_full && high <= job.capacity) return std::nullopt;
  std::string line =
      fmt::format("batch {}, length {}: ", w.batch, w.sequence_length);
  if (is_full) {
    line += fmt::format(
        "may run out: an allocator holds up to {} besides, in gaps and of "
        "other streams; ",
        FormatBytes(besides));
  }
  line += fmt::format(
      "the 80 % interval of its memory reaches to {}, {} the {} that there "
      "are{}",
      FormatBytes(high),
      high > job.capacity ? "past" : "of",
      FormatBytes(job.capacity),
      SaferSettings(w));
  return Note(line, Caution::kMemoryInInterval);
}

std::optional<Note> WeightsNote(const Scenario& scenario) {
  const int64_t bits = model::BitsInName(scenario.asked_model);
  const model::Trainable& trainable = scenario.workload.trainable;
  if (bits == 0 || trainable.base_bits > 0) return std::nullopt;
  std::string adapters;
  if (trainable.lora_rank == 0) {
    adapters = kAdapterFlag;
    if (scenario.workload.architecture.latent()) adapters += kLatentAdapterFlag;
    adapters += ' ';
  }
  return Note(fmt::format(
      "{}: the {} bits of its weights are not taken from its name; hint: "
      "{}--set trainable.lora.base_bits={}",
      scenario.asked_model,
      bits,
      adapters,
      bits));
}

std::optional<Note> PositionsNote(const model::Workload& w) {
  const auto positions = w.architecture.max_sequence_length();
  const int64_t length = std::max(w.sequence_length, w.target_length);
  if (!positions || length <= *positions) return std::nullopt;
  return Note(fmt::format("{} tokens are beyond the {} positions that {} was "
                          "trained with",
                          length,
                          *positions,
                          w.architecture.name),
              Caution::kLengthBeyondPositions);
}

std::string CompiledStackNote(model::Fusion asked,
                              model::Fusion instead,
                              const std::set<std::string>& devices) {
  return fmt::format(
      "stack {}: its kernels are GPUs' own; compilers have the model without "
      "them, as stack {}, on {}",
      model::ToText(asked),
      model::ToText(instead),
      fmt::join(devices, ", "));
}

std::string NamedCloudNote(const hardware::Instance& instance) {
  return fmt::format("{}: {}", instance.cloud, instance.named_only);
}

std::optional<Note> EndNote(const Scenario& scenario) {
  if (!scenario.ends_in_line) return std::nullopt;
  return Note(fmt::format("{}: the last line has no end: where the file is cut "
                          "off, this is the answer to another question",
                          scenario.path),
              Caution::kFileCutOff);
}

std::optional<Note> SourceNote(const JobEstimate& job,
                               const Scenario& scenario) {
  if (!job.fits() || job.step.source_sigma == 0) return std::nullopt;
  const std::string where =
      scenario.source == calibrate::kOwnSource
          ? "your own hosts and software"
          : fmt::format("the hosts and software of {}", scenario.source);
  return Note(
      fmt::format("nothing behind the answer was measured on {}, and sources "
                  "differ by {:.0f} % on equal devices, which is in the "
                  "interval; `trainfare calibrate` there takes it out",
                  where,
                  100.0 * job.step.source_sigma),
      Caution::kSourceUnseen);
}

namespace {

void AddAdvice(const Scenario& scenario,
               const PredictionTarget& target,
               const JobEstimate& job,
               std::vector<Note>& notes) {
  Scenario asked = scenario;
  asked.workload = job.workload;
  const std::vector<std::string> advice = MemoryAdvice(
      asked,
      target.cluster.devices,
      [&](const Scenario& changed) -> std::optional<std::string> {
        const model::Fusion stack = changed.workload.stack.fusion;
        if (hardware::StackOn(target.predictor.device(), stack) != stack) {
          return std::nullopt;  // nothing to advise there
        }
        const JobEstimate trial =
            EstimateJob(changed, target.predictor, target.cluster);
        if (!trial.fits()) return std::nullopt;
        return hardware::FormatBytes(trial.memory.total());
      });
  notes.emplace_back(
      advice.empty()
          ? std::string(
                "neither recomputation, shards, narrow weights and state nor "
                "adapters make it fit; --largest model says what does")
          : fmt::format("it fits with {}", fmt::join(advice, ", or with ")));
}

void AddMemoryNotes(const PredictionTarget& target,
                    const std::vector<JobEstimate>& jobs,
                    const Scenario& scenario,
                    std::vector<Note>& notes) {
  for (const JobEstimate& job : jobs) {
    if (auto note = MemoryNote(job)) notes.push_back(std::move(*note));
    if (!job.fits()) {
      notes.push_back(
          job.largest_batch
              ? fmt::format("length {}: the largest batch that fits is {}",
                            job.workload.sequence_length,
                            *job.largest_batch)
              : fmt::format("length {}: not even one sequence fits",
                            job.workload.sequence_length));
    }
  }
  if (!AnyFits(jobs)) AddAdvice(scenario, target, jobs.front(), notes);
}

std::string MfuNote(const std::vector<JobEstimate>& jobs) {
  const bool causal = AnyFitting(
      jobs, [](const JobEstimate& job) { return job.mfu_causal.has_value(); });
  if (!causal) {
    return "MFU counts the matrix products of forward and backward with "
           "attention, nothing recomputed (PaLM's rule), against the peak of "
           "the precision";
  }
  std::string note =
      "MFU counts the matrix products of forward and backward, all pairs of "
      "positions in attention though it is causal, nothing recomputed (PaLM's "
      "rule, and torchtitan's), against the peak of the precision; of the "
      "pairs that it sees, half of them as Megatron-LM counts, fewer in "
      "windows, it is ";
  note += jobs.size() == 1
              ? fmt::format("{:.1f} %", 100.0 * *jobs.front().mfu_causal)
              : "less: mfu_causal in JSON";
  return note;
}

void AddEnergyNotes(const PredictionTarget& target,
                    const std::vector<JobEstimate>& jobs,
                    std::vector<Note>& notes) {
  if (!AnyFits(jobs)) return;
  notes.emplace_back(MfuNote(jobs));
  if (AnyFitting(jobs,
                 [](const JobEstimate& job) { return job.energy_is_bound; })) {
    notes.emplace_back(
        "energy is an upper bound, the device at its power limit all the time: "
        "no idle power is known; without the host",
        Caution::kEnergyIsBound);
  } else if (AnyFitting(jobs, [](const JobEstimate& job) {
               return job.energy.has_value();
             })) {
    std::string note =
        "energy is of the devices, without the host, at the power of each kind "
        "of work";
    if (const int64_t idle = target.cluster.idle_devices; idle > 0) {
      note += fmt::format(", and of {} at rest beside them",
                          hardware::Plural(idle, "device"));
    }
    if (jobs.size() == 1) {
      if (const auto range = EnergyRangeOf(jobs.front())) {
        const model::Joules<> energy = *jobs.front().energy;
        note += fmt::format("; 80 % interval {:+.0f} .. {:+.0f} %",
                            100.0 * (range->low / energy - 1.0),
                            100.0 * (range->high / energy - 1.0));
      }
    }
    notes.push_back(std::move(note));
  } else {
    notes.push_back(fmt::format("no power of {} is known, so no energy",
                                target.predictor.device().name));
  }
}

// Devices whose own files say that of their compiler: chips, not parts of one.
std::string DevicesThatSay(bool (*said)(const hardware::CompilerFacts&)) {
  std::vector<std::string_view> names;
  for (const hardware::Device& one :
       hardware::DeviceCatalog::Shipped().devices()) {
    if (one.compiler && said(*one.compiler) && !one.part_of) {
      names.push_back(one.name);
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

bool SaysLevels(const hardware::CompilerFacts& compiler) {
  return !compiler.level_times.empty();
}

bool SaysGraphMemory(const hardware::CompilerFacts& compiler) {
  return compiler.graph_memory.has_value();
}

// What of its compiler nobody measured, where the job would turn on it.
void AddUnknownsOfCompiler(const PredictionTarget& target,
                           const Scenario& scenario,
                           std::vector<Note>& notes) {
  const hardware::Device& device = target.predictor.device();
  const auto& compiler = device.compiler;
  if (!compiler || compiler->levels == 0) return;
  if (scenario.workload.stack.compiler_level != 2 && !SaysLevels(*compiler)) {
    notes.push_back(
        fmt::format("compiler_level: what it changes was measured on {} alone, "
                    "not on {}: as level 2",
                    DevicesThatSay(SaysLevels),
                    device.name));
  }
  if (scenario.workload.work == model::Work::kTraining &&
      target.cluster.host_memory && !scenario.extras.warm_cache &&
      !SaysGraphMemory(*compiler)) {
    notes.push_back(fmt::format(
        "memory of the host for compiling was measured on {} alone, "
        "not on {}: no batch is refused for it",
        DevicesThatSay(SaysGraphMemory),
        device.name));
  }
}

void AddCompileNotes(const PredictionTarget& target,
                     const std::vector<JobEstimate>& jobs,
                     const Scenario& scenario,
                     std::vector<Note>& notes) {
  if (AnyFitting(jobs, [](const JobEstimate& job) { return job.compiles; }) &&
      !scenario.extras.compile_per_shape && !scenario.extras.warm_cache) {
    const hardware::Device& device = target.predictor.device();
    const JobEstimate& job = jobs.front();
    std::string counted = "is not counted";
    if (device.compiler) {
      counted = fmt::format(
          "is not known: the interval has {} to {} a graph{}",
          job.run.compile.base() > 0
              ? FormatTime(device.compiler->shortest_compile)
              : "nothing",
          FormatTime(device.compiler->longest_compile),
          job.run.shape_changes > job.run.distinct_shapes
              ? fmt::format(", once each or at every change of length ({:.0f})",
                            job.run.shape_changes)
              : "");
    }
    notes.emplace_back(
        fmt::format(
            "{} compiles every distinct shape ({:.0f} here); how long {}: set "
            "run.compile_per_shape, or run.warm_cache where it was done before",
            device.name,
            job.run.distinct_shapes,
            counted),
        Caution::kCompileTimeUnknown);
  }
  AddUnknownsOfCompiler(target, scenario, notes);
  for (const JobEstimate& job : jobs) {
    if (job.compilation && job.compilation->swaps && job.fits()) {
      notes.emplace_back(
          fmt::format("batch {}, length {}: the compiler swaps, it takes {} on "
                      "a host of {}; how much longer that takes is not counted",
                      job.workload.batch,
                      job.workload.sequence_length,
                      FormatBytes(job.compilation->memory),
                      FormatBytes(job.compilation->host_memory)),
          Caution::kCompilerSwaps);
    }
  }
}

void AddFitNotes(const PredictionTarget& target, std::vector<Note>& notes) {
  const int64_t figures = target.predictor.fit().provenance.observations;
  if (!target.fit_name.empty() && figures <= calibrate::kFewFigures) {
    notes.emplace_back(
        fmt::format("fit {} rests on {}: the interval is of its priors more "
                    "than of measurements",
                    target.fit_name,
                    hardware::Plural(figures, "published figure")),
        Caution::kFitOfFewFigures);
  }
}

void AddBatchNotes(const PredictionTarget& target,
                   const std::vector<JobEstimate>& jobs,
                   const Scenario& scenario,
                   std::vector<Note>& notes) {
  const model::Workload& workload = jobs.front().workload;
  const int64_t global_batch =
      workload.batch * workload.accumulation * target.cluster.devices;
  if (AnyFits(jobs) && target.cluster.devices > 1 &&
      global_batch > scenario.train_samples) {
    notes.emplace_back(
        fmt::format("the global batch of {} is more than the {} samples of an "
                    "epoch: one step, and some devices have nothing to do",
                    global_batch,
                    scenario.train_samples),
        Caution::kBatchBeyondEpoch);
  }
  if (workload.precision != model::Precision::kFp8 &&
      workload.fp8 != model::Fp8()) {
    notes.push_back(fmt::format("fp8: of no effect in {}; hint: precision: fp8",
                                model::ToText(workload.precision)));
  }
  const int64_t idle = target.cluster.idle_devices;
  if (idle > 0 && workload.parallel.data == target.cluster.devices) {
    notes.push_back(fmt::format(
        "parallel.data={} leaves {} that {} paid for without work; --set "
        "parallel.data={} has all of them train",
        target.cluster.devices,
        hardware::Plural(idle, "device"),
        idle == 1 ? "is" : "are",
        target.cluster.devices + idle));
  }
}

void AddStackNotes(const PredictionTarget& target,
                   const JobEstimate& job,
                   const Scenario& scenario,
                   std::vector<Note>& notes) {
  const model::Fusion asked = scenario.workload.stack.fusion;
  const model::Workload& w = job.workload;
  if (w.stack.fusion != asked) {
    notes.emplace_back(CompiledStackNote(
        asked, w.stack.fusion, {target.predictor.device().name}));
  }
  if (w.architecture.experts > 0 && model::FindsRows(model::ExpertsOf(w))) {
    notes.push_back(fmt::format(
        "{}: the {} experts of a block run one after another; --set "
        "experts=grouped has one product of all, as Transformers 5",
        w.stack.experts == model::ExpertKernels::kOfStack
            ? fmt::format("stack {}", model::ToText(w.stack.fusion))
            : fmt::format("experts {}", model::ToText(w.stack.experts)),
        w.architecture.experts));
  }
}

// A config.json's window beyond the positions is read as one of them all
// (hardware/files/decoder_parts.h).
void AddWindowNote(const model::Architecture& a, std::vector<Note>& notes) {
  if (a.windowed_layers == 0 || a.window < a.positions) return;
  notes.push_back(
      fmt::format("window {}: all positions of {} are seen; a longer one of a "
                  "config.json is taken as that",
                  a.window,
                  a.name));
}

void AddLinkNotes(const PredictionTarget& target, std::vector<Note>& notes) {
  if (const auto& ranks = target.cluster.ranks) {
    const calibrate::RingFit& ring = ranks->network.alone;
    std::string line = fmt::format(
        "data parallel over {}: {}, ring step {}, link {} +- {:.0f} %, by fit "
        "{}",
        ranks->backend.empty() ? "a measured ring" : ranks->backend,
        ranks->transport.empty() ? "transport not said" : ranks->transport,
        FormatTime(ring.ring.step_latency),
        hardware::FormatBandwidth(ring.ring.link),
        100.0 * ring.link_error,
        target.fit_name);
    if (!target.cluster.measured()) {
      line += fmt::format("; measured over {} ranks{}, not {}",
                          target.cluster.measured_ranks,
                          target.cluster.hosts > 1 ? " of one host" : "",
                          target.cluster.devices);
    }
    if (ranks->ranks_per_device > 1) {
      line += fmt::format("; all on one processor, {:.2f} of its speed each",
                          ranks->share);
    }
    notes.push_back(line);
  } else if (target.cluster.hosts == 1 &&
             target.predictor.HasExchangeOf(target.cluster.devices)) {
    notes.push_back(fmt::format(
        "what {} devices that share no state send each other is in the steps "
        "that made fit {}, which went over several; it is not added again",
        target.cluster.devices,
        target.fit_name));
  } else if (target.cluster.link) {
    notes.push_back(fmt::format(
        "data parallel over {}: link from its datasheet, not measured",
        target.cluster.link->name));
  }
  if (const auto& network = target.cluster.network) {
    notes.emplace_back(
        fmt::format("{} hosts over {} of each, {}{}",
                    target.cluster.hosts,
                    hardware::FormatBandwidth(network->wire.bandwidth),
                    network->wire.name,
                    network->named
                        ? ", not measured"
                        : ": no network was named, so the interval is wider; "
                          "say --network"),
        network->named ? Caution::kNone : Caution::kNetworkUnnamed);
  }
  if (target.cluster.devices_per_chip > 1) {
    notes.push_back(fmt::format(
        "{} parts of each {}: what they send each other is in the "
        "step of one{}",
        target.cluster.devices_per_chip,
        target.cluster.chip,
        target.cluster.link
            ? fmt::format("; {} chips are linked", target.cluster.chips())
            : ""));
  }
}

void AddPriceNotes(const PredictionTarget& target,
                   bool spot,
                   std::vector<Note>& notes) {
  if (target.instance != nullptr && !target.instance->named_only.empty()) {
    notes.push_back(NamedCloudNote(*target.instance));
  }
  if (target.instance != nullptr && !target.tariff) {
    notes.emplace_back(fmt::format("no {}price of {} is known",
                                   spot ? "spot " : "",
                                   target.instance->FullName()),
                       Caution::kPriceUnknown);
  }
  if (target.tariff) {
    std::string line = fmt::format("price: {}", Describe(*target.tariff));
    if (!target.tariff->excludes.empty()) {
      line += fmt::format("; excludes {}",
                          fmt::join(target.tariff->excludes, ", "));
    }
    notes.push_back(line);
    if (!target.tariff->caution.empty()) {
      notes.emplace_back(fmt::format("price: {}", target.tariff->caution),
                         Caution::kPriceDoubtful);
    }
    if (target.tariff->spot) {
      notes.emplace_back("work lost to spot interruptions is not counted");
    }
  }
}

std::string Interval(model::Seconds<> low, model::Seconds<> high) {
  return fmt::format("{} .. {}", FormatTime(low), FormatTime(high));
}

}  // namespace

std::string TargetName(const PredictionTarget& target) {
  const hardware::Device& device = target.predictor.device();
  std::string name =
      device.reported_name.empty()
          ? device.name
          : fmt::format("{} ({})", device.name, device.reported_name);
  if (target.cluster.devices > 1) {
    name = fmt::format("{} x {}", target.cluster.devices, name);
  }
  if (target.instance != nullptr) {
    name += fmt::format(" of {}{}",
                        target.cluster.hosts > 1
                            ? fmt::format("{} x ", target.cluster.hosts)
                            : "",
                        target.instance->FullName());
  } else if (target.cluster.hosts > 1) {
    name += fmt::format(" on {} hosts", target.cluster.hosts);
  }
  return name;
}

std::string Answer(const PredictionTarget& target,
                   const JobEstimate& job,
                   const Scenario& scenario) {
  if (!job.fits()) {
    if (job.memory.total() <= job.capacity) {
      return fmt::format("{} {}", scenario.title, job.Obstacle());
    }
    return fmt::format("{} does not fit {}: it needs {}, {} more than there is",
                       scenario.title,
                       target.predictor.device().name,
                       FormatBytes(job.memory.total()),
                       FormatBytes(job.memory.total() - job.capacity));
  }
  std::string line = fmt::format("{} takes {} (80 % interval {}{}) on {}",
                                 scenario.title,
                                 FormatTime(job.run.total()),
                                 Interval(job.run_low, job.run_high),
                                 StartUpWords(job),
                                 TargetName(target));
  if (const auto cost = CostOf(job, target.tariff)) {
    line += fmt::format(" and costs {} (80 % interval {} .. {})",
                        hardware::FormatMoney(cost->usual),
                        hardware::FormatMoney(cost->low),
                        hardware::FormatMoney(cost->high));
  }
  if (const auto energy = EnergyRangeOf(job)) {
    const ColumnUnit unit = UnitsOf({&job}).energy;
    const auto text = [&](model::Joules<> one) {
      return unit.Text(ToJoules(one));
    };
    line += fmt::format("; {} {} ({} .. {})",
                        text(*job.energy),
                        unit.name,
                        text(energy->low),
                        text(energy->high));
  }
  const MemoryRange memory = MemoryRangeOf(job.memory.total());
  line += fmt::format("; {} a device ({} .. {})",
                      FormatBytes(job.memory.total()),
                      FormatBytes(memory.low),
                      FormatBytes(memory.high));
  return line;
}

std::vector<Note> PredictionNotes(const PredictionTarget& target,
                                  const std::vector<JobEstimate>& jobs,
                                  const Scenario& scenario,
                                  bool spot) {
  std::vector<Note> notes;
  if (target.taken_as) notes.emplace_back(*target.taken_as);
  if (auto note = EndNote(scenario)) notes.push_back(std::move(*note));
  if (auto note = WeightsNote(scenario)) notes.push_back(std::move(*note));
  const JobEstimate& longest = *std::max_element(
      jobs.begin(), jobs.end(), [](const JobEstimate& a, const JobEstimate& b) {
        return a.workload.sequence_length < b.workload.sequence_length;
      });
  if (auto note = PositionsNote(longest.workload)) {
    notes.push_back(std::move(*note));
  }
  AddMemoryNotes(target, jobs, scenario, notes);
  AddEnergyNotes(target, jobs, notes);
  if (!scenario.extras.start_up) {
    notes.emplace_back(
        StartUpNote(target.cluster.rented,
                    CompilesAtStart(scenario, target.predictor.device())),
        Caution::kStartUpAssumed);
  }
  AddCompileNotes(target, jobs, scenario, notes);
  AddFitNotes(target, notes);
  if (auto note = SourceNote(jobs.front(), scenario)) {
    notes.push_back(std::move(*note));
  }
  AddBatchNotes(target, jobs, scenario, notes);
  AddStackNotes(target, jobs.front(), scenario, notes);
  AddWindowNote(scenario.workload.architecture, notes);
  AddLinkNotes(target, notes);
  AddPriceNotes(target, spot, notes);
  return notes;
}

}  // namespace trainfare::scenarios
