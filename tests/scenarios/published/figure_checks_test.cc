// Formulas of a document, worked by hand.

#include "scenarios/published/figure_checks.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "calibrate/records/import/published_check.h"
#include "calibrate/records/import/published_reader.h"
#include "model/error.h"
#include "scenarios/published/quantities.h"
#include "tests/hardware/temporary_folder.h"
#include "tests/near.h"
#include "tests/scenarios/published/shipped.h"

namespace trainfare::scenarios {
namespace {

using calibrate::Published;
using calibrate::PublishedRow;

constexpr const char* kRest =
    "schema: trainfare.published/1\n"
    "title: t\n"
    "document: d\n"
    "sources: { t: { records: r, ref: table 1 } }\n"
    "groups: [{ name: g, title: g, chosen_on_these_rows: no }]\n"
    "quantities: { weight.time: { measure: ratio }, layer_time: { measure: "
    "time }, score: { measure: ratio } }\n"
    "runs:\n"
    "  a: { device: t4, device_count: 2, price: 3600 USD/h, epochs: 3, "
    "batch: 8 }\n"
    "  b: { batch: 4 }\n"
    "rows:\n"
    // Of 0.5 s and of 0.05 s at most.
    "  - { run: a, group: g, quantity: run_time, value: 20 s, use: check, "
    "from: [t/x] }\n"
    "  - { run: b, group: g, quantity: run_time, value: 40 s, use: check, "
    "from: [t/x] }\n"
    "  - { run: b, group: g, quantity: weight.time, value: 0.5, use: check, "
    "from: [t/x] }\n"
    "  - { run: a, group: g, quantity: layer_time, part: head, value: 5 s, "
    "use: check, from: [t/x] }\n"
    "  - { run: a, group: g, quantity: allreduce_time, part: head, value: 9 "
    "s, use: check, from: [t/x] }\n"
    "  - { run: a, group: g, quantity: score, part: b, value: 1, use: check, "
    "from: [t/x] }\n"
    "  - { run: b, group: g, quantity: score, value: 1, use: check, "
    "from: [t/x] }\n"
    "checks:\n";

Published Document(const std::string& check) {
  const hardware::TemporaryFolder folder;
  folder.Write("f.yaml", kRest + check);
  return calibrate::LoadPublished(folder.path());
}

// What the check of a's score gives.
PublishedAnswer Checked(const std::string& formula) {
  const Published published = Document("  score: " + formula + "\n");
  return CheckFigure(published, *published.Find("a/score/b"));
}

// Why that of b's gives nothing.
std::string WhyNot(const std::string& formula) {
  const Published published = Document("  score: " + formula + "\n");
  try {
    CheckFigure(published, *published.Find("b/score"));
  } catch (const model::InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a formula is worked out of printed figures and facts of the run") {
  // 3600 USD/h of each of two devices are 2 USD/s.
  const PublishedAnswer cost =
      Checked("{ product: [{ printed: run_time }, { run: price }] }");
  CHECK(*cost.value == Near(40, 1e-12));
  CHECK_FALSE(cost.low.has_value());
  CHECK(*Checked("{ difference: [{ quotient: [{ sum: [{ run: epochs }, { run: "
                 "batch }, { number: 11 }] }, { run: device_count }] }, "
                 "{ printed: weight.time, of: part }] }")
             .value == 10.5);
  CHECK(*Checked("{ device: memory.bandwidth }").value == 320e9);
  CHECK(*Checked("{ device: peak.fp16_dense }").value == 65e12);
}

TEST_CASE("a check says which figure it lacks") {
  CHECK(WhyNot("{ printed: energy }") == "b/energy is not printed");
  CHECK(WhyNot("{ printed: layer_time, part: head }") ==
        "b/layer_time/head is not printed");
  CHECK(WhyNot("{ printed: energy, of: part }") ==
        "of which run is not stated: the row has no part");
  CHECK(WhyNot("{ run: price }") == "the price of the day is not stated");
  CHECK(WhyNot("{ run: epochs }") == "the epochs are not stated");
  CHECK(WhyNot("{ run: sequence_length }") == "the length is not stated");
  CHECK(WhyNot("{ run: steps }") == "the steps are not stated");
  CHECK(WhyNot("{ device: memory.capacity }") == "the device is not stated");
  CHECK(WhyNot("{ quotient: [{ run: batch }, { number: 0 }] }") ==
        "its check divides by nothing");
  CHECK(WhyNot("{ run: batch }") == "no error");
  // T4 has no bf16.
  CHECK_THROWS_WITH_AS(Checked("{ device: peak.bf16_dense }"),
                       "the device has no bf16",
                       model::InputError);
}

TEST_CASE("figures are arithmetic where all that they are of is printed") {
  const Published published = Document(
      "  score: { product: [{ printed: run_time }, { printed: weight.time }] "
      "}\n");
  CHECK_FALSE(FiguresArePrinted(published, *published.Find("a/score/b")));
  CHECK(FiguresArePrinted(published, *published.Find("b/score")));
}

TEST_CASE("every check of the data has rows, and every figure a way") {
  const auto& rows = PublishedPredictionsBy(PublishedProtocol::kAsShipped).rows;
  int64_t checked = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const PublishedRow& row = AllPublished().rows[i];
    CAPTURE(row.id);
    const QuantityAnswer& line = AnswerOf(row.quantity);
    CHECK((line.of_job == nullptr || row.why_not.empty()));
    const bool counts = row.use == calibrate::PublishedUse::kFit ||
                        row.use == calibrate::PublishedUse::kCheck;
    if (!counts) continue;
    CHECK((line.of_job != nullptr || !row.why_not.empty() ||
           row.check != nullptr));
    CHECK(rows[i].checks_data == (row.check != nullptr));
    if (rows[i].checks_data) ++checked;
  }
  CHECK(checked == 118);
}

}  // namespace trainfare::scenarios
