#pragma once

// Where ranks that divide a model, and copies of it, lie over hosts.

#include <cstdint>
#include <string>

namespace trainfare::calibrate {

// Ranks of a group that lie in one host, and hosts that it is over.
struct GroupShape {
  int64_t in_host = 1;
  int64_t hosts = 1;
};

// Where ranks lie that are numbered first within a layer, then within a
// sequence, then over the copies of the model, then from stage to stage
// (Megatron-LM's order), `local` of them in each host.
struct RankMesh {
  int64_t tensor = 1;
  int64_t data = 1;  // that have the same weights
  int64_t pipeline = 1;
  int64_t local = 1;
  int64_t context = 1;  // of `data`, neighbours that divide sequences
  int64_t expert = 1;   // and that divide experts
  // Ranks that have a part of every expert each; 0: those of a layer.
  int64_t expert_tensor = 0;

  GroupShape OfTensor() const;
  GroupShape OfContext() const;
  GroupShape OfExpert() const;
  // Those with the same experts.
  GroupShape OfExpertData() const;
  GroupShape OfData() const;
  // Share of the boundaries between stages that lie between hosts.
  double BetweenHosts() const;

  // Ranks side by side that have a part of the same expert each.
  int64_t of_expert() const {
    return expert_tensor > 0 ? expert_tensor : tensor;
  }

 private:
  // Neighbours among those with the same weights.
  GroupShape OfNeighbours(int64_t ranks) const;
};
// What is wrong with such groups of ranks over hosts; empty: nothing.
std::string FaultOf(const RankMesh& mesh);

}  // namespace trainfare::calibrate
