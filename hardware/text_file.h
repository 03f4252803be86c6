#pragma once

// A whole text file at once.

#include <string>
#include <string_view>

namespace trainfare::hardware {

// Throws InputError "path: ..." where it cannot be read, with the reason;
// `kind` ("a CSV file") is what a folder in its place is not.
std::string ReadTextFile(const std::string& path, std::string_view kind);

}  // namespace trainfare::hardware
