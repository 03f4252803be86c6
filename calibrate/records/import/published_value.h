#pragma once

// A printed figure: a number as a document has it, in base units and within
// what its digits say.

#include <string>
#include <string_view>

namespace trainfare::calibrate {

struct Measure;  // calibrate/records/import/published_quantity.h

// The figure in base units (B, FLOP, s, USD, J; a share or a ratio as a
// fraction), from the text as printed.
struct PublishedValue {
  enum class Kind { kNumber, kAtLeast, kAtMost, kRange, kOutcome };
  Kind kind = Kind::kNumber;
  std::string text;
  double low = 0;   // of a range; the number otherwise
  double high = 0;  // as low, but for a range
  // Within what `low` and `high` are known: half a unit of the last printed
  // digit, 10 % for "about", or what the row says where that is more.
  double tolerance = 0;
};

// The figure of a quantity of that measure; throws InputError without a
// position.
PublishedValue ParsePublishedValue(const Measure& measure,
                                   std::string_view text);

// "2 %", "0.001 absolute": a tolerance widens what the printed digits give,
// never narrows it. Throws InputError without a position.
void WidenTolerance(const std::string& text, PublishedValue& value);

}  // namespace trainfare::calibrate
