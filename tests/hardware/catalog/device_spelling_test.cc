#include "hardware/catalog/device_spelling.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hardware/catalog/device.h"
#include "model/error.h"

namespace trainfare::hardware {
namespace {

const std::vector<Device>& All() { return DeviceCatalog::Shipped().devices(); }

std::vector<DeviceNames> AllNames() {
  std::vector<DeviceNames> names;
  for (const Device& device : All()) {
    DeviceNames one{
        device.name, {device.reported_name}, device.memory_capacity};
    one.others.insert(
        one.others.end(), device.aliases.begin(), device.aliases.end());
    names.push_back(one);
  }
  return names;
}

std::string Named(std::string_view name) {
  const auto found = SpelledAlike(AllNames(), name);
  return found ? All()[*found].name : "";
}

std::vector<std::string> Meant(std::string_view name) {
  const auto names = PerhapsMeant(AllNames(), name);
  return {names.begin(), names.end()};
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a device is found however people spell it") {
  for (const auto& names : std::vector<std::pair<const char*, const char*>>{
           {"H100 PCIe", "h100_pcie"},
           {"nvidia h100 80gb hbm3", "h100_sxm"},
           {"H100-80GB-SXM5", "h100_sxm"},
           {"H100 SXM", "h100_sxm"},
           {"H100-SXM5-96GB", "h100_sxm_96gb"},
           {"H100-SXM 96GB HBM2e 500W", "h100_sxm_96gb_500w"},
           {"H100 NVL 94 GB", "h100_nvl"},
           {"NVIDIA H200 SXM 141GB", "h200_sxm"},
           {"A100-SXM-80GB", "a100_sxm4_80gb"},
           {"V100-SXM3-32GB", "v100_sxm3_32gb"},
           {"RTX4090", "rtx_4090"},
           {"4090", "rtx_4090"},
           {"GeForce RTX 3080 10GB", "rtx_3080_10gb"},
           {"A5000", "rtx_a5000"},
           {"NVIDIA L4 24GB", "l4"},
           {"GB200 NVL72", "gb200"},
           {"AMD Instinct MI300X OAM", "mi300x"},
           {"TPU v5p", "tpu_v5p"},
           {"Cloud TPU v4", "tpu_v4"},
           {"Gaudi 2", "gaudi2"},
           {"Titan RTX", "titan_rtx"},
           {"RTX PRO 6000 Blackwell Server Edition",
            "rtx_pro_6000_blackwell"}}) {
    CAPTURE(names.first);
    CHECK(Named(names.first) == names.second);
  }
}

TEST_CASE("of several devices, and of other memory, none is found") {
  CHECK(Named("H100").empty());           // 80 and 96 GB
  CHECK(Named("A100 SXM4").empty());      // 40 and 80 GB
  CHECK(Named("V100 SXM 32GB").empty());  // SXM2 and SXM3
  CHECK(Named("RTX 4090 48GB").empty());
  CHECK(Named("L40S 24GB").empty());
  for (const char* none :
       {"", " ", "GPU", "NVIDIA", "80GB", "rtx", "sxm", "\xf0"}) {
    CAPTURE(none);
    CHECK(Named(none).empty());
  }
}

TEST_CASE("every device's names are its own") {
  for (const Device& device : All()) {
    CAPTURE(device.name);
    CHECK(Named(device.name) == device.name);
  }
}

TEST_CASE("names that may be meant begin alike and have the memory") {
  CHECK(Meant("P100") == Names{"p100_pcie_16gb"});
  CHECK(Meant("V100 PCIe") == Names{"v100_pcie_16gb", "v100_pcie_32gb"});
  CHECK(Meant("A100 PCIe 80 GB") == Names{"a100_pcie_80gb"});
  CHECK(Meant("RTX 6000") ==
        Names{"quadro_rtx_6000", "rtx_6000_ada", "rtx_pro_6000_blackwell"});
  CHECK(Meant("RTX 4060 Laptop") == Names{"rtx_4060"});
  CHECK(Meant("RTX 4090 48GB") == Names{"rtx_4090"});
  CHECK(Meant("K80").empty());
  CHECK(Meant("").empty());
  CHECK(Meant("a").empty());
}

TEST_CASE("the usual form of a family says that there are others") {
  const DeviceCatalog& catalog = DeviceCatalog::Shipped();
  CHECK(catalog.TryFind("H100") == nullptr);  // tables have to say which
  for (const char* name : {"H100", "nvidia h100"}) {
    CHECK(catalog.FindUsual(name).name == "h100_sxm");
  }
  CHECK_THROWS_AS(catalog.FindUsual("H100 64GB"), model::InputError);
  CHECK(catalog.TakenAs("A100") ==
        "A100 is taken as a100_sxm4_40gb; others: a100_pcie_40gb, "
        "a100_pcie_80gb, a100_sxm4_80gb");
  CHECK(catalog.TakenAs("A100 80GB") ==
        "A100 80GB is taken as a100_sxm4_80gb; others: a100_pcie_80gb");
  CHECK(catalog.TakenAs("H200") ==
        "H200 is taken as h200_sxm; others: h200_nvl");
  CHECK(catalog.TakenAs("H100").has_value());
  for (const char* one : {"A100-SXM4-40GB",
                          "a100_sxm4_40gb",
                          "NVIDIA H200",
                          "L4",
                          "4090",
                          "cpu",
                          "B200",
                          "no such device"}) {
    CAPTURE(one);
    CHECK_FALSE(catalog.TakenAs(one));
  }
}

TEST_CASE("the case of no letter of a name counts") {
  const DeviceCatalog& catalog = DeviceCatalog::Shipped();
  const auto cased = [](std::string name, int (*change)(int)) {
    std::transform(name.begin(), name.end(), name.begin(), [&](char letter) {
      return static_cast<char>(change(static_cast<unsigned char>(letter)));
    });
    return name;
  };
  int names = 0;
  for (const Device& device : All()) {
    std::vector<std::string> all = device.aliases;
    all.insert(all.end(), device.usual_of.begin(), device.usual_of.end());
    all.push_back(device.name);
    if (!device.reported_name.empty()) all.push_back(device.reported_name);
    for (const std::string& name : all) {
      CAPTURE(name);
      for (const auto& change : {::tolower, ::toupper}) {
        CHECK(catalog.FindUsual(cased(name, change)).name == device.name);
        CHECK(catalog.TakenAs(cased(name, change)).has_value() ==
              catalog.TakenAs(name).has_value());
      }
      ++names;
    }
  }
  CHECK(names > 300);
  CHECK(catalog.Find("a100").name == "a100_sxm4_40gb");
  CHECK(catalog.Find("v100").name == "v100_sxm2_32gb");
}

TEST_CASE("a family of which one device alone is known is that device") {
  const DeviceCatalog& catalog = DeviceCatalog::Shipped();
  CHECK(catalog.TryFind("P100") == nullptr);  // tables have to say which
  for (const char* name : {"P100", "Tesla p100", "P100 16GB"}) {
    CAPTURE(name);
    CHECK(catalog.FindUsual(name).name == "p100_pcie_16gb");
  }
  CHECK(catalog.TakenAs("P100") ==
        "P100 is taken as p100_pcie_16gb, the only one known");
  CHECK_FALSE(catalog.TakenAs("Tesla P100-PCIE-16GB"));
  // Of other memory, another of its series, several: none.
  for (const char* none : {"P100 12GB", "RTX 5060", "RTX 4000", "DGX", "RTX"}) {
    CAPTURE(none);
    CHECK_THROWS_AS(catalog.FindUsual(none), model::InputError);
  }
}

}  // namespace trainfare::hardware
