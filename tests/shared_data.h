#pragma once

// The data beside the project (../shared), which few have, some in part. A case
// that reads them is skipped where one file that it needs is absent, and of
// the suite of these files; each suite is a test of its own (CMakeLists.txt):
//
//   TEST_CASE("..." * doctest::test_suite("shared/prices/gcp") *
//             doctest::skip(!SharedHas("prices/gcp/vms.csv")))

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

namespace trainfare {

inline std::filesystem::path SharedPath(const std::string& path) {
  return std::filesystem::path(TRAINFARE_SHARED) / path;
}

inline bool SharedHas(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(SharedPath(path), ignored);
}

// All tables of measurements, whose names some cases hold against ours.
inline bool SharedHasMeasurements() {
  const auto names = {"achieved_matmul",
                      "aws_neuron",
                      "deepspeed_bert",
                      "devices",
                      "lambda_deeplearning_benchmark",
                      "lightseq",
                      "megatron_gpt",
                      "mlperf_training_bert",
                      "neusight_kernels_fp32",
                      "neusight_labels",
                      "nvidia_dle_inference",
                      "nvidia_dle_time_to_train",
                      "nvidia_dle_training",
                      "optimum_habana_ci",
                      "vtrain_gpt"};
  return std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return SharedHas("measurements/" + name + ".csv");
  });
}

}  // namespace trainfare
