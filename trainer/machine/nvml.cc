#include "trainer/machine/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <string_view>

namespace trainfare::trainer {
namespace {

// Values of nvml.h, NVML API Reference Guide (NVIDIA, vR580): stable since
// CUDA 10.
constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;
constexpr unsigned kClockSm = 1;
constexpr unsigned kClockMemory = 2;
constexpr unsigned kTemperatureGpu = 0;

struct ReasonName {
  uint64_t bit;
  std::string_view name;
  bool hardware;
};
constexpr std::array kReasons = {
    ReasonName{0x04, "sw_power_cap", false},
    ReasonName{0x08, "hw_slowdown", true},
    ReasonName{0x10, "sync_boost", false},
    ReasonName{0x20, "sw_thermal_slowdown", true},
    ReasonName{0x40, "hw_thermal_slowdown", true},
    ReasonName{0x80, "hw_power_brake_slowdown", true}};

}  // namespace

std::vector<std::string> ThrottleReasons(uint64_t clock_reasons) {
  std::vector<std::string> names;
  for (const ReasonName& reason : kReasons) {
    if ((clock_reasons & reason.bit) != 0) names.emplace_back(reason.name);
  }
  return names;
}

bool HardwareSlowdown(uint64_t clock_reasons) {
  for (const ReasonName& reason : kReasons) {
    if (reason.hardware && (clock_reasons & reason.bit) != 0) return true;
  }
  return false;
}

// Calls a function of the library; false where it is not there or fails.
template <class... Parameters, class... Arguments>
bool Nvml::Call(const char* name, Arguments... arguments) const {
  if (library_ == nullptr) return false;
  const auto function =
      reinterpret_cast<int (*)(Parameters...)>(::dlsym(library_, name));
  return function != nullptr && function(arguments...) == kSuccess;
}

Nvml::Nvml(const std::string& bus_id, const std::string& library)
    : library_(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) {
    missing_ = fmt::format("{} is not there", library);
    return;
  }
  initialised_ = Call("nvmlInit_v2");
  if (!initialised_) {
    missing_ = fmt::format("{}: nvmlInit failed", library);
    return;
  }
  if (!Call<const char*, Handle*>(
          "nvmlDeviceGetHandleByPciBusId_v2", bus_id.c_str(), &device_)) {
    missing_ = fmt::format("{}: no GPU at {}", library, bus_id);
    return;
  }
  std::array<char, 96> text{};
  if (Call<char*, unsigned>("nvmlSystemGetDriverVersion",
                            text.data(),
                            static_cast<unsigned>(text.size()))) {
    driver_ = text.data();
  }
  unsigned limit_mw = 0;
  if (Call<Handle, unsigned*>(
          "nvmlDeviceGetEnforcedPowerLimit", device_, &limit_mw)) {
    power_limit_w_ = limit_mw * 1e-3;
  }
}

Nvml::~Nvml() {
  if (initialised_) Call("nvmlShutdown");
  if (library_ != nullptr) ::dlclose(library_);
}

GpuReading Nvml::Read() const {
  GpuReading reading;
  if (!missing_.empty()) return reading;
  const auto clock = [this](unsigned which) -> std::optional<double> {
    unsigned mhz = 0;
    if (!Call<Handle, unsigned, unsigned*>(
            "nvmlDeviceGetClockInfo", device_, which, &mhz)) {
      return std::nullopt;
    }
    return mhz * 1e6;
  };
  reading.sm_clock_hz = clock(kClockSm);
  reading.memory_clock_hz = clock(kClockMemory);
  unsigned value = 0;
  if (Call<Handle, unsigned, unsigned*>(
          "nvmlDeviceGetTemperature", device_, kTemperatureGpu, &value)) {
    reading.temperature_c = value;
  }
  if (Call<Handle, unsigned*>("nvmlDeviceGetPowerUsage", device_, &value)) {
    reading.power_w = value * 1e-3;
  }
  unsigned long long count = 0;
  if (Call<Handle, unsigned long long*>(
          "nvmlDeviceGetTotalEnergyConsumption", device_, &count)) {
    reading.energy_j = static_cast<double>(count) * 1e-3;
  }
  // Renamed in driver 535; the old name is kept, and older drivers have it.
  if (Call<Handle, unsigned long long*>(
          "nvmlDeviceGetCurrentClocksThrottleReasons", device_, &count)) {
    reading.clock_reasons = count;
  }
  // With room for none it answers how many there are.
  using Processes = int (*)(Handle, unsigned*, void*);
  const auto processes = reinterpret_cast<Processes>(
      ::dlsym(library_, "nvmlDeviceGetComputeRunningProcesses_v3"));
  unsigned running = 0;
  if (processes != nullptr) {
    const int answer = processes(device_, &running, nullptr);
    if (answer == kSuccess || answer == kInsufficientSize) {
      reading.processes = running;
    }
  }
  return reading;
}

}  // namespace trainfare::trainer
