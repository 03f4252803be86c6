#include "calibrate/session/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "calibrate/session/trainer_process.h"
#include "hardware/files/json_object.h"
#include "hardware/files/json_text.h"
#include "hardware/files/text_file.h"
#include "hardware/models/kind.h"
#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::calibrate {
namespace {

using hardware::JsonObject;
using internal::SignalGuard;
using internal::TrainerProcess;
using model::InputError;

// The driver may have to wake the devices up.
constexpr double kPatienceSeconds = 60.0;

// Those that are asked for, each from 2 to `most`, the number of `of`.
std::vector<int64_t> SeveralRanks(const std::vector<int64_t>& asked,
                                  int64_t most,
                                  std::string_view of) {
  std::vector<int64_t> several;
  for (const int64_t ranks : asked) {
    if (ranks == 1) continue;
    if (ranks < 2 || ranks > most) {
      throw InputError(fmt::format(
          "--ranks: expected from 2 to {}, {}, got {}", most, of, ranks));
    }
    several.push_back(ranks);
  }
  return several;
}

const hardware::Device& GpuOf(const std::string& reported_name) {
  for (const hardware::Device& device :
       hardware::DeviceCatalog::Shipped().devices()) {
    if (IsDevice(device, reported_name)) return device;
  }
  throw InputError(
      fmt::format("the GPU here, \"{}\", is in no device file: see "
                  "docs/guide/devices.md, or calibrate --device cpu",
                  reported_name));
}

}  // namespace

MachineDevices ParseDevices(const std::string& lines) {
  MachineDevices machine;
  const std::string what = "devices of the trainer";
  int number = 0;
  hardware::ForEachLine(lines, [&](std::string_view line) {
    const nlohmann::json value = hardware::ParseJson(line, what, ++number);
    const JsonObject device(value, what, number);
    const hardware::Kind* kind =
        hardware::FindKindOfTrainer(device.Text("kind"));
    if (kind == nullptr) return;
    if (kind->is_host) {
      machine.processor = device.Text("name");
    } else {
      machine.gpus.push_back(device.Text("name"));
    }
  });
  return machine;
}

MachineDevices ProbeMachine(const std::string& trainer) {
  // A signal ends the question, too.
  const SignalGuard signals;
  TrainerProcess process({trainer, {"devices"}, 1});
  std::string lines;
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::duration_cast<std::chrono::nanoseconds>(
                         std::chrono::duration<double>(kPatienceSeconds));
  while (true) {
    const auto line =
        process.ReceiveUntilEnd(std::chrono::duration<double>(0.25));
    if (line) {
      lines += *line + "\n";
      continue;
    }
    if (process.ended()) return ParseDevices(lines);
    if (SignalGuard::Received()) {
      throw Interrupted("interrupted before the first run");
    }
    if (std::chrono::steady_clock::now() > until) {
      throw InputError("the trainer does not say what devices are here");
    }
  }
}

CalibrationTarget TargetOf(const MachineDevices& machine,
                           const CalibrateOptions& options) {
  const hardware::DeviceCatalog& catalog = hardware::DeviceCatalog::Shipped();
  std::optional<hardware::Device> asked;
  if (!options.device.empty()) asked = catalog.Find(options.device);
  CalibrationTarget target;
  const bool on_processor =
      asked ? hardware::KindOf(*asked).is_host : machine.gpus.empty();
  if (on_processor) {
    target.device = asked ? *asked : catalog.Find("cpu");
    target.ranks = SeveralRanks(
        options.ranks, target.device.cores, "the cores of this processor");
    return target;
  }
  const auto is_asked = [&](const std::string& name) {
    return !asked || IsDevice(*asked, name);
  };
  const auto found =
      std::find_if(machine.gpus.begin(), machine.gpus.end(), is_asked);
  if (found == machine.gpus.end()) {
    throw InputError(fmt::format(
        "device: {} is not here, the trainer finds {}; measure there, then: "
        "calibrate --from FILE --device {}",
        asked->name,
        machine.gpus.empty() ? std::string("the processor alone")
                             : model::JoinNames(model::NameViews(machine.gpus)),
        asked->name));
  }
  // Ranks take the GPUs in their order.
  for (const std::string& name : machine.gpus) {
    if (name == machine.gpus.front()) continue;
    throw InputError(fmt::format(
        "the GPUs here are of several kinds, {} and {}; choose those of one "
        "with CUDA_VISIBLE_DEVICES",
        machine.gpus.front(),
        name));
  }
  target.device = asked ? *asked : GpuOf(*found);
  const auto count = static_cast<int64_t>(machine.gpus.size());
  target.ranks = SeveralRanks(options.ranks, count, "the GPUs here");
  if (options.ranks.empty() && count > 1) target.ranks.push_back(count);
  return target;
}

std::vector<model::Precision> DefaultPrecisions(
    const hardware::Device& device) {
  using model::Precision;
  std::vector<Precision> precisions = {Precision::kFp32};
  if (hardware::KindOf(device).runs == nullptr) return precisions;
  for (const Precision half : {Precision::kBf16, Precision::kFp16}) {
    if (!device.MatrixPeak(half)) continue;
    precisions.push_back(half);
    break;
  }
  return precisions;
}

}  // namespace trainfare::calibrate
