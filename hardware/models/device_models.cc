#include "hardware/models/device_models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "hardware/catalog/kind_facts.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "model/muon.h"
#include "model/stack_rules.h"

namespace trainfare::hardware {
namespace {

// What the kind's file says of the parameters that its model takes, in the
// order of the model.
std::vector<ParameterInfo> InOrder(DeviceKind kind) {
  const KindFacts& facts = FactsOfKind(kind);
  const auto names = KindOf(kind).parameters;
  const auto fail = [&](std::string_view expected, std::string_view name) {
    throw model::InputError(
        fmt::format("{}: parameters: expected {} {}: the model of {} devices "
                    "takes {}",
                    facts.parameters_at,
                    expected,
                    name,
                    ToText(kind),
                    fmt::join(names, ", ")));
  };
  std::vector<ParameterInfo> infos;
  for (const std::string_view name : names) {
    const auto* info = FindParameter(std::span(facts.parameters), name);
    if (info == nullptr) fail("a", name);
    infos.push_back(*info);
  }
  for (const ParameterInfo& info : facts.parameters) {
    if (std::find(names.begin(), names.end(), info.name) == names.end()) {
      fail("no", info.name);
    }
  }
  return infos;
}

}  // namespace

const Kind& KindOf(DeviceKind kind) {
  return WithKind(kind, [](auto row) -> const Kind& { return row.kRow; });
}

const Kind* FindKindOfTrainer(std::string_view trainer_device) {
  for (const auto& [name, kind] : kDeviceKinds) {
    const Kind& row = KindOf(kind);
    if (!trainer_device.empty() && row.trainer_device == trainer_device) {
      return &row;
    }
  }
  return nullptr;
}

std::span<const ParameterInfo> ParametersOf(DeviceKind kind) {
  // One list a kind, made when it is first asked for.
  return WithKind(kind, [&](auto /*row*/) -> std::span<const ParameterInfo> {
    static const std::vector<ParameterInfo> infos = InOrder(kind);
    return infos;
  });
}

std::vector<ParameterInfo> ParametersOf(const Device& device) {
  const auto of_kind = ParametersOf(device.kind);
  std::vector<ParameterInfo> infos(of_kind.begin(), of_kind.end());
  for (const auto& [name, value] : device.priors) {
    ParameterInfo* info = FindParameter(std::span(infos), name);
    ENSURE(info != nullptr, "a prior of a parameter that the kind has");
    info->prior = value;
    ENSURE(info->lower <= info->prior && info->prior <= info->upper,
           "a prior inside its bounds");
  }
  return infos;
}

std::optional<model::Precision> NearestPrecision(const Device& device,
                                                 model::Precision asked) {
  if (asked == model::Precision::kFp4 &&
      device.MatrixPeak(model::Precision::kFp8)) {
    return model::Precision::kFp8;
  }
  for (const auto candidate : {model::Precision::kBf16,
                               model::Precision::kFp16,
                               model::Precision::kTf32,
                               model::Precision::kFp32}) {
    if (device.MatrixPeak(candidate)) return candidate;
  }
  return std::nullopt;
}

void RequirePrecision(const Device& device, model::Precision precision) {
  if (device.MatrixPeak(precision)) return;
  std::string known;
  for (const auto candidate : {model::Precision::kFp32,
                               model::Precision::kTf32,
                               model::Precision::kFp16,
                               model::Precision::kBf16,
                               model::Precision::kFp8,
                               model::Precision::kFp4}) {
    if (!device.MatrixPeak(candidate)) continue;
    if (!known.empty()) known += ", ";
    known += model::ToText(candidate);
  }
  throw model::InputError(fmt::format("precision: {} has no {}; it runs {}",
                                      device.name,
                                      model::ToText(precision),
                                      known));
}

void RequirePrecisions(const Device& device, const model::Workload& workload) {
  RequirePrecision(device, workload.precision);
  if (!model::MuonNarrows(workload) ||
      device.MatrixPeak(model::Precision::kBf16)) {
    return;
  }
  throw model::InputError(
      fmt::format("optimizer: expected another than muon on {}, which has no "
                  "bf16 for its products, got muon",
                  device.name));
}

namespace {

// Throws InputError where it is not known what a limit of power does.
void RequirePowerLimit(const Device& device, const model::Workload& workload) {
  const bool lower =
      workload.power_limit.base() > 0.0 &&
      !(device.max_power && workload.power_limit >= *device.max_power);
  if (!lower) return;
  const std::string got = FormatPower(workload.power_limit);
  if (KindOf(device).power == nullptr || !device.generation ||
      !device.max_power || !device.idle_power) {
    throw model::InputError(fmt::format(
        "power_limit: expected 0 on {}, of which is not known how it slows "
        "down under a lower limit, got {}",
        device.name,
        got));
  }
  if (workload.power_limit <= *device.idle_power) {
    throw model::InputError(
        fmt::format("power_limit: expected more than {}, what {} draws at "
                    "rest, got {}",
                    FormatPower(*device.idle_power),
                    device.name,
                    got));
  }
}

}  // namespace

model::Fusion StackOn(const Device& device, model::Fusion asked) {
  return KindOf(device).compiles_graphs && model::RulesOf(asked).of_gpus
             ? model::Fusion::kXla
             : asked;
}

namespace {

// Blocks that mix tokens by something else than attention.
void RequireMixers(const Device& device, const model::Architecture& a) {
  if (KindOf(device).other_mixers) return;
  const auto require_none =
      [&](std::string_view key, std::string_view what, int64_t blocks) {
        if (blocks == 0) return;
        throw model::InputError(
            fmt::format("model.{}: expected 0 on {}, for which no kernels of "
                        "{} are known, got {}",
                        key,
                        device.name,
                        what,
                        blocks));
      };
  require_none("state_space_layers", "state spaces", a.state_space_layers);
  require_none("delta_rule_layers", "the delta rule", a.delta_rule_layers);
  require_none(
      "convolution_layers", "short convolutions", a.convolution_layers);
}

}  // namespace

void RequireSupported(const Device& device,
                      const model::Workload& workload,
                      const ShapePlan& shapes) {
  RequirePrecisions(device, workload);
  if (device.inference_only && workload.work != model::Work::kForward) {
    throw model::InputError(fmt::format(
        "device: {} runs inference only; expected work: forward, got {}",
        device.name,
        model::ToText(workload.work)));
  }
  const Kind& kind = KindOf(device);
  if (!kind.gradient_checkpointing && workload.gradient_checkpointing) {
    throw model::InputError(fmt::format(
        "gradient_checkpointing: not supported by the training stack of {}; "
        "use a smaller batch and accumulation",
        device.name));
  }
  if (workload.trainable.base_bits > 0 && !kind.few_bits) {
    throw model::InputError(fmt::format(
        "trainable.lora.base_bits: expected 0 on {}, where nothing widens "
        "weights of few bits, got {}",
        device.name,
        workload.trainable.base_bits));
  }
  RequireMixers(device, workload.architecture);
  if (workload.stack.stochastic_rounding && !kind.stochastic_rounding) {
    throw model::InputError(fmt::format(
        "stochastic_rounding: what it costs is known of NeuronCores alone, "
        "which round so on the way out; not of {}",
        device.name));
  }
  if (device.static_shapes && model::FindsRows(workload.stack.experts)) {
    throw model::InputError(fmt::format(
        "experts: expected grouped or split on {}, whose graphs have no rows "
        "that the host counts, got {}",
        device.name,
        model::ToText(workload.stack.experts)));
  }
  RequirePowerLimit(device, workload);
  if (kind.require_supported != nullptr) {
    kind.require_supported(device, workload);
  }
  if (device.static_shapes && shapes.distinct_lengths > 1 &&
      !shapes.compile_time_known) {
    throw model::InputError(fmt::format(
        "padding: {} compiles each of {} lengths; expected a compile time "
        "(run.compile_per_shape), a warm cache (run.warm_cache), or static or "
        "bucketed padding",
        device.name,
        shapes.distinct_lengths));
  }
}

}  // namespace trainfare::hardware
