#include "hardware/catalog/instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "hardware/files/data_directory.h"
#include "hardware/files/yaml_reader.h"
#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::hardware {
namespace {

bool SameIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

// "pcie4", or { interconnect: efa, bandwidth: 400 Gbit/s }.
std::optional<Link> ReadLink(const Reader& instance, std::string_view key) {
  if (!instance.Has(key)) return std::nullopt;
  if (!instance.IsMap(key)) return Link{instance.Text(key), std::nullopt};
  const Reader link = instance.Map(key);
  return Link{link.Text("interconnect"), link.OptionalBandwidth("bandwidth")};
}

// A name of a cloud or of an instance, which scripts and names of files are
// made of (calibrate/session/launch.h): nothing that a shell reads otherwise.
std::string ReadName(const Reader& reader, std::string_view key) {
  std::string name = reader.Text(key);
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("._+-").find(c) != std::string_view::npos;
  });
  if (!plain) {
    reader.Fail(key,
                fmt::format("expected letters, digits and any of . _ + -, got "
                            "\"{}\"",
                            name));
  }
  return name;
}

Instance ReadInstance(const Reader& reader) {
  Instance instance;
  instance.name = ReadName(reader, "name");
  instance.device = reader.Text("device");
  instance.count = reader.Integer("count", 1, 1024);
  instance.vcpus = reader.Integer("vcpus", 1, 4096);
  instance.host_memory = reader.Bytes("memory");
  if (instance.host_memory < model::GiB(1) ||
      instance.host_memory > model::GiB(65536)) {
    reader.Fail("memory", "expected 1 GiB to 64 TiB; is the prefix right?");
  }
  instance.between_devices = ReadLink(reader, "between_devices");
  if (instance.between_devices.has_value() != (instance.count > 1)) {
    reader.Fail(instance.count > 1
                    ? "missing key \"between_devices\", how its devices reach "
                      "each other"
                    : "between_devices: expected no such key for one device");
  }
  instance.network = ReadLink(reader, "network");
  instance.notes = reader.OptionalTexts("notes");
  return instance;
}

}  // namespace

Interconnect Link::Resolve() const {
  Interconnect resolved = FindInterconnect(interconnect);
  if (bandwidth) resolved.bandwidth = *bandwidth;
  return resolved;
}

InstanceCatalog InstanceCatalog::Load(const std::string& directory) {
  InstanceCatalog catalog;
  for (const std::string& path : YamlFiles(directory)) {
    const Reader root = Reader::FromFile(path);
    const std::string cloud = ReadName(root, "cloud");
    if (cloud != Stem(path)) {
      root.Fail("cloud",
                fmt::format("expected \"{}\", the name of the file, got \"{}\"",
                            Stem(path),
                            cloud));
    }
    const std::string source =
        fmt::format("{} ({})", root.Text("source"), root.Date("date"));
    const std::string named_only = root.OptionalText("named_only").value_or("");
    const bool marketplace = root.OptionalFlag("marketplace").value_or(false);
    std::map<std::string, std::string> seen;  // name -> where
    for (const Reader& reader : root.Maps("instances")) {
      Instance instance = ReadInstance(reader);
      const auto [first, fresh] =
          seen.emplace(instance.name, reader.Position("name"));
      if (!fresh) {
        reader.Fail("name",
                    fmt::format("\"{}\" stands twice; first at {}",
                                instance.name,
                                first->second));
      }
      instance.cloud = cloud;
      instance.source = source;
      instance.named_only = named_only;
      instance.marketplace = marketplace;
      catalog.instances_.push_back(std::move(instance));
    }
    root.Finish();
  }
  return catalog;
}

const InstanceCatalog& InstanceCatalog::Shipped() {
  static const InstanceCatalog catalog = Load(DataDirectory("instances"));
  return catalog;
}

const Instance* InstanceCatalog::TryFind(std::string_view name) const {
  for (const Instance& instance : instances_) {
    if (SameIgnoringCase(instance.name, name) ||
        SameIgnoringCase(instance.FullName(), name)) {
      return &instance;
    }
  }
  return nullptr;
}

const Instance& InstanceCatalog::Find(std::string_view name) const {
  const Instance* found = TryFind(name);
  if (found != nullptr) return *found;
  // Whoever names the cloud gets names with the cloud.
  const bool full = name.find('/') != std::string_view::npos;
  std::vector<std::string> known;
  for (const Instance& instance : instances_) {
    known.push_back(full ? instance.FullName() : instance.name);
  }
  const std::string near = model::DidYouMean(name, model::NameViews(known));
  throw model::InputError(fmt::format("unknown instance \"{}\"{}{}",
                                      name,
                                      near.empty() ? ";" : near,
                                      " see: trainfare list instances"));
}

std::vector<const Instance*> InstanceCatalog::OfDevice(
    std::string_view device) const {
  std::vector<const Instance*> found;
  for (const Instance& instance : instances_) {
    if (instance.device == device) found.push_back(&instance);
  }
  return found;
}

std::vector<const Instance*> InstanceCatalog::UsualOfDevice(
    std::string_view device) const {
  std::vector<const Instance*> found = OfDevice(device);
  std::erase_if(found, [](const Instance* instance) {
    return !instance->named_only.empty();
  });
  return found;
}

}  // namespace trainfare::hardware
