#include "hardware/catalog/device.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>

#include "hardware/files/data_directory.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "tests/hardware/temporary_folder.h"
#include "tests/near.h"
#include "tests/shared_data.h"
#include "tests/units.h"

namespace trainfare::hardware {
namespace {

namespace fs = std::filesystem;

const std::string kGood =
    "vendor: V\n"
    "architecture: A\n"
    "model: gpu\n"
    "source: datasheet\n"
    "date: 2026-11-20\n"
    "memory: { capacity: 16 GiB, bandwidth: 320 GB/s }\n"
    "peak: { fp32: 8 TFLOP/s }\n"
    "cores: { count: 40, clock: 1.5 GHz, warps: 32, registers: 65536,\n"
    "         shared_memory: 64 KiB }\n";

std::string Replaced(std::string text,
                     const std::string& from,
                     const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// The message without the path of the file, "no error" when it loads.
std::string Message(const std::string& text) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("d.yaml", text);
  return MessageOf<model::InputError>(folder, [&] { LoadDevice(path); });
}

}  // namespace

TEST_CASE("every shipped device loads and is in the range of its kind") {
  const DeviceCatalog catalog = DeviceCatalog::Load(DataDirectory("devices"));
  CHECK(catalog.devices().size() == YamlFiles(DataDirectory("devices")).size());
  for (const Device& device : catalog.devices()) {
    CAPTURE(device.name);
    CHECK(device.source.find("(20") != std::string::npos);
    CHECK(device.memory_capacity >= model::MB(200));
    CHECK(device.memory_bandwidth >= model::GBPerSecond(100));
    if (device.kind == DeviceKind::kGpu) {
      REQUIRE(device.peak.fp32.has_value());
      CHECK(device.cores >= 10);  // A2
      CHECK(device.warps_per_core >= 32);
      // A package of several dies is no device of a driver's, and one device's
      // name there is that of others, too.
      const bool none = device.name.ends_with("_package") ||
                        device.name == "h100_sxm_96gb_500w";
      CHECK(device.reported_name.empty() == none);
      CHECK(model::ToMegahertz(device.clock) >= 1000.0);
      // Peak of the vector units: lanes x 2 x clock, lanes a multiple of 64.
      const double lanes = device.VectorPeak() /
                           model::FlopsPerSecond<>(2.0 * device.clock.base()) /
                           static_cast<double>(device.cores);
      CHECK(lanes > 55.0);
      CHECK(lanes < 290.0);
    }
    for (const auto& peak :
         {device.peak.tf32, device.peak.fp16, device.peak.bf16}) {
      if (!peak) continue;
      // The ridge point: no device of this list is below 8 or above 700
      // FLOP/B but for the ones whose memory is SRAM.
      const double ridge = (*peak / device.memory_bandwidth).base();
      if (device.kind == DeviceKind::kDataflow) continue;
      CHECK(ridge > 8.0);
      CHECK(ridge < 700.0);
    }
    // A part is a whole share of its chip.
    if (device.part_of) {
      const Device& chip = catalog.Find(*device.part_of);
      CHECK(chip.kind == device.kind);
      CHECK_FALSE(chip.part_of);
      REQUIRE(chip.cores > device.cores);
      CHECK(chip.cores % device.cores == 0);
      const auto share =
          static_cast<double>(device.cores) / static_cast<double>(chip.cores);
      CHECK(device.memory_capacity == chip.memory_capacity * share);
      CHECK(device.memory_bandwidth == chip.memory_bandwidth * share);
    }
    // Matrix engines are not slower at lower precision.
    if (device.peak.fp32 && device.peak.fp16) {
      CHECK(*device.peak.fp16 >= *device.peak.fp32);
    }
    if (device.peak.tf32 && device.peak.bf16) {
      CHECK(*device.peak.bf16 >= *device.peak.tf32);
    }
  }
}

TEST_CASE("datasheet anchors") {
  const DeviceCatalog& catalog = DeviceCatalog::Shipped();
  const Device& h200 = catalog.Find("h200_sxm");
  CHECK(h200.reported_name == "NVIDIA H200");
  CHECK(FormatBytes(h200.memory_capacity) == "140.4 GiB");
  CHECK(FormatBandwidth(h200.memory_bandwidth) == "4.8 TB/s");
  CHECK(FormatComputeRate(*h200.MatrixPeak(model::Precision::kBf16)) ==
        "989 TFLOP/s");
  CHECK(h200.cores == 132);
  CHECK((*h200.peak.bf16 / h200.memory_bandwidth).base() == Near(206.04, 1e-4));

  // 900 GB/s, where a published table prints 1750.
  CHECK(FormatBandwidth(catalog.Find("v100_pcie_16gb").memory_bandwidth) ==
        "900 GB/s");
  CHECK_FALSE(catalog.Find("v100_pcie_16gb")
                  .MatrixPeak(model::Precision::kBf16)
                  .has_value());
  CHECK_FALSE(
      catalog.Find("t4").MatrixPeak(model::Precision::kTf32).has_value());

  const Device& trainium = catalog.Find("trainium1");
  CHECK(trainium.kind == DeviceKind::kNeuron);
  CHECK(trainium.static_shapes);
  CHECK(trainium.systolic_rows == 128);
  CHECK((*trainium.peak.bf16 / trainium.memory_bandwidth).base() ==
        Near(231.707, 1e-5));
  CHECK_FALSE(trainium.max_power.has_value());
  CHECK_FALSE(trainium.inference_only);
  CHECK(catalog.Find("inferentia2").inference_only);
  CHECK(catalog.Find("groq_lpu").inference_only);
  // The unit of the Neuron tables is half of it.
  const Device& core = catalog.Find("Trainium1 NeuronCore-v2");
  CHECK(core.name == "trainium1_core");
  CHECK(core.peak.bf16->base() * 2.0 == trainium.peak.bf16->base());
  CHECK(core.memory_bandwidth.base() * 2.0 == trainium.memory_bandwidth.base());
}

TEST_CASE("the vector peak falls back to what is known") {
  const DeviceCatalog& catalog = DeviceCatalog::Shipped();
  CHECK(FormatComputeRate(catalog.Find("mi250").VectorPeak()) ==
        "22.65 TFLOP/s");
  CHECK(FormatComputeRate(catalog.Find("t4").VectorPeak()) == "8.1 TFLOP/s");
  CHECK(FormatComputeRate(catalog.Find("tpu_v6e").VectorPeak()) ==
        "918 TFLOP/s");
  Device unknown;
  unknown.name = "unknown";
  CHECK_THROWS_WITH_AS(unknown.VectorPeak(),
                       "unknown: no compute peak of this device is published",
                       model::InputError);
}

TEST_CASE("a device is found by name, reported name or alias") {
  const DeviceCatalog& catalog = DeviceCatalog::Shipped();
  CHECK(catalog.Find("H100_SXM").name == "h100_sxm");
  CHECK(catalog.Find("NVIDIA H100 80GB HBM3").name == "h100_sxm");
  CHECK(catalog.Find("H100-SXM5-80GB").name == "h100_sxm");
  CHECK(catalog.TryFind("../devices/t4") == nullptr);
  CHECK(catalog.TryFind("") == nullptr);
  CHECK_THROWS_WITH_AS(
      catalog.Find("h100"),
      "unknown device \"h100\"; did you mean \"h100_nvl\", \"h100_pcie\", "
      "\"h100_sxm\", \"h100_sxm_96gb\" or \"h100_sxm_96gb_500w\"? see: "
      "trainfare list devices",
      model::InputError);
  CHECK_THROWS_WITH_AS(
      catalog.Find("quantum"),
      "unknown device \"quantum\"; see: trainfare list devices; "
      "docs/guide/devices.md says how to add one",
      model::InputError);
  CHECK_THROWS_WITH_AS(
      catalog.Find("my_gpu.yaml"),
      "expected a device's name, got the file my_gpu.yaml; hint: devices/ of a "
      "folder that TRAINFARE_DATA_DIR names (docs/guide/devices.md)",
      model::InputError);
  CHECK(catalog.Find("RTX 6000 Pro").name == "rtx_pro_6000_blackwell");
  CHECK(catalog.Find("RTX 6000 Blackwell").name == "rtx_pro_6000_blackwell");
}

TEST_CASE("device names of the measurement tables are known" *
          doctest::test_suite("shared/measurements") *
          doctest::skip(!SharedHasMeasurements())) {
  const fs::path folder = SharedPath("measurements");
  // No facts about these are at hand.
  std::set<std::string> missing = {
      "Ascend 910 Premium A",
      "Ascend 910 Pro A",
  };
  const DeviceCatalog& catalog = DeviceCatalog::Shipped();
  std::set<std::string> unknown;
  int tables = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".csv") continue;
    std::ifstream file(entry.path());
    std::string header;
    std::getline(file, header);
    // The columns in front of `device` hold no quotes in any of the tables
    // but the first ones of a row, so a small scanner is enough.
    int64_t column = -1;
    int64_t index = 0;
    size_t start = 0;
    while (start <= header.size()) {
      const size_t end = std::min(header.find(',', start), header.size());
      if (header.substr(start, end - start) == "device") column = index;
      ++index;
      start = end + 1;
    }
    REQUIRE(column >= 0);
    ++tables;
    for (std::string line; std::getline(file, line);) {
      std::string field;
      int64_t at = 0;
      bool quoted = false;
      for (const char c : line) {
        if (c == '"') {
          quoted = !quoted;
        } else if (c == ',' && !quoted) {
          if (at++ == column) break;
          field.clear();
        } else {
          field += c;
        }
      }
      if (at <= column || field.empty()) continue;
      if (catalog.TryFind(field) == nullptr) unknown.insert(field);
    }
  }
  CHECK(tables >= 14);
  CHECK(unknown == missing);
}

