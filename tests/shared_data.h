#pragma once

// The data beside the project (../shared), which few have. A case that reads
// it is of the suite "shared" and skipped, counted as such, where it is absent:
//
//   TEST_CASE("..." * doctest::test_suite("shared") *
//             doctest::skip(!SharedHas("prices")))

#include <filesystem>
#include <string>

namespace trainfare {

inline std::filesystem::path SharedPath(const std::string& path) {
  return std::filesystem::path(TRAINFARE_SHARED) / path;
}

inline bool SharedHas(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(SharedPath(path), ignored);
}

}  // namespace trainfare
