#include "calibrate/plan.h"

#include <array>
#include <string_view>

namespace trainfare::calibrate {
namespace {

constexpr std::array<std::string_view, 5> kModels = {
    "bert-tiny", "bert-mini", "bert-small", "bert-medium", "bert-base-uncased"};
constexpr std::array<int64_t, 5> kLengths = {16, 32, 64, 128, 256};
constexpr std::array<int64_t, 7> kBatches = {1, 2, 4, 8, 16, 32, 64};
// More takes long and says little that fewer did not.
constexpr int64_t kMostTokens = 4096;

}  // namespace

std::vector<model::Workload> CandidateRuns(
    const hardware::Device& device,
    const std::vector<model::Precision>& precisions) {
  std::vector<model::Workload> runs;
  for (const std::string_view name : kModels) {
    const auto architecture = model::TryFindArchitecture(name);
    if (!architecture) continue;
    for (const model::Precision precision : precisions) {
      if (!device.MatrixPeak(precision)) continue;
      for (const int64_t length : kLengths) {
        for (const int64_t batch : kBatches) {
          if (batch * length > kMostTokens) continue;
          model::Workload workload;
          workload.architecture = *architecture;
          workload.batch = batch;
          workload.sequence_length = length;
          workload.precision = precision;
          workload.optimizer.implementation =
              model::OptimizerImplementation::kFused;
          runs.push_back(std::move(workload));
        }
      }
    }
  }
  return runs;
}

}  // namespace trainfare::calibrate
