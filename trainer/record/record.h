#pragma once

// Measurement records, trainfare.measurement/1 (docs/guide/measurements.md).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/collective.h"
#include "model/workload.h"
#include "trainer/machine/run_monitor.h"
#include "trainer/record/operation.h"
#include "trainer/record/timeline.h"

namespace trainfare::trainer {

struct Sample {
  int64_t step = 0;
  bool warmup = false;
  StepTimes times;
};

struct DeviceDescription {
  std::string name;    // of a CPU the `model name` of /proc/cpuinfo
  std::string kind;    // cpu or cuda
  int threads = 0;     // host threads that compute
  std::string bus_id;  // of a GPU, "0000:3B:00.0"
};

// How the ranks of a run share its gradients.
struct RankDescription {
  int rank = 0;
  int world_size = 1;
  std::string launcher;
  std::string backend;                // gloo, nccl; none for one rank
  std::string transport;              // what lies between them; may be empty
  std::vector<int64_t> bucket_bytes;  // of gradients
  std::vector<std::string> layers;    // of GradientTimes::layer_ready
};

struct StepRecord {
  DeviceDescription device;
  model::Workload workload;
  uint64_t seed = 0;
  int64_t parameters = 0;
  int64_t peak_memory_bytes = 0;              // held (device_memory.h)
  int64_t peak_allocated_bytes = 0;           // in tensors
  std::optional<double> evaluation_accuracy;  // after training
  std::optional<int64_t> skipped_steps;       // of fp16: gradients overflowed
  std::optional<int64_t> optimizer_launches;  // kernels of one optimizer step
  std::optional<RunConditions> conditions;    // of the timed steps
  std::optional<RankDescription> ranks;       // absent: no launcher
  std::vector<std::string> parts;             // of the timelines of the samples
  std::vector<Sample> samples;

  // Time that the device worked on the timed steps: on a CPU processor time of
  // all threads, on a GPU between the events around its passes.
  double device_time_s() const;
};

// One call, timed by itself.
struct TimedCalls {
  int64_t iterations = 0;  // of a sample, whose time is that of one of them
  std::vector<double> samples_s;
  double device_time_s = 0;  // of all samples
  HostLoad load;
};

// What a device did of one call: kernels, copies and fills of a GPU, operators
// of a CPU.
struct DeviceActivity {
  int64_t launches = 0;
  double active_s = 0;  // in which at least one of them ran
};

// One operation of a step, run by itself.
struct KernelRecord {
  DeviceDescription device;
  model::Workload workload;  // that asks for it
  Operation operation;
  TimedCalls calls;
  std::optional<DeviceActivity> activity;  // where it was asked for
};

// A copy within the memory of the device.
struct CopyRecord {
  DeviceDescription device;
  int64_t bytes = 0;  // read once and written once
  TimedCalls calls;
};

// One size of a collective over the ranks, by itself.
struct CollectiveRecord {
  DeviceDescription device;
  RankDescription ranks;
  model::Collective operation = model::Collective::kAllReduce;
  int64_t bytes = 0;       // on each rank, of all shares together
  int64_t iterations = 0;  // of a sample, whose time is that of one of them
  std::vector<double> samples_s;
  // Rounds a second of products that every rank computed meanwhile, and without
  // messages; absent where none did.
  std::optional<double> rounds_beside;
  std::optional<double> rounds_alone;
};

// Throws std::runtime_error where the device did no work on the timed steps,
// so that a run that fell back to another device is no measurement.
void RequireDeviceTime(const StepRecord& record);

// One line of JSON without its newline.
std::string ToJsonLine(const StepRecord& record);
std::string ToJsonLine(const KernelRecord& record);
std::string ToJsonLine(const CopyRecord& record);
std::string ToJsonLine(const CollectiveRecord& record);

// `request` is the text of the request, JSON or not.
std::string ErrorJsonLine(const std::string& request,
                          const std::string& message);

// `model name` of /proc/cpuinfo; "unknown CPU" where it has none.
std::string HostCpuName();

// Most memory that the process had resident since ResetPeakResident(), or
// since its start where the kernel does not let it reset.
int64_t PeakResidentBytes();
void ResetPeakResident();

// "trainfare-trainer 0.2.0 (commit, LibTorch x, compiler y)".
std::string VersionText();

}  // namespace trainfare::trainer
