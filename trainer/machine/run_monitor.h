#pragma once

// What else went on while steps were timed: other programs, clocks, heat,
// power; and the energy used.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/machine/disturbance.h"
#include "trainer/machine/nvml.h"
#include "trainer/machine/rapl.h"

namespace trainfare::trainer {

struct Range {
  double low = 0;
  double median = 0;
  double high = 0;
};
// The range of the values that are there; nullopt of none.
std::optional<Range> RangeOf(std::vector<double> values);

// The conditions of one GPU over the timed steps.
struct GpuConditions {
  std::string driver;
  int64_t readings = 0;
  std::optional<Range> sm_clock_hz;
  std::optional<Range> memory_clock_hz;
  std::optional<Range> temperature_c;
  std::optional<Range> power_w;
  std::optional<double> power_limit_w;
  std::vector<std::string> throttle_reasons;  // that held at any reading
  bool hardware_slowdown = false;
  std::optional<int64_t> other_processes;  // most at a time
};
GpuConditions Summarise(const std::vector<GpuReading>& readings);

// Energy of the device that trained, or why it is not known.
struct EnergyUse {
  std::string source;                // rapl, nvml; empty: not known
  std::vector<std::string> domains;  // of rapl
  double joules = 0;
  double wall_s = 0;
  std::string missing;
};

struct RunConditions {
  HostLoad load;
  EnergyUse energy;
  std::optional<GpuConditions> gpu;
  std::string gpu_missing;  // why a GPU's state is not known

  // Other programs took processor time, or used the same GPU, or the GPU was
  // held down by heat or its power supply: not a measurement of this machine
  // at its best.
  bool disturbed(int threads) const;
};

class RunMonitor {
 public:
  // `bus_id` of the GPU; empty: the run is on the CPU.
  explicit RunMonitor(const std::string& bus_id,
                      std::unique_ptr<RaplMeter> rapl = nullptr,
                      std::unique_ptr<Nvml> nvml = nullptr);

  // The timed steps begin.
  void Begin();
  bool begun() const { return load_.has_value(); }
  // Between two steps; looks at counters no more often than
  // kReadingIntervalSeconds.
  void AfterStep();
  // The timed steps have ended.
  RunConditions End();

 private:
  void Look(double now_s);

  std::unique_ptr<RaplMeter> rapl_;  // null on a GPU
  std::unique_ptr<Nvml> nvml_;       // null on the CPU
  std::optional<HostLoadMeter> load_;
  std::vector<GpuReading> readings_;
  double begin_s_ = 0;
  double last_s_ = 0;
};

// A look at a GPU takes its driver up to milliseconds.
inline constexpr double kReadingIntervalSeconds = 0.1;

}  // namespace trainfare::trainer
