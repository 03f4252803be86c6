#include "hardware/files/csv_file.h"

#include <doctest/doctest.h>

#include "model/error.h"
#include "tests/hardware/temporary_folder.h"

namespace trainfare::hardware {
namespace {

std::string CsvMessage(const std::string& text) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("t.csv", text);
  return MessageOf<model::InputError>(folder,
                                      [&] { CsvFile::Read(path).Column("b"); });
}

}  // namespace

TEST_CASE("fields in quotes hold commas, quotes and line ends") {
  const TemporaryFolder folder;
  const CsvFile file = CsvFile::Read(folder.Write(
      "t.csv",
      "\xef\xbb\xbf"
      "a,b\r\n\"1,\"\"x\"\"\",2\r\n\n\"two\nlines\",\n3,4,5\n6\n"));
  CHECK(file.header() == std::vector<std::string>{"a", "b"});
  CHECK(file.Column("b") == 1);
  CHECK_FALSE(file.TryColumn("c").has_value());
  REQUIRE(file.rows().size() == 4);
  CHECK(file.rows()[0].fields == std::vector<std::string>{"1,\"x\"", "2"});
  CHECK(file.rows()[0].line == 2);
  CHECK(file.rows()[1].fields == std::vector<std::string>{"two\nlines", ""});
  CHECK(file.rows()[1].line == 4);
  CHECK(file.rows()[2].fields == std::vector<std::string>{"3", "4", "5"});
  CHECK(file.rows()[2].line == 6);
  CHECK(file.rows()[3].fields == std::vector<std::string>{"6"});
}

TEST_CASE("one bad CSV file per message") {
  CHECK(CsvMessage("a,b\n1,2\n") == "no error");
  CHECK(CsvMessage("") == "t.csv:1: expected a header line, got nothing");
  CHECK(CsvMessage("a,c\n1,2\n") ==
        "t.csv:1: missing column \"b\"; known: a, c");
  CHECK(CsvMessage("b,b\n") == "t.csv:1: the column \"b\" stands twice");
  const std::string quote =
      "a quote is not closed, or stands inside a field; a quote in a quoted "
      "field is written twice";
  CHECK(CsvMessage("a,b\n1,\"2\n3,4\n") == "t.csv:2: " + quote);
  CHECK(CsvMessage("a,b\n1,2\nx\"y,2\n") == "t.csv:3: " + quote);
  CHECK(CsvMessage("a,b\n1,2\n1,2") ==
        "t.csv:3: the last line has no end: the file is cut off, or a newline "
        "is missing behind it");
  const std::string separated = "t.csv:1: expected fields between commas, got ";
  CHECK(CsvMessage("a;b\n1;2\n") ==
        separated + "semicolons; numbers have a decimal point");
  CHECK(CsvMessage("a\tb\n1\t2\n") ==
        separated + "tabs; numbers have a decimal point");
  CHECK(CsvMessage("a,b\r1,2\r") ==
        "t.csv:1: expected lines that end with a newline, got carriage returns "
        "alone");
  CHECK(CsvMessage(std::string("\xff\xfe"
                               "a\0",
                               4)) ==
        "t.csv:1: expected UTF-8, got UTF-16; save it as \"CSV UTF-8\"");
}

TEST_CASE("rows as wide as the header, where that is asked for") {
  const auto parse = [](std::string_view text) {
    return CsvFile::Parse(text, "t.csv", CsvFile::Rows::kAsHeader);
  };
  const CsvFile file = parse("a,b\r\n1,2\r\n\r\n3,\r\n");
  REQUIRE(file.rows().size() == 2);
  CHECK(file.Field(file.rows()[0], "b") == "2");
  CHECK(file.Field(file.rows()[1], "b").empty());
  CHECK(file.Field(file.rows()[1], "unheard of").empty());
  CHECK(file.rows()[1].line == 4);
  CHECK_THROWS_WITH_AS(parse("a,b\n1,2\n1,2,3\n"),
                       "t.csv:3: expected 2 fields as in the header, got 3",
                       model::InputError);
}

}  // namespace trainfare::hardware
