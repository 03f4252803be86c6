#pragma once

// What was measured, as a fit takes it: a figure of a run, or of one operation;
// and in words.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/catalog/device.h"
#include "model/kernels.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// One measured figure. A run of the trainer gives up to four (forward,
// backward, optimizer, step); a table row gives one. A kernel is no part of a
// run: an operation of a step that was timed by itself.
enum class Quantity { kStep, kForward, kBackward, kOptimizer, kKernel };
inline constexpr std::array kAllQuantities = {Quantity::kStep,
                                              Quantity::kForward,
                                              Quantity::kBackward,
                                              Quantity::kOptimizer,
                                              Quantity::kKernel};
inline constexpr size_t kQuantities = kAllQuantities.size();

// Whose runs the trainer's are, and those of whatever names nobody else: the
// user's own.
inline constexpr std::string_view kOwnSource = "trainfare-trainer";

struct Observation {
  // Of its run, an id or the "file:line" of its first row: figures alike in it
  // are of one run, or of its repetitions.
  std::string label;
  std::string place;   // "file:line" of its own row; empty: the label says it
  std::string group;   // what validate groups by (system, table)
  std::string device;  // catalog name, or as reported when unknown to it
  int64_t device_count = 1;
  int64_t hosts = 1;  // that the devices are on, as many on each
  // The run's devices, where they are more: the figure is of one, and what the
  // devices send each other is in it, as in a graph that spans chips.
  int64_t run_devices = 1;
  // Ranks whose all-reduces are timed beside are fitted as groups
  // (calibrate/fit/rank_fit.h).
  bool of_timed_ranks = false;
  // The bandwidth of each host's network; absent: not said.
  std::optional<model::BytesPerSecond<>> network;
  model::Workload workload;
  Quantity quantity = Quantity::kStep;
  model::Seconds<> measured;  // median over the steps that are not warm-up
  double relative_noise = 0;  // of the median, from the samples; 0 = unknown
  std::string framework;      // as the source says, may be empty
  // Something that makes its step is assumed (assumed.h).
  bool assumed = false;
  // Who measured: one that has its own hosts, software and cooling.
  std::string source = std::string(kOwnSource);

  // What it is called in messages and tables.
  const std::string& name() const { return place.empty() ? label : place; }
};

// One operation of a step, timed by itself.
struct KernelObservation {
  std::string label;         // record id or "file:line"
  std::string device;        // as it reports itself
  model::Workload workload;  // whose step asks for the operation
  std::string operation;
  model::Phase phase = model::Phase::kForward;
  std::vector<model::Kernel> kernels;  // one after another
  model::Seconds<> measured;           // of all of them, a median
  double relative_noise = 0;           // of the median; 0 = unknown
};

// Whether a device is meant by `name`: its name, the name it reports, or an
// alias, exactly.
bool IsDevice(const hardware::Device& device, std::string_view name);

// How many of what `name` means are one `device`: 1 where it is the device; as
// many as it has where `name` is one of its alike parts and one graph spans
// them, so that it does as many times the work of one in the same time; 0 of
// any other.
int64_t PartsOf(const hardware::Device& device, std::string_view name);

// "fp32 eager materialised training": what a fit cannot speak of otherwise.
std::string SettingsOf(const model::Workload& workload);

// Words of one operation of a workload, as Describe() of a workload.
std::string Describe(const KernelObservation& observed);

// Words of one workload, one way to write each: what a fit keeps of its runs,
// and how a message names a run.
std::string Describe(const model::Workload& workload);

std::string_view ToText(Quantity quantity);
Quantity QuantityFromText(std::string_view text);  // throws InputError

}  // namespace trainfare::calibrate
