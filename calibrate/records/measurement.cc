#include "calibrate/records/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "calibrate/records/disturbance.h"
#include "calibrate/records/json_object.h"
#include "calibrate/records/statistics.h"
#include "hardware/files/json_text.h"
#include "hardware/files/text_file.h"
#include "model/error.h"
#include "model/json_fields.h"
#include "model/kernel_fields.h"
#include "model/limits.h"
#include "model/nearest.h"

namespace trainfare::calibrate {
namespace {

using internal::JsonObject;
using model::InputError;
using model::Seconds;

constexpr std::string_view kSchema = "trainfare.measurement/1";

// The keys of others than this program's fields are ignored.
model::Workload ReadWorkload(const JsonObject& record) {
  model::Workload workload;
  try {
    model::JsonFieldReader reader(
        record.At("workload"), "workload", model::UnknownKeys::kIgnored);
    VisitFields(reader, workload);
  } catch (const InputError& error) {
    record.FailWith("", error.what());
  }
  try {
    model::Validate(workload);
  } catch (const InputError& error) {
    record.FailWith("workload", error.what());
  }
  return workload;
}

Sample ReadSample(const JsonObject& record,
                  const nlohmann::json& value,
                  const std::string& place) {
  Sample sample;
  try {
    model::JsonFieldReader reader(value, place, model::UnknownKeys::kIgnored);
    VisitFields(reader, sample);
  } catch (const InputError& error) {
    record.FailWith("", error.what());
  }
  if (sample.bucket_start.size() != sample.bucket_ready.size() ||
      sample.bucket_end.size() != sample.bucket_ready.size()) {
    record.FailWith(fmt::format("{}.bucket_end_s", place),
                    "expected as many times as bucket_ready_s");
  }
  return sample;
}

// "key value, key value" of the texts and numbers of a flat object.
std::string Summary(const nlohmann::json& object) {
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

// Reads what disturbed a run, or a kernel.
template <class Measured>
void ReadDisturbance(const JsonObject& record,
                     int64_t threads,
                     Measured& measured) {
  measured.disturbed = record.Flag("disturbed", false);
  if (!record.Has("host_load") || threads == 0) return;
  const JsonObject load = record.Object("host_load");
  if (!load.Has("waited_s") || !load.Has("wall_s")) return;
  const double wall_s = load.PositiveNumber("wall_s", "a time above 0");
  const nlohmann::json& waited = load.At("waited_s");
  if (!waited.is_number() || !(waited.get<double>() >= 0.0) ||
      waited.get<double>() > model::kLongestTime) {
    load.FailWith("waited_s", "expected a time of 0 or more");
  }
  measured.waited_share =
      waited.get<double>() / (wall_s * static_cast<double>(threads));
}

// The energy that a GPU counts is its board's; what a host counts is not of the
// device alone.
std::optional<model::Watts<>> ReadPower(const JsonObject& record) {
  if (!record.Has("energy")) return std::nullopt;
  const JsonObject energy = record.Object("energy");
  if (energy.Text("source", "") != "nvml") return std::nullopt;
  // A counter of millijoules may stand still over a run of no length.
  if (energy.At("energy_j") == 0) return std::nullopt;
  return model::Watts<>(energy.PositiveNumber("energy_j", "an energy above 0") /
                        energy.PositiveNumber("wall_s", "a time above 0"));
}

// What the ranks of a run sent, and over what.
void ReadRanks(const JsonObject& record, MeasuredRun& run) {
  if (!record.Has("ranks")) return;
  const JsonObject ranks = record.Object("ranks");
  run.backend = ranks.Text("backend", "");
  run.transport = ranks.Text("transport", "");
  if (!ranks.Has("bucket_bytes")) return;
  const nlohmann::json& sizes = ranks.At("bucket_bytes");
  const auto is_size = [](const nlohmann::json& one) {
    return one.is_number_integer() && one.get<int64_t>() > 0 &&
           one.get<int64_t>() <= model::kLargestCount;
  };
  if (!sizes.is_array() || !std::all_of(sizes.begin(), sizes.end(), is_size)) {
    ranks.FailWith("bucket_bytes", "expected a list of sizes in bytes");
  }
  for (const nlohmann::json& size : sizes) {
    run.buckets.push_back(model::Byte(size.get<double>()));
  }
}

void ReadSamples(const JsonObject& record, MeasuredRun& run) {
  const nlohmann::json& samples = record.At("samples");
  int64_t counted = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    run.samples.push_back(
        ReadSample(record, samples[i], fmt::format("samples[{}]", i)));
    counted += run.samples.back().warmup ? 0 : 1;
    const size_t timed = run.samples.back().bucket_ready.size();
    if (timed != 0 && timed != run.buckets.size()) {
      record.FailWith(fmt::format("samples[{}].bucket_ready_s", i),
                      fmt::format("expected {} times, as ranks.bucket_bytes "
                                  "has, got {}",
                                  run.buckets.size(),
                                  timed));
    }
  }
  if (counted == 0) {
    record.FailWith("samples", "expected a step that is not warm-up, got none");
  }
}

// Which record it is, of which device, and what it ran on. Returns the device's
// object.
template <class Measured>
JsonObject ReadHead(const JsonObject& record,
                    const nlohmann::json& value,
                    const std::string& name,
                    int line,
                    Measured& measured) {
  measured.line = line;
  measured.id = record.Text("id", "");
  if (measured.id.empty()) measured.id = fmt::format("{}:{}", name, line);
  JsonObject device = record.Object("device");
  measured.device = device.Text("name");
  if (value.contains("host")) measured.host = Summary(value["host"]);
  if (value.contains("software")) {
    measured.software = Summary(value["software"]);
  }
  return device;
}

MeasuredRun ReadRun(const JsonObject& record,
                    const nlohmann::json& value,
                    const std::string& name,
                    int line) {
  MeasuredRun run;
  const JsonObject device = ReadHead(record, value, name, line, run);
  run.time = record.Text("time", "");
  if (run.device.empty()) device.FailWith("name", "expected a text, got \"\"");
  run.device_kind = device.Text("kind", "");
  run.device_count = record.Count("world_size", 1, device.Count("count", 1, 1));
  if (run.device_count > model::kMostDevices) {
    record.FailWith("world_size",
                    fmt::format("expected at most {} devices, got {}",
                                model::kMostDevices,
                                run.device_count));
  }
  run.threads = device.Count("threads", 0, 0);
  run.workload = ReadWorkload(record);
  run.peak_memory =
      model::Byte(static_cast<double>(record.Count("peak_memory_bytes", 0, 0)));
  ReadDisturbance(record, run.threads, run);
  run.mean_power = ReadPower(record);
  const nlohmann::json& samples = record.At("samples");
  if (!samples.is_array()) record.FailWith("samples", "expected a list");
  ReadRanks(record, run);
  ReadSamples(record, run);
  return run;
}

model::Kernel ReadKernel(const JsonObject& object) {
  model::Kernel kernel;
  kernel.kind = object.Word("kind", model::FromText<model::KernelKind>);
  const auto large = [&](const model::Field& field, int64_t& value) {
    value = object.LargeCount(std::string(field.name).c_str());
  };
  VisitCounts(large, kernel);
  kernel.launches = object.Count("launches", 1);
  if (object.Has("gemm")) {
    const JsonObject gemm = object.Object("gemm");
    const auto count = [&](const model::Field& field, int64_t& value) {
      value = gemm.Count(std::string(field.name).c_str(), field.least);
    };
    VisitFields(count, kernel.gemm);
    const model::GemmExtents& of = kernel.gemm;
    try {
      // Twice for the FLOPs, and tiles are rounded up.
      model::CheckedProduct({8, of.batch, of.m, of.n, of.k}, "gemm");
    } catch (const InputError& error) {
      object.FailWith("", error.what());
    }
  } else if (kernel.matrix_flops > 0) {
    object.FailWith("gemm", "missing");
  }
  return kernel;
}

// Items of a list, each with its place for messages.
template <class Read>
void ForEachItem(const JsonObject& record,
                 const char* key,
                 const std::string& name,
                 int line,
                 const Read& read) {
  const nlohmann::json& list = record.At(key);
  if (!list.is_array() || list.empty()) {
    record.FailWith(key, "expected a list that is not empty");
  }
  for (size_t i = 0; i < list.size(); ++i) {
    read(JsonObject(list[i], name, line, fmt::format("{}[{}]", key, i)));
  }
}

MeasuredKernel ReadMeasuredKernel(const JsonObject& record,
                                  const nlohmann::json& value,
                                  const std::string& name,
                                  int line) {
  MeasuredKernel measured;
  const JsonObject device = ReadHead(record, value, name, line, measured);
  measured.workload = ReadWorkload(record);
  measured.operation = record.Text("operation");
  measured.kind =
      record.Word("kernel_kind", model::FromText<model::KernelKind>);
  measured.phase = record.Word("phase", model::FromText<model::Phase>);
  measured.per_step = record.Count("per_step", 1);
  ReadDisturbance(record, device.Count("threads", 0, 0), measured);
  ForEachItem(record, "kernels", name, line, [&](const JsonObject& kernel) {
    measured.kernels.push_back(ReadKernel(kernel));
  });
  std::vector<double> samples_s;
  ForEachItem(record, "samples", name, line, [&](const JsonObject& sample) {
    samples_s.push_back(
        sample.PositiveNumber("time_s", "a time above 0 in seconds"));
  });
  measured.time = Seconds<>(Median(samples_s));
  measured.relative_noise = RelativeNoiseOfMedian(samples_s);
  return measured;
}

MeasuredCollective ReadCollective(const JsonObject& record,
                                  const nlohmann::json& value,
                                  const std::string& name,
                                  int line) {
  MeasuredCollective measured;
  measured.line = line;
  if (record.Has("device")) {
    const JsonObject device = record.Object("device");
    measured.device = device.Text("name", "");
    measured.device_kind = device.Text("kind", "");
    measured.threads = device.Count("threads", 0, 0);
  }
  if (record.Has("ranks")) {
    measured.backend = record.Object("ranks").Text("backend", "");
    measured.transport = record.Object("ranks").Text("transport", "");
  }
  if (value.contains("software")) {
    measured.software = Summary(value["software"]);
  }
  measured.ranks = record.Count("world_size", 2);
  measured.size = model::Byte(static_cast<double>(record.Count("bytes", 1)));
  if (record.Has("computation")) {
    const JsonObject computation = record.Object("computation");
    constexpr const char* kRate = "a rate above 0";
    measured.computation_speed =
        computation.PositiveNumber("rounds_per_s", kRate) /
        computation.PositiveNumber("rounds_alone_per_s", kRate);
  }
  std::vector<double> samples_s;
  ForEachItem(record, "samples", name, line, [&](const JsonObject& sample) {
    samples_s.push_back(
        sample.PositiveNumber("time_s", "a time above 0 in seconds"));
  });
  measured.time = Seconds<>(Median(samples_s));
  return measured;
}

}  // namespace

MeasurementLine ParseMeasurementLine(std::string_view line,
                                     const std::string& name,
                                     int line_number) {
  const nlohmann::json value = hardware::ParseJson(line, name, line_number);
  const JsonObject record(value, name, line_number);
  const std::string schema = record.Text("schema");
  if (schema != kSchema) {
    record.FailWith(
        "schema", fmt::format("expected \"{}\", got \"{}\"", kSchema, schema));
  }
  const std::string kind = record.Text("kind");
  MeasurementLine result;
  if (kind == "step") {
    result.run = ReadRun(record, value, name, line_number);
  } else if (kind == "kernel") {
    result.kernel = ReadMeasuredKernel(record, value, name, line_number);
  } else if (kind == "error") {
    result.refused =
        RefusedRun{.line = line_number,
                   .request = value.contains("request")
                                  ? hardware::WriteJson(value["request"])
                                  : "",
                   .message = record.Text("message")};
  } else if (kind == "collective") {
    // Collectives that no model here has are left out.
    const std::string operation = record.Text("operation", "");
    for (const auto& known : model::kWords<model::Collective>.words) {
      if (operation != known.text) continue;
      result.collective = ReadCollective(record, value, name, line_number);
      result.collective->collective = known.value;
    }
  } else if (kind != "copy" && kind != "run") {
    const std::vector<std::string_view> known = {
        "step", "kernel", "collective", "copy", "run", "error"};
    record.FailWith("kind",
                    fmt::format("unknown kind \"{}\"{}; known: {}",
                                kind,
                                model::DidYouMean(kind, known),
                                model::JoinNames(known)));
  }
  return result;
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
    if (cut && !nlohmann::json::accept(line)) {
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

std::vector<Observation> ObservationsOf(const MeasuredRun& run) {
  std::vector<double> step;
  std::vector<double> forward;
  std::vector<double> backward;
  std::vector<double> optimizer;
  for (const Sample& sample : run.samples) {
    if (sample.warmup) continue;
    step.push_back(model::ToSeconds(sample.step));
    if (sample.forward) forward.push_back(model::ToSeconds(*sample.forward));
    if (sample.backward) backward.push_back(model::ToSeconds(*sample.backward));
    if (sample.optimizer) {
      optimizer.push_back(model::ToSeconds(*sample.optimizer));
    }
  }
  std::vector<Observation> observations;
  const auto add = [&](Quantity quantity, const std::vector<double>& samples) {
    // A part timed in some steps only has no median that compares.
    if (samples.empty() || samples.size() != step.size()) return;
    Observation observation;
    observation.label = run.id;
    observation.group = run.workload.architecture.name;
    observation.device = run.device;
    observation.device_count = run.device_count;
    observation.of_timed_ranks = run.device_count > 1;
    observation.workload = run.workload;
    observation.quantity = quantity;
    observation.measured = Seconds<>(Median(samples));
    observation.relative_noise =
        std::hypot(RelativeNoiseOfMedian(samples), DisturbanceNoise(run));
    observation.framework = run.software;
    observations.push_back(std::move(observation));
  };
  add(Quantity::kStep, step);
  add(Quantity::kForward, forward);
  add(Quantity::kBackward, backward);
  add(Quantity::kOptimizer, optimizer);
  return observations;
}

KernelObservation ObservationOf(const MeasuredKernel& measured) {
  KernelObservation observation;
  observation.label = measured.id;
  observation.device = measured.device;
  observation.workload = measured.workload;
  observation.operation = measured.operation;
  observation.phase = measured.phase;
  observation.kernels = measured.kernels;
  observation.measured = measured.time;
  observation.relative_noise =
      std::hypot(measured.relative_noise, DisturbanceNoise(measured));
  return observation;
}

std::vector<PowerObservation> PowersOf(const std::vector<MeasuredRun>& runs) {
  std::vector<PowerObservation> powers;
  for (const MeasuredRun& run : runs) {
    if (!run.mean_power || run.device_count != 1 || run.disturbed) continue;
    PowerObservation power;
    power.label = run.id;
    power.device = run.device;
    power.workload = run.workload;
    power.measured = *run.mean_power;
    powers.push_back(std::move(power));
  }
  return powers;
}

std::vector<Observation> ObservationsOf(const std::vector<MeasuredRun>& runs) {
  std::vector<Observation> observations;
  for (const MeasuredRun& run : runs) {
    std::vector<Observation> of_run = ObservationsOf(run);
    std::move(of_run.begin(), of_run.end(), std::back_inserter(observations));
  }
  return observations;
}

}  // namespace trainfare::calibrate
