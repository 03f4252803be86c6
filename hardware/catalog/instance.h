#pragma once

// What a cloud rents: one host with its devices. From
// hardware/instances/<cloud>.yaml.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/catalog/interconnect.h"
#include "model/units.h"

namespace trainfare::hardware {

// An interconnect as this instance has it.
struct Link {
  std::string interconnect;  // name of a file of hardware/interconnects/
  // Where it differs from the file.
  std::optional<model::BytesPerSecond<>> bandwidth;

  // The interconnect with the bandwidth of this link.
  Interconnect Resolve() const;
};

struct Instance {
  std::string cloud;  // aws, gcp, ..
  // As the cloud calls it. Google's N1 hosts take devices of several kinds:
  // these are named host+countxdevice, "n1-standard-8+1xT4".
  std::string name;
  std::string device;  // name of a file of hardware/devices/
  int64_t count = 1;   // devices; TPU: chips
  int64_t vcpus = 0;
  model::Bytes<> host_memory;
  std::optional<Link> between_devices;  // absent: one device
  std::optional<Link> network;          // absent: not published
  std::vector<std::string> notes;
  // Why its cloud counts only where somebody names it; empty: it always does.
  std::string named_only;
  // Hosts of other people, of which nothing says that they stand together.
  bool marketplace = false;
  std::string source;  // of the file, with date

  std::string FullName() const { return cloud + "/" + name; }
};

class InstanceCatalog {
 public:
  // Reads all files of the catalog that ships with the tool, once.
  static const InstanceCatalog& Shipped();
  static InstanceCatalog Load(const std::string& directory);

  const std::vector<Instance>& instances() const { return instances_; }
  // "g5.xlarge" or "aws/g5.xlarge", letter case ignored. Throws InputError with
  // the nearest names.
  const Instance& Find(std::string_view name) const;
  const Instance* TryFind(std::string_view name) const;  // nullptr: unknown
  // All that carry it, by cloud and in file order.
  std::vector<const Instance*> OfDevice(std::string_view device) const;
  // Those of them whose cloud always counts.
  std::vector<const Instance*> UsualOfDevice(std::string_view device) const;

 private:
  std::vector<Instance> instances_;
};

}  // namespace trainfare::hardware
