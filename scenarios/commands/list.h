#pragma once

// trainfare list: what the tool knows by name.

#include <string>
#include <string_view>
#include <vector>

#include "hardware/catalog/price.h"
#include "scenarios/report/origin.h"
#include "scenarios/report/output.h"

namespace trainfare::scenarios {

enum class Listing {
  kDevices,
  kInstances,
  kModels,
  kFits,
  kScenarios,
  kPrices,
  kKeys,       // of files that people write
  kParameters  // of the models of devices
};
Listing ListingFromText(std::string_view text);  // throws UsageError
std::vector<std::string_view> ListingWords();

// The rows in which every word stands, whatever its letters' case.
Report List(Listing what,
            const std::vector<std::string>& words = {},
            const Origin& origin = {});

// trainfare prices import: a SkyPilot catalog, read once, since it may be a
// pipe. Throws InputError, also where nothing in it is a price.
hardware::ImportedPrices ReadCatalog(const std::string& file,
                                     const std::string& cloud,
                                     const std::string& date);
// Into a file of prices; says what was used and what was dropped and why. An
// empty `output` writes nothing.
Report ImportPrices(const std::string& file,
                    const hardware::ImportedPrices& imported,
                    const std::string& output,
                    const Origin& origin = {});

}  // namespace trainfare::scenarios
