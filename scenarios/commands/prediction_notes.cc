#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "hardware/catalog/device.h"
#include "hardware/files/unit_text.h"
#include "hardware/models/device_memory.h"
#include "hardware/models/device_models.h"
#include "model/stack_rules.h"
#include "model/trainable.h"
#include "scenarios/commands/compiler_notes.h"
#include "scenarios/commands/job_notes.h"
#include "scenarios/commands/largest.h"
#include "scenarios/commands/memory_advice.h"
#include "scenarios/commands/prediction_report.h"
#include "scenarios/commands/target_notes.h"
#include "scenarios/commands/unused_settings.h"
#include "scenarios/job/device_memo.h"
#include "scenarios/job/energy.h"
#include "scenarios/job/memory_range.h"
#include "scenarios/job/open_times.h"

namespace trainfare::scenarios {
namespace {

template <class Holds>
bool AnyFitting(const std::vector<JobEstimate>& jobs, const Holds& holds) {
  return std::any_of(jobs.begin(), jobs.end(), [&](const JobEstimate& job) {
    return job.fits() && holds(job);
  });
}

bool AnyFits(const std::vector<JobEstimate>& jobs) {
  return AnyFitting(jobs, [](const JobEstimate&) { return true; });
}

void AddAdvice(const Scenario& scenario,
               const PredictionTarget& target,
               const JobEstimate& job,
               std::vector<Note>& notes) {
  Scenario asked = scenario;
  asked.workload = job.workload;
  // Over as many devices, however they divide them.
  asked.workload.parallel = scenario.workload.parallel;
  const Cluster& cluster = target.cluster;
  DeviceMemo memo(target.predictor, scenario.source);
  const std::vector<std::string> advice = MemoryAdvice(
      asked,
      {cluster.devices, cluster.devices_of_host()},
      [&](const Scenario& changed) -> std::optional<std::string> {
        const model::Fusion stack = changed.workload.stack.fusion;
        if (hardware::StackOn(target.predictor.device(), stack) != stack) {
          return std::nullopt;  // nothing to advise there
        }
        if (!EstimateJob(changed, memo, cluster, Detail::kMemory).fits()) {
          return std::nullopt;
        }
        // Which says also whether it runs.
        const JobEstimate trial = EstimateJob(changed, memo, cluster);
        return hardware::FormatBytes(trial.memory.total());
      });
  if (!advice.empty()) {
    notes.emplace_back(
        fmt::format("it fits with {}", fmt::join(advice, ", or with ")));
    return;
  }
  const bool other_fits = LargestOf(Largest::kModel, asked, target) > 0;
  notes.emplace_back(fmt::format(
      "neither recomputation, shards, narrow weights and state{} nor adapters "
      "make it fit{}",
      cluster.devices > 1 ? ", a divided model (parallel.tensor, pipeline, "
                            "context)"
                          : "",
      other_fits ? "; --largest model says what does" : ""));
}

void AddMemoryNotes(const PredictionTarget& target,
                    const std::vector<JobEstimate>& jobs,
                    const Scenario& scenario,
                    std::vector<Note>& notes) {
  const RoomTrial has_room = RoomOn(target, scenario.source);
  for (const JobEstimate& job : jobs) {
    if (auto note = MemoryNote(job, scenario, has_room)) {
      notes.push_back(std::move(*note));
    }
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

// What chips of several cores hold and do that a renter counts once.
void AddCoresNote(const PredictionTarget& target,
                  const model::Workload& w,
                  std::vector<Note>& notes) {
  const hardware::Device& device = target.predictor.device();
  const int64_t cores = hardware::CoresWithModels(device);
  if (cores == 1) return;
  const int64_t idle = std::max<int64_t>(0, cores - w.batch);
  notes.push_back(
      fmt::format("{} has {} cores, which train data parallel with a copy of "
                  "the model each, less what parallel.shard divides{}",
                  device.name,
                  cores,
                  idle == 0 ? ""
                            : fmt::format("; with batch {}, {} {} idle",
                                          w.batch,
                                          idle,
                                          idle == 1 ? "is" : "are")));
}

std::string MfuNote(const std::vector<JobEstimate>& jobs) {
  const bool some_unseen = AnyFitting(
      jobs, [](const JobEstimate& job) { return job.mfu_causal.has_value(); });
  const bool forward = jobs.front().workload.work == model::Work::kForward;
  std::string note =
      fmt::format("MFU counts the matrix products of {}",
                  forward ? "the forward pass" : "forward and backward");
  const std::string_view anew = forward ? "" : ", nothing recomputed";
  if (!some_unseen) {
    return note + fmt::format(
                      " with attention{} (PaLM's rule), against the "
                      "peak of the precision",
                      anew);
  }
  const bool causal =
      jobs.front().workload.architecture.family == model::Family::kDecoder;
  note += fmt::format(
      ", all pairs of positions in attention though {}{} (PaLM's rule{}), "
      "against the peak of the precision; of the pairs that it sees{} it is ",
      causal ? "it is causal" : "not all are seen",
      anew,
      causal ? ", and torchtitan's" : "",
      causal ? ", half of them as Megatron-LM counts, fewer in windows," : "");
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

void AddBatchNotes(const PredictionTarget& target,
                   const std::vector<JobEstimate>& jobs,
                   const Scenario& scenario,
                   std::vector<Note>& notes) {
  const model::Workload& workload = jobs.front().workload;
  for (const JobEstimate& job : jobs) {
    auto note = EpochNote(job, scenario);
    if (!note) continue;
    notes.push_back(std::move(*note));
    break;
  }
  for (Note& note : UnusedSettingsNotes(
           scenario.workload, workload, target.predictor.device())) {
    notes.push_back(std::move(note));
  }
  const int64_t idle = target.cluster.idle_devices;
  if (idle > 0 && workload.parallel.data == target.cluster.devices) {
    const std::string how =
        scenario.workload.parallel.data > 0
            ? fmt::format("--set parallel.data={}, and no other --devices,",
                          target.cluster.devices + idle)
            : "no --devices";
    notes.push_back(
        fmt::format("{} {} paid for and without work; {} has all of them train",
                    hardware::Plural(idle, "device"),
                    idle == 1 ? "is" : "are",
                    how));
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

// Of gpt-oss (whose experts have biases), Llama 4 (which attends within chunks)
// and DBRX (which clips its projections) Transformers never had other experts
// than one tensor: class GptOssExperts, Llama4TextExperts, DbrxExpertGLU.
bool KeepsExpertsTogether(const model::Architecture& a) {
  return a.expert_bias || a.chunked_window || a.clipped_projections;
}

// Where experts are one tensor, as of Transformers 5, they are no modules that
// PEFT puts adapters beside, whatever matrices are named. Unsloth has modules of
// its own.
void AddExpertAdaptersNote(const model::Workload& w, std::vector<Note>& notes) {
  if (w.architecture.experts == 0 || w.trainable.lora_rank == 0) return;
  const bool always = KeepsExpertsTogether(w.architecture);
  if ((model::FindsRows(model::ExpertsOf(w)) &&
       (!always || w.stack.fusion == model::Fusion::kUnsloth)) ||
      model::RulesOf(w).block == model::BlockKernels::kHandFused) {
    return;
  }
  const int64_t adapters = model::TrainableExpertParameters(w);
  if (adapters == 0) return;
  model::LoraMatrices others = w.trainable.lora;
  others.feed_forward_gate = others.feed_forward_in = others.feed_forward_out =
      false;
  notes.push_back(fmt::format(
      "{} of what trains are adapters beside routed experts, which PEFT does "
      "not have where Transformers{} keeps a block's experts in one tensor{}",
      ParametersText(adapters),
      always ? "" : " 5",
      others == model::LoraMatrices{}
          ? ""
          : fmt::format("; without: --set trainable.lora.matrices={}",
                        fmt::join(model::ToWords(others), ","))));
}

// A limit above what the board allows holds nobody back.
void AddPowerLimitNote(const PredictionTarget& target,
                       const model::Workload& w,
                       std::vector<Note>& notes) {
  const hardware::Device& device = target.predictor.device();
  if (!device.max_power || w.power_limit <= *device.max_power) return;
  notes.push_back(
      fmt::format("power_limit: {} is above the {} of {}, whose own limit "
                  "counts",
                  hardware::FormatPower(w.power_limit),
                  hardware::FormatPower(*device.max_power),
                  device.name));
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

}  // namespace

std::vector<Note> PredictionNotes(const PredictionTarget& target,
                                  const std::vector<JobEstimate>& jobs,
                                  const Scenario& scenario,
                                  bool spot) {
  std::vector<Note> notes;
  // It explains most of an interval.
  if (auto note = UnnamedNetworkNote(
          target.cluster, "say which, such as --network 400Gbit/s")) {
    notes.push_back(std::move(*note));
  }
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
  if (auto note = TaskNote(longest.workload)) {
    notes.push_back(std::move(*note));
  }
  AddMemoryNotes(target, jobs, scenario, notes);
  AddCoresNote(target, jobs.front().workload, notes);
  AddEnergyNotes(target, jobs, notes);
  if (!scenario.extras.start_up) {
    notes.emplace_back(
        StartUpNote(target.cluster.rented,
                    CompilesAtStart(scenario, target.predictor.device())),
        Caution::kStartUpAssumed);
  }
  for (const JobEstimate& job : jobs) {
    if (auto note = CheckpointNote(job, scenario, target.cluster)) {
      notes.emplace_back(*note, Caution::kCheckpointAssumed);
      break;
    }
  }
  AddCompileNotes(target, jobs, scenario, notes);
  AddFitNotes(target, notes);
  if (auto note = SourceNote(jobs.front(), scenario)) {
    notes.push_back(std::move(*note));
  }
  AddBatchNotes(target, jobs, scenario, notes);
  AddStackNotes(target, jobs.front(), scenario, notes);
  AddExpertAdaptersNote(scenario.workload, notes);
  AddPowerLimitNote(target, scenario.workload, notes);
  AddWindowNote(scenario.workload.architecture, notes);
  AddLinkNotes(target, notes);
  AddPriceNotes(target, jobs, spot, notes);
  return notes;
}

}  // namespace trainfare::scenarios
