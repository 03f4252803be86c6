#pragma once

// Names and folders of the files that are written.

#include <string>

namespace trainfare::calibrate::internal {

// The folder of `path` and those above it. Throws InputError where it cannot be
// made.
void MakeFolderOf(const std::string& path);

// Where what is at `path` may be set aside: PATH.old, or PATH.old.2 and so on
// where that is taken.
std::string FreeNameBeside(const std::string& path);

}  // namespace trainfare::calibrate::internal
