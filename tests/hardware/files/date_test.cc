#include "hardware/files/date.h"

#include <doctest/doctest.h>

namespace trainfare::hardware {

TEST_CASE("a time is read as it is written") {
  using std::chrono::seconds;
  using std::chrono::sys_seconds;
  CHECK(TimeText(sys_seconds(seconds(0))) == "1970-01-01T00:00:00Z");
  CHECK(TimeText(sys_seconds(seconds(1795392000 + 64891))) ==
        "2026-11-23T18:01:31Z");
  // Leap days, the last second of a day and of a year.
  for (const char* text : {"2024-02-29T23:59:59Z",
                           "1999-12-31T23:59:59Z",
                           "1970-01-01T00:00:00Z",
                           "9999-12-31T23:59:59Z"}) {
    const auto time = TimeFromText(text);
    REQUIRE(time.has_value());
    CHECK(TimeText(*time) == text);
  }
}

TEST_CASE("what is no time is none") {
  for (const char* text : {"",
                           "2026-11-23",
                           "2026-11-23 18:01:31Z",
                           "2026-11-23T18:01:31",
                           "2026-11-23T18:01:31+0",
                           "2026-02-29T00:00:00Z",
                           "2026-13-01T00:00:00Z",
                           "2026-11-23T24:00:00Z",
                           "2026-11-23T00:60:00Z",
                           "2026-11-23T00:00:60Z",
                           "2026-11-23T-1:00:00Z"}) {
    CHECK_FALSE(TimeFromText(text).has_value());
  }
}

}  // namespace trainfare::hardware
