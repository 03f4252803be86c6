#include "hardware/files/terminal.h"

#include <doctest/doctest.h>

namespace trainfare::hardware {

using Lines = std::vector<std::string>;

TEST_CASE("lines break at words, and what follows is indented") {
  CHECK(Wrapped("one two three", 80, "  ") == "one two three\n");
  CHECK(Wrapped("one two three", std::nullopt, "  ") == "one two three\n");
  CHECK(Wrapped("one two three four", 9, "  ") == "one two\n  three\n  four\n");
  CHECK(Wrapped("a lot of words", 4, "  ") == "a\n  lot\n  of\n  words\n");
  CHECK(Wrapped("unbreakable", 4, "  ") == "unbreakable\n");
  CHECK(Wrapped("two\nlines", 80, "") == "two lines\n");
  CHECK(LinesOf("", 5) == Lines{""});
}

TEST_CASE("a column breaks long words, behind a mark where there is one") {
  CHECK(LinesOf("lambda/gpu_1x", 8, "", LongWords::kBreak) ==
        Lines{"lambda/", "gpu_1x"});
  CHECK(LinesOf("a abcdefgh", 4, "", LongWords::kBreak) ==
        Lines{"a", "abcd", "efgh"});
  // Two columns wide in one: there is no narrower line.
  CHECK(LinesOf("\xE4\xB8\x80", 1, "", LongWords::kBreak) ==
        Lines{"\xE4\xB8\x80"});
}

TEST_CASE("what is no terminal has no width") {
  CHECK_FALSE(TerminalWidth(-1).has_value());
}

}  // namespace trainfare::hardware
