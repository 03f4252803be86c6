#include "hardware/files/config_json.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/error.h"

namespace trainfare::hardware {
namespace {

namespace fs = std::filesystem;

// What `read` fails with on a file of this text, without its path; empty:
// nothing.
std::string Refusal(const std::string& text,
                    const std::function<void(const ConfigJson&)>& read) {
  const fs::path path =
      fs::temp_directory_path() / "trainfare_config_json_test.json";
  std::ofstream(path) << text;
  std::string message;
  try {
    const ConfigJson config(path.string(), "others are not run");
    read(config);
  } catch (const model::InputError& error) {
    message = error.what();
    message.erase(0, message.find(": ") + 2);
  }
  fs::remove(path);
  return message;
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
          CHECK(c.Number("rate", 2) == 2);
          CHECK(c.Text("act", "relu") == "gelu");
          CHECK_FALSE(c.Has("none"));
          c.Expect("layers", 2);
          c.Expect("absent", 2);
          CHECK(c.Unasked() == std::vector<std::string>{"other"});
        }).empty());
}

TEST_CASE("what a config.json has wrong is said by its key on one line") {
  const auto refusal = [](const std::string& text, const auto& read) {
    return Refusal(text, read);
  };
  const auto count = [](const ConfigJson& c) { c.Count("n"); };
  CHECK(refusal("[]", count) == "expected an object, got []");
  CHECK(refusal("{}", count) == "n: missing");
  CHECK(refusal(R"({"n": "8"})", count) ==
        "n: expected an integer from 0 to 16777216, got \"8\"");
  CHECK(refusal(R"({"n": -1})", count) ==
        "n: expected an integer from 0 to 16777216, got -1");
  CHECK(refusal(R"({"n": 1})", [](const ConfigJson& c) { c.Share("n"); }) ==
        "n: expected a number from 0 to below 1, got 1");
  CHECK(refusal(R"({"n": 0})", [](const ConfigJson& c) {
          c.Positive("n", 1);
        }) == "n: expected a number above 0, got 0");
  CHECK(refusal(R"({"n": 0})", [](const ConfigJson& c) {
          c.Flag("n", true);
        }) == "n: expected true or false, got 0");
  CHECK(refusal(R"({"n": 0})", [](const ConfigJson& c) { c.Expect("n", 1); }) ==
        "n: expected 1, got 0; others are not run");
}

}  // namespace trainfare::hardware
