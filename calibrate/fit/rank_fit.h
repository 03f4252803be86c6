#pragma once

// Ring, contention and share of ranks that train together, from all-reduces by
// themselves and runs over these ranks.

#include <string>
#include <vector>

#include "calibrate/fit/fit.h"
#include "calibrate/records/measurement.h"
#include "hardware/catalog/device.h"

namespace trainfare::calibrate {

// What is not of one rank alone; the runs of one rank only say how many threads
// such a rank has.
struct RankRecords {
  std::vector<MeasuredRun> runs;
  // Figures of steps over several ranks that no record of a run stands behind.
  std::vector<Observation> observations;
  std::vector<MeasuredCollective> collectives;
  std::string source;  // the files
};

struct RankFits {
  std::vector<RankFit> groups;     // by number of ranks, then backend
  std::vector<std::string> notes;  // what was not used, and why
};

// One group for every number of ranks and backend that has all-reduces enough
// to tell latency from bandwidth. The ring is fitted to the all-reduces alone,
// and the share of a rank to the runs over the ranks:
//
//   log t_i = log t_i(share) + e_i      e_i ~ N(0, noise_i^2 + 0.05^2)
//   log share ~ N(log share_prior, s^2)
//
//   t_i(share)   forward, backward, optimizer and step of StepOverRanks
//   share_prior  threads of a rank over those of a rank alone, 1 / n at most,
//                where n ranks share a processor (s = 0.3), else 1 (s = 0.1)
//
// Where the kind of device says what several ranks add on the host, that time
// is fitted beside the share, from the same figures:
//
//   log host ~ N(log rank_host, rank_host_sigma^2)    hardware/kinds/*.yaml
//
// `fit`: of one such device, to runs of one rank. Check:
// tests/calibrate/fit/rank_fit_test.cc, docs/models/data_parallel.md.
RankFits FitRanks(const hardware::Device& device,
                  const Fit& fit,
                  const RankRecords& records);

}  // namespace trainfare::calibrate
