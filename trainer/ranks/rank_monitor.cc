#include "trainer/ranks/rank_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

#include "trainer/ranks/rank_keys.h"
#include "trainer/runtime/failure.h"

namespace trainfare::trainer {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

int64_t NowMs() {
  return std::chrono::duration_cast<milliseconds>(
             Clock::now().time_since_epoch())
      .count();
}

std::string Seconds(milliseconds time) {
  return fmt::format("{:.3g} s", static_cast<double>(time.count()) / 1000.0);
}

}  // namespace

void TellHeard(c10d::Store& store) {
  try {
    store.add(rank_keys::kHeard, 1);
  } catch (const std::exception&) {
    // Rank 0 is gone with its store, as was said.
  }
}

RankMonitor::RankMonitor(std::shared_ptr<c10d::Store> store,
                         const RankPlace& place,
                         milliseconds timeout,
                         OnLost on_lost)
    : store_(std::move(store)),
      place_(place),
      timeout_(timeout),
      on_lost_(std::move(on_lost)),
      answered_ms_(NowMs()),
      watcher_([this] { Watch(); }),
      beater_([this] { Beat(); }) {}

RankMonitor::~RankMonitor() { Stop(); }

void RankMonitor::Stop() {
  stop_.store(true);
  if (watcher_.joinable()) watcher_.join();
  if (beater_.joinable()) beater_.join();
}

void RankMonitor::Lost(const std::string& line) {
  if (stop_.load() || lost_.exchange(true)) return;
  on_lost_(line);
}

void RankMonitor::Beat() {
  // What the store says of another rank, and since when it says so.
  struct Pulse {
    int rank;
    std::vector<uint8_t> value;
    Clock::time_point since;
  };
  std::vector<Pulse> pulses;
  std::vector<std::string> keys;
  const int watched = place_.rank == 0 ? place_.world_size : 1;
  for (int rank = 0; rank < watched; ++rank) {
    if (rank == place_.rank) continue;
    pulses.push_back({rank, {}, Clock::now()});
    keys.push_back(rank_keys::Pulse(rank));
  }
  const milliseconds period =
      std::clamp(timeout_ / 10, milliseconds(20), milliseconds(1000));
  try {
    while (!stop_.load() && !lost_.load()) {
      store_->add(rank_keys::Pulse(place_.rank), 1);
      if (store_->check({rank_keys::kLost})) {
        const std::vector<uint8_t> line = store_->get(rank_keys::kLost);
        TellHeard(*store_);
        if (place_.rank == 0) WaitUntilHeard(period);
        Lost(std::string(line.begin(), line.end()));
        return;
      }
      const std::vector<std::vector<uint8_t>> values = store_->multiGet(keys);
      answered_ms_.store(NowMs());
      const auto now = Clock::now();
      for (size_t i = 0; i < pulses.size(); ++i) {
        if (values[i] != pulses[i].value) {
          pulses[i].value = values[i];
          pulses[i].since = now;
        }
        if (now - pulses[i].since < timeout_ ||
            store_->check({rank_keys::Left(pulses[i].rank)})) {
          continue;
        }
        const auto who = store_->get(rank_keys::Member(pulses[i].rank));
        const std::string line =
            fmt::format("rank {} ({}) is lost: no sign of life for {}",
                        pulses[i].rank,
                        std::string(who.begin(), who.end()),
                        Seconds(timeout_));
        // The first verdict stands: another rank may have been quicker.
        store_->compareSet(rank_keys::kLost, "", line);
      }
      std::this_thread::sleep_for(period);
    }
  } catch (const std::exception& error) {
    Lost(fmt::format("rank 0 is lost: its store at {}:{} is gone ({})",
                     place_.store_host,
                     place_.store_port,
                     FirstLine(error)));
  }
}

// Rank 0 takes the store with it: not before the others have read the verdict.
// One of them may be the lost one.
void RankMonitor::WaitUntilHeard(milliseconds period) {
  const auto end = Clock::now() + 3 * period;
  while (Clock::now() < end &&
         store_->add(rank_keys::kHeard, 0) < place_.world_size - 1) {
    std::this_thread::sleep_for(period / 10);
  }
}

void RankMonitor::Watch() {
  while (!stop_.load() && !lost_.load()) {
    const milliseconds silent(NowMs() - answered_ms_.load());
    if (silent > timeout_ + timeout_ / 2) {
      Lost(fmt::format("rank 0 is lost: its store at {}:{} is silent for {}",
                       place_.store_host,
                       place_.store_port,
                       Seconds(silent)));
      return;
    }
    std::this_thread::sleep_for(
        std::clamp(timeout_ / 20, milliseconds(10), milliseconds(200)));
  }
}

}  // namespace trainfare::trainer
