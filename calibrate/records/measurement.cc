#include "calibrate/records/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "calibrate/records/statistics.h"
#include "hardware/files/json_text.h"
#include "hardware/files/text_file.h"
#include "model/error.h"
#include "model/json_fields.h"
#include "model/limits.h"
#include "model/nearest.h"
#include "model/record_fields.h"
#include "model/validate.h"

namespace trainfare::calibrate {
namespace {

using model::InputError;
using model::Seconds;
using nlohmann::json;

// What a record says is wrong is thrown without a position, which
// ParseMeasurementLine() adds.
[[noreturn]] void Fail(const std::string& key, const std::string& message) {
  throw InputError(fmt::format("{}: {}", key, message));
}

// `visit`: a list of fields. The keys of others than this program's fields are
// ignored.
template <class Visit>
void Read(const json& value, const Visit& visit) {
  model::JsonFieldReader reader(value, "", model::UnknownKeys::kIgnored);
  visit(reader);
}

model::Workload Valid(const model::Workload& workload) {
  try {
    model::Validate(workload);
  } catch (const InputError& error) {
    Fail("workload", error.what());
  }
  return workload;
}

// "key value, key value" of the texts and numbers of a flat object.
std::string Summary(const json& object) {
  std::string text;
  if (!object.is_object()) return text;
  for (const auto& [key, value] : object.items()) {
    if (value.is_structured() || value.is_null()) continue;
    if (!text.empty()) text += ", ";
    text += key + " ";
    text += value.is_string() ? value.get<std::string>()
                              : hardware::WriteJson(value);
  }
  return text;
}

// Sets what disturbed a run, or a kernel.
template <class Measured>
void SetDisturbance(const model::RecordedDisturbance& recorded,
                    int64_t threads,
                    Measured& measured) {
  measured.disturbed = recorded.disturbed.value_or(false);
  if (!recorded.load || threads == 0) return;
  const model::RecordedLoad& load = *recorded.load;
  if (!load.waited || !load.wall) return;
  measured.waited_share =
      ToSeconds(*load.waited) /
      (ToSeconds(*load.wall) * static_cast<double>(threads));
}

// The energy that a GPU counts is its board's; what a host counts is not of the
// device alone.
std::optional<model::Watts<>> PowerOf(
    const std::optional<model::RecordedEnergy>& energy) {
  if (!energy || energy->source != "nvml") return std::nullopt;
  if (!energy->joules) Fail("energy.energy_j", "missing");
  // A counter of millijoules may stand still over a run of no length.
  if (*energy->joules == 0.0) return std::nullopt;
  if (!energy->wall) Fail("energy.wall_s", "missing");
  if (!model::IsPlausible(*energy->wall)) {
    Fail("energy.wall_s", "expected a time above 0");
  }
  return model::Watts<>(*energy->joules / ToSeconds(*energy->wall));
}

// What the ranks of a run sent, and over what.
void SetRanks(const std::optional<model::RecordedRanks>& ranks,
              MeasuredRun& run) {
  if (!ranks) return;
  run.backend = ranks->backend;
  run.transport = ranks->transport.value_or("");
  if (!ranks->bucket_bytes) return;
  for (const int64_t size : *ranks->bucket_bytes) {
    run.buckets.push_back(model::Byte(static_cast<double>(size)));
  }
}

// What a record says is assumed, by keys of its workload or of its own.
Assumed AssumedOf(const std::optional<json>& reasons, const json& record) {
  Assumed assumed;
  if (!reasons) return assumed;
  if (!reasons->is_object()) {
    Fail("assumed",
         fmt::format("expected reasons by key, such as {{\"batch\": \"not "
                     "stated\"}}, got {}",
                     reasons->type_name()));
  }
  for (const auto& [key, why] : reasons->items()) {
    const std::string path = "assumed." + key;
    if (!record.at("workload").contains(key) && !record.contains(key)) {
      Fail(path,
           fmt::format("expected a key of the workload or of the record, got "
                       "\"{}\"",
                       key));
    }
    if (!why.is_string()) {
      Fail(path,
           fmt::format("expected a reason in words, got {}", why.type_name()));
    }
    assumed.emplace(key, why.get<std::string>());
  }
  return assumed;
}

void CheckSamples(const MeasuredRun& run) {
  for (size_t i = 0; i < run.samples.size(); ++i) {
    const Sample& sample = run.samples[i];
    const size_t timed = sample.bucket_ready.size();
    if (sample.bucket_start.size() != timed ||
        sample.bucket_end.size() != timed) {
      Fail(fmt::format("samples[{}].bucket_end_s", i),
           "expected as many times as bucket_ready_s");
    }
    if (timed != 0 && timed != run.buckets.size()) {
      Fail(fmt::format("samples[{}].bucket_ready_s", i),
           fmt::format("expected {} times, as ranks.bucket_bytes has, got {}",
                       run.buckets.size(),
                       timed));
    }
  }
  if (std::all_of(run.samples.begin(),
                  run.samples.end(),
                  [](const Sample& sample) { return sample.warmup; })) {
    Fail("samples", "expected a step that is not warm-up, got none");
  }
}

// Sets which record it is, of which device, and what it ran on. Returns the
// device.
template <class Measured>
const model::RecordedDevice& SetHead(const model::RecordHead<json>& head,
                                     const std::string& name,
                                     int line,
                                     Measured& measured) {
  measured.line = line;
  measured.id = head.id.value_or("");
  if (measured.id.empty()) measured.id = fmt::format("{}:{}", name, line);
  if (!head.device) Fail("device", "missing");
  measured.device = head.device->name;
  measured.host = Summary(head.host);
  measured.software = Summary(head.software);
  return *head.device;
}

MeasuredRun ReadRun(const json& value, const std::string& name, int line) {
  model::StepRecord<json, Sample> record;
  Read(value, [&](auto& reader) { VisitStep(reader, record); });
  MeasuredRun run;
  const model::RecordedDevice& device = SetHead(record.head, name, line, run);
  run.time = record.head.time.value_or("");
  if (run.device.empty()) Fail("device.name", "expected a text, got \"\"");
  run.device_kind = device.kind;
  run.device_count = record.world_size.value_or(device.count);
  run.threads = device.threads.value_or(0);
  run.workload = Valid(record.workload);
  run.assumed = AssumedOf(record.assumed, value);
  run.peak_memory = model::Byte(static_cast<double>(record.peak_memory_bytes));
  SetDisturbance(record.disturbance, run.threads, run);
  run.mean_power = PowerOf(record.energy);
  SetRanks(record.ranks, run);
  run.samples = std::move(record.samples);
  CheckSamples(run);
  return run;
}

void CheckKernels(const std::vector<model::Kernel>& kernels) {
  if (kernels.empty()) Fail("kernels", "expected a list that is not empty");
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::string place = fmt::format("kernels[{}]", i);
    const model::GemmExtents& of = kernels[i].gemm;
    if (of.batch == 0) {
      if (kernels[i].matrix_flops > 0) Fail(place + ".gemm", "missing");
      continue;
    }
    try {
      // Twice for the FLOPs, and tiles are rounded up.
      model::CheckedProduct({8, of.batch, of.m, of.n, of.k}, "gemm");
    } catch (const InputError& error) {
      Fail(place, error.what());
    }
  }
}

// Times of calls.
std::vector<double> SamplesOf(const std::vector<model::RecordedCall>& calls) {
  if (calls.empty()) Fail("samples", "expected a list that is not empty");
  std::vector<double> samples_s;
  for (const model::RecordedCall& call : calls) {
    samples_s.push_back(ToSeconds(call.time));
  }
  return samples_s;
}

MeasuredKernel ReadMeasuredKernel(const json& value,
                                  const std::string& name,
                                  int line) {
  model::KernelRecord<json> record;
  Read(value, [&](auto& reader) { VisitKernel(reader, record); });
  MeasuredKernel measured;
  const model::RecordedDevice& device =
      SetHead(record.head, name, line, measured);
  measured.workload = Valid(record.workload);
  measured.operation = record.operation;
  measured.kind = record.kind;
  measured.phase = record.phase;
  measured.per_step = record.per_step;
  SetDisturbance(
      record.calls.disturbance, device.threads.value_or(0), measured);
  CheckKernels(record.kernels);
  measured.kernels = std::move(record.kernels);
  const std::vector<double> samples_s = SamplesOf(record.calls.samples);
  measured.time = Seconds<>(Median(samples_s));
  measured.relative_noise = RelativeNoiseOfMedian(samples_s);
  return measured;
}

// Collectives that no model here has are left out.
std::optional<MeasuredCollective> ReadCollective(const json& value, int line) {
  model::CollectiveRecord<json> record;
  Read(value, [&](auto& reader) { VisitOperation(reader, record); });
  MeasuredCollective measured;
  measured.line = line;
  const auto& words = model::kWords<model::Collective>.words;
  const auto known =
      std::find_if(words.begin(), words.end(), [&](const auto& word) {
        return word.text == record.operation;
      });
  if (known == words.end()) return std::nullopt;
  measured.collective = known->value;
  Read(value, [&](auto& reader) { VisitCollective(reader, record); });
  if (record.head.device) {
    measured.device = record.head.device->name;
    measured.device_kind = record.head.device->kind;
    measured.threads = record.head.device->threads.value_or(0);
  }
  if (record.ranks) {
    measured.backend = record.ranks->backend;
    measured.transport = record.ranks->transport.value_or("");
  }
  measured.software = Summary(record.head.software);
  measured.ranks = record.world_size;
  measured.size = model::Byte(static_cast<double>(record.bytes));
  if (record.computation) {
    measured.computation_speed = record.computation->rounds_per_s /
                                 record.computation->rounds_alone_per_s;
  }
  measured.time = Seconds<>(Median(SamplesOf(record.samples)));
  return measured;
}

RefusedRun ReadRefused(const json& value, int line) {
  model::RefusedRecord<json> record;
  Read(value, [&](auto& reader) { VisitRefused(reader, record); });
  return {.line = line,
          .request = record.request ? hardware::WriteJson(*record.request) : "",
          .message = record.message};
}

MeasurementLine ReadLine(const json& value, const std::string& name, int line) {
  model::RecordKind record;
  Read(value, [&](auto& reader) { VisitFields(reader, record); });
  if (record.schema != model::kRecordSchema) {
    Fail("schema",
         fmt::format("expected \"{}\", got \"{}\"",
                     model::kRecordSchema,
                     record.schema));
  }
  const std::string& kind = record.kind;
  MeasurementLine result;
  if (kind == "step") {
    result.run = ReadRun(value, name, line);
  } else if (kind == "kernel") {
    result.kernel = ReadMeasuredKernel(value, name, line);
  } else if (kind == "error") {
    result.refused = ReadRefused(value, line);
  } else if (kind == "collective") {
    result.collective = ReadCollective(value, line);
  } else if (kind != "copy" && kind != "run") {
    const std::vector<std::string_view> known = {
        "step", "kernel", "collective", "copy", "run", "error"};
    Fail("kind",
         fmt::format("unknown kind \"{}\"{}; known: {}",
                     kind,
                     model::DidYouMean(kind, known),
                     model::JoinNames(known)));
  }
  return result;
}

}  // namespace

