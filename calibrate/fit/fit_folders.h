#pragma once

// The fits that there are: those that ship, and those of the user's own
// calibrations.

#include <string>
#include <string_view>
#include <vector>

#include "calibrate/fit/fit.h"
#include "hardware/catalog/device.h"

namespace trainfare::calibrate {

// The fits in the folders at hand.
struct LoadedFits {
  std::vector<Fit> fits;
  // Why a file is not among them, a line each: one that is not right stands in
  // the way of no other.
  std::vector<std::string> left_out;
};
// Shipped fits and those of the user's own calibrations (which come first).
LoadedFits LoadFits();
// A file in these folders, and the catalog's name of the device that it says it
// is of; empty where it says none.
struct FitFile {
  std::string path;
  std::string device;
};
std::vector<FitFile> ListFitFiles();
// Those of one device, out of `files`; reads none that names another.
LoadedFits LoadFitsOf(std::string_view device,
                      const std::vector<FitFile>& files = ListFitFiles());
// The first of fits to a device that may answer for it, which is of its own
// processor; nullptr: none.
const Fit* FitFor(const hardware::Device& device, const std::vector<Fit>& fits);
std::string UserFitDirectory();  // $TRAINFARE_FITS, else below XDG_DATA_HOME

}  // namespace trainfare::calibrate
