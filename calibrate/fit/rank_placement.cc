#include "calibrate/fit/rank_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>

#include "model/rounding.h"

namespace trainfare::calibrate {
namespace {

bool OneDividesOther(int64_t a, int64_t b) { return a % b == 0 || b % a == 0; }

// So many ranks beside each other, where a host has room for `room` of them.
std::optional<model::ParallelFault> FaultOfRoom(std::string_view field,
                                                std::string_view ranks_are,
                                                int64_t ranks,
                                                int64_t room,
                                                std::string_view several) {
  if (OneDividesOther(ranks, room)) return std::nullopt;
  return model::ParallelFault{
      field,
      fmt::format("expected {} that lie over whole hosts with room for {}, or "
                  "{} in one, got {}",
                  ranks_are,
                  room,
                  several,
                  ranks)};
}

}  // namespace

int64_t RankPlacement::GroupsInHost(int64_t ranks) const {
  return std::max<int64_t>(1, devices_of_host_ / ranks);
}

model::GroupShape RankPlacement::OfTensor() const {
  const int64_t in_host = std::min(parallel_.tensor, devices_of_host_);
  return {in_host, model::CeilDivide(parallel_.tensor, in_host)};
}

model::GroupShape RankPlacement::OfNeighbours(int64_t ranks) const {
  const int64_t in_host = std::min(GroupsInHost(parallel_.tensor), ranks);
  return {in_host, model::CeilDivide(ranks, in_host)};
}

model::GroupShape RankPlacement::OfContext() const {
  return OfNeighbours(parallel_.context);
}

model::GroupShape RankPlacement::OfExpert() const {
  const int64_t ranks = parallel_.expert;
  const int64_t in_host =
      std::min(GroupsInHost(model::PartsOfExperts(parallel_)), ranks);
  return {in_host, model::CeilDivide(ranks, in_host)};
}

// Whole groups of them in each host, so that shards divide these.
model::GroupShape RankPlacement::OfExpertData() const {
  const int64_t apart = model::PartsOfExperts(parallel_) * parallel_.expert;
  const int64_t of_stage = model::RanksThatSum(parallel_) * parallel_.tensor;
  const int64_t ranks = std::max<int64_t>(1, of_stage / apart);
  const int64_t in_host = std::gcd(GroupsInHost(apart), ranks);
  return {in_host, ranks / in_host};
}

model::GroupShape RankPlacement::OfData() const {
  return OfNeighbours(model::RanksThatSum(parallel_));
}

double RankPlacement::BetweenHosts() const {
  const int64_t stages = parallel_.pipeline;
  if (stages == 1) return 0.0;
  const int64_t of_stage = parallel_.tensor * model::RanksThatSum(parallel_);
  const int64_t boundaries = stages - 1;
  const int64_t hosts = model::CeilDivide(of_stage * stages, devices_of_host_);
  return static_cast<double>(std::min(hosts - 1, boundaries)) /
         static_cast<double>(boundaries);
}

std::optional<model::ParallelFault> RankPlacement::Fault() const {
  const model::Parallel& p = parallel_;
  if (!OneDividesOther(p.tensor, devices_of_host_)) {
    return model::ParallelFault{
        "tensor",
        fmt::format("expected ranks that lie over whole hosts of {} devices, "
                    "or several groups of them in one, got {}",
                    devices_of_host_,
                    p.tensor)};
  }
  constexpr std::string_view kGroups = "several groups of them";
  const int64_t room = GroupsInHost(p.tensor);
  if (auto fault = FaultOfRoom(
          "context", "ranks of a sequence", p.context, room, kGroups)) {
    return fault;
  }
  const int64_t of_experts = GroupsInHost(model::PartsOfExperts(p));
  if (auto fault =
          FaultOfRoom("expert", "ranks", p.expert, of_experts, kGroups)) {
    return fault;
  }
  return FaultOfRoom("data", "copies", model::RanksThatSum(p), room, "several");
}

}  // namespace trainfare::calibrate
