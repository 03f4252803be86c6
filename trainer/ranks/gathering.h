#pragma once

// How long a rank waits for the others to come.

#include <chrono>
#include <optional>

#include "trainer/ranks/ranks.h"

namespace trainfare::trainer {

// Since this process was started, before the loader had read its libraries.
std::chrono::milliseconds ProcessAge();

class Gathering {
 public:
  using Milliseconds = std::chrono::milliseconds;

  // `within`, from now on, where somebody said so; else 20 s on one host and
  // 120 s over several. One that is lost before it came is never seen: the
  // others learn of it by waiting. Ranks of one host start together and read
  // the same libraries, so that theirs count from the start of the process:
  // one that took 10 s to come here need not wait 20 s more for its like.
  Gathering(const RankPlace& place,
            std::optional<Milliseconds> within,
            Milliseconds age = ProcessAge());

  Milliseconds whole() const { return whole_; }
  // What is left of it, and so long as half of it at least: the others may
  // have come late, too.
  Milliseconds left() const;

 private:
  Milliseconds whole_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace trainfare::trainer
