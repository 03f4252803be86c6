#include "calibrate/records/import/csv.h"

#include <doctest/doctest.h>

#include "model/error.h"

namespace trainfare::calibrate {
namespace {

using model::InputError;

TEST_CASE("quotes, doubled quotes, newlines in fields, CRLF and a mark") {
  const CsvText csv = ParseCsv(
      "\xef\xbb\xbf"
      "a,b\r\n"
      "\"1, one\",\"say \"\"hi\"\"\"\r\n"
      "\r\n"
      "\"two\nlines\",2\n"
      "3,\n"
      "last,line",
      "t.csv");
  REQUIRE(csv.rows.size() == 4);
  CHECK(csv.Field(csv.rows[0], "a") == "1, one");
  CHECK(csv.Field(csv.rows[0], "b") == "say \"hi\"");
  CHECK(csv.rows[0].line == 2);
  CHECK(csv.Field(csv.rows[1], "a") == "two\nlines");
  CHECK(csv.rows[1].line == 4);
  CHECK(csv.Field(csv.rows[2], "b").empty());
  CHECK(csv.rows[2].line == 6);
  CHECK(csv.Field(csv.rows[3], "b") == "line");
  CHECK(csv.Field(csv.rows[3], "unheard of").empty());
}

TEST_CASE("what is no CSV says where") {
  CHECK_THROWS_WITH_AS(ParseCsv("", "t.csv"),
                       "t.csv:1: expected a header line, got nothing",
                       InputError);
  CHECK_THROWS_WITH_AS(ParseCsv("a,b\n1,2\n1,2,3\n", "t.csv"),
                       "t.csv:3: expected 2 fields as in the header, got 3",
                       InputError);
  CHECK_THROWS_WITH_AS(ParseCsv("a,b,a\n", "t.csv"),
                       "t.csv:1: the column \"a\" stands twice",
                       InputError);
  CHECK_THROWS_WITH_AS(
      ParseCsv("a,b\n1,2\n\"1,2\n", "t.csv"),
      "t.csv:3: a quote is not closed, or stands inside a field; a quote in a "
      "quoted field is written twice",
      InputError);
}

}  // namespace
}  // namespace trainfare::calibrate
