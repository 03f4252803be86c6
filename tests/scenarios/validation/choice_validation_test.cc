#include "scenarios/validation/choice_validation.h"

#include <doctest/doctest.h>

#include "tests/near.h"

namespace trainfare::scenarios {
namespace {

MeasuredAnswer MeasuredAs(const char* question,
                          const char* device,
                          double measured,
                          double predicted) {
  return {question,
          device,
          model::Second(measured),
          {predicted, predicted / 1.2, predicted * 1.2}};
}

}  // namespace

TEST_CASE("a choice between devices, as predicted and as measured") {
  const auto choices = ChoicesOf({MeasuredAs("a", "t4", 10, 9),
                                  MeasuredAs("a", "t4", 12, 9),
                                  MeasuredAs("a", "t4", 30, 9),
                                  MeasuredAs("a", "l4", 11.8, 10),
                                  MeasuredAs("alone", "l4", 1, 1)},
                                 {{"l4", 0.5}});
  // Only one of them has a price, so none by cost.
  REQUIRE(choices.size() == 1);
  const MeasuredChoice& choice = choices.front();
  CHECK(choice.objective == "time");
  REQUIRE(choice.entries.size() == 2);
  CHECK(choice.entries[0].device == "t4");
  CHECK(choice.entries[0].measured == model::Second(12.0));  // the median
  CHECK_FALSE(choice.entries[0].best);
  CHECK(choice.entries[1].best);
  CHECK(choice.regret == Near(12 / 11.8 - 1, 1e-5));
  CHECK(choice.entries[0].best_probability > 0.5);
  CHECK(choice.entries[0].best_probability +
            choice.entries[1].best_probability ==
        Near(1.0, 1e-5));
  CHECK(ChoiceNote(choices).starts_with(
      "choices: of 1 between devices by time or cost 0 are the best as "
      "measured, 1 or within 3 % of it; 0.9"));
}

TEST_CASE("by cost the price of a device counts, of those that have one") {
  const auto choices = ChoicesOf({MeasuredAs("a", "t4", 10, 10),
                                  MeasuredAs("a", "l4", 8, 8),
                                  MeasuredAs("a", "p4", 1, 1)},
                                 {{"t4", 0.5}, {"l4", 0.7}});
  REQUIRE(choices.size() == 2);
  CHECK(choices[0].entries.front().device == "p4");
  CHECK(choices[1].objective == "cost");
  REQUIRE(choices[1].entries.size() == 2);
  CHECK(choices[1].entries.front().device == "t4");  // 5.0 before 5.6
  CHECK(choices[1].regret == 0.0);
}

TEST_CASE("nothing to choose from") {
  CHECK(
      ChoicesOf({MeasuredAs("a", "t4", 1, 1), MeasuredAs("b", "l4", 1, 1)}, {})
          .empty());
  CHECK(ChoiceNote({}).empty());
}

TEST_CASE("a device is rented where it is cheapest") {
  const DevicePrices shipped = ShippedDevicePrices();
  CHECK(shipped.sources.size() >= 3);
  const auto& prices = shipped.of_device;
  CHECK(prices.at("l4") < 1.0);
  CHECK(prices.at("h100_sxm") > prices.at("l4"));
  CHECK_FALSE(prices.contains("groq_lpu"));
}

}  // namespace trainfare::scenarios
