#include "trainer/machine/run_monitor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "model/error.h"

namespace trainfare::trainer {
namespace {

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::optional<Range> RangeOfMember(const std::vector<GpuReading>& readings,
                                   std::optional<double> GpuReading::*member) {
  std::vector<double> values;
  for (const GpuReading& reading : readings) {
    if (reading.*member) values.push_back(*(reading.*member));
  }
  return RangeOf(std::move(values));
}

EnergyUse EnergyOfBoard(const Nvml& nvml,
                        const std::vector<GpuReading>& readings) {
  EnergyUse use;
  use.missing = nvml.missing();
  if (!use.missing.empty()) return use;
  const auto& from = readings.front().energy_j;
  const auto& to = readings.back().energy_j;
  if (!from || !to) {
    use.missing = "this GPU does not count its energy";
    return use;
  }
  use.source = "nvml";
  use.joules = *to - *from;
  return use;
}

}  // namespace

std::optional<Range> RangeOf(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1
                            ? values[middle]
                            : (values[middle - 1] + values[middle]) / 2;
  return Range{values.front(), median, values.back()};
}

GpuConditions Summarise(const std::vector<GpuReading>& readings) {
  GpuConditions gpu;
  gpu.readings = static_cast<int64_t>(readings.size());
  gpu.sm_clock_hz = RangeOfMember(readings, &GpuReading::sm_clock_hz);
  gpu.memory_clock_hz = RangeOfMember(readings, &GpuReading::memory_clock_hz);
  gpu.temperature_c = RangeOfMember(readings, &GpuReading::temperature_c);
  gpu.power_w = RangeOfMember(readings, &GpuReading::power_w);
  uint64_t reasons = 0;
  for (const GpuReading& reading : readings) {
    reasons |= reading.clock_reasons.value_or(0);
    if (reading.processes) {
      // One of them is ours.
      gpu.other_processes =
          std::max(gpu.other_processes.value_or(0), *reading.processes - 1);
    }
  }
  gpu.throttle_reasons = ThrottleReasons(reasons);
  gpu.hardware_slowdown = HardwareSlowdown(reasons);
  return gpu;
}

bool RunConditions::disturbed(int threads) const {
  return load.disturbed(threads) ||
         (gpu &&
          (gpu->hardware_slowdown || gpu->other_processes.value_or(0) > 0));
}

RunMonitor::RunMonitor(const std::string& bus_id,
                       std::unique_ptr<RaplMeter> rapl,
                       std::unique_ptr<Nvml> nvml)
    : rapl_(std::move(rapl)), nvml_(std::move(nvml)) {
  if (bus_id.empty()) {
    if (!rapl_) rapl_ = std::make_unique<RaplMeter>();
  } else if (!nvml_) {
    nvml_ = std::make_unique<Nvml>(bus_id);
  }
}

void RunMonitor::Look(double now_s) {
  if (rapl_) rapl_->Update();
  if (nvml_) readings_.push_back(nvml_->Read());
  last_s_ = now_s;
}

void RunMonitor::Begin() {
  begin_s_ = Now();
  Look(begin_s_);
  load_.emplace();
}

void RunMonitor::AfterStep() {
  if (!begun()) return;
  const double now_s = Now();
  if (now_s - last_s_ >= kReadingIntervalSeconds) Look(now_s);
}

RunConditions RunMonitor::End() {
  ENSURE(begun(), "a monitor that has begun");
  RunConditions conditions;
  conditions.load = load_->SinceStart();
  Look(Now());
  EnergyUse& energy = conditions.energy;
  if (nvml_) {
    energy = EnergyOfBoard(*nvml_, readings_);
    conditions.gpu_missing = nvml_->missing();
    if (conditions.gpu_missing.empty()) {
      conditions.gpu = Summarise(readings_);
      conditions.gpu->driver = nvml_->driver();
      conditions.gpu->power_limit_w = nvml_->power_limit_w();
    }
  } else {
    energy.missing = rapl_->missing();
    if (energy.missing.empty()) {
      energy.source = "rapl";
      energy.domains = rapl_->domains();
      energy.joules = rapl_->joules();
    }
  }
  energy.wall_s = last_s_ - begin_s_;
  return conditions;
}

}  // namespace trainfare::trainer
