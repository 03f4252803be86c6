#pragma once

// How wide a terminal is, and text in lines that it holds.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainfare::hardware {

// The columns of the terminal behind a file descriptor; nullopt: it is none, or
// does not say.
std::optional<size_t> TerminalWidth(int descriptor);

// What becomes of a word that is longer than a line: a path or an address is
// whole, so that it can be copied; a cell keeps to its column.
enum class LongWords { kWhole, kBreak };

// `text` in lines of at most `width` columns, broken between its words; each
// but the first begins with `indent`. There is always one.
std::vector<std::string> LinesOf(std::string_view text,
                                 size_t width,
                                 std::string_view indent = "",
                                 LongWords long_words = LongWords::kWhole);

// The same as one text that ends in a line feed and does nothing to a terminal
// (foreign_text.h); without a width it is one line.
std::string Wrapped(std::string_view text,
                    std::optional<size_t> width,
                    std::string_view indent);

}  // namespace trainfare::hardware
