#include "trainer/command_line/word_options.h"

#include <doctest/doctest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "trainer/training/options.h"

namespace trainfare::trainer {
namespace {

// What is wrong with a line; empty: nothing.
std::string Refusal(CLI::App& app, const std::string& line) {
  try {
    app.parse(line);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

DOCTEST_TEST_CASE("a word becomes its value, or the option's fault") {
  Padding padding = Padding::kBucketed;
  CLI::App app;
  AddWord(&app, "--padding", padding, PaddingFromText, "Of a batch");
  DOCTEST_CHECK(app.help().find("bucketed") != std::string::npos);
  DOCTEST_CHECK(Refusal(app, "").empty());
  DOCTEST_CHECK(padding == Padding::kBucketed);
  DOCTEST_CHECK(Refusal(app, "--padding dynamic").empty());
  DOCTEST_CHECK(padding == Padding::kDynamic);
  DOCTEST_CHECK(Refusal(app, "--padding no") ==
                "--padding: expected static, dynamic or bucketed, got \"no\"");
  DOCTEST_CHECK(padding == Padding::kDynamic);
}

DOCTEST_TEST_CASE("words between commas are taken one by one, in their order") {
  std::vector<Padding> paddings;
  CLI::App app;
  AddWords(
      &app,
      "--paddings",
      [&](const std::string& word) {
        paddings.push_back(PaddingFromText(word));
      },
      "Of batches");
  DOCTEST_CHECK(Refusal(app, "--paddings static,bucketed").empty());
  const bool both =
      paddings == std::vector<Padding>{Padding::kStatic, Padding::kBucketed};
  DOCTEST_CHECK(both);
  DOCTEST_CHECK(Refusal(app, "--paddings static,no") ==
                "--paddings: expected static, dynamic or bucketed, got \"no\"");
}

}  // namespace
}  // namespace trainfare::trainer
