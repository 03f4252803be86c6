#include <doctest/doctest.h>

// What doctest_main_test.cmake asks of doctest_main.cc.

TEST_CASE("asserts" * doctest::test_suite("asserts")) { CHECK(true); }

TEST_CASE("asserts in a part" * doctest::test_suite("asserts")) {
  SUBCASE("one") { CHECK(true); }
  SUBCASE("two") {}
}

TEST_CASE("fails" * doctest::test_suite("fails")) { CHECK(false); }

TEST_CASE("asserts nothing" * doctest::test_suite("nothing")) {}

TEST_CASE("cannot run" * doctest::test_suite("absent") * doctest::skip()) {
  CHECK(true);
}
