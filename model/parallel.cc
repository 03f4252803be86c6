#include "model/parallel.h"

#include <fmt/format.h>

#include "model/error.h"
#include "model/limits.h"
#include "model/rounding.h"

namespace trainfare::model {

bool ShardsGradients(const Parallel& p) {
  return p.shard == Shard::kZero2 || ShardsParameters(p);
}

bool ShardsParameters(const Parallel& p) {
  return p.shard == Shard::kZero3 || p.shard == Shard::kFsdp;
}

Parallel OverDevices(const Parallel& parallel, int64_t devices) {
  if (parallel.data > 0 && parallel.data != devices) {
    throw InputError(fmt::format(
        "parallel.data: expected as many ranks as devices, {}, got {}",
        devices,
        parallel.data));
  }
  if (devices == 1 && !Offloads(parallel)) return {};
  Parallel over = parallel;
  if (devices == 1) {
    over.replicate = 1;
    if (over.offload == Offload::kNone) {
      over.shard = Shard::kNone;
      over.reshard_after_forward = true;
      over.embedding_units = false;
    }
  }
  over.data = devices;
  if (const auto fault = FaultOf(over)) {
    throw InputError(
        fmt::format("parallel.{}: {}", fault->field, fault->message));
  }
  return over;
}

int64_t ShardsOf(const Parallel& p) {
  if (p.shard == Shard::kNone || p.data == 0) return 1;
  return p.data / p.replicate;
}

bool Offloads(const Parallel& p) {
  return p.offload != Offload::kNone || p.offload_activations;
}

bool DividesState(const Parallel& p) {
  return ShardsOf(p) > 1 || p.offload != Offload::kNone;
}

int64_t ShareOf(int64_t elements, const Parallel& parallel) {
  return CeilDivide(elements, ShardsOf(parallel));
}

namespace {

// DeepSpeed has parameters on the host in stage 3 alone, FSDP all that is of a
// shard or nothing (CPUOffloadPolicy).
std::optional<ParallelFault> FaultOfOffload(const Parallel& p) {
  const bool gathers = p.shard == Shard::kZero3 || p.shard == Shard::kFsdp;
  if (p.offload == Offload::kParameters && !gathers) {
    return ParallelFault{
        "offload",
        fmt::format("expected optimizer, or shard: zero3 or fsdp, got "
                    "parameters with shard: {}",
                    ToText(p.shard))};
  }
  if (p.offload == Offload::kOptimizer && p.shard == Shard::kFsdp) {
    return ParallelFault{
        "offload",
        "expected parameters, got optimizer with shard: fsdp, which keeps both "
        "on the host; hint: shard: zero3"};
  }
  if (Offloads(p) && p.data > 1 && p.shard == Shard::kNone) {
    return ParallelFault{
        p.offload == Offload::kNone ? "offload_activations" : "offload",
        fmt::format("expected a shard over {} ranks, got none", p.data)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<ParallelFault> FaultOf(const Parallel& p) {
  const bool shards = p.shard != Shard::kNone;
  if (p.data < 0 || p.data > kMostDevices) {
    return ParallelFault{
        "data",
        fmt::format("expected 0 to {} ranks, got {}", kMostDevices, p.data)};
  }
  if (p.replicate < 1 || p.replicate > kMostDevices) {
    return ParallelFault{
        "replicate",
        fmt::format(
            "expected 1 to {} copies, got {}", kMostDevices, p.replicate)};
  }
  if (!shards && p.replicate > 1) {
    return ParallelFault{
        "replicate",
        fmt::format("expected 1 without a shard, got {}; hint: data: {} alone "
                    "are so many copies",
                    p.replicate,
                    p.data > 0 ? p.data : p.replicate)};
  }
  if (shards && p.data > 0 && p.data % p.replicate != 0) {
    return ParallelFault{
        "replicate",
        fmt::format("expected a divisor of data = {}, got {}; {} ranks cannot "
                    "be {} alike groups",
                    p.data,
                    p.replicate,
                    p.data,
                    p.replicate)};
  }
  if (auto fault = FaultOfOffload(p)) return fault;
  if (shards && p.data > 0 && p.data <= p.replicate && !Offloads(p)) {
    return ParallelFault{
        "shard",
        fmt::format("expected none where each of {} holds everything, got {}; "
                    "hint: data above replicate",
                    p.data == 1 ? "1 rank" : fmt::format("{} ranks", p.data),
                    ToText(p.shard))};
  }
  if (!p.reshard_after_forward && p.shard != Shard::kZero3 &&
      p.shard != Shard::kFsdp) {
    return ParallelFault{
        "reshard_after_forward",
        fmt::format("expected true, or shard: zero3 or fsdp; shard: {} gathers "
                    "no parameters",
                    ToText(p.shard))};
  }
  if (p.embedding_units && p.shard != Shard::kFsdp) {
    return ParallelFault{
        "embedding_units",
        fmt::format("expected false, or shard: fsdp; got true with shard: {}",
                    ToText(p.shard))};
  }
  return std::nullopt;
}

}  // namespace trainfare::model
