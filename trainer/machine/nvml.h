#pragma once

// State of an NVIDIA GPU from its driver's management library, loaded at run
// time: a build needs neither its header nor the library.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trainfare::trainer {

// One look at a GPU. What the board or its driver does not tell is absent.
struct GpuReading {
  std::optional<double> sm_clock_hz;
  std::optional<double> memory_clock_hz;
  std::optional<double> temperature_c;
  std::optional<double> power_w;
  std::optional<double> energy_j;  // since the driver was loaded
  std::optional<uint64_t> clock_reasons;
  std::optional<int64_t> processes;  // that compute on it
};

// Names of the reasons in a mask that hold clocks down, without those that are
// no limit (idle, the user's own setting).
std::vector<std::string> ThrottleReasons(uint64_t clock_reasons);
// Whether they hold them below what the board does at its power limit: heat,
// the power supply, the cooling of the host.
bool HardwareSlowdown(uint64_t clock_reasons);

class Nvml {
 public:
  // `bus_id` as CUDA writes it, "0000:3B:00.0".
  explicit Nvml(const std::string& bus_id,
                const std::string& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Why there is nothing to read; empty where there is.
  const std::string& missing() const { return missing_; }
  const std::string& driver() const { return driver_; }
  std::optional<double> power_limit_w() const { return power_limit_w_; }
  GpuReading Read() const;

 private:
  using Handle = void*;

  template <class... Parameters, class... Arguments>
  bool Call(const char* name, Arguments... arguments) const;

  void* library_ = nullptr;
  bool initialised_ = false;
  Handle device_ = nullptr;
  std::string missing_;
  std::string driver_;
  std::optional<double> power_limit_w_;
};

}  // namespace trainfare::trainer
