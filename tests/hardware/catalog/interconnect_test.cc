#include "hardware/catalog/interconnect.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "hardware/files/data_directory.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "tests/hardware/temporary_folder.h"

namespace trainfare::hardware {

TEST_CASE("every shipped interconnect loads") {
  const std::vector<std::string> files =
      YamlFiles(DataDirectory("interconnects"));
  CHECK_FALSE(files.empty());
  for (const std::string& file : files) {
    const Interconnect interconnect = LoadInterconnect(file);
    CAPTURE(interconnect.name);
    CHECK(interconnect.bandwidth >= model::GBPerSecond(1));
    CHECK(interconnect.latency >= model::Microseconds(0.5));
    CHECK(interconnect.source.find("(20") != std::string::npos);
  }
}

TEST_CASE("bandwidths are of one direction") {
  CHECK(FormatBandwidth(FindInterconnect("nvlink4").bandwidth) == "450 GB/s");
  CHECK(FindInterconnect("nvlink4").sums_in_switch);
  CHECK_FALSE(FindInterconnect("nvlink3").sums_in_switch);
  // What passes the processor between two root ports, out of 31.5 GB/s.
  CHECK(FormatBandwidth(FindInterconnect("pcie4").bandwidth) == "10 GB/s");
  // 100 Gbit/s are 12.5 GB/s.
  CHECK(FormatBandwidth(FindInterconnect("ethernet_100g").bandwidth) ==
        "12.5 GB/s");
  CHECK(FindInterconnect("efa").reach == InterconnectReach::kNetwork);
  CHECK(ToText(FindInterconnect("pcie3").reach) == "host");
}

TEST_CASE("an unknown interconnect gets the nearest names") {
  CHECK_THROWS_WITH_AS(FindInterconnect("nvlnk4"),
                       "unknown interconnect \"nvlnk4\"; did you mean "
                       "\"nvlink4\", \"nvlink2\" or \"nvlink3\"?",
                       model::InputError);
}

TEST_CASE("one bad interconnect file per message") {
  const auto message = [](const std::string& text) {
    const TemporaryFolder folder;
    const std::string path = folder.Write("i.yaml", text);
    return MessageOf<model::InputError>(folder,
                                        [&] { LoadInterconnect(path); });
  };
  const std::string rest = "source: s\ndate: 2026-11-20\n";
  CHECK(message("reach: host\nbandwidth: 3 GB/s\nlatency: 1 us\n" + rest) ==
        "no error");
  CHECK(message("reach: hots\nbandwidth: 3 GB/s\nlatency: 1 us\n" + rest) ==
        "i.yaml:1:8: reach: expected one of host, network, got \"hots\"; did "
        "you mean \"host\"?");
  CHECK(message("reach: host\nbandwidth: 3 MB/s\nlatency: 1 us\n" + rest) ==
        "i.yaml:2:12: bandwidth: out of the range that a link can have; is "
        "the prefix right?");
  CHECK(message("reach: host\nbandwidth: 3 GB/s\nlatency: 1 s\n" + rest) ==
        "i.yaml:3:10: latency: expected at most 10 ms; is the prefix right?");
  CHECK(message("reach: host\nbandwidth: 3 GB/s\nlatency: 1\n" + rest) ==
        "i.yaml:3:10: latency: expected a time such as \"5 us\", got 1; a "
        "number needs its unit");
}

}  // namespace trainfare::hardware
