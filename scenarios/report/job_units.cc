#include "scenarios/report/job_units.h"

#include <utility>

namespace trainfare::scenarios {

JobUnits UnitsOf(const std::vector<const JobEstimate*>& jobs) {
  std::vector<double> steps;
  std::vector<double> runs;
  std::vector<double> energies;
  std::vector<double> memories;
  for (const JobEstimate* const job : jobs) {
    memories.push_back(ToBytes(job->memory.total()));
    if (!job->fits()) continue;
    steps.push_back(ToSeconds(job->step.total()));
    runs.push_back(ToSeconds(job->run.total()));
    if (job->energy) energies.push_back(ToJoules(*job->energy));
  }
  return {TimeUnit(std::move(steps)),
          TimeUnit(std::move(runs)),
          EnergyUnit(std::move(energies)),
          MemoryUnit(std::move(memories))};
}

}  // namespace trainfare::scenarios
