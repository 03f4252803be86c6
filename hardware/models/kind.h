#pragma once

// One row for each kind of device: all by which the devices of one kind differ
// from those of another, besides the formulas of a step
// (models/device_models.h).
//
// Above hardware/ nobody asks which kind a device is: they ask its row for what
// they need to know, and tests/layering.cmake holds them to it.

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "hardware/catalog/device.h"
#include "hardware/catalog/parameter.h"
#include "hardware/models/memory_plan.h"
#include "model/energy.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::hardware {

// Runs of each model, stack, length and batch that fit in memory.
struct RunGrid {
  std::span<const std::string_view> models;
  std::span<const model::Fusion> stacks;
  std::span<const int64_t> lengths;
  std::span<const int64_t> batches;
  // Of the memory, what runs may take.
  double memory_share = 1.0;
};

// Some of a kind's parameters, by their numbers.
using ParameterSet = std::bitset<32>;

struct Kind {
  // The names of its model's free parameters, in order. What is believed of
  // each is in the kind's file (hardware/kinds/*.yaml).
  std::span<const std::string_view> parameters;
  // The parameter of which a kernel by itself has another value than in a step,
  // where there is one: the fixed cost of an operation, on a processor without
  // the module's and autograd's share, on a GPU with what waits for the host.
  std::optional<size_t> parameter_alone = std::nullopt;
  // Those that a step of this workload can hang on: of the others it has no
  // slopes. nullptr: on all.
  ParameterSet (*parameters_of_step)(const Device&,
                                     const model::Workload&) = nullptr;

  // The trainer's name of it (--device); empty: the trainer does not run on it.
  std::string_view trainer_device = {};
  // A processor is itself the machine: its dimensions are read from it, ranks
  // share its cores, others' work on it is in what is measured.
  bool is_host = false;
  // The runs that it is calibrated with, in each precision that it has;
  // nullptr: those that a host has time for (calibrate/fit/candidate_runs.h).
  const RunGrid* runs = nullptr;
  // Its profiler prints how long each engine of a core was busy.
  bool profiles_engines = false;
  // Its training stack can compute activations anew.
  bool gradient_checkpointing = true;
  // Its software compiles graphs, and takes no kernels of others.
  bool compiles_graphs = false;
  // There are kernels that widen weights of few bits.
  bool few_bits = false;
  // There are the kernels that are counted of state spaces (Mamba-2's), of the
  // delta rule (flash-linear-attention's) and of short convolutions
  // (causal-conv1d's).
  bool other_mixers = false;
  // What stochastic rounding costs on it is known.
  bool stochastic_rounding = false;

  // How its software holds a workload in memory.
  PlanMemoryFunction plan_memory = PlanPlainMemory;
  // What a board draws in each kind of work; nullopt where its file does not
  // say enough. nullptr: no more is known of the kind than rest and limit.
  std::optional<model::PowerLevels> (*power)(const Device&,
                                             const model::Workload&) = nullptr;
  // Throws InputError when a workload cannot run for a reason of the kind's own
  // that is not its batch. nullptr: there is no such reason.
  void (*require_supported)(const Device&, const model::Workload&) = nullptr;
};

const Kind& KindOf(DeviceKind kind);
// The row of the kind that the trainer runs on by that name; nullptr: of none.
const Kind* FindKindOfTrainer(std::string_view trainer_device);
inline const Kind& KindOf(const Device& device) { return KindOf(device.kind); }

// What the board may draw in a run: its own limit, or a lower one that is set.
inline std::optional<model::Watts<>> PowerLimitOf(
    const Device& device, const model::Workload& workload) {
  if (!device.max_power || workload.power_limit.base() <= 0.0) {
    return device.max_power;
  }
  return std::min(*device.max_power, workload.power_limit);
}

// The free parameters of a kind's model with their priors, in order.
std::span<const ParameterInfo> ParametersOf(DeviceKind kind);

}  // namespace trainfare::hardware
