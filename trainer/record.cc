#include "trainer/record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <torch/headeronly/version.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

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
  const model::Architecture& architecture = workload.architecture;
  Json dimensions = {{"name", architecture.name},
                     {"family", model::ToText(architecture.family)},
                     {"layers", architecture.layers},
                     {"hidden", architecture.hidden},
                     {"heads", architecture.heads},
                     {"intermediate", architecture.intermediate},
                     {"vocabulary", architecture.vocabulary},
                     {"positions", architecture.positions},
                     {"position_offset", architecture.position_offset},
                     {"token_types", architecture.token_types},
                     {"pooler", architecture.pooler},
                     {"classifier_dense", architecture.classifier_dense},
                     {"head", model::ToText(architecture.head)},
                     {"labels", architecture.labels},
                     {"dropout", architecture.dropout}};
  return {
      {"model", std::move(dimensions)},
      {"batch", workload.batch},
      {"sequence_length", workload.sequence_length},
      {"accumulation", workload.accumulation},
      {"precision", model::ToText(workload.precision)},
      {"optimizer",
       {{"name", model::ToText(workload.optimizer.kind)},
        {"implementation", model::ToText(workload.optimizer.implementation)}}},
      {"stack", model::ToText(workload.stack.fusion)},
      {"attention", model::ToText(workload.stack.attention)}};
}

}  // namespace

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
  const auto now =
      std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  Json samples = Json::array();
  for (const Sample& sample : record.samples) {
    samples.push_back({{"step", sample.step},
                       {"warmup", sample.warmup},
                       {"forward_s", sample.forward_s},
                       {"backward_s", sample.backward_s},
                       {"optimizer_s", sample.optimizer_s},
                       {"step_s", sample.step_s},
                       {"loss", sample.loss}});
  }
  Json json = {
      {"schema", "trainfare.measurement/1"},
      {"kind", "step"},
      {"id", RandomId()},
      {"time", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now))},
      {"device",
       {{"name", record.device.name},
        {"kind", record.device.kind},
        {"count", 1},
        {"threads", record.device.threads}}},
      {"host", Host()},
      {"software", Software()},
      {"workload", WorkloadJson(record.workload)},
      {"world_size", 1},
      {"seed", record.seed},
      {"parameters", record.parameters},
      {"peak_memory_bytes", record.peak_memory_bytes},
      {"peak_allocated_bytes", record.peak_allocated_bytes},
  };
  if (record.evaluation_accuracy) {
    json["evaluation_accuracy"] = *record.evaluation_accuracy;
  }
  if (record.optimizer_launches) {
    json["launches_optimizer"] = *record.optimizer_launches;
  }
  if (record.load) {
    const HostLoad& load = *record.load;
    json["disturbed"] = load.disturbed(record.device.threads);
    json["host_load"] = {{"wall_s", load.wall_s},
                         {"cpu_s", load.cpu_s},
                         {"involuntary_switches", load.involuntary_switches}};
    if (load.waited_s) json["host_load"]["waited_s"] = *load.waited_s;
  }
  json["samples"] = std::move(samples);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string ErrorJsonLine(const std::string& request,
                          const std::string& message) {
  Json parsed = Json::parse(request, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) parsed = request;
  const Json json = {{"schema", "trainfare.measurement/1"},
                     {"kind", "error"},
                     {"request", std::move(parsed)},
                     {"message", message}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace trainfare::trainer
