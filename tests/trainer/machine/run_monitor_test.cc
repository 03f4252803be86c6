#include "trainer/machine/run_monitor.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/near.h"

namespace trainfare::trainer {
namespace {

namespace fs = std::filesystem;

// A folder as /sys/class/powercap of a machine with two sockets.
class Powercap {
 public:
  Powercap() {
    std::string name = (fs::temp_directory_path() / "powercap.XXXXXX").string();
    DOCTEST_REQUIRE(::mkdtemp(name.data()) != nullptr);
    folder_ = name;
  }
  ~Powercap() { fs::remove_all(folder_); }
  Powercap(const Powercap&) = delete;
  Powercap& operator=(const Powercap&) = delete;

  void Zone(const std::string& zone, const std::string& name, int64_t uj) {
    fs::create_directories(folder_ / zone);
    Write(folder_ / zone / "name", name);
    Write(folder_ / zone / "max_energy_range_uj", "1000000000");
    Write(folder_ / zone / "energy_uj", std::to_string(uj));
  }
  std::string path() const { return folder_.string(); }

 private:
  static void Write(const fs::path& path, const std::string& text) {
    std::ofstream(path) << text << '\n';
  }
  fs::path folder_;
};

DOCTEST_TEST_CASE("energy of packages and memory, and no part of it twice") {
  Powercap powercap;
  powercap.Zone("intel-rapl:0", "package-0", 5'000'000);
  powercap.Zone("intel-rapl:0:0", "core", 4'000'000);
  powercap.Zone("intel-rapl:0:1", "dram", 1'000'000);
  powercap.Zone("intel-rapl:1", "package-1", 999'000'000);
  powercap.Zone("intel-rapl:2", "psys", 9'000'000);
  powercap.Zone("intel-rapl-mmio:0", "package-0", 5'000'000);
  RaplMeter meter(powercap.path());
  DOCTEST_REQUIRE(meter.missing().empty());
  DOCTEST_CHECK(meter.domains() ==
                std::vector<std::string>{"package-0", "dram", "package-1"});
  meter.Update();
  DOCTEST_CHECK(meter.joules() == 0);
  powercap.Zone("intel-rapl:0", "package-0", 7'000'000);       // 2 J
  powercap.Zone("intel-rapl:0:0", "core", 5'500'000);          // in package-0
  powercap.Zone("intel-rapl:0:1", "dram", 1'500'000);          // 0.5 J
  powercap.Zone("intel-rapl:1", "package-1", 3'000'000);       // wrapped: 4 J
  powercap.Zone("intel-rapl:2", "psys", 19'000'000);           // the platform
  powercap.Zone("intel-rapl-mmio:0", "package-0", 7'000'000);  // again
  meter.Update();
  DOCTEST_CHECK(meter.joules() == Near(6.5, 1e-12));
}

DOCTEST_TEST_CASE("where energy cannot be read, the reason is kept") {
  DOCTEST_CHECK(RaplMeter("/nowhere/powercap").missing() ==
                "/nowhere/powercap: No such file or directory");
  Powercap powercap;
  DOCTEST_CHECK(RaplMeter(powercap.path()).missing() ==
                powercap.path() + ": no counter of a package");
  powercap.Zone("intel-rapl:0", "package-0", 1);
  fs::remove(fs::path(powercap.path()) / "intel-rapl:0" / "energy_uj");
  DOCTEST_CHECK(RaplMeter(powercap.path()).missing() ==
                powercap.path() +
                    "/intel-rapl:0/energy_uj: cannot be read, root may");
}

DOCTEST_TEST_CASE("a run on a CPU: energy of its packages over its time") {
  Powercap powercap;
  powercap.Zone("intel-rapl:0", "package-0", 1'000'000);
  RunMonitor monitor("", std::make_unique<RaplMeter>(powercap.path()));
  monitor.AfterStep();  // of a warm-up step: nothing
  DOCTEST_CHECK_FALSE(monitor.begun());
  monitor.Begin();
  powercap.Zone("intel-rapl:0", "package-0", 31'000'000);
  const RunConditions conditions = monitor.End();
  DOCTEST_CHECK(conditions.energy.missing.empty());
  DOCTEST_CHECK(conditions.energy.source == "rapl");
  DOCTEST_CHECK(conditions.energy.joules == Near(30.0, 1e-12));
  DOCTEST_CHECK(conditions.energy.wall_s > 0);
  DOCTEST_CHECK_FALSE(conditions.gpu.has_value());
}

DOCTEST_TEST_CASE("a management library is asked for what a GPU does") {
  const Nvml nvml("0000:3B:00.0", TRAINFARE_FAKE_NVML);
  DOCTEST_REQUIRE(nvml.missing().empty());
  DOCTEST_CHECK(nvml.driver() == "580.1");
  DOCTEST_CHECK(nvml.power_limit_w() == Near(700, 1e-5));
  const GpuReading reading = nvml.Read();
  DOCTEST_CHECK(reading.sm_clock_hz == 1980e6);
  DOCTEST_CHECK(reading.memory_clock_hz == 2619e6);
  DOCTEST_CHECK(reading.temperature_c == 61);
  DOCTEST_CHECK(reading.power_w == Near(512.3, 1e-5));
  DOCTEST_CHECK(reading.processes == 2);
  DOCTEST_REQUIRE(reading.clock_reasons.has_value());
  DOCTEST_CHECK(
      ThrottleReasons(*reading.clock_reasons) ==
      std::vector<std::string>{"sw_power_cap", "hw_thermal_slowdown"});
}

DOCTEST_TEST_CASE("a GPU or a library that is not there is a reason") {
  DOCTEST_CHECK(Nvml("0000:3B:00.0", "libnone.so.1").missing() ==
                "libnone.so.1 is not there");
  const Nvml elsewhere("0000:AF:00.0", TRAINFARE_FAKE_NVML);
  DOCTEST_CHECK(elsewhere.missing() ==
                std::string(TRAINFARE_FAKE_NVML) + ": no GPU at 0000:AF:00.0");
  DOCTEST_CHECK_FALSE(elsewhere.Read().power_w.has_value());
}

DOCTEST_TEST_CASE("a run on a hot and shared GPU says so") {
  RunMonitor monitor(
      "0000:3B:00.0",
      nullptr,
      std::make_unique<Nvml>("0000:3B:00.0", TRAINFARE_FAKE_NVML));
  monitor.Begin();
  const RunConditions conditions = monitor.End();
  DOCTEST_REQUIRE(conditions.gpu.has_value());
  DOCTEST_CHECK(conditions.gpu->readings == 2);
  DOCTEST_CHECK(conditions.gpu->hardware_slowdown);
  DOCTEST_CHECK(conditions.gpu->other_processes == 1);
  DOCTEST_CHECK(conditions.energy.source == "nvml");
  DOCTEST_CHECK(conditions.energy.joules == Near(2.5, 1e-5));
  DOCTEST_CHECK(conditions.disturbed(1'000'000));
}

DOCTEST_TEST_CASE("a power cap alone disturbs nothing: boards work at it") {
  GpuReading reading;
  reading.clock_reasons = 0x04;
  reading.processes = 1;
  RunConditions conditions;
  conditions.load.wall_s = 1;
  conditions.load.waited_s = 0;
  conditions.gpu = Summarise({reading, reading});
  DOCTEST_CHECK(conditions.gpu->throttle_reasons ==
                std::vector<std::string>{"sw_power_cap"});
  DOCTEST_CHECK(conditions.gpu->other_processes == 0);
  DOCTEST_CHECK_FALSE(conditions.disturbed(2));
  conditions.gpu->other_processes = 1;
  DOCTEST_CHECK(conditions.disturbed(2));
}

DOCTEST_TEST_CASE("the range of readings") {
  DOCTEST_CHECK_FALSE(RangeOf({}).has_value());
  const auto range = RangeOf({5, 1, 3, 10});
  DOCTEST_CHECK(range->low == 1);
  DOCTEST_CHECK(range->median == 4);
  DOCTEST_CHECK(range->high == 10);
}

}  // namespace
}  // namespace trainfare::trainer
