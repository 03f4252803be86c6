#pragma once

// Which rows of a device a fit is made to, and which it then predicts: the
// protocols of validation that fit.

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "scenarios/validation/options.h"
#include "scenarios/validation/step_rows.h"

namespace trainfare::scenarios {

// A fit to some rows of a device, none where there is nothing to fit to, and
// the rows that it predicts.
struct Fold {
  size_t device = 0;
  std::vector<size_t> fit_to;
  std::vector<size_t> predict;
};

// A device with more workloads than are refitted one by one, and the rows of
// each.
struct ManyWorks {
  size_t device = 0;
  std::vector<size_t> fit_to;
  std::vector<std::vector<size_t>> works;
};

struct Folds {
  std::vector<Fold> folds;
  std::vector<ManyWorks> many_works;
};

// Of a protocol that fits to rows of the device that is asked for. Rows that a
// draw takes are marked as fitted.
Folds FoldsOf(const ValidateOptions& options, SortedRows& sorted);

// The points of some rows of a device that the draw takes.
std::set<std::string> DrawnPoints(const ValidateOptions& options,
                                  const SortedRows& sorted,
                                  const DeviceRows& of_device,
                                  const std::vector<size_t>& rows);

// Why rows of a fold without a fit are not predicted.
const char* NothingToFitTo(Protocol protocol);

}  // namespace trainfare::scenarios
