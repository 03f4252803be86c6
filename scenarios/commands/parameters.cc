#include "scenarios/commands/parameters.h"

#include <fmt/format.h>

#include <string>

#include "calibrate/fit/parameter_spread.h"
#include "hardware/catalog/device_kind.h"
#include "hardware/files/unit_text.h"
#include "hardware/models/kind.h"

namespace trainfare::scenarios {
namespace {

Cell Value(const hardware::ParameterInfo& info) {
  return {info.unit == "s" ? hardware::FormatTime(model::Seconds<>(info.prior))
                           : fmt::format("{:.4g}", info.prior),
          info.prior};
}

Cell Width(double sigma) { return {fmt::format("{:.2f}", sigma), sigma}; }

std::string_view ScaleOf(const hardware::ParameterInfo& info) {
  return info.transform == hardware::Transform::kLog ? "logarithm" : "value";
}

}  // namespace

Table Parameters(std::span<const calibrate::Fit> fits) {
  Table table;
  table.columns = {
      {.title = "parameter", .key = "parameter"},
      {.title = "of", .key = "kind"},
      {.title = "prior", .key = "prior", .align = Align::kRight},
      {.title = "unit", .key = "unit", .audience = Audience::kMachines},
      {.title = "wide", .key = "prior_sigma", .align = Align::kDecimal},
      {.title = "in its", .key = "scale", .drop = 3},
      {.title = "fits", .key = "fits", .align = Align::kRight, .drop = 2},
      {.title = "that know it", .key = "determined", .align = Align::kRight},
      {.title = "apart", .key = "fitted_sigma", .align = Align::kDecimal},
      {.title = "what it is", .key = "about", .drop = 1}};
  for (const auto& [name, kind] : hardware::kDeviceKinds) {
    const auto spreads = calibrate::SpreadsOf(kind, fits);
    size_t i = 0;
    for (const hardware::ParameterInfo& info : hardware::ParametersOf(kind)) {
      const calibrate::ParameterSpread& spread = spreads[i++];
      table.Add({std::string(info.name),
                 std::string(name),
                 Value(info),
                 std::string(info.unit),
                 Width(info.prior_sigma),
                 std::string(ScaleOf(info)),
                 CountCell(spread.fits),
                 CountCell(spread.determined),
                 spread.determined > 0 ? Width(spread.sigma)
                                       : Cell("-", std::string()),
                 std::string(info.meaning)});
    }
  }
  return table;
}

}  // namespace trainfare::scenarios
