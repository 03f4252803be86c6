#include "hardware/files/unit_text.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <limits>
#include <string>

#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::hardware {
namespace {

template <class Q>
void CheckParsed(const char* text, double base) {
  CAPTURE(text);
  const std::optional<Q> parsed = ParseQuantity<Q>(text);
  REQUIRE(parsed.has_value());
  CHECK(parsed->base() == Near(base, 1e-12));
}

template <class Q>
void CheckRefused(std::initializer_list<const char*> texts) {
  for (const char* text : texts) {
    CAPTURE(text);
    CHECK_FALSE(ParseQuantity<Q>(text).has_value());
  }
}

}  // namespace

TEST_CASE("quantities are read in their unit") {
  CheckParsed<model::Bytes<>>("141 GB", 141e9);
  CheckParsed<model::Bytes<>>("80 GiB", 85899345920.0);
  CheckParsed<model::Bytes<>>("80GiB", 85899345920.0);
  CheckParsed<model::Bytes<>>("1 KB", 1000.0);
  CheckParsed<model::Bytes<>>("1 KiB", 1024.0);
  CheckParsed<model::Bytes<>>("8 Gb", 1e9);
  CheckParsed<model::BytesPerSecond<>>("4.8 TB/s", 4.8e12);
  CheckParsed<model::BytesPerSecond<>>("100 Gbit/s", 12.5e9);
  CheckParsed<model::BytesPerSecond<>>("100 Gb/s", 12.5e9);
  CheckParsed<model::FlopsPerSecond<>>("989 TFLOP/s", 989e12);
  CheckParsed<model::Flops<>>("12 GFLOP", 12e9);
  CheckParsed<model::Watts<>>("300 W", 300.0);
  CheckParsed<model::Watts<>>("5 mW", 5e-3);
  CheckParsed<model::Watts<>>("5 MW", 5e6);
  CheckParsed<model::Hertz<>>("1.41 GHz", 1.41e9);
  CheckParsed<model::Seconds<>>("5 us", 5e-6);
  CheckParsed<model::Seconds<>>("5 \u00b5s", 5e-6);
  CheckParsed<model::Seconds<>>("2 h", 7200.0);
  CheckParsed<model::Seconds<>>("1e-3 s", 1e-3);
  CheckParsed<model::Seconds<>>("+5 us", 5e-6);
  CheckParsed<model::UsdPerSecond<>>("2.75 USD/h", 2.75 / 3600.0);
  CheckParsed<model::Joules<>>("2 kWh", 7.2e6);
  CheckParsed<model::Usd<>>("3 USD", 3.0);
}

TEST_CASE("a time may have parts, money its sign") {
  CheckParsed<model::Seconds<>>("90m", 5400.0);
  CheckParsed<model::Seconds<>>("1h30min", 5400.0);
  CheckParsed<model::Seconds<>>("1h 30m", 5400.0);
  CheckParsed<model::Seconds<>>("2 d 4 h", 52 * 3600.0);
  CheckParsed<model::Seconds<>>("1 h 2 min 3.5 s", 3723.5);
  CheckParsed<model::Usd<>>("$5", 5.0);
  CheckParsed<model::Usd<>>("$ 0.25", 0.25);
  CheckParsed<model::UsdPerSecond<>>("$2.75/h", 2.75 / 3600.0);
  // What the program prints of a time it reads again.
  for (const double seconds : {45.0, 754.0, 12000.0, 187200.0}) {
    const std::string text = FormatTime(model::Seconds<>(seconds));
    CAPTURE(text);
    CheckParsed<model::Seconds<>>(text.c_str(), seconds);
  }
  CheckRefused<model::Seconds<>>({"30min1h",
                                  "1h90min",
                                  "1h1h",
                                  "1h 30",
                                  "30 1h",
                                  "1h-30min",
                                  "-1h30min",
                                  "1h0min",
                                  "1hmin",
                                  "$5"});
  CHECK_FALSE(ParseQuantity<model::Usd<>>("$").has_value());
  CHECK_FALSE(ParseQuantity<model::Usd<>>("$5 USD").has_value());
  CHECK_FALSE(ParseQuantity<model::Usd<>>("1USD2USD").has_value());
}

TEST_CASE("zero alone needs no unit") {
  CHECK(ParseQuantity<model::Bytes<>>("0")->base() == 0.0);
  CHECK(ParseQuantity<model::Bytes<>>("0.0")->base() == 0.0);
}

