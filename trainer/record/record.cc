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
#include "hardware/models/kind.h"
#include "model/error.h"
#include "model/json_fields.h"
#include "model/record_fields.h"
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

// What no fit reads: the loss for whoever watches, the timeline for pictures.
struct WrittenSample {
  model::StepSample times;
  double loss = 0;
  std::optional<Json> timeline;
};

template <class Archive, model::Of<WrittenSample> S>
void VisitFields(Archive& archive, S& sample) {
  VisitFields(archive, sample.times);
  archive(model::Field{.name = "loss"}, sample.loss);
  archive(model::Field{.name = "timeline"}, sample.timeline);
}

std::vector<WrittenSample> Written(const std::vector<Sample>& samples) {
  std::vector<WrittenSample> written;
  for (const Sample& sample : samples) {
    WrittenSample& one = written.emplace_back();
    one.times = AsRecorded(sample);
    one.loss = sample.times.loss;
    if (sample.times.timeline)
      one.timeline = TimelineJson(*sample.times.timeline);
  }
  return written;
}

// What records of all kinds begin with.
model::RecordHead<Json> Head(const char* kind,
                             const DeviceDescription& device,
                             int count,
                             std::optional<double> device_time_s) {
  model::RecordHead<Json> head;
  head.kind.kind = kind;
  head.id = RandomId();
  head.time = hardware::TimeText(hardware::Now());
  model::RecordedDevice& written = head.device.emplace();
  written.name = device.name;
  written.kind = device.kind;
  written.count = count;
  written.threads = device.threads;
  if (!device.bus_id.empty()) written.bus_id = device.bus_id;
  written.time_s = device_time_s;
  head.host = Host();
  head.software = Software();
  return head;
}

model::RecordedRanks AsRecorded(const RankDescription& ranks) {
  return {.launcher = ranks.launcher,
          .backend = ranks.backend,
          .transport = ranks.transport};
}

model::RecordedDisturbance AsRecorded(const HostLoad& load, bool disturbed) {
  model::RecordedDisturbance recorded;
  recorded.disturbed = disturbed;
  model::RecordedLoad& written = recorded.load.emplace();
  written.wall = model::Second(load.wall_s);
  written.cpu_s = load.cpu_s;
  written.involuntary_switches = load.involuntary_switches;
  if (load.waited_s) written.waited = model::Second(*load.waited_s);
  return recorded;
}

model::RecordedEnergy AsRecorded(const EnergyUse& energy) {
  model::RecordedEnergy recorded;
  if (!energy.missing.empty()) {
    recorded.missing = energy.missing;
    return recorded;
  }
  recorded.source = energy.source;
  recorded.domains = energy.domains;
  recorded.joules = energy.joules;
  recorded.wall = model::Second(energy.wall_s);
  return recorded;
}

std::vector<model::RecordedCall> AsRecorded(
    const std::vector<double>& samples_s) {
  std::vector<model::RecordedCall> calls;
  for (const double time_s : samples_s)
    calls.push_back({model::Second(time_s)});
  return calls;
}

model::RecordedCalls AsRecorded(const TimedCalls& calls, int threads) {
  return {.disturbance = AsRecorded(calls.load, calls.load.disturbed(threads)),
          .iterations = calls.iterations,
          .samples = AsRecorded(calls.samples_s)};
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

template <class Record>
void AddConditions(const RunConditions& conditions,
                   int threads,
                   Record& record) {
  record.disturbance =
      AsRecorded(conditions.load, conditions.disturbed(threads));
  record.energy = AsRecorded(conditions.energy);
  if (conditions.gpu) record.gpu = GpuJson(*conditions.gpu);
  if (!conditions.gpu_missing.empty()) {
    record.gpu = Json{{"missing", conditions.gpu_missing}};
  }
}

// `visit`: the list of fields of `record`.
template <class Visit>
std::string Line(const Visit& visit) {
  Json json = Json::object();
  model::JsonFieldWriter writer(json);
  visit(writer);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

double StepRecord::device_time_s() const {
  const hardware::Kind* kind = hardware::FindKindOfTrainer(device.kind);
  if (kind != nullptr && kind->is_host) {
    return conditions ? conditions->load.cpu_s : 0.0;
  }
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
  const int world_size = record.ranks ? record.ranks->world_size : 1;
  model::StepRecord<Json, WrittenSample> written;
  written.head =
      Head("step", record.device, world_size, record.device_time_s());
  written.workload = record.workload;
  written.world_size = world_size;
  written.seed = record.seed;
  written.parameters = record.parameters;
  written.peak_memory_bytes = record.peak_memory_bytes;
  written.peak_allocated_bytes = record.peak_allocated_bytes;
  if (record.ranks) {
    written.rank = record.ranks->rank;
    written.ranks = AsRecorded(*record.ranks);
    written.ranks->bucket_bytes = record.ranks->bucket_bytes;
    written.ranks->layers = record.ranks->layers;
  }
  written.evaluation_accuracy = record.evaluation_accuracy;
  written.skipped_steps = record.skipped_steps;
  written.optimizer_launches = record.optimizer_launches;
  if (record.conditions) {
    AddConditions(*record.conditions, record.device.threads, written);
  }
  written.parts = record.parts;
  written.samples = Written(record.samples);
  return Line([&](auto& writer) { VisitStep(writer, written); });
}

std::string ToJsonLine(const CollectiveRecord& record) {
  model::CollectiveRecord<Json> written;
  written.head =
      Head("collective", record.device, record.ranks.world_size, std::nullopt);
  written.operation = model::ToText(record.operation);
  written.world_size = record.ranks.world_size;
  written.rank = record.ranks.rank;
  written.ranks = AsRecorded(record.ranks);
  written.bytes = record.bytes;
  written.iterations = record.iterations;
  if (record.rounds_beside && record.rounds_alone) {
    written.computation = {*record.rounds_beside, *record.rounds_alone};
  }
  written.samples = AsRecorded(record.samples_s);
  return Line([&](auto& writer) { VisitCollective(writer, written); });
}

std::string ToJsonLine(const KernelRecord& record) {
  model::KernelRecord<Json> written;
  written.head = Head("kernel", record.device, 1, record.calls.device_time_s);
  written.workload = record.workload;
  written.operation = record.operation.name;
  written.kind = record.operation.kind;
  written.phase = record.operation.phase;
  written.per_step = record.operation.per_step;
  written.kernels = record.operation.kernels;
  if (record.activity) {
    written.activity = {record.activity->launches, record.activity->active_s};
  }
  written.calls = AsRecorded(record.calls, record.device.threads);
  return Line([&](auto& writer) { VisitKernel(writer, written); });
}

std::string ToJsonLine(const CopyRecord& record) {
  model::CopyRecord<Json> written;
  written.head = Head("copy", record.device, 1, record.calls.device_time_s);
  written.bytes = record.bytes;
  written.calls = AsRecorded(record.calls, record.device.threads);
  return Line([&](auto& writer) { VisitCopy(writer, written); });
}

std::string ErrorJsonLine(const std::string& request,
                          const std::string& message) {
  model::RefusedRecord<Json> written;
  try {
    written.request = hardware::ParseJson(request, "request", 1);
  } catch (const model::InputError&) {
    // The front of it as it was written, then.
    constexpr size_t kMost = 2000;
    written.request = request.substr(0, kMost);
  }
  written.message = message;
  Json json = Json::object();
  model::JsonFieldWriter writer(json);
  VisitRefused(writer, written);
  // Somebody else's text: nothing in it acts upon a terminal.
  return hardware::WriteJson(json);
}

}  // namespace trainfare::trainer
