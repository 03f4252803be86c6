#pragma once

#include <optional>

#include "trainer/runtime/aten.h"

namespace trainfare::trainer {

// While it lives, matrix products on a kind of device are in a narrow type and
// everything else where it was: torch.autocast. nullopt: nothing changes.
class Autocast {
 public:
  Autocast(at::DeviceType device, std::optional<at::ScalarType> type);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  // The type that is in force on this thread; nullopt: none.
  static std::optional<at::ScalarType> TypeOn(at::DeviceType device);

 private:
  at::DeviceType device_;
  bool enabled_;
};

}  // namespace trainfare::trainer
