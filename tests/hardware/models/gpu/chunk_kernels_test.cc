// Published times of kernels over chunks beside what they are predicted to take
// (docs/models/state_spaces.md): chunk_kernels.csv, by the device, the mixer
// (Mamba-2's scan, or the gated delta rule), and which of a block's kernels.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hardware/files/csv_file.h"
#include "hardware/models/device_models.h"
#include "model/presets.h"
#include "tests/hardware/models/gpu/volta.h"
#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::hardware::models {
namespace {

struct Timing {
  std::string device;
  std::string mixer;
  std::string kernels;
  int64_t batch = 0;
  int64_t length = 0;
  int64_t heads = 0;
  int64_t groups = 0;  // of heads that share B and C, or keys
  int64_t head = 0;
  int64_t state = 0;
  int64_t chunk = 0;
  double seconds = 0;

  bool scan() const { return mixer == "scan"; }
};

std::vector<Timing> Timings() {
  const CsvFile file = CsvFile::Read(
      TRAINFARE_ROOT "/tests/hardware/models/gpu/chunk_kernels.csv",
      CsvFile::Rows::kAsHeader);
  std::vector<Timing> timings;
  for (const CsvRow& row : file.rows()) {
    const auto number = [&](std::string_view column) {
      return static_cast<int64_t>(std::stoll(file.Field(row, column)));
    };
    timings.push_back(
        {.device = file.Field(row, "device"),
         .mixer = file.Field(row, "mixer"),
         .kernels = file.Field(row, "kernels"),
         .batch = number("batch"),
         .length = number("length"),
         .heads = number("heads"),
         .groups = number("groups"),
         .head = number("head"),
         .state = number("state"),
         .chunk = number("chunk"),
         .seconds = 1e-6 * std::stod(file.Field(row, "time_us"))});
  }
  return timings;
}

// A step of a model whose blocks have this mixer.
model::Workload StepOf(const Timing& timing) {
  model::Workload w;
  w.batch = timing.batch;
  w.sequence_length = timing.length;
  w.precision = model::Precision::kBf16;
  w.stack.narrow_weights = true;
  w.stack.attention = model::Attention::kFlash;
  w.stack.fusion = model::Fusion::kLiger;
  model::Architecture& a = w.architecture;
  if (timing.scan()) {
    a = model::FindArchitecture("nemotron-h-8b");
    a.state_heads = timing.heads;
    a.state_groups = timing.groups;
    a.state_head_size = timing.head;
    a.state_size = timing.state;
    a.state_chunk = timing.chunk;
  } else {
    a = model::FindArchitecture("qwen3.5-9b");
    a.delta_value_heads = timing.heads;
    a.delta_key_heads = timing.groups;
    a.delta_value_size = timing.head;
    a.delta_key_size = timing.state;
    a.delta_chunk = timing.chunk;
  }
  return w;
}

// What of a block a timing is of: its convolution, norm and products are not.
bool Holds(const Timing& timing,
           model::Phase phase,
           const model::Kernel& kernel) {
  const std::string name(kernel.name.text());
  const bool forward = phase == model::Phase::kForward;
  if (timing.kernels == "forward" && !forward) return false;
  if (timing.kernels == "backward" && forward) return false;
  if (timing.kernels.starts_with("chunk ")) {
    const bool gradient = timing.kernels.ends_with("gradient");
    return name == timing.kernels && forward != gradient;
  }
  return name.starts_with("chunk ") || name.starts_with("state passing") ||
         name == "sum head gradients";
}

std::vector<model::Kernel> KernelsOf(const Timing& timing,
                                     const model::Workload& workload) {
  const model::KernelList list = model::ExpandKernels(workload);
  std::vector<model::Kernel> kernels;
  for (const model::Segment& segment : list.segments) {
    for (const model::Kernel& kernel : list.Of(segment)) {
      if (Holds(timing, segment.phase, kernel)) kernels.push_back(kernel);
    }
  }
  return kernels;
}

// The kernels of one timing on its device.
class Timed {
 public:
  explicit Timed(const Timing& timing)
      : timing_(timing),
        device_(LoadDevice(TRAINFARE_ROOT "/hardware/devices/" + timing.device +
                           ".yaml")),
        workload_(StepOf(timing)),
        kernels_(KernelsOf(timing, workload_)) {
    for (const ParameterInfo& info : ParametersOf(device_)) {
      values_.push_back(info.prior);
    }
  }

  const std::vector<model::Kernel>& kernels() const { return kernels_; }

  double SecondsAt(double ratio) {
    values_[kGpuChunkGemmRatio] = ratio;
    const GpuKernelRates rates(device_, workload_);
    double seconds = 0;
    for (const model::Kernel& kernel : kernels_) {
      seconds += static_cast<double>(kernel.launches) *
                 ToSeconds(GpuKernelTime<double>(
                               device_, rates.Of(kernel), kernel, values_)
                               .total());
    }
    return seconds;
  }

