#pragma once

// Files that are whole or absent.

#include <string>
#include <string_view>

namespace trainfare::calibrate::internal {

// Writes beside and renames. Throws InputError, and leaves what was there, when
// the folder cannot be made or written, or the disk is full.
void WriteWhole(const std::string& path, std::string_view text);

// The folder of `path` and those above it.
void MakeFolderOf(const std::string& path);

}  // namespace trainfare::calibrate::internal
