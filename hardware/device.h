#pragma once

// One accelerator (or processor) as its datasheet describes it, from
// hardware/devices/*.yaml. Nothing fitted stands here: fits are in
// calibrate/fits/. How a device behaves is in hardware/models/.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/units.h"
#include "model/workload.h"

namespace trainfare::hardware {

// Which model of hardware/models/ computes its times.
enum class DeviceKind {
  kCpu,       // cores and vector units behind caches
  kGpu,       // warps hide latency
  kNeuron,    // Trainium, Inferentia: DMA plus engines, no overlap
  kSystolic,  // TPU, Gaudi: matrix arrays, compiler-fused elementwise
  kDataflow,  // RDU, IPU, WSE, LPU: fill time plus steady rate
};

// Dense peaks by precision; nullopt = the device has no such mode.
struct Peaks {
  std::optional<model::FlopsPerSecond<>> fp32;
  std::optional<model::FlopsPerSecond<>> tf32;
  std::optional<model::FlopsPerSecond<>> fp16;
  std::optional<model::FlopsPerSecond<>> bf16;
  // fp32 arithmetic outside the matrix engines (elementwise, reductions).
  // Absent: fp32.
  std::optional<model::FlopsPerSecond<>> vector;
};

struct Device {
  std::string name;                  // file stem: the name people type
  std::string reported_name;         // exact string from the driver
  std::vector<std::string> aliases;  // other exact names in measurement tables
  std::string vendor;
  std::string architecture;
  DeviceKind kind = DeviceKind::kGpu;
  std::string source;  // datasheet or revision; with date
  std::vector<std::string> notes;

  model::Bytes<> memory_capacity;
  model::BytesPerSecond<> memory_bandwidth;
  model::Bytes<> on_chip_memory;  // last-level cache, SBUF, or on-chip SRAM
  Peaks peak;

  // Streaming multiprocessors, NeuronCores, TensorCores, or CPU cores.
  int64_t cores = 1;
  model::Hertz<> clock;
  // GPU only (0 elsewhere).
  int64_t warps_per_core = 0;
  int64_t registers_per_core = 0;
  model::Bytes<> shared_memory_per_core;
  // Side of the systolic array, 0 where there is none.
  int64_t systolic_rows = 0;
  int64_t systolic_columns = 0;
  // The graph is compiled for every distinct shape.
  bool static_shapes = false;

  model::Watts<> max_power;
  std::optional<model::Watts<>> idle_power;
  // One direction, to a peer on the same host; absent: through the host.
  std::optional<model::BytesPerSecond<>> peer_bandwidth;
  std::optional<model::BytesPerSecond<>> host_bandwidth;

  // Peak of the engine that runs matrix products in `precision`; nullopt when
  // the device cannot.
  std::optional<model::FlopsPerSecond<>> MatrixPeak(
      model::Precision precision) const;
  model::FlopsPerSecond<> VectorPeak() const;
};

std::string_view ToText(DeviceKind kind);

// The processor this program runs on: model name, cores, vector width, clock
// from the operating system; bandwidth and peak are estimates of its kind, to
// be corrected by a calibration. kind == kCpu, name == "cpu".
Device HostCpu();

// Devices by name, sorted. `directory` holds *.yaml.
class DeviceCatalog {
 public:
  // The catalog that ships with the tool.
  static const DeviceCatalog& Shipped();
  static DeviceCatalog Load(const std::string& directory);

  const std::vector<Device>& devices() const { return devices_; }
  // By name, reported name or alias, exactly (letter case ignored in names);
  // "cpu" is the host. Throws InputError with the nearest names.
  const Device& Find(std::string_view name) const;
  const Device* TryFind(std::string_view name) const;  // nullptr: unknown

 private:
  std::vector<Device> devices_;
};

// One device from a YAML file. Throws InputError with file:line:col.
Device LoadDevice(const std::string& path);

}  // namespace trainfare::hardware