TEST_CASE("what is not a finite number with a unit of its kind is refused") {
  CheckRefused<model::Bytes<>>({"",
                                " ",
                                "GB",
                                "141",
                                "141 gb",
                                "1,4 GB",
                                "nan GB",
                                "inf GB",
                                "-inf GB",
                                "141 GB/s",
                                "0x10 B",
                                "1e999 B",
                                "141 GB x",
                                "1 2 GB",
                                "--1 B",
                                "+-1 B",
                                "141 GBs"});
  CHECK_FALSE(ParseQuantity<model::Bytes<>>("1e300 PB").has_value());
  CHECK_FALSE(ParseQuantity<model::BytesPerSecond<>>("1 TB").has_value());
  CHECK_FALSE(ParseQuantity<model::FlopsPerSecond<>>("1 TFLOPS").has_value());
}

TEST_CASE("a quantity beyond any real one is refused with its range") {
  CHECK_FALSE(ParseQuantity<model::Seconds<>>("1e308 s").has_value());
  CHECK_FALSE(ParseQuantity<model::FlopsPerSecond<>>("1e-300 TFLOP/s"));
  CHECK(UnitHint(Dimension::kTime, "1e308 h") ==
        "; it must be from 2.78e-19 to 2.78e+08 h");
}

TEST_CASE("plain numbers") {
  CHECK(ParseNumber("1.5") == 1.5);
  CHECK(ParseNumber("-1e3") == -1000.0);
  CHECK_FALSE(ParseNumber("1.5 s").has_value());
  CHECK_FALSE(ParseNumber(".").has_value());
  CHECK_FALSE(ParseNumber("nan").has_value());
  CHECK(ParseInteger("-7") == -7);
  CHECK(ParseInteger("+7") == 7);
  CHECK_FALSE(ParseInteger("7.0").has_value());
  CHECK_FALSE(ParseInteger("9223372036854775808").has_value());
  CHECK_FALSE(ParseInteger("").has_value());
}

TEST_CASE("quantities are printed for people") {
  using namespace model;  // NOLINT(google-build-using-namespace): makers
  CHECK(FormatBytes(GiB(27.85)) == "27.85 GiB");
  CHECK(FormatBytes(Byte(512)) == "512 B");
  CHECK(FormatBytes(Byte(0)) == "0 B");
  CHECK(FormatDecimalBytes(GB(141)) == "141 GB");
  CHECK(FormatDecimalBytes(Byte(999.96e6)) == "1 GB");
  CHECK(FormatBandwidth(GBPerSecond(4800)) == "4.8 TB/s");
  CHECK(FormatBandwidth(GBPerSecond(12.5)) == "12.5 GB/s");
  CHECK(FormatComputeRate(TFlopPerSecond(494.5)) == "494.5 TFLOP/s");
  CHECK(FormatFlops(Flop(1.2345e13)) == "12.35 TFLOP");
  CHECK(FormatPower(Watt(700)) == "700 W");
  CHECK(FormatPower(Watt(15000)) == "15 kW");
  CHECK(FormatTime(Milliseconds(412.34)) == "412.3 ms");
  CHECK(FormatTime(Microseconds(5)) == "5 us");
  CHECK(FormatTime(Seconds<>(59.99)) == "59.99 s");
  CHECK(FormatTime(Seconds<>(59.996)) == "1 min");
  CHECK(FormatTime(Seconds<>(725)) == "12 min 5 s");
  CHECK(FormatTime(Seconds<>(3599.9)) == "1 h");
  CHECK(FormatTime(Seconds<>(12000)) == "3 h 20 min");
  CHECK(FormatTime(Seconds<>(187200)) == "2 d 4 h");
  CHECK(FormatTime(Seconds<>(0)) == "0 s");
  CHECK(FormatTime(Seconds<>(-0.5)) == "-500 ms");
  CHECK(FormatEnergy(Joule(12.3)) == "12.3 J");
  CHECK(FormatEnergy(KilowattHours(1.234567)) == "1.235 kWh");
  CHECK(FormatMoney(Dollars(1.374)) == "$1.37");
  CHECK(FormatMoney(Dollars(12345.678)) == "$12345.68");
  CHECK(FormatMoney(Dollars(0.0042134)) == "$0.004213");
  CHECK(FormatMoney(Dollars(0)) == "$0.00");
  CHECK(FormatPrice(DollarsPerHour(21.957642)) == "21.96 USD/h");
  CHECK(FormatTime(Seconds<>(std::numeric_limits<double>::infinity())) ==
        "inf s");
}

}  // namespace trainfare::hardware
