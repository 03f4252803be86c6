#pragma once

// What printed quantities are called and measured in
// (docs/guide/published.md): one table. What of them is answered is
// scenarios/published/quantities.h.

#include <optional>
#include <string>
#include <string_view>

#include "hardware/files/unit_text.h"

namespace trainfare::calibrate {

// What a figure is measured in.
struct Measure {
  std::string_view unit;  // base unit; "1" of shares, ratios and counts
  // Absent: the base unit alone is printed, or nothing where that is 1.
  std::optional<hardware::Dimension> dimension = std::nullopt;
  bool percent = false;  // a ratio, which takes "%" as well
  bool share = false;    // of a whole: errors are in points
  bool outcome = false;  // a word
  std::string_view example = {};
};

struct PrintedQuantity {
  std::string_view name;
  const Measure& measure;
};

// Throws InputError for a name that is not known.
const PrintedQuantity& FindQuantity(std::string_view name);

// What a text of this measure looks like, for messages.
std::string_view ExampleOf(const Measure& measure);

// Base units in one `unit`; nullopt: not a unit of this measure.
std::optional<double> UnitScale(const Measure& measure, std::string_view unit);

}  // namespace trainfare::calibrate
