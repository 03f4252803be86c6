#include "trainer/ranks/communicator.h"

#include <c10/util/Logging.h>
#include <c10/util/hash.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "model/error.h"
#include "trainer/device/device.h"
#include "trainer/ranks/gathering.h"
#include "trainer/ranks/gloo_lines.h"
#include "trainer/ranks/nccl_interface.h"
#include "trainer/ranks/rank_keys.h"
#include "trainer/ranks/rank_monitor.h"
#include "trainer/ranks/sockets.h"
#include "trainer/ranks/store_door.h"
#include "trainer/runtime/failure.h"

namespace trainfare::trainer {
namespace {

using model::InputError;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

// No collective of a healthy run takes so long; the monitor is quicker.
constexpr milliseconds kCollectiveTimeout = std::chrono::minutes(30);

// For a client to connect with a store that listens. Where that has gone c10d
// tries again, at ever longer intervals, for several times as long.
constexpr milliseconds kStoreAnswers(1000);

// c10d tells of every closed socket with a trace of the stack, Gloo of every
// try to connect. What is wrong we say ourselves, in a line; their own
// variables bring the rest back.
void Quieten() {
  static std::once_flag dropped;
  if (!EnvironmentVariable("GLOO_LOG_LEVEL")) {
    std::call_once(dropped, [] { DropGlooLines(std::cerr); });
  }
  if (EnvironmentVariable("TORCH_CPP_LOG_LEVEL")) {
    c10::initLogging();
  } else {
    FLAGS_caffe2_log_level = c10::GLOG_FATAL;
  }
}

std::string HostName() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

// What another process wrote into the store.
std::string Text(const std::vector<uint8_t>& bytes) {
  constexpr size_t kLongest = size_t{1} << 20;
  return {bytes.begin(),
          bytes.begin() +
              static_cast<std::ptrdiff_t>(std::min(bytes.size(), kLongest))};
}

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

InputError StoreGone(const RankPlace& place, const std::exception& error) {
  return InputError(fmt::format("rank {}: rank 0 at {}:{} is gone ({})",
                                place.rank,
                                place.store_host,
                                place.store_port,
                                FirstLine(error)));
}

// The store of rank 0 or of the launcher, once it is there. Throws InputError
// where it was and is gone, another std::exception where nobody listens.
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
  throw std::runtime_error("nobody listens");
}

// `door` becomes what stands before the store, if anything does.
StorePtr OpenStore(const RankPlace& place,
                   const Gathering& gathering,
                   std::unique_ptr<StoreDoor>& door) {
  c10d::TCPStoreOptions options;
  options.port = place.store_port;
  options.waitWorkers = false;
  options.timeout = kStoreAnswers;
  const bool serves = place.rank == 0 && !place.launcher_store;
  try {
    return c10::make_intrusive<c10d::PrefixStore>(
        KeyPrefix(place),
        serves ? ServeStore(place, options, door)
               : ReachStore(place, options, gathering, door));
  } catch (const InputError&) {
    throw;
  } catch (const std::exception&) {
    throw InputError(fmt::format(
        "rank {}: no answer from rank 0 at {}:{} within {} s (MASTER_ADDR, "
        "MASTER_PORT)",
        place.rank,
        place.store_host,
        place.store_port,
        gathering.whole().count() / 1000));
  }
}

// Enters the run, and waits for all others.
void Register(c10d::Store& store,
              const RankPlace& place,
              const Gathering& gathering) {
  const std::string own = fmt::format("{} process {}", HostName(), ::getpid());
  const std::string size = std::to_string(place.world_size);
  const auto expect_free = [&](const std::string& key,
                               const std::string& value) {
    return Text(store.compareSet(
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
      const std::string line = Text(store.get(rank_keys::kLost));
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

c10::intrusive_ptr<c10d::Backend> OpenGloo(const StorePtr& store,
                                           const RankPlace& place) {
  auto options = c10d::ProcessGroupGloo::Options::create(kCollectiveTimeout);
  // One transfer at a time and in order, as the recursion of model/overlap.h
  // has it, and as NCCL's stream does.
  options->threads = 1;
  const auto interface = EnvironmentVariable("GLOO_SOCKET_IFNAME");
  options->devices.push_back(
      interface ? c10d::ProcessGroupGloo::createDeviceForInterface(*interface)
                : c10d::ProcessGroupGloo::createDeviceForHostname(
                      AddressTowards(MeetingHost(place), place.store_port)));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(
      store, place.rank, place.world_size, options);
}

c10::intrusive_ptr<c10d::Backend> OpenGroup(c10d::Store& run,
                                            const RankPlace& place,
                                            at::Device device,
                                            milliseconds timeout) {
  const StorePtr store =
      c10::make_intrusive<c10d::PrefixStore>("group", run.clone());
  store->setTimeout(timeout);
  return device.is_cuda() ? c10::intrusive_ptr<c10d::Backend>::reclaim(OpenNccl(
                                store.get(), place.rank, place.world_size))
                          : OpenGloo(store, place);
}

class WorkTransfer : public Transfer {
 public:
  WorkTransfer(c10::intrusive_ptr<c10d::Work> work, milliseconds patience)
      : work_(std::move(work)), patience_(patience) {}
  void Wait() override {
    try {
      work_->wait();
    } catch (const std::exception&) {
      // A neighbour closed its socket. Which rank began it, the monitor finds
      // out and then ends this process; it is alone to know.
      std::this_thread::sleep_for(patience_);
      throw;
    }
  }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  milliseconds patience_;
};

}  // namespace

struct Communicator::State {
  std::unique_ptr<StoreDoor> door;  // null for none; outlives the store
  StorePtr store;
  std::unique_ptr<RankMonitor> monitor;
  c10::intrusive_ptr<c10d::Backend> group;
  std::string backend;
  milliseconds lost_after;
  int64_t lines = 0;  // published or read

  // A transfer that calls `done`, if any, at its end.
  std::unique_ptr<Transfer> Started(c10::intrusive_ptr<c10d::Work> work,
                                    std::function<void()> done) const {
    if (done) {
      work->getFuture()->addCallback(
          [done = std::move(done)](c10::ivalue::Future&) { done(); });
    }
    return std::make_unique<WorkTransfer>(std::move(work), 3 * lost_after);
  }
};

Communicator::Communicator(const RankPlace& place, std::unique_ptr<State> state)
    : place_(place), state_(std::move(state)) {}

Communicator::~Communicator() {
  // First: what follows may look like a loss.
  if (state_ && state_->monitor) state_->monitor->Stop();
}

std::unique_ptr<Communicator> Communicator::Join(
    const RankPlace& place,
    at::Device device,
    const CommunicatorOptions& options) {
  if (place.world_size == 1) {
    return std::unique_ptr<Communicator>(new Communicator(place, nullptr));
  }
  Quieten();
  if (device.is_cuda()) KeepNcclToItsHost(place);
  const Gathering gathering(place, options.join_within);
  auto state = std::make_unique<State>();
  state->lost_after = options.lost_after;
  state->store = OpenStore(place, gathering, state->door);
  StorePtr own;
  try {
    Register(*state->store, place, gathering);
    own = state->store->clone();
  } catch (const std::exception& error) {
    // Rank 0 takes the store with it: not before the others have read why.
    if (place.rank == 0) std::this_thread::sleep_for(std::chrono::seconds(1));
    if (dynamic_cast<const InputError*>(&error) != nullptr) throw;
    throw StoreGone(place, error);
  }
  state->monitor = std::make_unique<RankMonitor>(
      std::shared_ptr<c10d::Store>(own.get(), [own](c10d::Store*) {}),
      place,
      options.lost_after,
      options.on_lost);
  state->backend = device.is_cuda() ? "nccl" : "gloo";
  try {
    state->group = OpenGroup(*state->store, place, device, gathering.whole());
  } catch (const InputError&) {
    throw;
  } catch (const std::exception&) {
    // As a transfer that fails: the monitor finds out why.
    std::this_thread::sleep_for(3 * options.lost_after);
    throw;
  }
  if (!device.is_cuda()) {
    // Nobody else has to come in once all are connected with each other; NCCL
    // connects later.
    WorkTransfer(state->group->barrier(), 3 * options.lost_after).Wait();
    CloseDoors();
    if (state->door) state->door->Close();
  }
  return std::unique_ptr<Communicator>(
      new Communicator(place, std::move(state)));
}

std::string Communicator::backend() const {
  return state_ ? state_->backend : "none";
}

std::string Communicator::transport() const {
  if (!state_) return "";
  return fmt::format("{} {}",
                     state_->backend == "gloo" ? "tcp" : state_->backend,
                     AllHere(place_) ? "within a host" : "between hosts");
}

std::unique_ptr<Transfer> Communicator::AllReduce(const at::Tensor& tensor,
                                                  std::function<void()> done) {
  ENSURE(state_ != nullptr, "more than one rank");
  std::vector<at::Tensor> tensors = {tensor};
  return state_->Started(state_->group->allreduce(tensors), std::move(done));
}

std::unique_ptr<Transfer> Communicator::AllGather(const at::Tensor& share,
                                                  const at::Tensor& whole,
                                                  std::function<void()> done) {
  ENSURE(state_ != nullptr, "more than one rank");
  at::Tensor out = whole;
  at::Tensor in = share;
  return state_->Started(state_->group->_allgather_base(out, in),
                         std::move(done));
}

std::unique_ptr<Transfer> Communicator::ReduceScatter(
    const at::Tensor& whole,
    const at::Tensor& share,
    std::function<void()> done) {
  ENSURE(state_ != nullptr, "more than one rank");
  at::Tensor in = whole;
  at::Tensor out = share;
  if (!whole.is_cpu()) {
    return state_->Started(state_->group->_reduce_scatter_base(out, in),
                           std::move(done));
  }
  // Gloo's own sums whole messages at every rank and keeps a part: twice the
  // bytes. Here each rank is sent its parts of all, and adds them up, in the
  // thread that the transfers take turns in.
  at::Tensor parts = at::empty_like(whole);
  std::vector<int64_t> even;
  return state_->Started(state_->group->alltoall_base(parts, in, even, even),
                         [parts, out, done = std::move(done)]() mutable {
                           const at::NoGradGuard no_grad;
                           at::sum_out(out, parts.view({-1, out.numel()}), 0);
                           parts.reset();
                           if (done) done();
                         });
}

void Communicator::Broadcast(const at::Tensor& tensor) {
  if (!state_) return;
  std::vector<at::Tensor> tensors = {tensor};
  WorkTransfer(state_->group->broadcast(tensors), 3 * state_->lost_after)
      .Wait();
}

void Communicator::Barrier() {
  if (!state_) return;
  WorkTransfer(state_->group->barrier(), 3 * state_->lost_after).Wait();
}

void Communicator::Publish(const std::optional<std::string>& line) {
  if (!state_) return;
  // A first character, as the store takes no empty value for one.
  const std::string value = line ? "+" + *line : "-";
  state_->store->set(rank_keys::Line(state_->lines++),
                     std::vector<uint8_t>(value.begin(), value.end()));
}

std::optional<std::string> Communicator::NextPublished() {
  ENSURE(state_ != nullptr, "more than one rank");
  const std::string key = rank_keys::Line(state_->lines++);
  // Not wait(): rank 0 may take hours to be asked for its next run.
  while (!state_->store->check({key})) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  const std::string value = Text(state_->store->get(key));
  if (value.empty() || value.front() == '-') return std::nullopt;
  return value.substr(1);
}

std::unique_ptr<LineWriter> OpenRecords(std::string path,
                                        const Communicator* ranks) {
  constexpr std::string_view kRank = "{rank}";
  const size_t at = path.find(kRank);
  const int rank = ranks == nullptr ? 0 : ranks->rank();
  if (at != std::string::npos) {
    path.replace(at, kRank.size(), std::to_string(rank));
  } else if (rank != 0) {
    return nullptr;
  }
  return std::make_unique<LineWriter>(path);
}

void Communicator::Leave() {
  if (!state_) return;
  try {
    std::vector<std::string> all;
    for (int rank = 0; rank < place_.world_size; ++rank) {
      all.push_back(rank_keys::Left(rank));
    }
    state_->store->set(rank_keys::Left(place_.rank), std::vector<uint8_t>{1});
    state_->store->wait(all, kCollectiveTimeout);
    state_->monitor->Stop();
    // Rank 0 takes the store with it.
    const int64_t others = place_.world_size - 1;
    int64_t gone =
        state_->store->add(rank_keys::kGone, place_.rank == 0 ? 0 : 1);
    const auto end = Clock::now() + std::chrono::seconds(5);
    while (place_.rank == 0 && gone < others && Clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(2));
      gone = state_->store->add(rank_keys::kGone, 0);
    }
  } catch (const std::exception&) {
    // The work is done; there is nothing left to lose.
  }
}

void Communicator::Fail(const std::string& message) {
  if (!state_) return;
  state_->monitor->Stop();
  try {
    const std::string line = fmt::format("rank {} ({} process {}) ended: {}",
                                         place_.rank,
                                         HostName(),
                                         ::getpid(),
                                         message);
    state_->store->compareSet(rank_keys::kLost, "", line);
    // Not before the others have read it, where they still can.
    const auto end = Clock::now() + std::chrono::seconds(2);
    const int64_t others = place_.world_size - 1;
    while (place_.rank == 0 && Clock::now() < end &&
           state_->store->add(rank_keys::kHeard, 0) < others) {
      std::this_thread::sleep_for(milliseconds(10));
    }
  } catch (const std::exception&) {
    // The store is gone: then so are the others.
  }
}

}  // namespace trainfare::trainer
