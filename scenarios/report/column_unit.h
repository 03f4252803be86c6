#pragma once

// One unit for all cells of a column, so that a reader compares numbers alone.

#include <string>
#include <vector>

namespace trainfare::scenarios {

// The unit and its size in base units: {"min", 60}; without a name of a column
// that has no value.
struct ColumnUnit {
  std::string name;
  double size = 1;

  // "62.1", with three or four digits that mean something and no exponent.
  std::string Text(double base_value) const;
  // "time (min)", "time" without a unit.
  std::string Title(const std::string& what) const;
};

// Chosen by the middle one of the values, which are in base units.
ColumnUnit TimeUnit(std::vector<double> seconds);
ColumnUnit EnergyUnit(std::vector<double> joules);
ColumnUnit MemoryUnit(std::vector<double> bytes);

// `value` in full digits, at least `digits` of them significant.
std::string PlainNumber(double value, int digits);

}  // namespace trainfare::scenarios
