#include "calibrate/fit/rank_mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "model/rounding.h"

namespace trainfare::calibrate {
namespace {

bool OneDividesOther(int64_t a, int64_t b) { return a % b == 0 || b % a == 0; }

}  // namespace

GroupShape RankMesh::OfTensor() const {
  const int64_t in_host = std::min(tensor, local);
  return {in_host, model::CeilDivide(tensor, in_host)};
}

GroupShape RankMesh::OfNeighbours(int64_t ranks) const {
  const int64_t in_host =
      std::clamp<int64_t>(local / std::min(tensor, local), 1, ranks);
  return {in_host, model::CeilDivide(ranks, in_host)};
}

GroupShape RankMesh::OfContext() const { return OfNeighbours(context); }

GroupShape RankMesh::OfExpert() const {
  const int64_t in_host = std::clamp<int64_t>(local / of_expert(), 1, expert);
  return {in_host, model::CeilDivide(expert, in_host)};
}

// Whole groups of them in each host, so that shards divide these.
GroupShape RankMesh::OfExpertData() const {
  const int64_t apart = of_expert() * expert;
  const int64_t ranks = std::max<int64_t>(1, data * tensor / apart);
  const int64_t in_host = std::gcd(std::max<int64_t>(1, local / apart), ranks);
  return {in_host, ranks / in_host};
}

GroupShape RankMesh::OfData() const { return OfNeighbours(data); }

double RankMesh::BetweenHosts() const {
  if (pipeline == 1) return 0.0;
  const int64_t of_stage = tensor * data;
  const int64_t boundaries = pipeline - 1;
  const int64_t hosts = model::CeilDivide(of_stage * pipeline, local);
  return static_cast<double>(std::min(hosts - 1, boundaries)) /
         static_cast<double>(boundaries);
}

std::string FaultOf(const RankMesh& mesh) {
  if (!OneDividesOther(mesh.tensor, mesh.local)) {
    return fmt::format(
        "tensor: expected ranks that lie over whole hosts of {} devices, or "
        "several groups of them in one, got {}",
        mesh.local,
        mesh.tensor);
  }
  const int64_t room = std::max<int64_t>(1, mesh.local / mesh.tensor);
  if (!OneDividesOther(mesh.context, room)) {
    return fmt::format(
        "context: expected ranks of a sequence that lie over whole hosts with "
        "room for {}, or several groups of them in one, got {}",
        room,
        mesh.context);
  }
  const int64_t of_experts =
      std::max<int64_t>(1, mesh.local / mesh.of_expert());
  if (!OneDividesOther(mesh.expert, of_experts)) {
    return fmt::format(
        "expert: expected ranks that lie over whole hosts with room for {}, or "
        "several groups of them in one, got {}",
        of_experts,
        mesh.expert);
  }
  if (!OneDividesOther(mesh.data, room)) {
    return fmt::format(
        "data: expected copies that lie over whole hosts with room for {}, or "
        "several in one, got {}",
        room,
        mesh.data);
  }
  return {};
}

}  // namespace trainfare::calibrate
