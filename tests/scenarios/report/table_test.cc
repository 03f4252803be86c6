#include "scenarios/report/table.h"

#include <doctest/doctest.h>

#include <stdexcept>

namespace trainfare::scenarios {
namespace {

Table ExampleTable() {
  Table table;
  table.title = "two rows";
  table.columns = {{"name", "name", Align::kLeft},
                   {"price", "price_usd", Align::kDecimal},
                   {"step", "step_time_s", Align::kRight}};
  table.Add({"a", Cell("$1.25", 1.25), Cell("5 ms", 0.005)});
  table.Add({"bb, \"c\"", Cell("$12.5", 12.5), Cell("120 ms", 0.12)});
  return table;
}

}  // namespace

TEST_CASE("text is aligned: words left, numbers right, decimals at the point") {
  CHECK(TextTable(ExampleTable()) ==
        "two rows\n"
        "name     price     step\n"
        "-----------------------\n"
        "a         $1.25    5 ms\n"
        "bb, \"c\"  $12.5   120 ms\n");
}

TEST_CASE("CSV has base units and quotes what needs it") {
  CHECK(CsvTable(ExampleTable()) ==
        "name,price_usd,step_time_s\n"
        "a,1.25,0.005\n"
        "\"bb, \"\"c\"\"\",12.5,0.12\n");
}

TEST_CASE("Markdown aligns numbers right and escapes bars") {
  Table table = ExampleTable();
  table.title.clear();
  table.rows[0][0] = "a|b";
  CHECK(MarkdownTable(table) ==
        "| name | price | step |\n"
        "| --- | ---: | ---: |\n"
        "| a\\|b | $1.25 | 5 ms |\n"
        "| bb, \"c\" | $12.5 | 120 ms |\n");
}

TEST_CASE("in a width words go on below, and numbers stay whole") {
  Table table;
  table.columns = {{.title = "n", .key = "n"},
                   {.title = "why", .key = "why"},
                   {.title = "cost", .key = "c", .align = Align::kRight}};
  table.Add({"1", "because it is long", Cell("$12.5", 12.5)});
  table.Add({"2", "short", Cell("$3", 3)});
  CHECK(TextTable(table, 21) ==
        "n  why           cost\n"
        "---------------------\n"
        "1  because it   $12.5\n"
        "   is long\n"
        "2  short           $3\n");
  CHECK(CsvTable(table) == "n,why,c\n1,because it is long,12.5\n2,short,3\n");
}

TEST_CASE("a word that is longer than its column is broken, nothing is cut") {
  Table table;
  table.columns = {{"n", "n", Align::kLeft}, {"why", "why", Align::kLeft}};
  table.Add({"1", std::string(50, 'x')});
  CHECK(TextTable(table, 30) == "n  why\n" + std::string(30, '-') + "\n1  " +
                                    std::string(27, 'x') + "\n   " +
                                    std::string(23, 'x') + "\n");
  CHECK(TextTable(table).find(std::string(50, 'x')) != std::string::npos);
}

TEST_CASE("a row that no width holds becomes lines") {
  Table table;
  table.title = "the title of it, in words";
  table.columns = {{"", "chosen", Align::kLeft},
                   {"instance", "instance", Align::kLeft},
                   {"time", "time_s", Align::kRight},
                   {"why", "reason", Align::kLeft}};
  table.Add({"*", "lambda/gpu_1x", Cell("24.7 min", 24.7), "chosen by words"});
  table.Add({"", "lambda/gpu_8x", Cell("14.8 min", 14.8), ""});
  CHECK(TextTable(table, 24) ==
        "the title of it, in\n  words\n"
        "*\n"
        "  instance:\n"
        "    lambda/gpu_1x\n"
        "  time: 24.7 min\n"
        "  why: chosen by words\n"
        "instance: lambda/gpu_8x\n"
        "  time: 14.8 min\n");
}

TEST_CASE("a narrow terminal loses columns in the order of their priority") {
  Table table;
  table.columns = {{"name", "name", Align::kLeft},
                   {"energy", "energy_j", Align::kLeft, 2},
                   {"price", "price_usd", Align::kLeft, 1},
                   {"why", "reason", Align::kLeft}};
  table.Add({"aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc", "because of that"});
  const auto has = [&](size_t width, char letter) {
    return TextTable(table, width).find(std::string(10, letter)) !=
           std::string::npos;
  };
  CHECK(has(60, 'b'));
  CHECK_FALSE(has(40, 'b'));
  CHECK(has(40, 'c'));
  CHECK_FALSE(has(30, 'c'));
  CHECK(has(16, 'a'));  // what has no priority stays
  for (const size_t width : std::vector<size_t>{60, 40, 30}) {
    const std::string text = TextTable(table, width);
    for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
      CHECK(text.find('\n', at) - at <= width);
    }
  }
}

TEST_CASE("people see some rows and columns, machines see them all") {
  Table table;
  table.columns = {{"devices", "", Align::kLeft, 0, Audience::kPeople},
                   {"", "device", Align::kLeft, 0, Audience::kMachines},
                   {"", "devices", Align::kRight, 0, Audience::kMachines}};
  table.Add({"1 x l4", "l4", Cell("1", 1)});
  table.Add({"2 x l4", "l4", Cell("2", 2)});
  table.elided = {1};
  table.rest = "not shown: 1";
  CHECK(TextTable(table) == "devices\n-------\n1 x l4\nnot shown: 1\n");
  CHECK(CsvTable(table) == "device,devices\nl4,1\nl4,2\n");
  CHECK(MarkdownTable(table) ==
        "| devices |\n| --- |\n| 1 x l4 |\n\nnot shown: 1\n");
}

TEST_CASE("colour marks one row and only when asked") {
  Table table = ExampleTable();
  table.marked = 1;
  CHECK(TextTable(table).find('\x1b') == std::string::npos);
  const std::string text = TextTable(table, std::nullopt, true);
  CHECK(text.find("\x1b[1mbb, \"c\"") != std::string::npos);
}

TEST_CASE("a letter beyond ASCII is one column wide") {
  Table table;
  table.columns = {{"n", "n", Align::kLeft}, {"m", "m", Align::kLeft}};
  table.Add({"\xC3\xA9", "x"});
  table.Add({"ab", "y"});
  CHECK(TextTable(table) == "n   m\n-----\n\xC3\xA9   x\nab  y\n");
}

TEST_CASE("names that somebody else wrote do nothing") {
  Table table;
  table.columns = {{"name", "name"}, {"time", "time_s", Align::kRight}};
  table.Add({"=HYPERLINK(\"x\")", Cell("-2 s", -2.0)});
  table.Add({"\x1b[2J\nx", Cell("3 s", 3.0)});
  CHECK(CsvTable(table) ==
        "name,time_s\n\"'=HYPERLINK(\"\"x\"\")\",-2\n?[2J x,3\n");
  CHECK(TextTable(table).find('\x1b') == std::string::npos);
  CHECK(MarkdownTable(table).find('\x1b') == std::string::npos);
}

TEST_CASE("a row of the wrong length is a defect") {
  Table table = ExampleTable();
  CHECK_THROWS_AS(table.Add({"only one"}), std::logic_error);
}

TEST_CASE("numbers keep every digit that they have") {
  CHECK(ShortestNumber(0.1) == "0.1");
  CHECK(ShortestNumber(3.0) == "3");
  CHECK(std::stod(ShortestNumber(1.0 / 3.0)) == 1.0 / 3.0);
}

}  // namespace trainfare::scenarios
