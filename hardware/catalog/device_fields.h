#pragma once

// The fields of a device, once (model/fields.h): what a file of
// hardware/devices/ says, and what a fit keeps of the device that it measured.
// VisitFileFields() has what only the file says.

#include <string>
#include <string_view>

#include "hardware/catalog/device.h"
#include "hardware/catalog/gpu_generation_fields.h"
#include "model/fields.h"

namespace trainfare::hardware {

// Parts of a device that are structs of their own in files.
template <class D>
struct DeviceMemory {
  D& device;
};
template <class D>
struct DeviceCores {
  D& device;
};
template <class D>
struct SystolicArray {
  D& device;
  bool empty() const { return device.systolic_rows == 0; }
};
template <class D>
struct DevicePower {
  D& device;
  bool empty() const { return !device.max_power && !device.idle_power; }
};
template <class D>
struct DeviceLinks {
  D& device;
  bool empty() const {
    return !device.peer_bandwidth && device.peer_domain == 0 &&
           !device.sums_in_switch && !device.host_bandwidth &&
           !device.through_host_bandwidth && !device.weight_bandwidth;
  }
};

// Ranges that no device of today comes near the ends of, to catch a wrong
// prefix.
template <class Archive, class D>
void VisitFields(Archive& archive, const DeviceMemory<D>& memory) {
  D& d = memory.device;
  archive(model::Field{.name = "capacity",
                       .about = "Of its own memory",
                       .required = true,
                       .least_base = 1e8,
                       .most_base = 1e13},
          d.memory_capacity);
  archive(model::Field{.name = "bandwidth",
                       .about = "Of its own memory, as the datasheet has it",
                       .required = true,
                       .least_base = 1e9,
                       .most_base = 1e17},
          d.memory_bandwidth);
  archive(model::Field{.name = "on_chip",
                       .about = "Last-level cache, SBUF or other SRAM",
                       .least_base = 1e5,
                       .most_base = 1e11},
          d.on_chip_memory);
}

template <class Archive, model::Of<Peaks> P>
void VisitFields(Archive& archive, P& peak) {
  const auto rate = [&](std::string_view name,
                        std::string_view about,
                        auto& value) {
    archive(
        model::Field{
            .name = name, .about = about, .least_base = 1e9, .most_base = 1e18},
        value);
  };
  rate("fp32", "In fp32 without tensor cores", peak.fp32);
  rate("tf32_dense", "Of tensor cores, without sparsity", peak.tf32);
  rate("fp16_dense", "Of matrix products, without sparsity", peak.fp16);
  rate("bf16_dense", "Of matrix products, without sparsity", peak.bf16);
  rate("fp8_dense",
       "Of matrix products, without sparsity; bf16_dense is there",
       peak.fp8);
  rate("fp4_dense",
       "Of matrix products, without sparsity; bf16_dense is there",
       peak.fp4);
  if constexpr (model::ReadingArchive<Archive>) {
    for (const auto& [name, narrow] :
         {std::pair{"fp8_dense", &peak.fp8}, {"fp4_dense", &peak.fp4}}) {
      if (*narrow && !peak.bf16) {
        archive.Fail(name, "expected bf16_dense beside it, got none");
      }
    }
  }
  rate("vector_fp32",
       "Arithmetic outside the matrix engines, where it is not fp32",
       peak.vector);
}

template <class Archive, class D>
void VisitFields(Archive& archive, const SystolicArray<D>& array) {
  constexpr int64_t kLongestSide = 4096;
  archive(
      model::Field{
          .name = "rows",
          .about = "Side of the array along a product's shared dimension",
          .required = true,
          .least = 1,
          .most = kLongestSide},
      array.device.systolic_rows);
  archive(model::Field{.name = "columns",
                       .about = "The other side",
                       .required = true,
                       .least = 1,
                       .most = kLongestSide},
          array.device.systolic_columns);
}

template <class Archive, class D>
void VisitFields(Archive& archive, const DeviceCores<D>& cores) {
  D& d = cores.device;
  const bool gpu = d.kind == DeviceKind::kGpu;
  archive(model::Field{.name = "count",
                       .about = "Streaming multiprocessors, NeuronCores, "
                                "TensorCores or CPU cores",
                       .required = gpu,
                       .least = 1,
                       .most = 10'000'000},
          d.cores);
  archive(model::Field{.name = "clock",
                       .about = "Boost clock; GPUs and CPUs must have it",
                       .required = gpu,
                       .least_base = 1e8,
                       .most_base = 1e10},
          d.clock);
  if (gpu) {
    archive(model::Field{.name = "warps",
                         .about = "Warps that a core holds; GPUs only",
                         .required = true,
                         .least = 1,
                         .most = 1024},
            d.warps_per_core);
    archive(model::Field{.name = "registers",
                         .about = "32-bit registers of a core; GPUs only",
                         .required = true,
                         .least = 1024,
                         .most = 1 << 24},
            d.registers_per_core);
    archive(model::Field{.name = "shared_memory",
                         .about = "Shared memory of a core; GPUs only",
                         .required = true,
                         .least_base = 0x1p14,
                         .most_base = 0x1p22},
            d.shared_memory_per_core);
  }
  const SystolicArray<D> array{d};
  archive(model::Field{.name = "systolic_array",
                       .about = "Of TPUs, Gaudi, NeuronCores and LPUs"},
          array);
}

template <class Archive, class D>
void VisitFields(Archive& archive, const DevicePower<D>& power) {
  D& d = power.device;
  archive(model::Field{.name = "max",
                       .about =
                           "Limit of the board; without it there is no energy"},
          d.max_power);
  archive(
      model::Field{
          .name = "idle",
          .about =
              "At rest, less than max; without it energy is an upper bound"},
      d.idle_power);
  if constexpr (model::ReadingArchive<Archive>) {
    if (d.max_power && d.idle_power && *d.idle_power >= *d.max_power) {
      archive.Fail("idle", "expected less than power.max");
    }
  }
}

template <class Archive, class D>
void VisitFields(Archive& archive, const DeviceLinks<D>& links) {
  D& d = links.device;
  archive(model::Field{.name = "peer",
                       .about = "One direction to another on the same host"},
          d.peer_bandwidth);
  archive(model::Field{.name = "sums_in_switch",
                       .about = "A switch between them sums (NVLink SHARP)"},
          d.sums_in_switch);
  if constexpr (model::ReadingArchive<Archive>) {
    archive(
        model::Field{
            .name = "peer_domain",
            .about =
                "Devices that peer links join beyond a host, without a network",
            .least = 2,
            .most = 1'000'000},
        d.peer_domain);
  } else {
    archive(model::Field{.name = "peer_domain",
                         .about = "Devices that peer links join beyond a host, "
                                  "without a network"},
            d.peer_domain);
  }
  archive(model::Field{.name = "host",
                       .about = "One direction to the host's memory"},
          d.host_bandwidth);
  archive(model::Field{.name = "through_host",
                       .about = "Between cards without peer access"},
          d.through_host_bandwidth);
  archive(model::Field{.name = "weights",
                       .about = "From where weights live that stream in"},
          d.weight_bandwidth);
}

// Long because it is a table: a statement a field.
template <class Archive, model::Of<Device> D>
void VisitFields(Archive& archive, D& d) {
  archive(model::Field{.name = "reported_name",
                       .about = "Exact string of the driver; GPUs only"},
          d.reported_name);
  archive(model::Field{.name = "aliases",
                       .about = "Other exact names, in tables of measurements"},
          d.aliases);
  archive(model::Field{.name = "usual_of",
                       .about = "Bare names of its family, which tables do not "
                                "mean by themselves"},
          d.usual_of);
  archive(
      model::Field{.name = "vendor", .about = "Its maker", .required = true},
      d.vendor);
  archive(model::Field{.name = "architecture",
                       .about = "Its generation in words",
                       .required = true},
          d.architecture);
  archive(model::Field{.name = "model",
                       .about = "Which time model it has",
                       .required = true},
          d.kind);
  archive(model::Field{.name = "source",
                       .about = "Where each fact is from, with its revision",
                       .required = true},
          d.source);
  archive(model::Field{.name = "recalled",
                       .about = "Facts checked against no page"},
          d.recalled);
  archive(model::Field{.name = "notes", .about = "For readers"}, d.notes);
  archive(
      model::Field{
          .name = "compute_capability",
          .about = "NVIDIA's number of the generation, which has energies"},
      d.compute_capability);
  const DeviceMemory<D> memory{d};
  archive(model::Field{.name = "memory",
                       .about = "What it holds and how fast that is read",
                       .required = true},
          memory);
  archive(
      model::Field{
          .name = "peak",
          .about = "Dense rates by precision; left out what it cannot do",
          .required = true},
      d.peak);
  const DeviceCores<D> cores{d};
  archive(
      model::Field{.name = "cores", .about = "What computes", .required = true},
      cores);
  archive(model::Field{.name = "static_shapes",
                       .about = "Every distinct shape is compiled"},
          d.static_shapes);
  archive(model::Field{.name = "inference_only",
                       .about = "Its maker's software does not train"},
          d.inference_only);
  archive(
      model::Field{
          .name = "generation",
          .about = "Of a GPU, where it is not that of its compute capability"},
      d.generation);
  const DevicePower<D> power{d};
  archive(model::Field{.name = "power", .about = "What it draws"}, power);
  archive(
      model::Field{
          .name = "part_of",
          .about = "The chip of which it is one of several alike parts"},
      d.part_of);
  const DeviceLinks<D> links{d};
  archive(model::Field{.name = "links", .about = "Rates in one direction"},
          links);
}

// What device.cc reads of a file beside them: it checks the priors against the
// model of the device's kind, and the levels against what that compiler costs.
struct DevicePriors {};
struct OwnCompiler {};
inline std::string FormOf(DevicePriors) { return "PARAMETER: VALUE"; }
inline std::string FormOf(OwnCompiler) {
  return "{ level_times: [TIME, ..], graph_memory: { per_token: BYTES, "
         "of_model: MODEL, swap_limit: NUMBER } }";
}

template <class Archive>
void VisitFileFields(Archive& archive) {
  archive(model::Field{.name = "date",
                       .about = "Day on which the source was read",
                       .required = true},
          std::string());
  archive(
      model::Field{
          .name = "priors",
          .about = "What is known of parameters of its model before any run"},
      DevicePriors());
  archive(
      model::Field{.name = "compiler",
                   .about = "A run at its compiler's levels from 1 up; what "
                            "compiling takes of the host"},
      OwnCompiler());
}

}  // namespace trainfare::hardware
