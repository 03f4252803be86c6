#pragma once

// What predict shows people of its jobs: tables, notes, the answer in a line.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "calibrate/fit/predictor.h"
#include "hardware/catalog/instance.h"
#include "scenarios/commands/kernel_groups.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/pricing.h"
#include "scenarios/job/scenario.h"
#include "scenarios/report/output.h"

namespace trainfare::scenarios {

// What is asked about: the device, how many, at what price.
struct PredictionTarget {
  calibrate::Predictor predictor;
  std::string fit_name;  // empty: datasheet
  Cluster cluster;
  const hardware::Instance* instance = nullptr;
  std::optional<Tariff> tariff;
  std::vector<std::string> left_out_fits;  // why, a line each
  // Where the name of its device left open which it is: what it is taken as.
  std::optional<std::string> taken_as;
};

// "2 x a100_sxm4_80gb (NVIDIA A100-SXM4-80GB) of aws/p4d.24xlarge".
std::string TargetName(const PredictionTarget& target);

// The answer about one job in a line.
std::string Answer(const PredictionTarget& target,
                   const JobEstimate& job,
                   const Scenario& scenario);

// One job on one device.
struct Prediction {
  const PredictionTarget* target = nullptr;
  JobEstimate job;
};

// A row a prediction; jobs are of one scenario, in several batches, lengths and
// precisions.
Table PredictionTable(const std::vector<Prediction>& predictions,
                      int64_t epochs);

// Where the time and the memory of one job go; `kernels` are its own.
std::vector<Table> DetailTables(const Prediction& prediction,
                                const std::optional<KernelGroups>& kernels,
                                int64_t epochs);

// That nothing of the scenario's source is behind a job's interval, and what
// that adds to it; nullopt: something is, or nothing is known to be added.
std::optional<Note> SourceNote(const JobEstimate& job,
                               const Scenario& scenario);

// That the scenario's file may be cut off; nullopt: it ends as files do.
std::optional<Note> EndNote(const Scenario& scenario);

// That devices have not the kernels of the stack that was asked for, and what
// their compilers make of the model instead.
std::string CompiledStackNote(model::Fusion asked,
                              model::Fusion instead,
                              const std::set<std::string>& devices);

// Why the cloud of an instance counts only where somebody names it.
std::string NamedCloudNote(const hardware::Instance& instance);

// That a job which fits may not, as sure as its memory is; nullopt: it does.
std::optional<Note> MemoryNote(const JobEstimate& job);

// That weights are wider than the name of their model says; nullopt: they are
// not.
std::optional<Note> WeightsNote(const Scenario& scenario);

// That sequences so long are beyond what the model was trained for; nullopt:
// they are not.
std::optional<Note> PositionsNote(const model::Workload& workload);

// What a reader has to know to believe the figures. `spot` was asked for.
std::vector<Note> PredictionNotes(const PredictionTarget& target,
                                  const std::vector<JobEstimate>& jobs,
                                  const Scenario& scenario,
                                  bool spot);

}  // namespace trainfare::scenarios
