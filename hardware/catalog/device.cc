#include "hardware/catalog/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "hardware/catalog/kind_facts.h"
#include "hardware/files/data_directory.h"
#include "hardware/files/yaml_reader.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::hardware {
namespace {

using model::InputError;

std::string Lowered(std::string_view text) {
  std::string lowered(text);
  for (char& letter : lowered) {
    letter =
        static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return lowered;
}

// A word that can be a file name of ours: nothing that leaves the folder.
bool IsStem(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// Limits that no device of today comes near, to catch a wrong prefix.
template <class Q>
Q Within(const Reader& map, std::string_view key, Q value, Q low, Q high) {
  if (value < low || value > high) {
    map.Fail(key,
             "out of the range that a device can have; is the prefix right?");
  }
  return value;
}

void ReadMemory(const Reader& root, Device& device) {
  using model::BytesPerSecond;
  const Reader memory = root.Map("memory");
  device.memory_capacity = Within(memory,
                                  "capacity",
                                  memory.Bytes("capacity"),
                                  model::MB(100),
                                  model::GB(10000));
  device.memory_bandwidth = Within(memory,
                                   "bandwidth",
                                   memory.Bandwidth("bandwidth"),
                                   model::GBPerSecond(1),
                                   BytesPerSecond<>(1e17));
  if (const auto on_chip = memory.OptionalBytes("on_chip")) {
    device.on_chip_memory =
        Within(memory, "on_chip", *on_chip, model::MB(0.1), model::GB(100));
  }
}

void ReadPeak(const Reader& root, Device& device) {
  const Reader peak = root.Map("peak");
  const auto rate = [&](std::string_view key) {
    std::optional<model::FlopsPerSecond<>> value =
        peak.OptionalComputeRate(key);
    if (value) {
      Within(peak,
             key,
             *value,
             model::TFlopPerSecond(0.001),
             model::TFlopPerSecond(1e6));
    }
    return value;
  };
  device.peak.fp32 = rate("fp32");
  device.peak.tf32 = rate("tf32_dense");
  device.peak.fp16 = rate("fp16_dense");
  device.peak.bf16 = rate("bf16_dense");
  device.peak.fp8 = rate("fp8_dense");
  if (device.peak.fp8 && !device.peak.bf16) {
    peak.Fail("fp8_dense", "expected bf16_dense beside it, got none");
  }
  device.peak.vector = rate("vector_fp32");
}

void ReadCores(const Reader& root, Device& device) {
  const bool gpu = device.kind == DeviceKind::kGpu;
  const Reader cores = root.Map("cores");
  if (gpu || cores.Has("count")) {
    device.cores = cores.Integer("count", 1, 10'000'000);
  }
  if (gpu || cores.Has("clock")) {
    device.clock = Within(cores,
                          "clock",
                          cores.Frequency("clock"),
                          model::Megahertz(100),
                          model::Megahertz(10000));
  }
  if (gpu) {
    device.warps_per_core = cores.Integer("warps", 1, 1024);
    device.registers_per_core = cores.Integer("registers", 1024, 1 << 24);
    device.shared_memory_per_core = Within(cores,
                                           "shared_memory",
                                           cores.Bytes("shared_memory"),
                                           model::KiB(16),
                                           model::MiB(4));
  }
  if (const auto array = cores.OptionalMap("systolic_array")) {
    device.systolic_rows = array->Integer("rows", 1, 4096);
    device.systolic_columns = array->Integer("columns", 1, 4096);
  }
}

void ReadPower(const Reader& root, Device& device) {
  const std::optional<Reader> power = root.OptionalMap("power");
  if (!power) return;
  device.max_power = power->OptionalPower("max");
  device.idle_power = power->OptionalPower("idle");
  if (device.max_power && device.idle_power &&
      *device.idle_power >= *device.max_power) {
    power->Fail("idle", "expected less than power.max");
  }
}

// What its own file says goes before what is taken of its kind.
// What the compiler's levels cost is of the device that they were tried on.
void ReadCompilerLevels(const Reader& root, Device& device) {
  const std::optional<Reader> own = root.OptionalMap("compiler");
  if (!own) return;
  if (!device.compiler) {
    own->Fail("level_times",
              fmt::format("the compiler of {} devices is not modelled",
                          ToText(device.kind)));
  }
  for (const std::string& text : own->Texts("level_times")) {
    const auto time = ParseQuantity<model::Seconds<>>(text);
    if (!time || time->base() <= 0) {
      own->Fail("level_times", "expected times such as \"132 s\"");
    }
    device.compiler->level_times.push_back(*time);
  }
}

void ReadGeneration(const Reader& root, Device& device) {
  const KindFacts& kind = FactsOfKind(device.kind);
  device.context = kind.context;
  device.workspace = kind.workspace;
  device.compiler = kind.compiler;
  ReadCompilerLevels(root, device);
  device.other_work_power_share = kind.other_work_power_share;
  device.compute_capability =
      root.OptionalText("compute_capability").value_or("");
  const auto generation = kind.generations.find(device.compute_capability);
  if (generation != kind.generations.end()) device.energy = generation->second;
  if (const auto own = root.OptionalMap("energy")) {
    device.energy = ReadArithmeticEnergy(*own);
  }
}

// A value of a parameter in its unit.
double ReadPrior(const Reader& priors, const ParameterInfo& info) {
  const double value = info.unit == "s"
                           ? model::ToSeconds(priors.Time(info.name))
                           : priors.Number(info.name, info.lower, info.upper);
  if (value < info.lower || value > info.upper) {
    priors.Fail(info.name,
                fmt::format("expected {:g} to {:g} {}, the bounds of the fit",
                            info.lower,
                            info.upper,
                            info.unit));
  }
  return value;
}

// Only what the kind's model has, within what it allows: the fit starts there.
void ReadPriors(const Reader& root, Device& device) {
  const std::optional<Reader> priors = root.OptionalMap("priors");
  if (!priors) return;
  const auto infos = ParametersOf(device.kind);
  for (const std::string& name : priors->Keys()) {
    const ParameterInfo* info = FindParameter(infos, name);
    if (info == nullptr) {
      std::vector<std::string_view> known;
      for (const ParameterInfo& one : infos) known.push_back(one.name);
      priors->Fail(name,
                   fmt::format("the model of {} devices has no {}{}",
                               ToText(device.kind),
                               name,
                               model::DidYouMean(name, known)));
    }
    device.priors.emplace(name, ReadPrior(*priors, *info));
  }
}

void ReadLinks(const Reader& root, Device& device) {
  const std::optional<Reader> links = root.OptionalMap("links");
  if (!links) return;
  device.peer_bandwidth = links->OptionalBandwidth("peer");
  if (links->Has("peer_domain")) {
    device.peer_domain = links->Integer("peer_domain", 2, 1'000'000);
  }
  device.host_bandwidth = links->OptionalBandwidth("host");
  device.through_host_bandwidth = links->OptionalBandwidth("through_host");
  device.weight_bandwidth = links->OptionalBandwidth("weights");
}

}  // namespace

std::string_view ToText(DeviceKind kind) { return KindOf(kind).name; }

DeviceKind ReadKind(const Reader& map, std::string_view key) {
  const auto row = [](DeviceKind kind) {
    return std::pair(KindOf(kind).name, kind);
  };
  return map.Choice<DeviceKind>(key,
                                {row(DeviceKind::kCpu),
                                 row(DeviceKind::kGpu),
                                 row(DeviceKind::kNeuron),
                                 row(DeviceKind::kSystolic),
                                 row(DeviceKind::kDataflow)});
}

ArithmeticEnergy ReadArithmeticEnergy(const Reader& map) {
  ArithmeticEnergy energy;
  energy.lanes = model::JoulesPerFlop<>(map.Energy("lanes").base());
  energy.tensor_tf32 = map.Number("tensor_tf32", 0.001, 10.0);
  energy.tensor_half = map.Number("tensor_half", 0.001, 10.0);
  energy.tensor_cores_at_limit =
      map.OptionalFlag("tensor_cores_at_limit").value_or(false);
  return energy;
}

std::optional<model::FlopsPerSecond<>> Device::MatrixPeak(
    model::Precision precision) const {
  switch (precision) {
    case model::Precision::kFp32:
      return peak.fp32;
    case model::Precision::kTf32:
      return peak.tf32;
    case model::Precision::kFp16:
      return peak.fp16;
    case model::Precision::kBf16:
      return peak.bf16;
    case model::Precision::kFp8:
      return peak.fp8;
  }
  ENSURE(false, "every precision has a peak");
}

model::FlopsPerSecond<> Device::VectorPeak() const {
  if (peak.vector) return *peak.vector;
  if (peak.fp32) return *peak.fp32;
  std::optional<model::FlopsPerSecond<>> lowest;
  for (const auto& known : {peak.tf32, peak.fp16, peak.bf16}) {
    if (known && (!lowest || *known < *lowest)) lowest = known;
  }
  if (!lowest) {
    throw InputError(
        fmt::format("{}: no compute peak of this device is published", name));
  }
  return *lowest;
}

Device LoadDevice(const std::string& path) {
  const Reader root = Reader::FromFile(path);
  Device device;
  device.name = Stem(path);
  device.reported_name = root.OptionalText("reported_name").value_or("");
  device.aliases = root.OptionalTexts("aliases");
  device.vendor = root.Text("vendor");
  device.architecture = root.Text("architecture");
  device.kind = ReadKind(root, "model");
  device.source =
      fmt::format("{} ({})", root.Text("source"), root.Date("date"));
  device.recalled = root.OptionalTexts("recalled");
  device.notes = root.OptionalTexts("notes");
  ReadGeneration(root, device);
  ReadMemory(root, device);
  ReadPeak(root, device);
  ReadCores(root, device);
  device.static_shapes = root.OptionalFlag("static_shapes").value_or(false);
  device.inference_only = root.OptionalFlag("inference_only").value_or(false);
  ReadPriors(root, device);
  ReadPower(root, device);
  device.part_of = root.OptionalText("part_of");
  ReadLinks(root, device);
  root.Finish();
  return device;
}

struct DeviceCatalog::State {
  std::string directory;
  std::mutex mutex;
  std::map<std::string, Device> single;  // asked for by name before `all`
  std::vector<Device> all;
  bool complete = false;

  void Complete();
  const Device* FindSingle(const std::string& stem);
};

void DeviceCatalog::State::Complete() {
  if (complete) return;
  std::vector<Device> devices;
  std::map<std::string, std::string> owners;  // of names and aliases
  const auto claim = [&](const std::string& name, const Device& device) {
    const auto [owner, first] = owners.emplace(name, device.name);
    if (first) return;
    throw InputError(
        fmt::format("{}/{}.yaml", directory, device.name),
        0,
        0,
        fmt::format(
            "the name \"{}\" is already one of {}", name, owner->second));
  };
  for (const std::string& path : YamlFiles(directory)) {
    devices.push_back(LoadDevice(path));
    const Device& device = devices.back();
    claim(device.name, device);
    if (!device.reported_name.empty()) claim(device.reported_name, device);
    for (const std::string& alias : device.aliases) claim(alias, device);
  }
  all = std::move(devices);
  complete = true;
}

const Device* DeviceCatalog::State::FindSingle(const std::string& stem) {
  const auto known = single.find(stem);
  if (known != single.end()) return &known->second;
  const std::string path = directory + "/" + stem + ".yaml";
  std::error_code ignored;
  if (!IsStem(stem) || !std::filesystem::is_regular_file(path, ignored)) {
    return nullptr;
  }
  return &single.emplace(stem, LoadDevice(path)).first->second;
}

DeviceCatalog::DeviceCatalog(const std::string& directory)
    : state_(std::make_shared<State>()) {
  state_->directory = directory;
}

const DeviceCatalog& DeviceCatalog::Shipped() {
  static const DeviceCatalog catalog(DataDirectory("devices"));
  return catalog;
}

DeviceCatalog DeviceCatalog::Load(const std::string& directory) {
  DeviceCatalog catalog(directory);
  catalog.state_->Complete();
  return catalog;
}

const std::vector<Device>& DeviceCatalog::devices() const {
  const std::lock_guard lock(state_->mutex);
  state_->Complete();
  return state_->all;
}

const Device* DeviceCatalog::TryFind(std::string_view name) const {
  if (name.empty()) return nullptr;
  const std::string lowered = Lowered(name);
  if (lowered == "cpu") {
    static const Device host = HostCpu();
    return &host;
  }
  const std::lock_guard lock(state_->mutex);
  if (!state_->complete) {
    const Device* single = state_->FindSingle(lowered);
    if (single != nullptr) return single;
    state_->Complete();
  }
  for (const Device& device : state_->all) {
    if (device.name == lowered || device.reported_name == name ||
        std::find(device.aliases.begin(), device.aliases.end(), name) !=
            device.aliases.end()) {
      return &device;
    }
  }
  return nullptr;
}

const Device& DeviceCatalog::Find(std::string_view name) const {
  const Device* found = TryFind(name);
  if (found != nullptr) return *found;
  std::vector<std::string_view> names = {"cpu"};
  for (const Device& device : devices()) names.emplace_back(device.name);
  throw InputError(fmt::format("unknown device \"{}\"{}{}",
                               name,
                               model::DidYouMean(name, names),
                               model::Nearest(name, names).empty()
                                   ? "; see: trainfare list devices"
                                   : " see: trainfare list devices"));
}

}  // namespace trainfare::hardware
