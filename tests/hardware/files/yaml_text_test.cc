#include "hardware/files/yaml_text.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace trainfare::hardware {
namespace {

using Json = nlohmann::ordered_json;

TEST_CASE("text that YAML would read as something else is quoted") {
  YamlLines lines(80);
  lines.Add("plain", "fp16");
  lines.Add("switch", "no");
  lines.Add("number", "16");
  lines.Add("words", "two words");
  CHECK(lines.text() ==
        "plain: fp16\n"
        "switch: \"no\"\n"
        "number: \"16\"\n"
        "words: \"two words\"\n");
}

TEST_CASE("a word stays as it is, anything else is quoted") {
  CHECK(PlainOrQuoted("us-east-1") == "us-east-1");
  for (const char* text : {"", ", CA, NA", "no", "12", "FIN-03", "a: b"}) {
    CHECK(PlainOrQuoted(text) == Quoted(text));
  }
}

TEST_CASE("a value breaks behind a comma, no line is wider than asked") {
  YamlLines lines(20);
  lines.Comment("as it was read from a file");
  lines.Add("lengths", Json::array({1024, 2048, 4096, 8192}));
  lines.AddMap("run", {{"swap", "8 GB"}, {"by", {{"a", 1}, {"b", false}}}});
  lines.AddMap("nothing", Json::object());
  CHECK(lines.text() ==
        "# as it was read\n"
        "# from a file\n"
        "lengths: [1024,\n"
        "    2048, 4096,\n"
        "    8192]\n"
        "run:\n"
        "  swap: \"8 GB\"\n"
        "  by: { a: 1,\n"
        "      b: false }\n");
}

}  // namespace
}  // namespace trainfare::hardware
