#pragma once

// Notices that another rank is gone, and says which.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "trainer/ranks/ranks.h"

namespace c10d {
class Store;
}

namespace trainfare::trainer {

// Says that this rank has read why the run is lost. Rank 0, which waits for
// that, may end before the store's answer is here: no reason to say anything
// else than what was read.
void TellHeard(c10d::Store& store);

// Every rank leaves a pulse in the store; rank 0 watches all of them, the
// others watch rank 0 and the verdict, which the first that knows writes. A
// collective cannot say this: of a dead neighbour it knows a closed socket, of
// one two hosts on nothing at all.
class RankMonitor {
 public:
  using OnLost = std::function<void(const std::string&)>;

  // `store` is this object's alone. `on_lost` is called at most once, from a
  // thread of its own, with one line that names the rank.
  RankMonitor(std::shared_ptr<c10d::Store> store,
              const RankPlace& place,
              std::chrono::milliseconds timeout,
              OnLost on_lost);
  ~RankMonitor();
  RankMonitor(const RankMonitor&) = delete;
  RankMonitor& operator=(const RankMonitor&) = delete;

  void Stop();

 private:
  void Beat();   // store traffic; may block where the store's host hangs
  void Watch();  // clocks only
  void WaitUntilHeard(std::chrono::milliseconds period);
  void Lost(const std::string& line);

  std::shared_ptr<c10d::Store> store_;
  RankPlace place_;
  std::chrono::milliseconds timeout_;
  OnLost on_lost_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> lost_{false};
  std::atomic<int64_t> answered_ms_;  // when the store last did
  std::thread watcher_;
  std::thread beater_;
};

}  // namespace trainfare::trainer
