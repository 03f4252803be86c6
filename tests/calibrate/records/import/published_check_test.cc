#include "calibrate/records/import/published_check.h"

#include <doctest/doctest.h>

#include <string>

#include "calibrate/records/import/published_reader.h"
#include "model/error.h"
#include "tests/hardware/temporary_folder.h"

namespace trainfare::calibrate {
namespace {

// Beside each file with checks: what its document prints that no job answers.
constexpr const char* kOfDocument =
    "schema: trainfare.published/1\n"
    "title: t\n"
    "document: d\n"
    "quantities: { cost: { measure: money }, score: { measure: ratio } }\n";

// A document whose checks are those lines, each indented by two.
std::string WithChecks(const std::string& checks) {
  return "schema: trainfare.published/1\n"
         "title: t\n"
         "document: d\n"
         "checks:\n" +
         checks;
}

// The whole message that loading it fails with.
std::string CheckRefusal(const std::string& checks) {
  const hardware::TemporaryFolder folder;
  folder.Write("f.yaml", WithChecks(checks));
  folder.Write("q.yaml", kOfDocument);
  return hardware::MessageOf<model::InputError>(
      folder, [&folder] { LoadPublished(folder.path()); });
}

}  // namespace

TEST_CASE("a check that cannot be read is refused where it stands") {
  CHECK(
      CheckRefusal("  cost: { product: [{ run: epochs }, { number: 2 }] }\n") ==
      "no error");
  CHECK(CheckRefusal("  coast: { run: price }\n")
            .starts_with("f.yaml:5:10: checks.coast: unknown quantity "
                         "\"coast\"; known: achieved_flops, "));
  CHECK(CheckRefusal("  cost: { printed: run_tim }\n")
            .starts_with("f.yaml:5:20: checks.cost.printed: unknown quantity "
                         "\"run_tim\"; known: "));
  CHECK(CheckRefusal("  cost: { run: prize }\n") ==
        "f.yaml:5:16: checks.cost.run: expected one of price, device_count, "
        "batch, sequence_length, epochs, steps, got \"prize\"; did you mean "
        "\"price\"?");
  CHECK(CheckRefusal(
            "  cost: { product: [{ number: 1 }, { device: peak.bf17 }] }\n")
            .starts_with("f.yaml:5:46: checks.cost.product[1].device: expected "
                         "one of memory.capacity, memory.bandwidth, "));
  CHECK(CheckRefusal("  cost: { prodct: [] }\n") ==
        "f.yaml:5:9: checks.cost: expected one of number, printed, run, "
        "device, product, quotient, sum, difference, got prodct");
  CHECK(CheckRefusal("  cost: {}\n").ends_with("difference, got none"));
  CHECK(CheckRefusal("  cost: { run: price, number: 1 }\n") ==
        "f.yaml:5:16: checks.cost.run: expected one operation, got number "
        "beside it");
  CHECK(CheckRefusal("  cost: { run: price, prat: head }\n")
            .starts_with("f.yaml:5:23: checks.cost: unknown key \"prat\""));
  CHECK(CheckRefusal("  cost: { product: [{ run: price }] }\n") ==
        "f.yaml:5:20: checks.cost.product: expected two operands or more, "
        "got 1");
  CHECK(CheckRefusal(
            "  cost:\n"
            "    quotient: [{ number: 1 }, { number: 2 }, { number: 3 }]\n")
            .ends_with("checks.cost.quotient: expected two operands, got 3"));
  CHECK(CheckRefusal("  score: { printed: cost, of: parts }\n")
            .starts_with("f.yaml:5:31: checks.score.of: expected one of part, "
                         "got \"parts\""));
}

TEST_CASE("the checks of a document are those of all its files, each once") {
  const hardware::TemporaryFolder folder;
  const auto message = [&folder] {
    return hardware::MessageOf<model::InputError>(
        folder, [&folder] { LoadPublished(folder.path()); });
  };
  folder.Write("q.yaml", kOfDocument);
  folder.Write("f.yaml", WithChecks("  cost: { run: price }\n"));
  folder.Write(
      "g.yaml",
      "schema: trainfare.published/1\n"
      "title: t\n"
      "document: d\n"
      "sources: { t: { records: r, ref: table 1 } }\n"
      "groups: [{ name: cost, title: c, chosen_on_these_rows: no }]\n"
      "runs: { a: { device: t4 } }\n"
      "rows:\n"
      "  - { run: a, group: cost, quantity: cost, value: 1 USD, use: check, "
      "from: [t/x] }\n"
      "  - { run: a, group: cost, quantity: score, value: 1, use: check, "
      "from: [t/x] }\n");
  const Published published = LoadPublished(folder.path());
  CHECK(published.Find("a/cost")->check != nullptr);
  CHECK(published.Find("a/score")->check == nullptr);
  folder.Write("h.yaml", WithChecks("  cost: { run: epochs }\n"));
  CHECK(message() ==
        "h.yaml:5:9: checks.cost: expected a new check, got one of another "
        "file");
}

TEST_CASE("a quantity that no job answers stands in its document alone") {
  const auto refusal = [](const std::string& quantities,
                          const std::string& second = "d") {
    const hardware::TemporaryFolder folder;
    const std::string rest = "quantities: { " + quantities +
                             " }\n"
                             "sources: { t: { records: r, ref: table 1 } }\n";
    folder.Write(
        "f.yaml",
        "schema: trainfare.published/1\ntitle: t\ndocument: d\n" + rest);
    folder.Write(
        "g.yaml",
        "schema: trainfare.published/1\ntitle: t\ndocument: " + second +
            "\nsources: { t: { records: r, ref: table 1 } }\n"
            "groups: [{ name: g, title: g, chosen_on_these_rows: no }]\n"
            "runs: { a: { device: t4 } }\n"
            "rows:\n"
            "  - { run: a, group: g, quantity: heat, value: 3 J, use: check, "
            "from: [t/x] }\n");
    return hardware::MessageOf<model::InputError>(
        folder, [&folder] { LoadPublished(folder.path()); });
  };
  CHECK(refusal("heat: { measure: energy, why_not: \"of no job\" }") ==
        "no error");
  // Another document does not know it.
  CHECK(refusal("heat: { measure: energy }", "e")
            .starts_with("g.yaml:8:35: rows[0].quantity: unknown quantity "
                         "\"heat\"; known: achieved_flops, "));
  CHECK(refusal("heat: { measure: ratio }")
            .starts_with("g.yaml:8:48: rows[0].value: expected a share such"));
  CHECK(refusal("heat: { measure: warmth }") ==
        "f.yaml:4:32: quantities.heat.measure: expected one of bytes, "
        "bandwidth, compute rate, time, power, energy, money, price, ratio, "
        "share, count, got \"warmth\"");
  CHECK(refusal("heat: { measure: energy }, energy: { measure: energy }") ==
        "f.yaml:4:50: quantities.energy: expected a quantity that no job "
        "answers, got one");
  const hardware::TemporaryFolder folder;
  folder.Write("q.yaml", kOfDocument);
  folder.Write("r.yaml", kOfDocument);
  CHECK(hardware::MessageOf<model::InputError>(
            folder, [&folder] { LoadPublished(folder.path()); })
            .ends_with("quantities.cost: expected a new quantity, got one of "
                       "another file"));
}

}  // namespace trainfare::calibrate
