#include "calibrate/records/import/published_quantity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
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

constexpr auto kPrintedQuantities = std::to_array<PrintedQuantity>({
    {"accuracy", kRatio},
    {"achieved_flops", kComputeRate},
    {"active_ratio", kShare},
    {"active_time", kTime},
    {"allreduce_bandwidth", kBandwidth},
    {"allreduce_time", kTime},
    {"arithmetic_intensity", kIntensity},
    {"backward_time", kTime},
    {"billing_unit_price", kMoney},
    {"billing_units_per_hour", kCount},
    {"bytes_per_gradient", kBytes},
    {"bytes_per_parameter", kBytes},
    {"cost", kMoney},
    {"energy", kEnergy},
    {"epoch_cost", kMoney},
    {"epoch_time", kTime},
    {"estimate_error", kRatio},
    {"failing_batch", kCount},
    {"first_update_energy", kEnergy},
    {"first_update_launches", kCount},
    {"first_update_time", kTime},
    {"fits", kOutcome},
    {"flops_per_step", kFlops},
    {"forward_time", kTime},
    {"gemm_share", kShare},
    {"hbm_traffic", kBytes},
    {"host_memory", kBytes},
    {"kernel_time", kTime},
    {"largest_batch", kCount},
    {"latency", kTime},
    {"launches", kCount},
    {"layer_backward_time", kTime},
    {"layer_forward_time", kTime},
    {"layer_time", kTime},
    {"loss", kRatio},
    {"matrix_columns", kCount},
    {"matrix_rows", kCount},
    {"mean_power", kPower},
    {"memory_capacity", kBytes},
    {"memory_used", kBytes},
    {"mfu", kRatio},
    {"normalised.cost", kRatio},
    {"normalised.energy", kRatio},
    {"normalised.occupancy", kRatio},
    {"normalised.time", kRatio},
    {"occupancy", kRatio},
    {"on_chip_latency", kTime},
    {"on_chip_throughput", kSamplesPerSecond},
    {"optimizer_time", kTime},
    {"peak_bandwidth", kBandwidth},
    {"peak_compute", kComputeRate},
    {"peak_memory", kBytes},
    {"price", kPrice},
    {"ratio", kRatio},
    {"recursion_time", kTime},
    {"run_time", kTime},
    {"samples_in_run", kCount},
    {"score", kRatio},
    {"speedup", kRatio},
    {"spill_traffic", kBytes},
    {"state_setup_launches", kCount},
    {"state_setup_time", kTime},
    {"step_time", kTime},
    {"swap", kBytes},
    {"throughput", kSamplesPerSecond},
    {"token_length", kCount},
    {"token_rate", kTokensPerSecond},
    {"utilisation.bandwidth", kShare},
    {"utilisation.dma", kShare},
    {"utilisation.scalar", kShare},
    {"utilisation.sm", kShare},
    {"utilisation.tensor", kShare},
    {"utilisation.vector", kShare},
    {"weight.cost", kRatio},
    {"weight.energy", kRatio},
    {"weight.occupancy", kRatio},
    {"weight.time", kRatio},
});

}  // namespace

const PrintedQuantity& FindQuantity(std::string_view name) {
  std::vector<std::string_view> known;
  for (const PrintedQuantity& quantity : kPrintedQuantities) {
    if (quantity.name == name) return quantity;
    known.push_back(quantity.name);
  }
  throw model::InputError(fmt::format(
      "unknown quantity \"{}\"; known: {}", name, fmt::join(known, ", ")));
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
