#include "trainer/ranks/rank_store.h"

#include <c10/util/hash.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "trainer/ranks/rank_keys.h"
#include "trainer/ranks/rank_monitor.h"
#include "trainer/ranks/secret_handshake.h"
#include "trainer/ranks/sockets.h"
#include "trainer/runtime/failure.h"

namespace trainfare::trainer {
namespace {

using model::InputError;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

// For a client to connect with a store that listens. Where that has gone c10d
// tries again, at ever longer intervals, for several times as long.
constexpr milliseconds kStoreAnswers(1000);

// What the ranks agreed upon; empty where it is nothing, which one host has no
// need of.
std::string Secret() {
  return EnvironmentVariable("TRAINFARE_RANKS_SECRET").value_or("");
}

// What the keys of a run begin with. Who does not know its secret cannot guess
// it, and who is told (a launcher's store tells every key that it has) learns
// no secret.
std::string KeyPrefix(const RankPlace& place) {
  const std::string secret = Secret();
  const std::string digest =
      secret.empty()
          ? ""
          : c10::sha1(fmt::format("{}\n{}", secret, place.store_port)).str();
  return fmt::format("trainfare/{}/{}", digest, place.attempt);
}

// What opens the door of rank 0's store; nullopt: it has none. A launcher's
// store is its own, and on one host nobody else reaches the loopback.
std::optional<Agreement> AgreementOf(const RankPlace& place) {
  const std::string secret = Secret();
  if (secret.empty() || AllHere(place) || place.launcher_store) {
    return std::nullopt;
  }
  return Agreement{secret, place.store_port, place.attempt};
}

InputError SecretsDiffer(const RankPlace& place, const char* what) {
  return InputError(fmt::format(
      "rank {}: rank 0 at {}:{} {}; is TRAINFARE_RANKS_SECRET the same on all "
      "hosts?",
      place.rank,
      place.store_host,
      place.store_port,
      what));
}

// Where clients of the store connect to.
struct StorePlace {
  std::string host;
  uint16_t port = 0;
};

// A relay to rank 0's door; null where nobody opens it in time. Throws
// InputError where the secrets differ.
std::unique_ptr<StoreDoor> OpenRelay(const RankPlace& place,
                                     const Agreement& agreement,
                                     milliseconds timeout) {
  // Rank 0's process may be stopped for a moment.
  constexpr int kPatience = 3;
  int silent = 0;
  const auto opens = [&](const SocketAddress& there) {
    switch (AskDoor(there, agreement)) {
      case DoorAnswer::kRight:
        return true;
      case DoorAnswer::kWrong:
        throw SecretsDiffer(place, "does not accept this rank");
      case DoorAnswer::kSilent:
        if (++silent < kPatience) return false;
        throw SecretsDiffer(place, "asks for no secret");
      case DoorAnswer::kNobody:
        silent = 0;
        return false;
    }
    return false;
  };
  const auto door = AwaitStore(place, timeout, opens);
  return door ? StoreDoor::OpenRelay(*door, agreement) : nullptr;
}

// Rank 0's store, at the ranks' port or, where they have a secret, on its
// loopback behind a door.
StorePtr ServeStore(const RankPlace& place,
                    c10d::TCPStoreOptions options,
                    std::unique_ptr<StoreDoor>& door) {
  std::string host = MeetingHost(place);
  Socket listener = Listen(place);
  if (const auto agreement = AgreementOf(place)) {
    auto [behind, address] = ListenOnLoopback();
    door = StoreDoor::Open(std::move(listener), address, *agreement);
    listener = std::move(behind);
    options.port = PortOf(address);
    host = kLoopback;
  }
  options.isServer = true;
  options.masterListenFd = listener.Release();
  return c10::make_intrusive<c10d::TCPStore>(host, options);
}

// Where a client of the store is to connect to, once somebody listens there;
// nullopt where nobody does within `timeout`. Throws InputError where the
// secrets differ.
std::optional<StorePlace> AwaitStorePlace(const RankPlace& place,
                                          milliseconds timeout,
                                          std::unique_ptr<StoreDoor>& door) {
  if (const auto agreement = AgreementOf(place)) {
    door = OpenRelay(place, *agreement, timeout);
    if (!door) return std::nullopt;
    return StorePlace{kLoopback, door->port()};
  }
  const auto there = AwaitStore(place, timeout, Answers);
  if (!there) return std::nullopt;
  if (!AllHere(place) && !place.launcher_store && AsksForSecret(*there)) {
    throw SecretsDiffer(place, "asks for a secret");
  }
  return StorePlace{MeetingHost(place), place.store_port};
}

// The store of rank 0 or of the launcher, once it is there; null where nobody
// listens. Throws InputError where it was there and is gone.
StorePtr ReachStore(const RankPlace& place,
                    c10d::TCPStoreOptions options,
                    const Gathering& gathering,
                    std::unique_ptr<StoreDoor>& door) {
  // A rank 0 that was killed does not come again; the last of the run before,
  // whose port it was, makes room for it.
  constexpr milliseconds kComesAgain(3000);
  milliseconds timeout = gathering.left();
  const auto end = Clock::now() + timeout;
  std::optional<InputError> gone;
  while (const auto there = AwaitStorePlace(place, timeout, door)) {
    options.port = there->port;
    try {
      return c10::make_intrusive<c10d::TCPStore>(there->host, options);
    } catch (const std::exception& error) {
      gone = StoreGone(place, error);
      timeout = kComesAgain;
    }
    if (Clock::now() > end) break;
  }
  if (gone) throw InputError(*gone);
  return {};
}

}  // namespace

std::string HostName() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string TextOf(const std::vector<uint8_t>& bytes) {
  constexpr size_t kLongest = size_t{1} << 20;
  return {bytes.begin(),
          bytes.begin() +
              static_cast<std::ptrdiff_t>(std::min(bytes.size(), kLongest))};
}

model::InputError StoreGone(const RankPlace& place,
                            const std::exception& error) {
  return InputError(fmt::format("rank {}: rank 0 at {}:{} is gone ({})",
                                place.rank,
                                place.store_host,
                                place.store_port,
                                FirstLine(error)));
}

StorePtr OpenStore(const RankPlace& place,
                   const Gathering& gathering,
                   std::unique_ptr<StoreDoor>& door) {
  c10d::TCPStoreOptions options;
  options.port = place.store_port;
  options.waitWorkers = false;
  options.timeout = kStoreAnswers;
  const bool serves = place.rank == 0 && !place.launcher_store;
  const StorePtr store = serves ? ServeStore(place, options, door)
                                : ReachStore(place, options, gathering, door);
  if (!store) {
    throw InputError(fmt::format(
        "rank {}: no answer from rank 0 at {}:{} within {} s (MASTER_ADDR, "
        "MASTER_PORT)",
        place.rank,
        place.store_host,
        place.store_port,
        gathering.whole().count() / 1000));
  }
  return c10::make_intrusive<c10d::PrefixStore>(KeyPrefix(place), store);
}

void RegisterRank(c10d::Store& store,
                  const RankPlace& place,
                  const Gathering& gathering) {
  const std::string own = fmt::format("{} process {}", HostName(), ::getpid());
  const std::string size = std::to_string(place.world_size);
  const auto expect_free = [&](const std::string& key,
                               const std::string& value) {
    return TextOf(store.compareSet(
        key, std::vector<uint8_t>{}, {value.begin(), value.end()}));
  };
  std::vector<std::string> pulses;
  for (int rank = 0; rank < place.world_size; ++rank) {
    pulses.push_back(rank_keys::Pulse(rank));
  }
  // A stranger must not end a run that is complete without it.
  const auto fail = [&](const std::string& line) {
    if (!store.check(pulses)) store.compareSet(rank_keys::kLost, "", line);
    throw InputError(line);
  };
  const std::string agreed = expect_free(rank_keys::kWorldSize, size);
  if (agreed != size) {
    fail(
        fmt::format("rank {} ({}): expected a world of {} ranks, as the "
                    "others have, got {}",
                    place.rank,
                    own,
                    agreed,
                    size));
  }
  const std::string holder = expect_free(rank_keys::Member(place.rank), own);
  if (holder != own) {
    fail(fmt::format(
        "two ranks of one number: {} is {} and {}", place.rank, holder, own));
  }
  store.add(rank_keys::Pulse(place.rank), 1);
  const auto end = Clock::now() + gathering.left();
  while (!store.check(pulses)) {
    if (store.check({rank_keys::kLost})) {
      const std::string line = TextOf(store.get(rank_keys::kLost));
      TellHeard(store);
      throw InputError(line);
    }
    if (Clock::now() > end) {
      std::vector<int> missing;
      for (int rank = 0; rank < place.world_size; ++rank) {
        if (!store.check({rank_keys::Pulse(rank)})) missing.push_back(rank);
      }
      // Who comes later need not wait as long to learn who is missing.
      fail(fmt::format("rank{} {} of {} did not come within {} s",
                       missing.size() == 1 ? "" : "s",
                       fmt::join(missing, ", "),
                       place.world_size,
                       gathering.whole().count() / 1000));
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
}

}  // namespace trainfare::trainer
