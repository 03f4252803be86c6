#include "calibrate/fit/rank_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "model/rounding.h"

namespace trainfare::calibrate {
namespace {

bool OneDividesOther(int64_t a, int64_t b) { return a % b == 0 || b % a == 0; }

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
  const auto fault = [](std::string_view field, std::string message) {
    return model::ParallelFault{field, std::move(message)};
  };
  const model::Parallel& p = parallel_;
  if (!OneDividesOther(p.tensor, devices_of_host_)) {
    return fault("tensor",
                 fmt::format("expected ranks that lie over whole hosts of {} "
                             "devices, or several groups of them in one, got "
                             "{}",
                             devices_of_host_,
                             p.tensor));
  }
  const int64_t room = GroupsInHost(p.tensor);
  if (!OneDividesOther(p.context, room)) {
    return fault("context",
                 fmt::format("expected ranks of a sequence that lie over whole "
                             "hosts with room for {}, or several groups of "
                             "them in one, got {}",
                             room,
                             p.context));
  }
  const int64_t of_experts = GroupsInHost(model::PartsOfExperts(p));
  if (!OneDividesOther(p.expert, of_experts)) {
    return fault("expert",
                 fmt::format("expected ranks that lie over whole hosts with "
                             "room for {}, or several groups of them in one, "
                             "got {}",
                             of_experts,
                             p.expert));
  }
  const int64_t copies = model::RanksThatSum(p);
  if (!OneDividesOther(copies, room)) {
    return fault("data",
                 fmt::format("expected copies that lie over whole hosts with "
                             "room for {}, or several in one, got {}",
                             room,
                             copies));
  }
  return std::nullopt;
}

}  // namespace trainfare::calibrate
