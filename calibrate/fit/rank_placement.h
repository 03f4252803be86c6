#pragma once

// Where ranks that divide a model, and copies of it, lie over hosts.

#include <cstdint>
#include <optional>

#include "model/collective.h"
#include "model/parallel.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// Where the ranks of a job lie, numbered first within a layer, then within a
// sequence, then over the copies of the model, then from stage to stage
// (Megatron-LM's order).
class RankPlacement {
 public:
  // `parallel.data` is known. A host is what peer links join: racks of NVLink
  // are one.
  RankPlacement(const model::Parallel& parallel, int64_t devices_of_host)
      : parallel_(parallel), devices_of_host_(devices_of_host) {}

  model::GroupShape OfTensor() const;
  model::GroupShape OfContext() const;
  model::GroupShape OfExpert() const;
  // Those with the same experts.
  model::GroupShape OfExpertData() const;
  // Those with the same weights.
  model::GroupShape OfData() const;
  // Share of the boundaries between stages that lie between hosts.
  double BetweenHosts() const;

  // What is wrong with such groups over hosts; nullopt: nothing.
  std::optional<model::ParallelFault> Fault() const;

 private:
  // Groups of so many that a host has room for, one at least.
  int64_t GroupsInHost(int64_t ranks) const;
  // Neighbours among those with the same weights.
  model::GroupShape OfNeighbours(int64_t ranks) const;

  model::Parallel parallel_;
  int64_t devices_of_host_;
};

}  // namespace trainfare::calibrate
