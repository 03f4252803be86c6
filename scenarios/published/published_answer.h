#pragma once

// What is answered to a printed figure.

#include <optional>

namespace trainfare::scenarios {

// An answer in base units, with the 80 % interval where the product has one.
struct PublishedAnswer {
  std::optional<double> value;
  std::optional<double> low;
  std::optional<double> high;
  std::optional<bool> fits;  // of an outcome
};

}  // namespace trainfare::scenarios