MeasurementLine ParseMeasurementLine(std::string_view line,
                                     const std::string& name,
                                     int line_number) {
  const json value = hardware::ParseJson(line, name, line_number);
  try {
    return ReadLine(value, name, line_number);
  } catch (const InputError& error) {
    throw InputError(name, line_number, 0, error.what());
  }
}

Measurements ParseMeasurements(std::string_view text,
                               const std::string& name,
                               CutTail cut_tail) {
  Measurements measurements;
  measurements.file = name;
  int line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const size_t end = text.find('\n');
    const bool cut = end == std::string_view::npos;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(cut ? text.size() : end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    // Without its newline a line may still be whole, written by hand.
    if (cut && !json::accept(line)) {
      if (cut_tail == CutTail::kRefuse) {
        throw InputError(name,
                         line_number,
                         0,
                         "the last line is cut off, its run was interrupted; "
                         "remove the line");
      }
      measurements.dropped_tail = fmt::format(
          "{}:{}: dropped the last line, it was cut off", name, line_number);
      break;
    }
    MeasurementLine parsed = ParseMeasurementLine(line, name, line_number);
    if (parsed.run) {
      measurements.runs.push_back(std::move(*parsed.run));
    } else if (parsed.kernel) {
      measurements.kernels.push_back(std::move(*parsed.kernel));
    } else if (parsed.collective) {
      measurements.collectives.push_back(std::move(*parsed.collective));
    } else if (parsed.refused) {
      measurements.refused.push_back(std::move(*parsed.refused));
    } else {
      ++measurements.other_kinds;
    }
  }
  if (line_number == 0 && cut_tail == CutTail::kRefuse) {
    throw InputError(name, 1, 0, "expected measurement records, got nothing");
  }
  return measurements;
}

Measurements ReadMeasurements(const std::string& path, CutTail cut_tail) {
  return ParseMeasurements(
      hardware::ReadTextFile(path, "a file of records"), path, cut_tail);
}

}  // namespace trainfare::calibrate
