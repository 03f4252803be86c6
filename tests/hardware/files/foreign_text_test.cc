#include "hardware/files/foreign_text.h"

#include <doctest/doctest.h>

namespace trainfare::hardware {

TEST_CASE("foreign text is one line that does nothing to a terminal") {
  CHECK(OneLine("plain caf\xc3\xa9") == "plain caf\xc3\xa9");
  CHECK(OneLine("a\nb\tc\r") == "a b c ");
  CHECK(OneLine("\x1b[2J\x07\x7f") == "?[2J??");
  CHECK(OneLine("\xc2\x9b"
                "31m") == "?31m");
  CHECK(OneLine("\xe2\x80\xae"
                "gnp\xe2\x81\xa6") == "?gnp?");
  CHECK(OneLine("\xe2\x80\xa8") == "?");
  CHECK(OneLine("\xff\xc3") == "??");
  CHECK(OneLine(std::string(1'000'000, 'x'), 10) == "xxxxxxxxxx...");
  // Cut between characters.
  CHECK(OneLine("ab\xc3\xa9", 3) == "ab...");
}

TEST_CASE("what is UTF-8, and what only looks like it") {
  CHECK(CharacterSize("a\xc3\xa9") == 1);
  CHECK(CharacterSize("\xc3\xa9 ") == 2);
  CHECK(CharacterSize("\xf0\x9f\x98\x80") == 4);
  CHECK(CharacterSize("\xc0\xaf") == 0);          // overlong
  CHECK(CharacterSize("\xe0\x80\xaf") == 0);      // overlong
  CHECK(CharacterSize("\xed\xa0\x80") == 0);      // half a surrogate pair
  CHECK(CharacterSize("\xf4\x90\x80\x80") == 0);  // beyond Unicode
  CHECK(CharacterSize("\xc3") == 0);              // cut off
}

TEST_CASE("columns of a terminal") {
  CHECK(DisplayWidth("caf\xc3\xa9") == 4);
  CHECK(DisplayWidth("e\xcc\x81") == 1);      // combining accent
  CHECK(DisplayWidth("\xe6\xbc\xa2x") == 3);  // wide
  CHECK(CutToWidth("\xe6\xbc\xa2x", 2) == "\xe6\xbc\xa2");
  CHECK(CutToWidth("\xe6\xbc\xa2x", 1).empty());
}

}  // namespace trainfare::hardware