TEST_CASE("one bad device file per message") {
  CHECK(Message(kGood) == "no error");
  CHECK(Message(Replaced(kGood, "model: gpu", "model: gpuu")) ==
        "d.yaml:3:8: model: expected one of cpu, gpu, neuron, systolic, "
        "dataflow, got \"gpuu\"; did you mean \"gpu\"?");
  CHECK(Message(Replaced(kGood, "320 GB/s", "320 GB")) ==
        "d.yaml:6:40: memory.bandwidth: expected a bandwidth such as "
        "\"4.8 TB/s\", got \"320 GB\"; GB is an amount, not a rate");
  CHECK(Message(Replaced(kGood, "320 GB/s", "320 kB/s")) ==
        "d.yaml:6:40: memory.bandwidth: expected 1e+09 to 1e+17 B/s, got "
        "320000; is the prefix right?");
  CHECK(Message(Replaced(kGood, "8 TFLOP/s", "8e9 TFLOP/s")) ==
        "d.yaml:7:15: peak.fp32: expected 1e+09 to 1e+18 FLOP/s, got 8e+21; "
        "is the prefix right?");
  CHECK(Message(Replaced(kGood, "source: datasheet\n", "")) ==
        "d.yaml:1:1: missing key \"source\", a text");
  CHECK(Message(Replaced(kGood, "warps: 32, ", "")) ==
        "d.yaml:8:8: cores: missing key \"warps\", an integer from 1 to 1024");
  CHECK(Message(Replaced(kGood, "count: 40", "count: 0")) ==
        "d.yaml:8:17: cores.count: expected an integer from 1 to 10000000, "
        "got 0");
  CHECK(Message(kGood + "power: { max: 70 W, idle: 80 W }\n") ==
        "d.yaml:10:27: power.idle: expected less than power.max");
  CHECK(
      Message(kGood + "colour: green\n") ==
      "d.yaml:10:1: unknown key \"colour\"; known: aliases, architecture, "
      "compiler, compute_capability, cores, date, generation, inference_only, "
      "links, memory, model, notes, part_of, peak, power, "
      "priors, recalled, reported_name, source, static_shapes, "
      "usual_of, vendor");
  CHECK(Message(kGood + "priors: { step_overhead: 3 ms }\n") ==
        "d.yaml:10:26: priors.step_overhead: the model of gpu devices has no "
        "step_overhead; did you mean \"kernel_overhead\" or "
        "\"tensor_overhead\"?");
  CHECK(Message(kGood + "priors: { bandwidth_efficiency: 0.92 }\n") ==
        "no error");
  const std::string systolic =
      "vendor: V\n"
      "architecture: A\n"
      "model: systolic\n"
      "source: datasheet\n"
      "date: 2026-11-20\n"
      "memory: { capacity: 16 GiB, bandwidth: 320 GB/s }\n"
      "peak: { bf16_dense: 8 TFLOP/s }\n"
      "cores: { systolic_array: { rows: 128, columns: 128 } }\n";
  CHECK(Message(systolic + "priors: { step_overhead: 3 ms }\n") == "no error");
  CHECK(Message(systolic + "priors: { step_overhead: 3 h }\n") ==
        "d.yaml:9:26: priors.step_overhead: expected 1e-05 to 0.5 s, the "
        "bounds of the fit");
  CHECK(Message("") == "d.yaml: expected a map of keys, got an empty file");
}

