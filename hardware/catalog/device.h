#pragma once

// One accelerator (or processor) as its datasheet describes it, from
// hardware/devices/*.yaml. Nothing fitted stands here: fits are in
// calibrate/fits/. How a device behaves is in hardware/models/.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/catalog/compiler_facts.h"
#include "hardware/catalog/device_kind.h"
#include "hardware/catalog/gpu_generation.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::hardware {

// Dense peaks by precision; nullopt = the device has no such mode.
struct Peaks {
  std::optional<model::FlopsPerSecond<>> fp32;
  std::optional<model::FlopsPerSecond<>> tf32;
  std::optional<model::FlopsPerSecond<>> fp16;
  std::optional<model::FlopsPerSecond<>> bf16;
  std::optional<model::FlopsPerSecond<>> fp8;  // there is bf16, too
  std::optional<model::FlopsPerSecond<>> fp4;  // the same
  // fp32 arithmetic outside the matrix engines (elementwise, reductions).
  // Absent: fp32, and without that the lowest peak there is.
  std::optional<model::FlopsPerSecond<>> vector;
};

struct Device {
  std::string name;                  // file stem: the name people type
  std::string reported_name;         // exact string from the driver
  std::vector<std::string> aliases;  // other exact names in measurement tables
  // Names of a family whose usual form it is: to people who ask, not in tables,
  // which have to say which they measured.
  std::vector<std::string> usual_of;
  std::string vendor;
  std::string architecture;
  DeviceKind kind = DeviceKind::kGpu;
  std::string source;  // datasheet or revision, with its date
  // Facts that rest on a datasheet from memory, checked against no page.
  std::vector<std::string> recalled;
  std::vector<std::string> notes;

  model::Bytes<> memory_capacity;
  model::BytesPerSecond<> memory_bandwidth;
  // Last-level cache, SBUF, or on-chip SRAM; 0 where it is not known.
  model::Bytes<> on_chip_memory;
  Peaks peak;

  // Streaming multiprocessors, NeuronCores, TensorCores, or CPU cores.
  int64_t cores = 1;
  model::Hertz<> clock;  // boost clock; always known for a GPU or CPU, else 0
  // GPU only (0 elsewhere).
  int64_t warps_per_core = 0;
  int64_t registers_per_core = 0;
  model::Bytes<> shared_memory_per_core;
  // Side of the systolic array, 0 where there is none.
  int64_t systolic_rows = 0;
  int64_t systolic_columns = 0;
  // The graph is compiled for every distinct shape.
  bool static_shapes = false;
  // What is known before any run of parameters of the kind's model, by name, in
  // base units; of others what the model assumes.
  std::map<std::string, double, std::less<>> priors;
  // Its maker's software does not train on it: no candidate for training, but
  // a row of inference tables.
  bool inference_only = false;

  // Device memory that the driver, the framework and its kernels take, and the
  // workspace of the matrix library.
  model::Bytes<> context;
  model::Bytes<> workspace;
  // What is known of its graph compiler; absent: nothing, or it has none.
  std::optional<CompilerFacts> compiler;

  // Version of a GPU's instruction set, which names its generation ("8.0").
  std::string compute_capability;
  // Absent: what its generation is like is not known.
  std::optional<GpuGeneration> generation;
  // Power of work other than products, as a share of the limit.
  double other_work_power_share = 1.0;
  // Power at rest as a share of the limit, where it was not read.
  double rest_power_share = 0.0;
  // Absent where nobody publishes it: then energy is unknown, not 0.
  std::optional<model::Watts<>> max_power;
  std::optional<model::Watts<>> idle_power;
  // The chip that it is one of several alike parts of: they reach each other
  // inside it, and other chips over its links.
  std::optional<std::string> part_of;
  // One direction, to a peer on the same host; absent: through the host.
  std::optional<model::BytesPerSecond<>> peer_bandwidth;
  bool sums_in_switch = false;  // what the devices of a host send each other
  // Devices that the peer links join beyond a host (a rack); 0: those of one.
  int64_t peer_domain = 0;
  std::optional<model::BytesPerSecond<>> host_bandwidth;
  // From one to the next on a host where the driver allows no peer access: down
  // into the host's memory and up again.
  std::optional<model::BytesPerSecond<>> through_host_bandwidth;
  // What weights stream at that live outside the device's own memory.
  std::optional<model::BytesPerSecond<>> weight_bandwidth;

  // Peak of the engine that runs matrix products in `precision`; nullopt when
  // the device cannot.
  std::optional<model::FlopsPerSecond<>> MatrixPeak(
      model::Precision precision) const;
  model::FlopsPerSecond<> VectorPeak() const;
};

// The processor this program runs on: model name, cores, vector width, clock
// from the operating system; bandwidth and peak are estimates of its kind, to
// be corrected by a calibration. kind == kCpu, name == "cpu".
Device HostCpu();

// Devices by name, sorted. `directory` holds *.yaml.
class DeviceCatalog {
 public:
  // The catalog that ships with the tool. A device asked for by the name of its
  // file costs that one file; anything else reads them all, once.
  static const DeviceCatalog& Shipped();
  // Reads and checks every file.
  static DeviceCatalog Load(const std::string& directory);

  const std::vector<Device>& devices() const;
  // By name, reported name or alias, whose letter case does not count, else by
  // the way people spell them (hardware/catalog/device_spelling.h); "cpu" is the
  // host. Throws InputError with the names that may be meant.
  const Device& Find(std::string_view name) const;
  const Device* TryFind(std::string_view name) const;  // nullptr: unknown
  // The same for people who ask: a family's name is its usual form
  // (Device::usual_of), or the only one of it.
  const Device& FindUsual(std::string_view name) const;
  // "A100 is taken as a100_sxm4_40gb; others: ..", where the name of a device
  // does not say which form of its family it is; nullopt: it does.
  std::optional<std::string> TakenAs(const std::string& name) const;

 private:
  const Device* TryFindUsual(std::string_view name) const;

  struct State;
  explicit DeviceCatalog(const std::string& directory);

  std::shared_ptr<State> state_;
};

// One device from a YAML file. Throws InputError with file:line:col.
Device LoadDevice(const std::string& path);

}  // namespace trainfare::hardware
