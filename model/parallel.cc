#include "model/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/error.h"
#include "model/limits.h"
#include "model/rounding.h"

namespace trainfare::model {

void RequireNone(const std::optional<ParallelFault>& fault) {
  if (!fault) return;
  throw InputError(
      fmt::format("parallel.{}: {}", fault->field, fault->message));
}

bool ShardsGradients(const Parallel& p) {
  return p.shard == Shard::kZero2 || ShardsParameters(p);
}

bool ShardsParameters(const Parallel& p) {
  return p.shard == Shard::kZero3 || p.shard == Shard::kFsdp;
}

int64_t RanksOfModel(const Parallel& p) {
  return PartsOfWeights(p) * p.context;
}

std::string_view FieldOfModelRanks(const Parallel& p) {
  if (p.tensor > 1) return "tensor";
  if (p.context > 1) return "context";
  return p.pipeline > 1 ? "pipeline" : "expert";
}

bool DividesModel(const Parallel& p) {
  return RanksOfModel(p) > 1 || p.expert > 1;
}

int64_t PartsOfWeights(const Parallel& p) { return p.tensor * p.pipeline; }

int64_t PartsOfExperts(const Parallel& p) {
  return p.expert_tensor > 0 ? p.expert_tensor : p.tensor;
}

int64_t ExpertFolds(const Parallel& p) { return p.tensor / PartsOfExperts(p); }

int64_t CopiesOf(const Parallel& p) { return std::max<int64_t>(1, p.data); }

int64_t RanksThatSum(const Parallel& p) { return CopiesOf(p) * p.context; }

int64_t RanksOfExperts(const Parallel& p) {
  return RanksThatSum(p) * ExpertFolds(p);
}

int64_t FewestDevices(const Parallel& p) {
  const int64_t of_sum = p.expert / std::gcd(p.expert, ExpertFolds(p));
  const int64_t sum =
      p.data > 0 ? RanksThatSum(p) : std::lcm(p.context, of_sum);
  return PartsOfWeights(p) * sum;
}

Parallel OverDevices(const Parallel& parallel, int64_t devices) {
  const int64_t of_model = RanksOfModel(parallel);
  if (devices % of_model != 0) {
    throw InputError(fmt::format(
        "parallel.{}: expected ranks of a model that divide the {} devices, "
        "got {}; hint: --devices {}",
        FieldOfModelRanks(parallel),
        devices,
        of_model,
        CeilToMultiple(devices, of_model)));
  }
  const int64_t copies = devices / of_model;
  if (parallel.data > 0 && parallel.data != copies) {
    throw InputError(
        of_model == 1
            ? fmt::format("parallel.data: expected as many ranks as devices, "
                          "{}, got {}; hint: 0, as many as there are",
                          devices,
                          parallel.data)
            : fmt::format("parallel.data: expected {} copies of a model that "
                          "{} of {} devices have, got {}; hint: 0, as many as "
                          "there are",
                          copies,
                          of_model,
                          devices,
                          parallel.data));
  }
  if (devices == 1 && !Offloads(parallel) && parallel.expert == 1) return {};
  Parallel over = parallel;
  if (copies * parallel.context == 1) {
    over.replicate = 1;
    if (over.offload == Offload::kNone) {
      over.shard = Shard::kNone;
      over.reshard_after_forward = true;
      over.embedding_units = false;
    }
  }
  over.data = copies;
  RequireNone(FaultOf(over));
  return over;
}

int64_t ShardsOf(const Parallel& p) {
  if (p.shard == Shard::kNone || p.data == 0) return 1;
  return RanksThatSum(p) / p.replicate;
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
  if (p.offload == Offload::kParameters && !ShardsParameters(p)) {
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

// Passes of several micro-batches go on at once in a stage, so that published
// schedules gather its weights and sum its gradients once a step: DeepSpeed has
// no ZeRO-3 there, PyTorch's FSDP keeps what it gathered.
std::optional<ParallelFault> FaultOfShardedStages(const Parallel& p) {
  if (p.pipeline == 1) return std::nullopt;
  if (p.shard == Shard::kZero3) {
    return ParallelFault{
        "shard",
        "expected none, zero1, zero2 or fsdp under a pipeline, got zero3"};
  }
  if (p.shard == Shard::kFsdp && p.reshard_after_forward) {
    return ParallelFault{
        "reshard_after_forward",
        "expected false of fsdp under a pipeline, whose passes of several "
        "micro-batches go on at once, got true"};
  }
  return std::nullopt;
}

// How experts are divided over ranks, and what these send each other. Ranks of a
// layer that have other experts each have other tokens, too (Megatron-LM asks
// for sequence parallelism beside experts).
std::optional<ParallelFault> FaultOfExperts(const Parallel& p) {
  if (p.expert_tensor < 0 || p.expert_tensor > p.tensor ||
      p.tensor % PartsOfExperts(p) != 0) {
    return ParallelFault{
        "expert_tensor",
        fmt::format("expected a divisor of the {} ranks of a layer, or 0, got "
                    "{}",
                    p.tensor,
                    p.expert_tensor)};
  }
  const int64_t folds = ExpertFolds(p);
  if (folds > 1 && p.expert == 1) {
    return ParallelFault{
        "expert_tensor",
        fmt::format("expected {} where no ranks divide experts, got {}; hint: "
                    "expert",
                    p.tensor,
                    p.expert_tensor)};
  }
  if (folds > 1 && !p.sequence) {
    return ParallelFault{
        "expert_tensor",
        fmt::format("expected {} where ranks of a layer have the same tokens, "
                    "got {}; hint: sequence: true",
                    p.tensor,
                    p.expert_tensor)};
  }
  if (p.expert == 1 && p.expert_exchange != ExpertExchange::kAllToAll) {
    return ParallelFault{
        "expert_exchange",
        fmt::format("expected all_to_all where no ranks divide experts, got "
                    "{}; hint: expert",
                    ToText(p.expert_exchange))};
  }
  if (p.expert == 1 && p.expert_overlap) {
    return ParallelFault{
        "expert_overlap",
        "expected false where no ranks divide experts, got true; hint: expert"};
  }
  if (p.data > 0 && RanksOfExperts(p) % p.expert != 0) {
    return ParallelFault{
        "expert",
        fmt::format(
            "expected a divisor of the {} ranks {}, got {}",
            RanksOfExperts(p),
            folds > 1 ? "that experts lie over" : "with the same weights",
            p.expert)};
  }
  return std::nullopt;
}

// Ranks that have a part of the model each.
std::optional<ParallelFault> FaultOfWays(const Parallel& p) {
  for (const auto& [field, ranks] : {std::pair{"tensor", p.tensor},
                                     std::pair{"context", p.context},
                                     std::pair{"expert", p.expert},
                                     std::pair{"pipeline", p.pipeline},
                                     std::pair{"chunks", p.chunks}}) {
    if (ranks >= 1 && ranks <= kMostDevices) continue;
    return ParallelFault{
        field, fmt::format("expected 1 to {}, got {}", kMostDevices, ranks)};
  }
  if (p.sequence && p.tensor == 1) {
    return ParallelFault{
        "sequence",
        "expected false where no ranks divide layers, got true; hint: tensor"};
  }
  if (p.tensor_overlap != TensorOverlap::kNone && p.tensor == 1) {
    return ParallelFault{
        "tensor_overlap",
        fmt::format("expected none where no ranks divide layers, got {}; hint: "
                    "tensor",
                    ToText(p.tensor_overlap))};
  }
  if (p.stages != StageCut::kBlocks && p.pipeline == 1) {
    return ParallelFault{
        "stages",
        fmt::format(
            "expected blocks without a pipeline, got {}; hint: pipeline",
            ToText(p.stages))};
  }
  if (p.chunks > 1 && p.pipeline == 1) {
    return ParallelFault{
        "chunks",
        fmt::format("expected 1 without a pipeline, got {}; hint: pipeline",
                    p.chunks)};
  }
  if (auto fault = FaultOfExperts(p)) return fault;
  if (DividesModel(p) && Offloads(p)) {
    return ParallelFault{
        p.offload == Offload::kNone ? "offload_activations" : "offload",
        "expected none of ranks that have a part of the model each"};
  }
  return FaultOfShardedStages(p);
}

// Copies of the model, and of its state among them.
std::optional<ParallelFault> FaultOfCopies(const Parallel& p) {
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
  return std::nullopt;
}

}  // namespace

std::optional<ParallelFault> FaultOf(const Parallel& p) {
  const bool shards = p.shard != Shard::kNone;
  if (auto fault = FaultOfCopies(p)) return fault;
  if (auto fault = FaultOfOffload(p)) return fault;
  if (auto fault = FaultOfWays(p)) return fault;
  if (shards && p.data > 0 && RanksThatSum(p) <= p.replicate && !Offloads(p)) {
    return ParallelFault{
        "shard",
        fmt::format("expected none where each of {} holds everything, got {}; "
                    "hint: data above replicate",
                    p.data == 1 ? "1 rank" : fmt::format("{} ranks", p.data),
                    ToText(p.shard))};
  }
  if (!p.reshard_after_forward && !ShardsParameters(p)) {
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