TEST_CASE("a unit that is off by a thousand is refused") {
  // 8e12 / 320e12 and / 320e6, of 25.
  CHECK(Message(Replaced(kGood, "320 GB/s", "320 TB/s")) ==
        "d.yaml:6:40: memory.bandwidth: expected 1 to 7000 FLOP of the peak "
        "for each byte, got 0.025; are the units of both right?");
  CHECK(Message(Replaced(kGood, "8 TFLOP/s", "8 PFLOP/s")) ==
        "d.yaml:6:40: memory.bandwidth: expected 1 to 7000 FLOP of the peak "
        "for each byte, got 2.5e+04; are the units of both right?");
  CHECK(Message(Replaced(kGood, "8 TFLOP/s", "2 PFLOP/s")) == "no error");
  CHECK(Message(Replaced(kGood,
                         "fp32: 8 TFLOP/s",
                         "fp32: 800 TFLOP/s, fp16_dense: 65 TFLOP/s")) ==
        "d.yaml:7:15: peak.fp32: expected at most the 65 TFLOP/s of "
        "fp16_dense, got 800 TFLOP/s");
  // Memory on the chip is as fast as its units.
  CHECK(Message("vendor: V\narchitecture: A\nmodel: dataflow\n"
                "source: datasheet\ndate: 2026-11-20\n"
                "memory: { capacity: 40 GB, bandwidth: 20000 TB/s }\n"
                "peak: { fp16_dense: 7500 TFLOP/s }\n"
                "cores: { count: 850000 }\n") == "no error");
}

