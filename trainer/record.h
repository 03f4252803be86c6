#pragma once

// Measurement records, schema trainfare.measurement/1 (docs/measurement.md).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/workload.h"
#include "trainer/disturbance.h"

namespace trainfare::trainer {

struct Sample {
  int64_t step = 0;
  bool warmup = false;
  double forward_s = 0;
  double backward_s = 0;
  double optimizer_s = 0;
  double step_s = 0;
  double loss = 0;
};

struct DeviceDescription {
  std::string name;  // of a CPU the `model name` of /proc/cpuinfo
  std::string kind;  // cpu or cuda
  int threads = 0;   // host threads that compute
};

struct StepRecord {
  DeviceDescription device;
  model::Workload workload;
  uint64_t seed = 0;
  int64_t parameters = 0;
  int64_t peak_memory_bytes = 0;              // resident, of the whole process
  int64_t peak_allocated_bytes = 0;           // in tensors
  std::optional<double> evaluation_accuracy;  // after training
  std::optional<int64_t> optimizer_launches;  // kernels of one optimizer step
  std::optional<HostLoad> load;               // of the timed steps
  std::vector<Sample> samples;
};

// One line of JSON without its newline.
std::string ToJsonLine(const StepRecord& record);

// `request` is the text of the request, JSON or not.
std::string ErrorJsonLine(const std::string& request,
                          const std::string& message);

// `model name` of /proc/cpuinfo; "unknown CPU" where it has none.
std::string HostCpuName();

// Most memory that the process had resident since ResetPeakResident(), or
// since its start where the kernel does not let it reset.
int64_t PeakResidentBytes();
void ResetPeakResident();

// "trainfare-trainer 0.1.0 (commit, LibTorch x, compiler y)".
std::string VersionText();

}  // namespace trainfare::trainer
