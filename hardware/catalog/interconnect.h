#pragma once

// A way for data to leave a device: to its neighbours on a host, to the host,
// to another host. From hardware/interconnects/*.yaml.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/units.h"

namespace trainfare::hardware {

enum class InterconnectReach { kHost, kNetwork };  // inside a host, or beyond

struct Interconnect {
  std::string name;  // file stem
  InterconnectReach reach = InterconnectReach::kHost;
  // One direction: of one device inside a host, of the whole host beyond it.
  // What the wire carries; what of it arrives is fitted.
  // Where it passes the processor from one root port to the next, no more than
  // that carries.
  model::BytesPerSecond<> bandwidth;
  // What one step of a collective takes, before any fit.
  model::Seconds<> latency;
  // A switch between the devices sums what they send (NVLink SHARP).
  bool sums_in_switch = false;
  std::string source;  // with date
  std::vector<std::string> recalled;
  std::vector<std::string> notes;
};

std::string_view ToText(InterconnectReach reach);

Interconnect LoadInterconnect(const std::string& path);

// The one of this name in the catalog that ships with the tool. Throws
// InputError with the nearest names. Reads the one file, once.
Interconnect FindInterconnect(std::string_view name);

}  // namespace trainfare::hardware