// Capability 6.1: 2 FMA of fp16 a clock beside 128 of fp32 (CUDA C++
// Programming Guide). Tesla P40: 11.76 TFLOP/s, 183.7 GFLOP/s.
TEST_CASE("fp16 that is slower than fp32 is where it is so") {
  const std::string p40 =
      Replaced(Replaced(kGood, "8 TFLOP/s", "11.76 TFLOP/s"),
               "model: gpu\n",
               "model: gpu\ncompute_capability: \"6.1\"\n");
  const auto with_half = [](const std::string& text, const std::string& rate) {
    return Replaced(text, "11.76 TFLOP/s", "11.76 TFLOP/s, " + rate);
  };
  CHECK(Message(with_half(p40, "fp16_dense: 183.7 GFLOP/s")) == "no error");
  CHECK(Message(with_half(p40, "fp16_dense: 11.76 TFLOP/s")) == "no error");
  // No other rate there, no other precision, and nowhere else.
  const std::string refused =
      "peak.fp32: expected at most the 183.7 GFLOP/s of ";
  CHECK(Message(with_half(p40, "fp16_dense: 1.2 TFLOP/s"))
            .find("peak.fp32: expected at most the 1.2 TFLOP/s") !=
        std::string::npos);
  CHECK(Message(with_half(p40, "bf16_dense: 183.7 GFLOP/s"))
            .find(refused + "bf16_dense") != std::string::npos);
  CHECK(Message(
            with_half(Replaced(p40, "6.1", "7.5"), "fp16_dense: 183.7 GFLOP/s"))
            .find(refused + "fp16_dense") != std::string::npos);
}

TEST_CASE("a cut or changed file loads or is refused, nothing else") {
  std::ifstream file(DataDirectory("devices") + "/h200_sxm.yaml");
  const std::string text((std::istreambuf_iterator<char>(file)),
                         std::istreambuf_iterator<char>());
  REQUIRE(text.size() > 500);
  const TemporaryFolder folder;
  // Any other exception fails the test case.
  const auto refused = [&](const std::string& changed) {
    const std::string path = folder.Write("d.yaml", changed);
    const std::string message =
        MessageOf<model::InputError>(folder, [&] { LoadDevice(path); });
    CHECK(message.find('\n') == std::string::npos);
    return message != "no error";
  };
  int refusals = 0;
  for (size_t size = 0; size < text.size(); ++size) {
    refusals += refused(text.substr(0, size)) ? 1 : 0;
  }
  // What can be missing at the end: the last notes.
  CHECK(refusals > 700);
  std::mt19937 random(7);
  std::uniform_int_distribution<size_t> place(0, text.size() - 1);
  std::uniform_int_distribution<int> byte(0, 255);
  for (int i = 0; i < 1000; ++i) {
    std::string changed = text;
    changed[place(random)] = static_cast<char>(byte(random));
    refused(changed);
  }
}

TEST_CASE("an alias that two devices claim is an error") {
  const TemporaryFolder folder;
  folder.Write("a.yaml", kGood + "aliases: [Both]\n");
  folder.Write("b.yaml", kGood + "aliases: [Both]\n");
  CHECK_THROWS_WITH_AS(
      DeviceCatalog::Load(folder.path()),
      (folder.path() + "/b.yaml: the name \"Both\" is already one of a")
          .c_str(),
      model::InputError);
}

TEST_CASE("the processor at hand is a device") {
  const Device& cpu = DeviceCatalog::Shipped().Find("cpu");
  CHECK(cpu.kind == DeviceKind::kCpu);
  CHECK(cpu.name == "cpu");
  CHECK_FALSE(cpu.reported_name.empty());
  CHECK(cpu.cores >= 1);
  CHECK(cpu.memory_capacity > model::MB(100));
  CHECK(model::ToMegahertz(cpu.clock) > 100.0);
  REQUIRE(cpu.peak.fp32.has_value());
  CHECK(*cpu.peak.bf16 >= *cpu.peak.fp32);
  CHECK(cpu.memory_bandwidth > model::GBPerSecond(1));
}

}  // namespace trainfare::hardware
