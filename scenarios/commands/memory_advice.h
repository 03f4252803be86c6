#pragma once

// What of a job that does not fit to change, so that it does.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/commands/prediction_target.h"
#include "scenarios/job/scenario.h"

namespace trainfare::scenarios {

// The flag by which adapters train in place of all.
inline constexpr std::string_view kAdapterFlag = "--set trainable.lora.rank=16";

// What a job comes to where it fits, in words ("16.5 GiB"); nullopt: it does
// not.
using FitTrial = std::function<std::optional<std::string>(const Scenario&)>;

// Whether a job fits by the whole interval of its memory. It may throw
// InputError for a job that is none.
using RoomTrial = std::function<bool(const Scenario&)>;

// The same on a target, which must outlive it.
RoomTrial RoomOn(const PredictionTarget& target, std::string_view source);

// Which batches may take the place of one that is too large.
enum class Smaller {
  kAny,       // all else as it is
  kDivisors,  // accumulated to as many sequences of a step
};

// The flags that leave `scenario` more memory, each by itself, with which it has
// room: the largest of smaller batches, recomputation. Empty: neither is enough.
std::vector<std::string> SaferSettings(const Scenario& scenario,
                                       const RoomTrial& has_room,
                                       Smaller smaller = Smaller::kAny);

// Devices that a job may have.
struct Places {
  int64_t devices = 1;
  int64_t devices_of_host = 1;
};

// The fewest changes of the command line with which `scenario` fits on up to so
// many devices: of how all of it is trained (where that is not enough, with the
// model divided among them: its layers within a host, stages over hosts, then
// its sequences; where only a coarser update is, without fp32 masters, and with
// state in 8 bits), and with adapters in its place. A line each, what serves
// nothing left out; empty: none of these changes is enough. A trial may throw
// InputError for a job that is none.
std::vector<std::string> MemoryAdvice(const Scenario& scenario,
                                      const Places& places,
                                      const FitTrial& trial);

}  // namespace trainfare::scenarios
