#pragma once

// Text that somebody else wrote, before it is printed: names out of files,
// messages of other programs, what came over a socket.

#include <cstddef>
#include <string>
#include <string_view>

namespace trainfare::hardware {

// `text` as one line that does nothing to a terminal: newlines and tabs become
// blanks, any other control character (C0, C1, escapes), line separator and
// mark that turns the direction of writing becomes "?", as does each byte that
// is no UTF-8. Longer than `most` bytes it is cut and ends in "...".
std::string OneLine(std::string_view text, size_t most = 2000);

// Bytes of the UTF-8 character at the front of `text`, 0 where it is none: no
// overlong forms, no surrogates.
size_t CharacterSize(std::string_view text);

// Columns of a terminal that UTF-8 `text` takes: two for wide characters, none
// for combining ones.
size_t DisplayWidth(std::string_view text);
// The front of `text` that takes at most `columns`.
std::string_view CutToWidth(std::string_view text, size_t columns);

}  // namespace trainfare::hardware
