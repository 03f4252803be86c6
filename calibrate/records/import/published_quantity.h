#pragma once

// What printed quantities are called and measured in
// (docs/guide/published.md): those that a job answers stand in one table (how
// is scenarios/published/quantities.h), all others in the files of the
// document that prints them.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "hardware/files/unit_text.h"
#include "hardware/files/yaml_reader.h"

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

// A quantity that no job answers, of one document: `quantities` of its files.
struct OwnQuantity {
  const Measure* measure = nullptr;  // never nullptr
  std::string why_not;  // no job answers it; empty: a check says what it is
};
using OwnQuantities = std::map<std::string, OwnQuantity>;

// Adds what `map` has, of a file of the document. Throws InputError.
void ReadOwnQuantities(const hardware::Reader& map, OwnQuantities& own);

// What a quantity of a document is measured in; throws InputError for a name
// that is not known.
const Measure& MeasureOfQuantity(std::string_view quantity,
                                 const OwnQuantities& own);

// What a text of this measure looks like, for messages.
std::string_view ExampleOf(const Measure& measure);

// Base units in one `unit`; nullopt: not a unit of this measure.
std::optional<double> UnitScale(const Measure& measure, std::string_view unit);

}  // namespace trainfare::calibrate
