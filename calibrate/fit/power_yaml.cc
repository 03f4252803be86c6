#include "calibrate/fit/power_yaml.h"

#include <fmt/format.h>

#include "calibrate/fit/yaml_text.h"

namespace trainfare::calibrate::internal {
namespace {

using hardware::Reader;

// As the bound of fit_file.cc.
constexpr double kMostDeviation = 10.0;
// A board that draws ten times what its datasheet says is a mistake.
constexpr double kLargestFactor = 10.0;

}  // namespace

void WritePower(const std::optional<FittedPower>& power, std::string& out) {
  if (!power) return;
  out += fmt::format(
      "# Power of matrix products and of other work over the datasheet's; "
      "errors\n"
      "# of the logarithms, scatter of log(model / measured).\n"
      "power:\n"
      "  products: {{ factor: {}, error: {} }}\n"
      "  others: {{ factor: {}, error: {} }}\n"
      "  correlation: {}\n"
      "  scatter: {}\n"
      "  runs:\n",
      power->products,
      power->products_error,
      power->others,
      power->others_error,
      power->correlation,
      power->scatter);
  for (const FittedPowerRun& run : power->runs) {
    out += fmt::format(
        "    - run: {}\n"
        "      workload: {}\n"
        "      measured: {} W\n"
        "      modelled: {} W\n",
        Quoted(run.label),
        Quoted(run.workload),
        run.measured.base(),
        run.modelled.base());
  }
}

std::optional<FittedPower> ReadPower(const Reader& root) {
  const std::optional<Reader> map = root.OptionalMap("power");
  if (!map) return std::nullopt;
  FittedPower power;
  const Reader products = map->Map("products");
  power.products = products.Number("factor", 0.1, kLargestFactor);
  power.products_error = products.Number("error", 0.0, kMostDeviation);
  const Reader others = map->Map("others");
  power.others = others.Number("factor", 0.1, kLargestFactor);
  power.others_error = others.Number("error", 0.0, kMostDeviation);
  power.correlation = map->Number("correlation", -1.0, 1.0);
  power.scatter = map->Number("scatter", 0.0, kMostDeviation);
  for (const Reader& row : map->Maps("runs")) {
    FittedPowerRun run;
    run.label = row.Text("run");
    run.workload = row.Text("workload");
    run.measured = row.Power("measured");
    run.modelled = row.Power("modelled");
    power.runs.push_back(std::move(run));
  }
  return power;
}

}  // namespace trainfare::calibrate::internal
