#include "scenarios/commands/batch_cuts.h"

#include "model/limits.h"
#include "model/parallel.h"

namespace trainfare::scenarios {

std::vector<Scenario> CutsOf(const Scenario& job,
                             int64_t global_batch,
                             const Cluster& cluster) {
  std::vector<Scenario> cuts;
  const int64_t of_model = model::RanksOfModel(job.workload.parallel);
  if (cluster.devices % of_model != 0) return cuts;
  const int64_t copies = cluster.devices / of_model;
  if (global_batch % copies != 0) return cuts;
  const int64_t of_rank = global_batch / copies;
  const bool accumulates = job.workload.work != model::Work::kForward;
  // Divisors come in pairs: a small one, and what it leaves.
  std::vector<int64_t> small;
  for (int64_t d = 1; d <= of_rank / d; ++d) {
    if (of_rank % d == 0) small.push_back(d);
  }
  const auto add = [&](int64_t batch) {
    const int64_t accumulation = of_rank / batch;
    if (batch > model::kLargestBatch || (accumulation > 1 && !accumulates)) {
      return;
    }
    cuts.push_back(job);
    cuts.back().workload.batch = batch;
    cuts.back().workload.accumulation = accumulation;
  };
  for (const int64_t accumulation : small) add(of_rank / accumulation);
  for (auto batch = small.rbegin(); batch != small.rend(); ++batch) {
    if (*batch != of_rank / *batch) add(*batch);
  }
  return cuts;
}

}  // namespace trainfare::scenarios