  // The logarithm of the ratio at which they take as long as they did.
  double WantedLog() {
    double low = std::log(0.01);
    double high = std::log(10);
    for (int i = 0; i < 40; ++i) {
      const double middle = 0.5 * (low + high);
      const bool slow = SecondsAt(std::exp(middle)) > timing_.seconds;
      (slow ? low : high) = middle;
    }
    return low;
  }

 private:
  const Timing& timing_;
  Device device_;
  model::Workload workload_;
  std::vector<model::Kernel> kernels_;
  std::vector<double> values_;
};

double Prior() { return UsualOf(kGpuChunkGemmRatio); }

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

bool Backward(const Timing& timing) {
  return timing.kernels.ends_with("backward") ||
         timing.kernels.ends_with("gradient");
}

}  // namespace

// A geometric mean over passes of a device's kernels, then over these: what
// one device and one pass have many timings of counts no more for it.
TEST_CASE("the rate of products over chunks is that of published kernels") {
  std::map<std::pair<std::string, std::string>,
           std::map<std::string, std::vector<double>>>
      wanted;
  for (const Timing& timing : Timings()) {
    const std::string pass = timing.kernels == "both" ? "both"
                             : Backward(timing)       ? "backward"
                                                      : "forward";
    wanted[{timing.device, timing.mixer}][pass].push_back(
        Timed(timing).WantedLog());
  }
  std::map<std::pair<std::string, std::string>, double> of;
  std::vector<double> all;
  for (const auto& [key, passes] : wanted) {
    std::vector<double> means;
    for (const auto& [pass, logs] : passes) means.push_back(Mean(logs));
    all.push_back(Mean(means));
    of[key] = std::exp(all.back());
  }
  const auto about = [](double value) { return Near(value, 0.01); };
  REQUIRE(of.size() == 5);
  CHECK(of[{"h100_sxm", "scan"}] == about(0.85));
  CHECK(of[{"gb200", "scan"}] == about(0.53));
  CHECK(of[{"h200_sxm", "rule"}] == about(1.00));
  CHECK(of[{"gb200", "rule"}] == about(0.70));
  CHECK(of[{"b200_sxm", "rule"}] == about(0.73));
  CHECK(std::exp(Mean(all)) == about(Prior()));
}

TEST_CASE("published times of kernels over chunks") {
  std::vector<double> errors;
  for (const Timing& timing : Timings()) {
    const double error = Timed(timing).SecondsAt(Prior()) / timing.seconds - 1;
    CAPTURE(timing.device);
    CAPTURE(timing.mixer);
    CAPTURE(timing.kernels);
    CAPTURE(timing.seconds);
    CHECK(std::abs(error) < 0.42);
    errors.push_back(std::abs(error));
  }
  std::sort(errors.begin(), errors.end());
  CHECK(errors.at(errors.size() / 2) < 0.19);
}

// Chunk scans of Nemotron 3 Nano on an H100, eight sequences of 4096 tokens:
// 2 x 32,768 x 4096 x (128 + 128) = 6.87e10 FLOPs, at 989 x 0.95 x 0.45 x 0.6 x
// 0.74 = 187.7 TFLOP/s. Tiles of 128 x 64 have 0.883 of it, and fetch 3 / 128 B
// a FLOP of the cache's 9.05 TB/s: 1 / sqrt(1 + 0.486^2) = 0.899. So 461 us, 321
// of exponentials and such, and of 336 of memory what 16 warps of 26.3 that hide
// it leave, 132: 919 us in all with 5.5 us of the kernel's own.
TEST_CASE("a chunk scan by hand") {
  const auto timings = Timings();
  const auto scan =
      std::find_if(timings.begin(), timings.end(), [](const Timing& timing) {
        return timing.kernels == "chunk scan";
      });
  REQUIRE(scan != timings.end());
  Timed timed(*scan);
  REQUIRE(timed.kernels().size() == 1);
  CHECK(timed.kernels()[0].matrix_flops == 2LL * 32768 * 4096 * (128 + 128));
  const double load = 187.7 * 3.0 / 128 / 9.045;
  const double rate = 187.7e12 * 0.8826 / std::sqrt(1.0 + load * load);
  const double products =
      static_cast<double>(timed.kernels()[0].matrix_flops) / rate;
  const double exposed = 336.5e-6 * (1.0 - 16.0 / 26.3);
  CHECK(timed.SecondsAt(0.74) ==
        Near(products + 320.5e-6 + exposed + 5.5e-6, 1e-3));
  CHECK(timed.SecondsAt(0.74) == Near(919e-6, 1e-3));
  // Without what waits for instructions, as before: too fast by a sixth.
  CHECK(timed.SecondsAt(1.0 / 0.6) == Near(731e-6, 1e-3));
}

}  // namespace trainfare::hardware::models
