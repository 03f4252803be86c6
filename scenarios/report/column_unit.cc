#include "scenarios/report/column_unit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace trainfare::scenarios {
namespace {

constexpr int kDigits = 3;

// The largest unit of which the middle value is at least twice as much; units
// rise in size.
ColumnUnit UnitFor(std::vector<double> values,
                   const std::vector<ColumnUnit>& units) {
  if (values.empty()) return {};
  const auto middle =
      values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const ColumnUnit* best = &units.front();
  for (const ColumnUnit& unit : units) {
    if (std::abs(*middle) >= 2.0 * unit.size) best = &unit;
  }
  return *best;
}

}  // namespace

std::string ColumnUnit::Text(double base_value) const {
  return PlainNumber(base_value / size, kDigits);
}

std::string ColumnUnit::Title(const std::string& what) const {
  return name.empty() ? what : fmt::format("{} ({})", what, name);
}

ColumnUnit TimeUnit(std::vector<double> seconds) {
  return UnitFor(std::move(seconds),
                 {{"us", 1e-6},
                  {"ms", 1e-3},
                  {"s", 1},
                  {"min", 60},
                  {"h", 3600},
                  {"d", 86400}});
}

ColumnUnit EnergyUnit(std::vector<double> joules) {
  return UnitFor(std::move(joules),
                 {{"J", 1}, {"Wh", 3600}, {"kWh", 3.6e6}, {"MWh", 3.6e9}});
}

ColumnUnit MemoryUnit(std::vector<double> bytes) {
  return UnitFor(std::move(bytes),
                 {{"MiB", 1024.0 * 1024.0}, {"GiB", 1024.0 * 1024.0 * 1024.0}});
}

std::string PlainNumber(double value, int digits) {
  if (value == 0.0 || !std::isfinite(value)) return fmt::format("{}", value);
  const int before = static_cast<int>(std::floor(std::log10(std::abs(value))));
  return fmt::format("{:.{}f}", value, std::clamp(digits - 1 - before, 0, 12));
}

}  // namespace trainfare::scenarios
