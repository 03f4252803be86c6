#include "calibrate/fit/candidate_runs.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "model/presets.h"

namespace trainfare::calibrate {
namespace {

// Of several sizes, and of vocabularies other than BERT's: what a large one
// costs, no run of a small one tells.
constexpr auto kModels = std::to_array<std::string_view>({"bert-tiny",
                                                          "bert-mini",
                                                          "bert-small",
                                                          "bert-medium",
                                                          "bert-base-uncased",
                                                          "distilroberta-base",
                                                          "distilgpt2"});
// Batches and lengths that people choose, and odd ones halfway between them, as
// dynamic padding makes: kernels are cut to powers of two, and runs of these
// alone say nothing of what the others cost.
struct Grid {
  std::vector<int64_t> batches;
  std::vector<int64_t> lengths;
};
const std::array<Grid, 2>& Grids() {
  static const std::array<Grid, 2> grids = {
      Grid{{1, 2, 4, 8, 16, 32, 64}, {16, 32, 64, 128, 256, 512}},
      Grid{{1, 3, 5, 11, 23, 45}, {23, 45, 91, 181, 363}}};
  return grids;
}
// More takes long and says little that fewer did not.
constexpr int64_t kMostTokens = 4096;

struct GridPoint {
  int64_t batch, length;
};
std::vector<GridPoint> GridPoints() {
  std::vector<GridPoint> points;
  for (const Grid& grid : Grids()) {
    for (const int64_t length : grid.lengths) {
      for (const int64_t batch : grid.batches) {
        if (batch * length <= kMostTokens) points.push_back({batch, length});
      }
    }
  }
  return points;
}

}  // namespace

bool TakesLength(const model::Architecture& architecture, int64_t length) {
  return length <= architecture.max_sequence_length().value_or(length);
}

std::vector<model::Workload> CandidateRuns(
    const hardware::Device& device,
    const std::vector<model::Precision>& precisions,
    const std::vector<std::string>& models) {
  std::vector<std::string> names = models;
  if (names.empty()) names.assign(kModels.begin(), kModels.end());
  std::vector<model::Workload> runs;
  for (const std::string& name : names) {
    const model::Architecture& architecture = model::FindArchitecture(name);
    for (const model::Precision precision : precisions) {
      if (!device.MatrixPeak(precision)) continue;
      for (const auto [batch, length] : GridPoints()) {
        if (!TakesLength(architecture, length)) continue;
        model::Workload workload;
        workload.architecture = architecture;
        workload.batch = batch;
        workload.sequence_length = length;
        workload.precision = precision;
        workload.optimizer.implementation =
            model::OptimizerImplementation::kFused;
        runs.push_back(std::move(workload));
      }
    }
  }
  return runs;
}

}  // namespace trainfare::calibrate
