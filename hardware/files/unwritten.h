#pragma once

// What could not be written, said in one way.

#include <ostream>
#include <string>
#include <string_view>

namespace trainfare::hardware {

// Throws InputError "path: cannot be written: No space left on device", by the
// number that errno had.
[[noreturn]] void RefuseUnwritten(std::string_view path, int error);

// All of `text` to standard output, which is `out`. Throws InputError.
void WriteOut(std::ostream& out, std::string_view text);

}  // namespace trainfare::hardware
