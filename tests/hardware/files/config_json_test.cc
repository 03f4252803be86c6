#include "hardware/files/config_json.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hardware/files/model_config.h"
#include "model/error.h"

namespace trainfare::hardware {
namespace {

// What `read` fails with on a file of this text, without its name; empty:
// nothing.
std::string Refusal(const std::string& text,
                    const std::function<void(const ConfigJson&)>& read) {
  const std::string path = "a.json";
  try {
    const ConfigJson config(text, path, "others are not run");
    read(config);
  } catch (const model::InputError& error) {
    return std::string(error.what()).substr(path.size() + 1);
  }
  return "";
}

}  // namespace

TEST_CASE("keys have their types, and fallbacks where they are not there") {
  const std::string text =
      R"({"layers": 2, "bias": true, "share": 0.5, "theta": 1e4,
          "act": "gelu", "none": null, "other": 1})";
  CHECK(Refusal(text, [](const ConfigJson& c) {
          CHECK(c.Count("layers") == 2);
          CHECK(c.Count("heads", 3) == 3);
          CHECK(c.Flag("bias", false));
          CHECK(c.Share("share") == 0.5);
          CHECK(c.Share("dropout", 0.1) == 0.1);
          CHECK(c.Positive("theta", 1) == 1e4);
          CHECK(c.Part("share", 1) == 0.5);
          CHECK(c.Part("rate", 1) == 1);
          CHECK(c.PositiveCount("layers") == 2);
          CHECK(c.PositiveCount("heads", 3) == 3);
          CHECK(c.Text("act", "relu") == "gelu");
          CHECK_FALSE(c.Has("none"));
          c.Expect("layers", 2);
          c.Expect("absent", 2);
          CHECK(c.Unasked() == std::vector<std::string>{"other"});
          CHECK(c.Asked().size() == 10);
        }).empty());
}

TEST_CASE("what a config.json has wrong is said by its key and place") {
  const auto count = [](const ConfigJson& c) { c.Count("n"); };
  CHECK(Refusal("[]", count) == "1:1: expected an object, got []");
  CHECK(Refusal(" {}", count) == "1:2: n: missing");
  CHECK(Refusal("{\n\t\"n\": null}", count) == "2:7: n: missing");
  CHECK(Refusal("{\n  \"m\": {\"n\": 2},\n  \"n\":  \"8\"\n}", count) ==
        "3:9: n: expected an integer from 0 to 16777216, got \"8\"");
  CHECK(Refusal(R"({"n": -1})", count) ==
        "1:7: n: expected an integer from 0 to 16777216, got -1");
  CHECK(Refusal(R"({"n": 18446744073709551615})", count) ==
        "1:7: n: expected an integer from 0 to 16777216, got "
        "18446744073709551615");
  CHECK(Refusal(R"({"n": 0})", [](const ConfigJson& c) {
          c.PositiveCount("n", 1);
        }) == "1:7: n: expected an integer from 1 to 16777216, got 0");
  CHECK(Refusal(R"({"n": 1})", [](const ConfigJson& c) { c.Share("n"); }) ==
        "1:7: n: expected a number from 0 to below 1, got 1");
  for (const char* part : {"-0.5", "1e300", "-1e300", "5", "\"x\"", "true"}) {
    CHECK(Refusal(fmt::format("{{\"n\": {}}}", part), [](const ConfigJson& c) {
            c.Part("n", 1);
          }).starts_with("1:7: n: expected a number from 0 to 1, got "));
  }
  CHECK(Refusal(R"({"n": 0})", [](const ConfigJson& c) {
          c.Positive("n", 1);
        }) == "1:7: n: expected a number above 0, got 0");
  CHECK(Refusal(R"({"n": 0})", [](const ConfigJson& c) {
          c.Flag("n", true);
        }) == "1:7: n: expected true or false, got 0");
  CHECK(Refusal(R"({"n": 0})", [](const ConfigJson& c) { c.Expect("n", 1); }) ==
        "1:7: n: expected 1, got 0; others are not run");
  CHECK(Refusal(R"({"n": "ab"})", [](const ConfigJson& c) {
          c.List("n", 2, "words");
        }) == "1:7: n: expected a list of 2 words, one a block, got \"ab\"");
  CHECK(Refusal(R"({"n": [1]})",
                [](const ConfigJson& c) { c.List("n", 2, "words"); }) ==
        "1:7: n: expected a list of 2 words, one a block, got a list of 1");
}

// A message of one's own; where the key is not there, what it is missing from.
TEST_CASE("a message about a path stands at its nearest value") {
  const std::string text = "{\"a\":\n {\"b\": [1,\n 2]}}";
  const auto failed = [&](const std::string& message) {
    return Refusal(text, [&](const ConfigJson& c) { c.Fail(message); });
  };
  CHECK(failed("a.b[1]: wrong") == "3:2: a.b[1]: wrong");
  CHECK(failed("a.b: wrong: very") == "2:8: a.b: wrong: very");
  CHECK(failed("a.c: missing") == "2:2: a.c: missing");
  CHECK(failed("d: missing") == "1:1: d: missing");
  CHECK(failed("wrong") == "1:1: wrong");
  CHECK(Refusal(text, [](const ConfigJson& c) { c.Fail("a", "wrong"); }) ==
        "2:2: a: wrong");
}

TEST_CASE("what is no JSON is refused by its place") {
  const auto nothing = [](const ConfigJson&) {};
  CHECK(Refusal("{\"n\": 1,\n  \"m\"", nothing) ==
        "2:6: expected a JSON value, got the end of the text; is it cut "
        "short?");
  CHECK(Refusal("{\"n\": 1,\n  \"n\": 2}", nothing) ==
        "2:3: the key \"n\" stands twice");
  CHECK(Refusal("{\"n\": 1e400}", nothing) ==
        "1:7: n: expected a number from -1.8e+308 to 1.8e+308, got 1e400");
}

TEST_CASE("a device that never ends is no config.json") {
  CHECK_THROWS_WITH_AS(
      ModelConfigText("/dev/zero"),
      "/dev/zero: expected a config.json of at most 16 MiB, got more",
      model::InputError);
}

}  // namespace trainfare::hardware
