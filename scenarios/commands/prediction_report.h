#pragma once

// What predict says of its jobs: the answer in lines, tables, notes, and the
// same for machines.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/commands/kernel_groups.h"
#include "scenarios/commands/predict_options.h"
#include "scenarios/commands/prediction_target.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/exchange.h"
#include "scenarios/job/scenario.h"
#include "scenarios/report/output.h"
#include "scenarios/report/result_json.h"
#include "scenarios/report/table.h"

namespace trainfare::scenarios {

// One job on one device.
struct Prediction {
  const PredictionTarget* target = nullptr;
  JobEstimate job;
};

// What the collectives of its step take by size; empty: it has none.
std::vector<CollectiveTime> CollectivesOf(const Prediction& prediction);

// "8.03 B", "110 M".
std::string ParametersText(int64_t parameters);

// The answer about one job in a line, else what was asked about; the settings;
// and what else of one job fits.
std::vector<std::string> HeadlineOf(
    const std::vector<PredictionTarget>& targets,
    const std::vector<Prediction>& predictions,
    const std::vector<Scenario>& variants);

// A row a prediction; jobs are of one scenario, in several batches, lengths and
// precisions.
Table PredictionTable(const std::vector<Prediction>& predictions,
                      int64_t epochs);

// Where the time and the memory of one job go; `kernels` are its own.
std::vector<Table> DetailTables(const Prediction& prediction,
                                const std::optional<KernelGroups>& kernels,
                                int64_t epochs);

// What a reader has to know to believe the figures. `spot` was asked for.
std::vector<Note> PredictionNotes(const PredictionTarget& target,
                                  const std::vector<JobEstimate>& jobs,
                                  const Scenario& scenario,
                                  bool spot);

// `kernels` are those of the one prediction.
Json PredictionJson(const std::vector<PredictionTarget>& targets,
                    const std::vector<Prediction>& predictions,
                    const std::optional<KernelGroups>& kernels,
                    const Scenario& scenario,
                    const PredictOptions& options);

}  // namespace trainfare::scenarios
