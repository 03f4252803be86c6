#include "calibrate/records/import/published_quantity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "model/error.h"

namespace trainfare::calibrate {
namespace {

using hardware::Dimension;

constexpr std::string_view kRatioExample =
    "a share such as \"18.48 %\" or a bare ratio";

constexpr Measure kBytes = {.unit = "B", .dimension = Dimension::kBytes};
constexpr Measure kBandwidth = {.unit = "B/s",
                                .dimension = Dimension::kBandwidth};
constexpr Measure kFlops = {.unit = "FLOP", .dimension = Dimension::kFlops};
constexpr Measure kComputeRate = {.unit = "FLOP/s",
                                  .dimension = Dimension::kComputeRate};
constexpr Measure kTime = {.unit = "s", .dimension = Dimension::kTime};
constexpr Measure kPower = {.unit = "W", .dimension = Dimension::kPower};
constexpr Measure kEnergy = {.unit = "J", .dimension = Dimension::kEnergy};
constexpr Measure kMoney = {.unit = "USD", .dimension = Dimension::kMoney};
constexpr Measure kPrice = {.unit = "USD/s", .dimension = Dimension::kPrice};
constexpr Measure kRatio = {
    .unit = "1", .percent = true, .example = kRatioExample};
constexpr Measure kShare = {
    .unit = "1", .percent = true, .share = true, .example = kRatioExample};
constexpr Measure kCount = {.unit = "1", .example = "a bare number"};
constexpr Measure kSamplesPerSecond = {
    .unit = "samples/s", .example = "a rate such as \"583.9 samples/s\""};
constexpr Measure kTokensPerSecond = {
    .unit = "tokens/s", .example = "a rate such as \"300000 tokens/s\""};
constexpr Measure kIntensity = {
    .unit = "FLOP/B", .example = "an intensity such as \"69 FLOP/B\""};
constexpr Measure kOutcome = {
    .unit = "1",
    .outcome = true,
    .example = "fits, \"does not fit\" or \"not supported\""};

// Measures by their words in a document's file.
constexpr auto kMeasures =
    std::to_array<std::pair<std::string_view, const Measure*>>({
        {"bytes", &kBytes},
        {"bandwidth", &kBandwidth},
        {"compute rate", &kComputeRate},
        {"time", &kTime},
        {"power", &kPower},
        {"energy", &kEnergy},
        {"money", &kMoney},
        {"price", &kPrice},
        {"ratio", &kRatio},
        {"share", &kShare},
        {"count", &kCount},
    });

struct AnsweredQuantity {
  std::string_view name;
  const Measure& measure;
};

constexpr auto kAnsweredQuantities = std::to_array<AnsweredQuantity>({
    {"achieved_flops", kComputeRate},
    {"active_ratio", kShare},
    {"active_time", kTime},
    {"allreduce_time", kTime},
    {"arithmetic_intensity", kIntensity},
    {"backward_time", kTime},
    {"energy", kEnergy},
    {"epoch_time", kTime},
    {"failing_batch", kCount},
    {"fits", kOutcome},
    {"flops_per_step", kFlops},
    {"forward_time", kTime},
    {"gemm_share", kShare},
    {"hbm_traffic", kBytes},
    {"largest_batch", kCount},
    {"latency", kTime},
    {"launches", kCount},
    {"memory_used", kBytes},
    {"mfu", kRatio},
    {"on_chip_latency", kTime},
    {"on_chip_throughput", kSamplesPerSecond},
    {"optimizer_time", kTime},
    {"peak_memory", kBytes},
    {"run_time", kTime},
    {"speedup", kRatio},
    {"spill_traffic", kBytes},
    {"step_time", kTime},
    {"throughput", kSamplesPerSecond},
    {"token_rate", kTokensPerSecond},
    {"utilisation.bandwidth", kShare},
    {"utilisation.dma", kShare},
    {"utilisation.scalar", kShare},
    {"utilisation.tensor", kShare},
    {"utilisation.vector", kShare},
});

const Measure* FindAnswered(std::string_view name) {
  const auto* const found = std::find_if(
      kAnsweredQuantities.begin(),
      kAnsweredQuantities.end(),
      [&](const AnsweredQuantity& answered) { return answered.name == name; });
  return found == kAnsweredQuantities.end() ? nullptr : &found->measure;
}

}  // namespace

void ReadOwnQuantities(const hardware::Reader& map, OwnQuantities& own) {
  for (const std::string& name : map.Keys()) {
    if (FindAnswered(name) != nullptr) {
      map.Fail(name, "expected a quantity that no job answers, got one");
    }
    const hardware::Reader of_name = map.Map(name);
    const OwnQuantity quantity = {
        of_name.Choice<const Measure*>("measure", std::span(kMeasures)),
        of_name.OptionalText("why_not").value_or("")};
    if (!own.try_emplace(name, quantity).second) {
      map.Fail(name, "expected a new quantity, got one of another file");
    }
  }
}

const Measure& MeasureOfQuantity(std::string_view quantity,
                                 const OwnQuantities& own) {
  if (const Measure* answered = FindAnswered(quantity)) return *answered;
  const auto found = own.find(std::string(quantity));
  if (found != own.end()) return *found->second.measure;
  std::vector<std::string_view> known;
  for (const AnsweredQuantity& answered : kAnsweredQuantities) {
    known.push_back(answered.name);
  }
  for (const auto& of_document : own) known.push_back(of_document.first);
  throw model::InputError(
      fmt::format("unknown quantity \"{}\"; known: {}; its document's "
                  "`quantities` may have more",
                  quantity,
                  fmt::join(known, ", ")));
}

std::string_view ExampleOf(const Measure& measure) {
  return measure.dimension ? hardware::Description(*measure.dimension)
                           : measure.example;
}

std::optional<double> UnitScale(const Measure& measure, std::string_view unit) {
  if (measure.dimension) {
    return hardware::ParseBase(*measure.dimension, fmt::format("1 {}", unit));
  }
  if (measure.percent && unit == "%") return 0.01;
  const std::string_view printed = measure.unit == "1" ? "" : measure.unit;
  if (unit == printed && !measure.outcome) return 1.0;
  return std::nullopt;
}

}  // namespace trainfare::calibrate
