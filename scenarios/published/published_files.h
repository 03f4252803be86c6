#pragma once

// Which published figures a command line names: a folder, or files of one.

#include <cstddef>
#include <string>
#include <vector>

#include "calibrate/records/import/published.h"

namespace trainfare::scenarios {

// Whether `files` are published figures: one folder, or *.yaml. Throws
// UsageError where only some are, or where they are of several folders.
bool IsPublished(const std::vector<std::string>& files);

// The folder that `file` stands in or is.
std::string FolderOf(const std::string& file);

// A file stands for its rows; the other files' runs are still seen.
std::vector<size_t> RowsOf(const calibrate::Published& published,
                           const std::vector<std::string>& files);

}  // namespace trainfare::scenarios
