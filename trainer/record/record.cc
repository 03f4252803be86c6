#include "trainer/record/record.h"

#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <torch/headeronly/version.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <thread>

#include "hardware/files/date.h"
#include "hardware/files/json_text.h"
#include "model/error.h"
#include "model/json_fields.h"
#include "model/kernel_fields.h"
#include "model/step_sample.h"

namespace trainfare::trainer {
namespace {

using Json = nlohmann::ordered_json;

std::string CompilerText() {
#if defined(__clang__)
  return fmt::format(
      "clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format(
      "gcc {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::string FieldOf(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

std::string RandomId() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}", source(), source());
}

Json Host() {
  utsname system{};
  ::uname(&system);
  struct sysinfo memory {};
  ::sysinfo(&memory);
  return {{"system", fmt::format("{} {}", system.sysname, system.release)},
          {"name", system.nodename},
          {"cpu", HostCpuName()},
          {"logical_cores", std::thread::hardware_concurrency()},
          {"memory_bytes", memory.totalram * memory.mem_unit}};
}

Json Software() {
  return {{"trainer", TRAINFARE_VERSION},
          {"commit", TRAINFARE_COMMIT},
          {"libtorch", TORCH_VERSION},
          {"compiler", CompilerText()}};
}

Json WorkloadJson(const model::Workload& workload) {
  Json json = Json::object();
  model::JsonFieldWriter writer(json);
  VisitFields(writer, workload);
  return json;
}

// Times are kept to the nanosecond, the resolution of the clock: half the
// digits of a double.
Json Instants(const std::vector<double>& seconds) {
  Json list = Json::array();
  for (const double instant : seconds) {
    list.push_back(std::round(instant * 1e9) / 1e9);
  }
  return list;
}

Json TimelineJson(const StepTimeline& timeline) {
  Json passes = Json::array();
  for (const PassTimeline& pass : timeline.passes) {
    passes.push_back({{"forward_at_s", Instants(pass.forward_at_s)},
                      {"backward_at_s", Instants(pass.backward_at_s)}});
  }
  return {{"passes", std::move(passes)},
          {"optimizer_at_s",
           Instants({timeline.optimizer_begin_s, timeline.optimizer_end_s})}};
}

std::vector<model::Seconds<>> Times(const std::vector<double>& seconds) {
  return {seconds.begin(), seconds.end()};
}

model::StepSample AsRecorded(const Sample& sample) {
  const StepTimes& times = sample.times;
  model::StepSample recorded;
  recorded.index = sample.step;
  recorded.warmup = sample.warmup;
  recorded.forward = model::Second(times.forward_s);
  recorded.backward = model::Second(times.backward_s);
  recorded.optimizer = model::Second(times.optimizer_s);
  recorded.step = model::Second(times.step_s);
  if (times.waited_s) recorded.waited = model::Second(*times.waited_s);
  if (times.gradients) {
    const GradientTimes& gradients = *times.gradients;
    recorded.backward_compute = model::Second(gradients.compute_end);
    recorded.bucket_ready = Times(gradients.bucket_ready);
    recorded.bucket_start = Times(gradients.bucket_start);
    recorded.bucket_end = Times(gradients.bucket_end);
    recorded.layer_ready = Times(gradients.layer_ready);
  }
  return recorded;
}

Json SampleJson(const Sample& sample) {
  Json json = Json::object();
  model::JsonFieldWriter writer(json);
  const model::StepSample recorded = AsRecorded(sample);
  VisitFields(writer, recorded);
  // What no fit reads: the loss for whoever watches, the timeline for pictures.
  json["loss"] = sample.times.loss;
  if (sample.times.timeline) {
    json["timeline"] = TimelineJson(*sample.times.timeline);
  }
  return json;
}

Json DeviceJson(const DeviceDescription& device, std::optional<double> time_s) {
  Json json = {{"name", device.name},
               {"kind", device.kind},
               {"count", 1},
               {"threads", device.threads}};
  if (!device.bus_id.empty()) json["bus_id"] = device.bus_id;
  if (time_s) json["time_s"] = *time_s;
  return json;
}

// What records of all kinds begin with.
Json Provenance(const char* kind, Json device) {
  return {{"schema", "trainfare.measurement/1"},
          {"kind", kind},
          {"id", RandomId()},
          {"time", hardware::TimeText(hardware::Now())},
          {"device", std::move(device)},
          {"host", Host()},
          {"software", Software()}};
}

Json Provenance(const char* kind,
                const DeviceDescription& device,
                double device_time_s,
                const model::Workload& workload) {
  Json json = Provenance(kind, DeviceJson(device, device_time_s));
  json["workload"] = WorkloadJson(workload);
  return json;
}

Json KernelJson(const model::Kernel& kernel) {
  Json json = {{"name", std::string(kernel.name.text())},
               {"kind", model::ToText(kernel.kind)}};
  model::JsonFieldWriter writer(json);
  VisitCounts(writer, kernel);
  json["launches"] = kernel.launches;
  if (kernel.gemm.batch > 0) {
    json["gemm"] = Json::object();
    model::JsonFieldWriter extents(json["gemm"]);
    VisitFields(extents, kernel.gemm);
  }
  return json;
}

Json HostLoadJson(const HostLoad& load) {
  Json json = {{"wall_s", load.wall_s},
               {"cpu_s", load.cpu_s},
               {"involuntary_switches", load.involuntary_switches}};
  if (load.waited_s) json["waited_s"] = *load.waited_s;
  return json;
}

void AddRange(Json& json, const char* key, const std::optional<Range>& range) {
  if (!range) return;
  json[key] = {
      {"low", range->low}, {"median", range->median}, {"high", range->high}};
}

Json GpuJson(const GpuConditions& gpu) {
  Json json = {{"driver", gpu.driver}, {"readings", gpu.readings}};
  AddRange(json, "sm_clock_hz", gpu.sm_clock_hz);
  AddRange(json, "memory_clock_hz", gpu.memory_clock_hz);
  AddRange(json, "temperature_c", gpu.temperature_c);
  AddRange(json, "power_w", gpu.power_w);
  if (gpu.power_limit_w) json["power_limit_w"] = *gpu.power_limit_w;
  json["throttled"] = !gpu.throttle_reasons.empty();
  json["throttle_reasons"] = gpu.throttle_reasons;
  if (gpu.other_processes) {
    json["shared"] = *gpu.other_processes > 0;
    json["other_processes"] = *gpu.other_processes;
  }
  return json;
}

Json EnergyJson(const EnergyUse& energy) {
  if (!energy.missing.empty()) return {{"missing", energy.missing}};
  Json json = {{"source", energy.source}};
  if (!energy.domains.empty()) json["domains"] = energy.domains;
  json["energy_j"] = energy.joules;
  json["wall_s"] = energy.wall_s;
  return json;
}

Json SamplesJson(const std::vector<double>& samples_s) {
  Json samples = Json::array();
  for (const double time_s : samples_s) samples.push_back({{"time_s", time_s}});
  return samples;
}

void AddCalls(Json& json, const TimedCalls& calls, int threads) {
  json.update({{"disturbed", calls.load.disturbed(threads)},
               {"host_load", HostLoadJson(calls.load)},
               {"iterations", calls.iterations},
               {"samples", SamplesJson(calls.samples_s)}});
}

void AddConditions(Json& json, const RunConditions& conditions, int threads) {
  json["disturbed"] = conditions.disturbed(threads);
  json["host_load"] = HostLoadJson(conditions.load);
  json["energy"] = EnergyJson(conditions.energy);
  if (conditions.gpu) json["gpu"] = GpuJson(*conditions.gpu);
  if (!conditions.gpu_missing.empty()) {
    json["gpu"] = {{"missing", conditions.gpu_missing}};
  }
}

}  // namespace

double StepRecord::device_time_s() const {
  if (device.kind == "cpu") return conditions ? conditions->load.cpu_s : 0.0;
  double sum = 0;
  for (const Sample& sample : samples) {
    if (sample.warmup) continue;
    const StepTimes& times = sample.times;
    sum += times.forward_s + times.backward_s + times.optimizer_s;
  }
  return sum;
}

void RequireDeviceTime(const StepRecord& record) {
  if (record.device_time_s() > 0) return;
  throw std::runtime_error(
      fmt::format("{} did no work on the timed steps", record.device.name));
}

std::string HostCpuName() {
  const std::string name = FieldOf("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown CPU" : name;
}

int64_t PeakResidentBytes() {
  const std::string text = FieldOf("/proc/self/status", "VmHWM");
  return text.empty() ? 0 : std::stoll(text) * 1024;  // the kernel says kB
}

void ResetPeakResident() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;  // refused in some containers: the peak stays
}

std::string VersionText() {
  return fmt::format("trainfare-trainer {} (commit {}, LibTorch {}, {})",
                     TRAINFARE_VERSION,
                     TRAINFARE_COMMIT,
                     TORCH_VERSION,
                     CompilerText());
}

std::string ToJsonLine(const StepRecord& record) {
  Json samples = Json::array();
  for (const Sample& sample : record.samples) {
    samples.push_back(SampleJson(sample));
  }
  Json json = Provenance(
      "step", record.device, record.device_time_s(), record.workload);
  json.update({
      {"world_size", record.ranks ? record.ranks->world_size : 1},
      {"seed", record.seed},
      {"parameters", record.parameters},
      {"peak_memory_bytes", record.peak_memory_bytes},
      {"peak_allocated_bytes", record.peak_allocated_bytes},
  });
  if (record.ranks) {
    const RankDescription& ranks = *record.ranks;
    json["device"]["count"] = ranks.world_size;
    json["rank"] = ranks.rank;
    json["ranks"] = {{"launcher", ranks.launcher},
                     {"backend", ranks.backend},
                     {"transport", ranks.transport},
                     {"bucket_bytes", ranks.bucket_bytes},
                     {"layers", ranks.layers}};
  }
  if (record.evaluation_accuracy) {
    json["evaluation_accuracy"] = *record.evaluation_accuracy;
  }
  if (record.skipped_steps) json["skipped_steps"] = *record.skipped_steps;
  if (record.optimizer_launches) {
    json["launches_optimizer"] = *record.optimizer_launches;
  }
  if (record.conditions) {
    AddConditions(json, *record.conditions, record.device.threads);
  }
  if (!record.parts.empty()) json["parts"] = record.parts;
  json["samples"] = std::move(samples);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string ToJsonLine(const CollectiveRecord& record) {
  Json json = Provenance("collective", DeviceJson(record.device, std::nullopt));
  json["device"]["count"] = record.ranks.world_size;
  json.update({{"operation", model::ToText(record.operation)},
               {"world_size", record.ranks.world_size},
               {"rank", record.ranks.rank},
               {"ranks",
                {{"launcher", record.ranks.launcher},
                 {"backend", record.ranks.backend},
                 {"transport", record.ranks.transport}}},
               {"bytes", record.bytes},
               {"iterations", record.iterations}});
  if (record.rounds_beside && record.rounds_alone) {
    json["computation"] = {{"rounds_per_s", *record.rounds_beside},
                           {"rounds_alone_per_s", *record.rounds_alone}};
  }
  json["samples"] = SamplesJson(record.samples_s);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string ToJsonLine(const KernelRecord& record) {
  Json kernels = Json::array();
  for (const model::Kernel& kernel : record.operation.kernels) {
    kernels.push_back(KernelJson(kernel));
  }
  Json json = Provenance(
      "kernel", record.device, record.calls.device_time_s, record.workload);
  json.update({{"operation", record.operation.name},
               {"kernel_kind", model::ToText(record.operation.kind)},
               {"phase", model::ToText(record.operation.phase)},
               {"per_step", record.operation.per_step},
               {"kernels", std::move(kernels)}});
  if (record.activity) {
    json["activity"] = {{"launches", record.activity->launches},
                        {"active_s", record.activity->active_s}};
  }
  AddCalls(json, record.calls, record.device.threads);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string ToJsonLine(const CopyRecord& record) {
  Json json =
      Provenance("copy", DeviceJson(record.device, record.calls.device_time_s));
  json["bytes"] = record.bytes;
  AddCalls(json, record.calls, record.device.threads);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string ErrorJsonLine(const std::string& request,
                          const std::string& message) {
  Json parsed = request;
  try {
    parsed = hardware::ParseJson(request, "request", 1);
  } catch (const model::InputError&) {
    // As it was written, then.
  }
  const Json json = {{"schema", "trainfare.measurement/1"},
                     {"kind", "error"},
                     {"request", std::move(parsed)},
                     {"message", message}};
  // Somebody else's text: nothing in it acts upon a terminal.
  return hardware::WriteJson(json);
}

}  // namespace trainfare::trainer
