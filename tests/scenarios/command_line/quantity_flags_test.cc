#include "scenarios/command_line/quantity_flags.h"

#include <doctest/doctest.h>

#include "model/error.h"
#include "model/units.h"
#include "tests/units.h"

namespace trainfare::scenarios {

TEST_CASE("limits of the command line need their units") {
  CHECK(TimeFlag("--deadline", "4h") == model::Hours(4));
  CHECK(MoneyFlag("--budget", "20usd") == model::Dollars(20));
  CHECK_THROWS_WITH_AS(TimeFlag("--deadline", "4"),
                       "--deadline: expected a time such as \"4h\", got \"4\"; "
                       "a number needs its unit",
                       model::InputError);
  CHECK_THROWS_AS(TimeFlag("--deadline", "-4h"), model::InputError);
  CHECK_THROWS_AS(MoneyFlag("--budget", "20 EUR"), model::InputError);
  // As it was typed, not as the reader has it.
  CHECK_THROWS_WITH_AS(
      MoneyFlag("--budget", "-4usd"),
      "--budget: expected an amount above 0 such as \"20 USD\", got \"-4usd\"",
      model::InputError);
}

}  // namespace trainfare::scenarios
