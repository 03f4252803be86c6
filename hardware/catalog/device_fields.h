#pragma once

// The fields of a device, once (model/fields.h): what a file of
// hardware/devices/ says, and what a fit keeps of the device that it measured.
// Beside them a file of hardware/devices/ may have `priors`, of the parameters
// of its kind's model, and `compiler` (device.cc).

#include <string_view>

#include "hardware/catalog/device.h"
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
           !device.host_bandwidth && !device.through_host_bandwidth &&
           !device.weight_bandwidth;
  }
};

// Ranges that no device of today comes near the ends of, to catch a wrong
// prefix.
template <class Archive, class D>
void VisitFields(Archive& archive, const DeviceMemory<D>& memory) {
  D& d = memory.device;
  archive(model::Field{.name = "capacity",
                       .required = true,
                       .least_base = 1e8,
                       .most_base = 1e13},
          d.memory_capacity);
  archive(model::Field{.name = "bandwidth",
                       .required = true,
                       .least_base = 1e9,
                       .most_base = 1e17},
          d.memory_bandwidth);
  archive(model::Field{.name = "on_chip", .least_base = 1e5, .most_base = 1e11},
          d.on_chip_memory);
}

template <class Archive, model::Of<Peaks> P>
void VisitFields(Archive& archive, P& peak) {
  const auto rate = [&](std::string_view name, auto& value) {
    archive(model::Field{.name = name, .least_base = 1e9, .most_base = 1e18},
            value);
  };
  rate("fp32", peak.fp32);
  rate("tf32_dense", peak.tf32);
  rate("fp16_dense", peak.fp16);
  rate("bf16_dense", peak.bf16);
  rate("fp8_dense", peak.fp8);
  if constexpr (model::ReadingArchive<Archive>) {
    if (peak.fp8 && !peak.bf16) {
      archive.Fail("fp8_dense", "expected bf16_dense beside it, got none");
    }
  }
  rate("vector_fp32", peak.vector);
}

template <class Archive, class D>
void VisitFields(Archive& archive, const SystolicArray<D>& array) {
  constexpr int64_t kLongestSide = 4096;
  archive(
      model::Field{
          .name = "rows", .required = true, .least = 1, .most = kLongestSide},
      array.device.systolic_rows);
  archive(model::Field{.name = "columns",
                       .required = true,
                       .least = 1,
                       .most = kLongestSide},
          array.device.systolic_columns);
}

template <class Archive, class D>
void VisitFields(Archive& archive, const DeviceCores<D>& cores) {
  D& d = cores.device;
  const bool gpu = d.kind == DeviceKind::kGpu;
  archive(
      model::Field{
          .name = "count", .required = gpu, .least = 1, .most = 10'000'000},
      d.cores);
  archive(model::Field{.name = "clock",
                       .required = gpu,
                       .least_base = 1e8,
                       .most_base = 1e10},
          d.clock);
  if (gpu) {
    archive(
        model::Field{
            .name = "warps", .required = true, .least = 1, .most = 1024},
        d.warps_per_core);
    archive(model::Field{.name = "registers",
                         .required = true,
                         .least = 1024,
                         .most = 1 << 24},
            d.registers_per_core);
    archive(model::Field{.name = "shared_memory",
                         .required = true,
                         .least_base = 0x1p14,
                         .most_base = 0x1p22},
            d.shared_memory_per_core);
  }
  const SystolicArray<D> array{d};
  archive(model::Field{.name = "systolic_array"}, array);
}

template <class Archive, class D>
void VisitFields(Archive& archive, const DevicePower<D>& power) {
  D& d = power.device;
  archive(model::Field{.name = "max"}, d.max_power);
  archive(model::Field{.name = "idle"}, d.idle_power);
  if constexpr (model::ReadingArchive<Archive>) {
    if (d.max_power && d.idle_power && *d.idle_power >= *d.max_power) {
      archive.Fail("idle", "expected less than power.max");
    }
  }
}

template <class Archive, class D>
void VisitFields(Archive& archive, const DeviceLinks<D>& links) {
  D& d = links.device;
  archive(model::Field{.name = "peer"}, d.peer_bandwidth);
  if constexpr (model::ReadingArchive<Archive>) {
    archive(model::Field{.name = "peer_domain", .least = 2, .most = 1'000'000},
            d.peer_domain);
  } else {
    archive(model::Field{.name = "peer_domain"}, d.peer_domain);
  }
  archive(model::Field{.name = "host"}, d.host_bandwidth);
  archive(model::Field{.name = "through_host"}, d.through_host_bandwidth);
  archive(model::Field{.name = "weights"}, d.weight_bandwidth);
}

template <class Archive, model::Of<ArithmeticEnergy> E>
void VisitFields(Archive& archive, E& energy) {
  // Of one FLOP.
  model::Joules<> lanes(energy.lanes.base());
  archive(model::Field{.name = "lanes", .required = true}, lanes);
  if constexpr (model::ReadingArchive<Archive>) {
    energy.lanes = model::JoulesPerFlop<>(lanes.base());
  }
  const auto share = [&](std::string_view name, auto& value) {
    archive(
        model::Field{
            .name = name, .required = true, .low = 0.001, .high = 10.0},
        value);
  };
  share("tensor_tf32", energy.tensor_tf32);
  share("tensor_half", energy.tensor_half);
  archive(model::Field{.name = "tensor_cores_at_limit"},
          energy.tensor_cores_at_limit);
  archive(model::Field{.name = "synchronous", .low = 0.1, .high = 1.0},
          energy.synchronous);
}

template <class Archive, model::Of<Device> D>
void VisitFields(Archive& archive, D& d) {
  archive(model::Field{.name = "reported_name"}, d.reported_name);
  archive(model::Field{.name = "aliases"}, d.aliases);
  archive(model::Field{.name = "vendor", .required = true}, d.vendor);
  archive(model::Field{.name = "architecture", .required = true},
          d.architecture);
  archive(model::Field{.name = "model", .required = true}, d.kind);
  archive(model::Field{.name = "source", .required = true}, d.source);
  archive(model::Field{.name = "recalled"}, d.recalled);
  archive(model::Field{.name = "notes"}, d.notes);
  archive(model::Field{.name = "compute_capability"}, d.compute_capability);
  const DeviceMemory<D> memory{d};
  archive(model::Field{.name = "memory", .required = true}, memory);
  archive(model::Field{.name = "peak", .required = true}, d.peak);
  const DeviceCores<D> cores{d};
  archive(model::Field{.name = "cores", .required = true}, cores);
  archive(model::Field{.name = "static_shapes"}, d.static_shapes);
  archive(model::Field{.name = "inference_only"}, d.inference_only);
  archive(model::Field{.name = "energy"}, d.energy);
  const DevicePower<D> power{d};
  archive(model::Field{.name = "power"}, power);
  archive(model::Field{.name = "part_of"}, d.part_of);
  const DeviceLinks<D> links{d};
  archive(model::Field{.name = "links"}, links);
}

}  // namespace trainfare::hardware
