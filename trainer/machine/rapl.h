#pragma once

// Energy of the processors, from the counters that the kernel shows under
// /sys/class/powercap (RAPL: packages, and memory where it has a counter).
// They count the whole package, other programs' work included.
// Source: Linux Documentation/power/powercap/powercap.rst.

#include <cstdint>
#include <string>
#include <vector>

namespace trainfare::trainer {

class RaplMeter {
 public:
  explicit RaplMeter(const std::string& folder = "/sys/class/powercap");

  // Why there is nothing to read; empty where there is.
  const std::string& missing() const { return missing_; }
  // "package-0", "dram", in the order of the folder.
  std::vector<std::string> domains() const;
  // Adds what was used since the last call. A counter wraps after minutes, so
  // at least once a minute.
  void Update();
  // Between the first Update() and the last.
  double joules() const { return joules_; }

 private:
  struct Domain {
    std::string name;
    std::string file;      // energy_uj
    int64_t range_uj = 0;  // where the counter starts again
    int64_t last_uj = 0;
  };

  std::string missing_;
  std::vector<Domain> domains_;
  bool started_ = false;
  double joules_ = 0;
};

}  // namespace trainfare::trainer
