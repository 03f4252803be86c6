#pragma once

// How a document comes by a printed figure from others: `checks` of its files
// (docs/guide/published.md). scenarios/published/figure_checks.h works it out.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/records/import/published.h"
#include "calibrate/records/import/published_quantity.h"
#include "hardware/files/yaml_reader.h"

namespace trainfare::calibrate {

// A figure of the run or of its device that nobody need print, in base units.
// Throws InputError where it is not stated.
using PublishedFact = double(const PublishedRun& run);

struct PublishedFormula {
  enum class Kind {
    kNumber,
    kPrinted,  // another row
    kFact,
    kProduct,
    kQuotient,
    kSum,
    kDifference,
  };
  Kind kind = Kind::kNumber;
  double number = 0;
  std::string quantity;  // of the other row, as its part
  std::optional<std::string> part;
  bool of_part = false;  // of the run that the row's own part names
  PublishedFact* fact = nullptr;
  std::vector<PublishedFormula> operands;
};

// By the quantity that they check, of one document.
using PublishedChecks =
    std::map<std::string, std::shared_ptr<const PublishedFormula>>;

// Adds what `map` has, of a file of the document whose own quantities are
// `own`. Throws InputError.
void ReadChecks(const hardware::Reader& map,
                const OwnQuantities& own,
                PublishedChecks& checks);

}  // namespace trainfare::calibrate
