#include "scenarios/commands/job_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "hardware/files/unit_text.h"
#include "model/parallel.h"
#include "model/presets.h"
#include "scenarios/job/memory_range.h"

namespace trainfare::scenarios {
namespace {

using hardware::FormatBytes;

// What a network joins: hosts, or racks of several.
std::string RacksText(const calibrate::JoinedDevices& joined) {
  if (joined.racks == joined.hosts) {
    return fmt::format("{} hosts", joined.hosts);
  }
  return fmt::format(
      "{} groups of {} hosts", joined.racks, joined.hosts / joined.racks);
}

}  // namespace

std::string NetworkWords(const calibrate::JoinedDevices& joined) {
  const hardware::Interconnect& wire = joined.network->wire;
  return fmt::format("{} over {} of each, {}",
                     RacksText(joined),
                     hardware::FormatBandwidth(wire.bandwidth),
                     wire.name);
}

std::optional<Note> UnnamedNetworkNote(const calibrate::JoinedDevices& joined,
                                       std::string_view hint) {
  if (!joined.network || joined.network->named) return std::nullopt;
  return Note(fmt::format("{}: no network was named, so the interval is wider; "
                          "{}",
                          NetworkWords(joined),
                          hint),
              Caution::kNetworkUnnamed);
}

std::optional<Note> EpochNote(const JobEstimate& job,
                              const Scenario& scenario) {
  const model::Workload& w = job.workload;
  const int64_t step = w.batch * w.accumulation * model::CopiesOf(w.parallel);
  if (!job.fits() || step <= scenario.train_samples) return std::nullopt;
  return Note(
      job.devices > 1
          ? fmt::format("the global batch of {} is more than the {} samples of "
                        "an epoch: one step, and some devices have nothing to "
                        "do",
                        step,
                        scenario.train_samples)
          : fmt::format("the {} samples of a step are more than the {} of an "
                        "epoch: one step, of those that there are",
                        step,
                        scenario.train_samples),
      Caution::kBatchBeyondEpoch);
}

std::optional<Note> TaskNote(const model::Workload& workload) {
  if (workload.architecture.head != model::Head::kNone) return std::nullopt;
  return Note(
      fmt::format("task none: {} is run without an output layer and its loss",
                  workload.architecture.name));
}

std::string DropoutWords(const model::Workload& workload) {
  const double dropout = workload.architecture.dropout;
  if (workload.work == model::Work::kForward || dropout == 0.0) return "";
  return fmt::format(", dropout {:g}", dropout);
}

std::optional<Note> MemoryNote(const JobEstimate& job,
                               const Scenario& scenario,
                               const RoomTrial& has_room,
                               Smaller smaller) {
  const model::MemoryEstimate& memory = job.memory;
  if (!job.fits() || HasRoom(memory, job.capacity)) return std::nullopt;
  const model::Workload& w = job.workload;
  const model::Bytes<> high = MemoryRangeOf(memory, job.capacity).high;
  const model::Bytes<> besides = memory.of_other_streams + memory.in_gaps;
  std::string line =
      fmt::format("batch {}, length {}: ", w.batch, w.sequence_length);
  if (memory.total() + besides > job.capacity) {
    line += fmt::format(
        "may run out: an allocator holds up to {} besides, in gaps and of "
        "other streams; ",
        FormatBytes(besides));
  }
  line += fmt::format(
      "the 80 % interval of its memory reaches to {}, {} the {} that there "
      "are",
      FormatBytes(high),
      high > job.capacity ? "past" : "of",
      FormatBytes(job.capacity));
  Scenario asked = scenario;
  asked.workload = w;
  const std::vector<std::string> safe = SaferSettings(asked, has_room, smaller);
  if (!safe.empty()) {
    line += fmt::format("; {} is safe", fmt::join(safe, " or "));
  }
  return Note(line, Caution::kMemoryInInterval);
}

std::optional<Note> WeightsNote(const Scenario& scenario) {
  const int64_t bits = model::BitsInName(scenario.asked_model);
  const model::Trainable& trainable = scenario.workload.trainable;
  if (bits == 0 || trainable.base_bits > 0) return std::nullopt;
  std::string adapters;
  if (trainable.lora_rank == 0) {
    adapters = kAdapterFlag;
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

}  // namespace trainfare::scenarios
