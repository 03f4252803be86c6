#include "hardware/files/json_text.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "model/error.h"

namespace trainfare::hardware {

using model::InputError;

TEST_CASE("JSON is read with the place of what is wrong") {
  CHECK(ParseJson(R"({"a": [1, 2]})", "f.json")["a"][1] == 2);
  CHECK_THROWS_WITH_AS(ParseJson("{\"a\":\n  1,}", "f.json"),
                       "f.json:2:5: expected a JSON value, got what is not "
                       "JSON",
                       InputError);
  CHECK_THROWS_WITH_AS(
      ParseJson("{\"a\": nan}", "f.jsonl", 7),
      "f.jsonl:7:8: expected one JSON object a line, got what is not JSON",
      InputError);
  CHECK_THROWS_WITH_AS(
      ParseJson("{\"a\": [0, \"1e999\", -1e999]}", "f.jsonl", 7),
      "f.jsonl:7:20: a[2]: expected a number from -1.8e+308 to 1.8e+308, got "
      "-1e999",
      InputError);
  CHECK_THROWS_WITH_AS(
      ParseJson("{\n \"a\":\t1e999, ", "f.json"),
      "f.json:2:7: a: expected a number from -1.8e+308 to 1.8e+308, got 1e999",
      InputError);
  CHECK_THROWS_WITH_AS(ParseJson(" \n", "f.json"),
                       "f.json:2:1: expected a JSON value, got nothing",
                       InputError);
  for (const char* cut : {"{\"a\": [1", "{\"a\": \"b", "{\"a\": tr"}) {
    CAPTURE(cut);
    CHECK_THROWS_WITH_AS(
        ParseJson(cut, "f.json"),
        fmt::format("f.json:1:{}: expected a JSON value, got the end of the "
                    "text; is it cut short?",
                    std::string_view(cut).size() + 1)
            .c_str(),
        InputError);
  }
  CHECK_THROWS_WITH_AS(
      ParseJson("{\"a\":", "f.jsonl", 7),
      "f.jsonl:7:6: expected one JSON object a line, got the end of the text; "
      "is it cut short?",
      InputError);
  CHECK_THROWS_AS(ParseJson("\"\xc0\xaf\"", "f.json"), InputError);
  CHECK_THROWS_AS(ParseJson("\"\xed\xa0\x80\"", "f.json"), InputError);
}

TEST_CASE("a key that stands twice is refused, in any depth") {
  CHECK_THROWS_WITH_AS(
      ParseJson(R"({"a": {"b": 1, "c": {"b": 2}, "b": 3}})", "f.json", 2),
      R"(f.json:2: the key "b" stands twice)",
      InputError);
  // In a whole file its place is known: the second key's.
  CHECK_THROWS_WITH_AS(
      ParseJson("[{\"b\": \"a\"},\n {\"b\": {\"\\\"a\": 1}, \"b\": 2}]",
                "f.json"),
      "f.json:2:20: the key \"b\" stands twice",
      InputError);
  CHECK_NOTHROW(ParseJson(R"([{"a": 1}, {"a": 2}])", "f.json"));
}

TEST_CASE("what stands at a path is found in the text") {
  const std::string text =
      "\xef\xbb\xbf{\n"
      "  \"a\" : [10, {\"b\": \"x, \\\"]}\", \"c\": null}, []],\n"
      "  \"d.e\":\r\n"
      "    {\"\\u00e9\": true},\n"
      "  \"b\": -1e3 }\n";
  const auto place = [&](std::string_view path) {
    const auto found = FindInJson(text, path);
    return found ? fmt::format("{}:{}", found->line, found->column) : "none";
  };
  CHECK(place("") == "1:4");
  CHECK(place("a") == "2:9");
  CHECK(place("a[0]") == "2:10");
  CHECK(place("a[1]") == "2:14");
  CHECK(place("a[1].b") == "2:20");
  CHECK(place("a[1].c") == "2:36");
  CHECK(place("a[2]") == "2:43");
  CHECK(place("d.e") == "4:5");
  CHECK(place("d.e.\xc3\xa9") == "4:16");
  CHECK(place("b") == "5:8");
  for (const char* none : {"c", "a[3]", "a[1].d", "d", "a[1", "b[0]"}) {
    CAPTURE(none);
    CHECK(place(none) == "none");
  }
  CHECK_FALSE(FindInJson("", ""));
  CHECK_NOTHROW(FindInJson("{\"a\\", "b"));
  CHECK_NOTHROW(FindInJson("]}}{[\"", "b"));
}

TEST_CASE("deep nesting is refused, and never printed by recursion") {
  for (const size_t depth : {size_t{100}, size_t{80'000}}) {
    CHECK_THROWS_WITH_AS(
        ParseJson(std::string(depth, '[') + std::string(depth, ']'), "f", 1),
        "f:1: expected at most 64 lists and objects within each other, got "
        "more",
        InputError);
    CHECK_THROWS_WITH_AS(
        ParseJson("\n" + std::string(depth, '['), "f"),
        "f:2:65: expected at most 64 lists and objects within each other, got "
        "more",
        InputError);
    std::string objects;
    for (size_t i = 0; i < depth; ++i) objects += "{\"a\":";
    CHECK_THROWS_AS(ParseJson(objects, "f", 1), InputError);
  }
}

TEST_CASE("any bytes are written, and finite numbers only") {
  const nlohmann::ordered_json strange = {{"name", "caf\xe9"}};
  CHECK(WriteJson(strange) == "{\"name\":\"caf\xef\xbf\xbd\"}");
  // What a terminal would act upon is written as escapes; other letters stay.
  const nlohmann::ordered_json acting = {
      {"name", "\x1b[2J\x7f \xc2\x9b \xe2\x80\xae \xc3\xa9"}};
  CHECK(WriteJson(acting) == R"({"name":"\u001b[2J\u007f \u009b \u202e )"
                             "\xc3\xa9\"}");
  CHECK(ParseJson(WriteJson(acting), "f") == nlohmann::json(acting));
  CHECK(WriteJson(nlohmann::ordered_json{{"a", 1}}, JsonLayout::kIndented) ==
        "{\n  \"a\": 1\n}");
  const nlohmann::ordered_json infinite = {
      {"rows", {{{"time_s", std::numeric_limits<double>::infinity()}}}}};
  CHECK_THROWS_WITH_AS(WriteJson(infinite),
                       "rows.0.time_s: the answer is not a finite number; a "
                       "figure of the question is beyond what can be counted",
                       InputError);
}

}  // namespace trainfare::hardware
