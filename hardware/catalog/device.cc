#include "hardware/catalog/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "hardware/catalog/device_fields.h"
#include "hardware/catalog/device_spelling.h"
#include "hardware/catalog/kind_facts.h"
#include "hardware/files/data_directory.h"
#include "hardware/files/unit_text.h"
#include "hardware/files/yaml_fields.h"
#include "hardware/files/yaml_reader.h"
#include "model/architecture.h"
#include "model/error.h"
#include "model/letters.h"
#include "model/nearest.h"
#include "model/presets.h"

namespace trainfare::hardware {
namespace {

using model::InputError;

// A word that can be a file name of ours: nothing that leaves the folder.
bool IsStem(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

GraphMemory ReadGraphMemory(const Reader& map) {
  GraphMemory memory;
  memory.per_token = map.Bytes("per_token");
  const model::Architecture of =
      map.Parsed("of_model", model::FindArchitecture);
  memory.layer_widths =
      static_cast<double>((of.layers + of.decoder_layers) * of.hidden);
  memory.swap_limit = map.Number("swap_limit", 1.0, 100.0);
  return memory;
}

// What the compiler's levels cost, and what it takes of the host, is of the
// device that they were tried on.
void ReadOwnCompiler(const Reader& root, Device& device) {
  const std::optional<Reader> own = root.OptionalMap("compiler");
  if (!own) return;
  if (!device.compiler || device.compiler->levels == 0) {
    own->Fail("level_times",
              fmt::format("the compiler of {} devices has no levels",
                          ToText(device.kind)));
  }
  for (const std::string& text : own->Texts("level_times")) {
    const auto time = ParseQuantity<model::Seconds<>>(text);
    if (!time || time->base() <= 0) {
      own->Fail("level_times", "expected times such as \"132 s\"");
    }
    device.compiler->level_times.push_back(*time);
  }
  if (const auto memory = own->OptionalMap("graph_memory")) {
    device.compiler->graph_memory = ReadGraphMemory(*memory);
  }
}

// What is taken of its kind and generation, where its own file says nothing.
void TakeFactsOfKind(Device& device) {
  const KindFacts& kind = FactsOfKind(device.kind);
  device.context = kind.context;
  device.workspace = kind.workspace;
  device.compiler = kind.compiler;
  device.other_work_power_share = kind.other_work_power_share;
  device.rest_power_share = kind.rest_power_share;
  const auto known = kind.generations.find(device.compute_capability);
  if (!device.generation && known != kind.generations.end()) {
    device.generation = known->second;
  }
  if (device.generation && device.generation->workspace) {
    device.workspace = *device.generation->workspace;
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

// FLOPs of its fastest products for each byte of its memory, by which a wrong
// prefix shows: shipped devices have 8 to 700 (tests/hardware/catalog), and a
// factor of a thousand leaves these bounds at either end. Of dataflow chips the
// memory is SRAM, as fast as their units.
constexpr double kLeastRidge = 1.0;
constexpr double kMostRidge = 7'000.0;
// Datasheets round both rates, and may take them at other clocks.
constexpr double kSlowHalfSlack = 0.1;

void CheckRidge(const Reader& root, const Device& device) {
  model::FlopsPerSecond<> fastest;
  for (const auto& peak : {device.peak.fp32,
                           device.peak.tf32,
                           device.peak.fp16,
                           device.peak.bf16}) {
    if (peak) fastest = std::max(fastest, *peak);
  }
  const double ridge = (fastest / device.memory_bandwidth).base();
  if (device.kind == DeviceKind::kDataflow || fastest.base() == 0.0 ||
      (ridge >= kLeastRidge && ridge <= kMostRidge)) {
    return;
  }
  root.Map("memory").Fail(
      "bandwidth",
      fmt::format("expected {:g} to {:g} FLOP of the peak for each byte, got "
                  "{:.3g}; are the units of both right?",
                  kLeastRidge,
                  kMostRidge,
                  ridge));
}

// As fast as a generation whose fp16 is slower than its fp32 has it.
bool IsSlowHalf(const Device& device) {
  if (!device.generation || !device.generation->slow_half) return false;
  const double rate =
      *device.peak.fp16 / (*device.peak.fp32 * *device.generation->slow_half);
  return std::abs(rate - 1.0) <= kSlowHalfSlack;
}

// Matrix engines are not slower than what they stand beside.
void CheckPeaks(const Reader& root, const Device& device) {
  const auto check = [&](std::string_view name, const auto& narrow) {
    const auto& wide = device.peak.fp32;
    if (!wide || !narrow || *narrow >= *wide) return;
    root.Map("peak").Fail("fp32",
                          fmt::format("expected at most the {} of {}, got {}",
                                      FormatComputeRate(*narrow),
                                      name,
                                      FormatComputeRate(*wide)));
  };
  check("tf32_dense", device.peak.tf32);
  if (device.peak.fp32 && device.peak.fp16 && !IsSlowHalf(device)) {
    check("fp16_dense", device.peak.fp16);
  }
  check("bf16_dense", device.peak.bf16);
}

// Only what the kind's model has, within what it allows: the fit starts there.
void ReadPriors(const Reader& root, Device& device) {
  const std::optional<Reader> priors = root.OptionalMap("priors");
  if (!priors) return;
  const std::span infos(FactsOfKind(device.kind).parameters);
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

}  // namespace

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
    case model::Precision::kFp4:
      return peak.fp4;
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
  YamlFieldReader fields(root);
  VisitFields(fields, device);
  CheckRidge(root, device);
  device.source = fmt::format("{} ({})", device.source, root.Date("date"));
  TakeFactsOfKind(device);
  CheckPeaks(root, device);
  ReadOwnCompiler(root, device);
  ReadPriors(root, device);
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
  // Of names and aliases, whose letter case does not count.
  std::map<std::string, std::string> owners;
  const auto claim = [&](const std::string& name, const Device& device) {
    const auto [owner, first] =
        owners.emplace(model::Lowered(name), device.name);
    if (first || owner->second == device.name) return;
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
    for (const std::string& family : device.usual_of) claim(family, device);
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

namespace {

std::vector<DeviceNames> NamesOf(const std::vector<Device>& devices) {
  std::vector<DeviceNames> names;
  names.reserve(devices.size());
  for (const Device& device : devices) {
    DeviceNames one{
        device.name, {device.reported_name}, device.memory_capacity};
    one.others.insert(
        one.others.end(), device.aliases.begin(), device.aliases.end());
    names.push_back(std::move(one));
  }
  return names;
}

}  // namespace

const Device* DeviceCatalog::TryFind(std::string_view name) const {
  if (name.empty()) return nullptr;
  const std::string lowered = model::Lowered(name);
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
  const auto is_asked = [&](std::string_view one) {
    return model::Lowered(one) == lowered;
  };
  for (const Device& device : state_->all) {
    if (device.name == lowered || is_asked(device.reported_name) ||
        std::any_of(device.aliases.begin(), device.aliases.end(), is_asked)) {
      return &device;
    }
  }
  const auto spelled = SpelledAlike(NamesOf(state_->all), name);
  return spelled ? &state_->all[*spelled] : nullptr;
}

const Device* DeviceCatalog::TryFindUsual(std::string_view name) const {
  if (const Device* known = TryFind(name)) return known;
  std::vector<DeviceNames> usual;
  for (const Device& device : devices()) {
    usual.push_back({device.name,
                     {device.usual_of.begin(), device.usual_of.end()},
                     device.memory_capacity});
  }
  auto found = SpelledAlike(usual, name);
  if (!found) found = OnlyForm(NamesOf(devices()), name);
  return found ? &devices()[*found] : nullptr;
}

const Device& DeviceCatalog::FindUsual(std::string_view name) const {
  const Device* found = TryFindUsual(name);
  return found != nullptr ? *found : Find(name);
}

std::optional<std::string> DeviceCatalog::TakenAs(
    const std::string& name) const {
  const Device* found = TryFindUsual(name);
  const std::string lowered = model::Lowered(name);
  if (found == nullptr || found->name == lowered ||
      model::Lowered(found->reported_name) == lowered) {
    return std::nullopt;
  }
  const std::vector<std::string_view> others =
      OtherForms(NamesOf(devices()), found->name, name);
  if (others.empty()) {
    if (TryFind(name) != nullptr) return std::nullopt;
    return fmt::format(
        "{} is taken as {}, the only one known", name, found->name);
  }
  return fmt::format("{} is taken as {}; others: {}",
                     name,
                     found->name,
                     fmt::join(others, ", "));
}

const Device& DeviceCatalog::Find(std::string_view name) const {
  const Device* found = TryFind(name);
  if (found != nullptr) return *found;
  if (name.ends_with(".yaml")) {
    throw InputError(fmt::format(
        "expected a device's name, got the file {}; hint: devices/ of a folder "
        "that TRAINFARE_DATA_DIR names (docs/guide/devices.md)",
        name));
  }
  std::vector<std::string_view> names = PerhapsMeant(NamesOf(devices()), name);
  std::string hint;
  if (names.empty()) {
    names.emplace_back("cpu");
    for (const Device& device : devices()) names.emplace_back(device.name);
    hint = model::DidYouMean(name, names);
  } else {
    hint = fmt::format("; did you mean {}?",
                       model::QuotedAlternatives({names.begin(), names.end()}));
  }
  throw InputError(
      hint.empty()
          ? fmt::format("unknown device \"{}\"; see: trainfare list devices; "
                        "docs/guide/devices.md says how to add one",
                        name)
          : fmt::format("unknown device \"{}\"{} see: trainfare list devices",
                        name,
                        hint));
}

}  // namespace trainfare::hardware
