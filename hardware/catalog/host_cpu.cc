#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "hardware/catalog/device.h"
#include "hardware/catalog/kind_facts.h"
#include "hardware/files/unit_text.h"

// The processor at hand, from what Linux tells about it. Facts come from
// /proc and /sys; what these do not tell is an estimate of its kind
// (hardware/kinds/cpu.yaml), and the device's notes say which is which.

namespace trainfare::hardware {
namespace {

struct CpuInfo {
  std::string name;
  std::string vendor;
  std::set<std::string> flags;
  double clock_mhz = 0.0;       // highest seen
  std::set<std::string> cores;  // distinct (socket, core)
  int64_t logical = 0;
  std::set<std::string> sockets;
};

std::string Trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

CpuInfo ReadCpuInfo() {
  CpuInfo info;
  std::ifstream file("/proc/cpuinfo");
  std::string socket;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = Trimmed(line.substr(0, colon));
    const std::string value = Trimmed(line.substr(colon + 1));
    if (key == "processor") ++info.logical;
    if (key == "model name") info.name = value;
    if (key == "vendor_id" || key == "CPU implementer") info.vendor = value;
    if (key == "physical id") {
      socket = value;
      info.sockets.insert(value);
    }
    if (key == "core id") {
      info.cores.insert(fmt::format("{}/{}", socket, value));
    }
    if (key == "cpu MHz") {
      info.clock_mhz =
          std::max(info.clock_mhz, ParseNumber(value).value_or(0.0));
    }
    if ((key == "flags" || key == "Features") && info.flags.empty()) {
      std::istringstream words(value);
      for (std::string word; words >> word;) info.flags.insert(word);
    }
  }
  return info;
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return Trimmed(line);
}

// "32768K" of the highest cache level of the first processor.
model::Bytes<> LastLevelCache() {
  int64_t highest = 0;
  double size_kib = 0.0;
  for (int index = 0; index < 8; ++index) {
    const std::string folder =
        fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    const int64_t level = ParseInteger(FirstLine(folder + "level")).value_or(0);
    std::string size = FirstLine(folder + "size");
    if (level <= highest || !size.ends_with("K")) continue;
    size.pop_back();
    highest = level;
    size_kib = ParseNumber(size).value_or(0.0);
  }
  return model::KiB(size_kib);
}

// MemTotal, or the limit of this control group where that is lower.
model::Bytes<> TotalMemory() {
  double total_kib = 0.0;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("MemTotal:")) continue;
    std::istringstream words(line.substr(9));
    words >> total_kib;
  }
  model::Bytes<> total = model::KiB(total_kib);
  const std::string limit = FirstLine("/sys/fs/cgroup/memory.max");
  if (const std::optional<double> bytes = ParseNumber(limit)) {
    total = std::min(total, model::Byte(*bytes));
  }
  return total;
}

// fp32 FLOPs of one core and cycle: lanes, which the instruction set says,
// times 2 where it multiplies and adds at once, times the number of such units.
double FlopsPerCycle(const std::set<std::string>& flags, double units) {
  if (flags.contains("avx512f")) return 16.0 * 2.0 * units;
  if (flags.contains("avx2") || flags.contains("fma")) return 8.0 * 2.0 * units;
  if (flags.contains("avx")) return 8.0 * units;
  return 4.0 * units;  // SSE, NEON
}

// bf16 work of the matrix instructions per fp32 work of the vector units.
double Bf16Ratio(const std::set<std::string>& flags,
                 const ProcessorFacts& facts) {
  if (flags.contains("amx_bf16")) return facts.amx_bf16;
  if (flags.contains("avx512_bf16") || flags.contains("bf16")) {
    return facts.vector_bf16;
  }
  return 1.0;  // widened to fp32 by the library
}

std::string VectorName(const std::set<std::string>& flags) {
  for (const char* name :
       {"amx_bf16", "avx512_bf16", "avx512f", "avx2", "avx", "sve", "asimd"}) {
    if (flags.contains(name)) return name;
  }
  return "sse";
}

}  // namespace

Device HostCpu() {
  const CpuInfo info = ReadCpuInfo();
  const ProcessorFacts& facts = FactsOfProcessors();
  Device cpu;
  cpu.name = "cpu";
  cpu.kind = DeviceKind::kCpu;
  cpu.reported_name = info.name.empty() ? "unknown processor" : info.name;
  cpu.vendor = info.vendor.empty() ? "unknown" : info.vendor;
  cpu.architecture = VectorName(info.flags);
  cpu.source = "this machine: /proc/cpuinfo, /proc/meminfo, /sys";
  const auto usable = static_cast<int64_t>(std::thread::hardware_concurrency());
  const auto physical = static_cast<int64_t>(info.cores.size());
  // A container may use fewer processors than the machine has cores.
  cpu.cores = physical > 0 ? std::min(physical, std::max<int64_t>(usable, 1))
                           : std::max<int64_t>(usable, 1);
  cpu.memory_capacity = TotalMemory();
  cpu.on_chip_memory = LastLevelCache();

  // The file is in kHz; a virtual machine has none, and shows the base clock
  // at best.
  const double highest_khz =
      ParseNumber(
          FirstLine("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"))
          .value_or(0.0);
  const bool known_clock = highest_khz > 0.0 || info.clock_mhz > 0.0;
  cpu.clock = known_clock
                  ? model::Megahertz(highest_khz > 0.0 ? highest_khz / 1e3
                                                       : info.clock_mhz)
                  : facts.clock;

  const double cores = static_cast<double>(cpu.cores);
  cpu.peak.fp32 = model::FlopsPerSecond<>(
      cpu.clock.base() * cores * FlopsPerCycle(info.flags, facts.vector_units));
  cpu.peak.vector = cpu.peak.fp32;
  const double bf16_ratio = Bf16Ratio(info.flags, facts);
  cpu.peak.bf16 = *cpu.peak.fp32 * bf16_ratio;

  const double sockets =
      static_cast<double>(std::max<size_t>(info.sockets.size(), 1));
  cpu.memory_bandwidth =
      std::min(facts.core_bandwidth * cores, facts.socket_bandwidth * sockets);

  cpu.notes = {
      fmt::format("estimates: memory bandwidth, peaks (vector width x {:g} "
                  "units x clock)",
                  facts.vector_units)};
  if (!known_clock) cpu.notes.emplace_back("estimate: clock");
  if (bf16_ratio == 1.0) {
    cpu.notes.emplace_back("no bf16 instructions: bf16 runs at the fp32 rate");
  }
  return cpu;
}

}  // namespace trainfare::hardware
