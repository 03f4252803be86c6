#include "trainer/machine/rapl.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

namespace trainfare::trainer {
namespace {

namespace fs = std::filesystem;

std::optional<int64_t> ReadCount(const fs::path& path) {
  std::ifstream file(path);
  int64_t count = 0;
  if (!(file >> count) || count < 0) return std::nullopt;
  return count;
}

std::string ReadWord(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// Packages and their memory. Cores and graphics are parts of a package, psys is
// the whole platform, and the -mmio zones show a package a second time.
bool Counts(const std::string& folder, const std::string& name) {
  return folder.rfind("intel-rapl:", 0) == 0 &&
         (name.rfind("package", 0) == 0 || name == "dram");
}

}  // namespace

RaplMeter::RaplMeter(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> zones;
  for (const auto& zone : fs::directory_iterator(folder, error)) {
    zones.push_back(zone.path());
  }
  if (error) {
    missing_ = fmt::format("{}: {}", folder, error.message());
    return;
  }
  std::sort(zones.begin(), zones.end());
  for (const fs::path& zone : zones) {
    const std::string name = ReadWord(zone / "name");
    if (!Counts(zone.filename().string(), name)) continue;
    const fs::path counter = zone / "energy_uj";
    const auto range = ReadCount(zone / "max_energy_range_uj");
    if (!ReadCount(counter) || !range) {
      // Since 2020 the kernel lets only root read it (CVE-2020-8694).
      missing_ = fmt::format("{}: cannot be read, root may", counter.string());
      domains_.clear();
      return;
    }
    domains_.push_back({name, counter.string(), *range, 0});
  }
  if (domains_.empty()) {
    missing_ = fmt::format("{}: no counter of a package", folder);
  }
}

std::vector<std::string> RaplMeter::domains() const {
  std::vector<std::string> names;
  for (const Domain& domain : domains_) names.push_back(domain.name);
  return names;
}

void RaplMeter::Update() {
  for (Domain& domain : domains_) {
    const auto now_uj = ReadCount(domain.file);
    if (!now_uj) continue;
    if (started_) {
      int64_t used_uj = *now_uj - domain.last_uj;
      if (used_uj < 0) used_uj += domain.range_uj;
      joules_ += static_cast<double>(used_uj) * 1e-6;
    }
    domain.last_uj = *now_uj;
  }
  started_ = true;
}

}  // namespace trainfare::trainer
