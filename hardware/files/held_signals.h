#pragma once

#include <csignal>

namespace trainfare::hardware {

// While it lives, SIGINT, SIGTERM and SIGHUP wait: what would be left behind
// half done is finished first. For moments only, and while no other thread runs
// that would take them.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace trainfare::hardware
