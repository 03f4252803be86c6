#include "hardware/catalog/instance.h"

#include <doctest/doctest.h>

#include <set>

#include "hardware/catalog/device.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "tests/hardware/temporary_folder.h"

namespace trainfare::hardware {

TEST_CASE("every shipped instance has a known device and known links") {
  const InstanceCatalog& catalog = InstanceCatalog::Shipped();
  CHECK(catalog.instances().size() == 138 + 75);
  std::set<std::string> clouds;
  std::set<std::string> only_named;
  for (const Instance& instance : catalog.instances()) {
    CAPTURE(instance.FullName());
    clouds.insert(instance.cloud);
    if (!instance.named_only.empty()) only_named.insert(instance.cloud);
    const Device* device = DeviceCatalog::Shipped().TryFind(instance.device);
    REQUIRE(device != nullptr);
    CHECK(device->name == instance.device);
    if (instance.between_devices) {
      CHECK(instance.between_devices->Resolve().reach ==
            InterconnectReach::kHost);
    }
    if (instance.network) {
      CHECK(instance.network->Resolve().reach == InterconnectReach::kNetwork);
    }
    // A host of less could not feed its devices.
    CHECK(instance.host_memory >=
          model::GiB(4.0 * static_cast<double>(instance.count)));
  }
  CHECK(clouds ==
        std::set<std::string>{
            "aws", "azure", "gcp", "lambda", "nebius", "vast", "verda"});
  CHECK(only_named == std::set<std::string>{"nebius", "vast", "verda"});
}

TEST_CASE("names of two clouds do not collide") {
  std::set<std::string> names;
  for (const Instance& instance : InstanceCatalog::Shipped().instances()) {
    CAPTURE(instance.name);
    CHECK(names.insert(instance.name).second);
  }
}

TEST_CASE("an instance is found with or without its cloud") {
  const InstanceCatalog& catalog = InstanceCatalog::Shipped();
  const Instance& p4d = catalog.Find("aws/p4d.24xlarge");
  CHECK(&p4d == &catalog.Find("P4D.24xlarge"));
  CHECK(p4d.device == "a100_sxm4_40gb");
  CHECK(p4d.count == 8);
  CHECK(p4d.vcpus == 96);
  CHECK(FormatBytes(p4d.host_memory) == "1.125 TiB");
  CHECK(p4d.between_devices->interconnect == "nvlink3");
  // The bandwidth of the instance, not that of the file.
  CHECK(FormatBandwidth(p4d.network->Resolve().bandwidth) == "50 GB/s");
  CHECK_THROWS_WITH_AS(
      catalog.Find("g5.xlrge"),
      "unknown instance \"g5.xlrge\"; did you mean \"g5.xlarge\", "
      "\"g5.2xlarge\" or \"g5.4xlarge\"? see: trainfare list instances",
      model::InputError);
  CHECK_THROWS_WITH_AS(
      catalog.Find("aws/g5.xlrge"),
      "unknown instance \"aws/g5.xlrge\"; did you mean \"aws/g5.xlarge\", "
      "\"aws/g5.2xlarge\" or \"aws/g5.4xlarge\"? see: trainfare list "
      "instances",
      model::InputError);
  CHECK_THROWS_WITH_AS(
      catalog.Find("quantum"),
      "unknown instance \"quantum\"; see: trainfare list instances",
      model::InputError);
  CHECK(catalog.TryFind("gcp/p4d.24xlarge") == nullptr);
}

TEST_CASE("Google's TPU names count cores, ours count chips") {
  const InstanceCatalog& catalog = InstanceCatalog::Shipped();
  CHECK(catalog.Find("tpu-v2-8").count == 4);
  CHECK(catalog.Find("tpu-v5p-8").count == 4);
  CHECK(catalog.Find("tpu-v5litepod-8").count == 8);
  CHECK(catalog.Find("tpu-v6e-8").count == 8);
}

TEST_CASE("clouds that count only when named are not the usual ones") {
  const InstanceCatalog& catalog = InstanceCatalog::Shipped();
  CHECK_FALSE(catalog.OfDevice("rtx_4090").empty());
  CHECK(catalog.UsualOfDevice("rtx_4090").empty());
  CHECK(catalog.UsualOfDevice("l40s").size() < catalog.OfDevice("l40s").size());
  for (const Instance* one : catalog.UsualOfDevice("l40s")) {
    CHECK(one->named_only.empty());
  }
}

TEST_CASE("the devices of the published runs can be rented") {
  for (const char* device : {"t4",
                             "l4",
                             "a10",
                             "a10g",
                             "v100_pcie_16gb",
                             "v100_sxm2_16gb",
                             "a100_pcie_40gb",
                             "a100_pcie_80gb",
                             "a100_sxm4_40gb",
                             "a100_sxm4_80gb",
                             "h100_pcie",
                             "h100_sxm",
                             "h200_sxm",
                             "trainium1",
                             "trainium2",
                             "inferentia2",
                             "tpu_v2",
                             "tpu_v3"}) {
    CAPTURE(device);
    CHECK_FALSE(InstanceCatalog::Shipped().OfDevice(device).empty());
  }
}

TEST_CASE("one bad instance file per message") {
  const auto message = [](const std::string& instances,
                          const std::string& cloud = "c") {
    const TemporaryFolder folder;
    folder.Write(
        "c.yaml",
        "cloud: " + cloud + "\nsource: s\ndate: 2026-11-20\n" + instances);
    return MessageOf<model::InputError>(
        folder, [&] { InstanceCatalog::Load(folder.path()); });
  };
  const std::string good =
      "instances:\n"
      "  - { name: a, device: t4, count: 1, vcpus: 4, memory: 16 GiB }\n";
  CHECK(message(good) == "no error");
  CHECK(message(good, "d") ==
        "c.yaml:1:8: cloud: expected \"c\", the name of the file, got \"d\"");
  CHECK(message("instances:\n  - { name: \"a$(b)\", device: t4, count: 1, "
                "vcpus: 4, memory: 16 GiB }\n") ==
        "c.yaml:5:13: instances[0].name: expected letters, digits and any of "
        ". _ + -, got \"a$(b)\"");
  CHECK(message(good + "  - { name: a, device: t4, count: 1, vcpus: 4, "
                       "memory: 16 GiB }\n") ==
        "c.yaml:6:13: instances[1].name: \"a\" stands twice; first at "
        "c.yaml:5:13");
  CHECK(message("instances:\n  - { name: a, device: t4, count: 2, vcpus: 4, "
                "memory: 16 GiB }\n") ==
        "c.yaml:5:5: instances[0]: missing key \"between_devices\", how its "
        "devices reach each other");
  CHECK(message("instances:\n  - { name: a, device: t4, count: 1, vcpus: 4, "
                "memory: 16 GiB, between_devices: pcie3 }\n") ==
        "c.yaml:5:5: instances[0]: between_devices: expected no such key for "
        "one device");
  CHECK(message("instances:\n  - { name: a, device: t4, count: 0, vcpus: 4, "
                "memory: 16 GiB }\n") ==
        "c.yaml:5:35: instances[0].count: expected an integer from 1 to 1024, "
        "got 0");
  CHECK(message("instances:\n  - { name: a, device: t4, count: 1, vcpus: 4, "
                "memory: 16 MiB }\n") ==
        "c.yaml:5:56: instances[0].memory: expected 1 GiB to 64 TiB; is the "
        "prefix right?");
}

}  // namespace trainfare::hardware
