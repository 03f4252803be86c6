#include "trainer/ranks/communicator.h"

#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "model/error.h"
#include "trainer/device/device.h"
#include "trainer/ranks/gathering.h"
#include "trainer/ranks/gloo_lines.h"
#include "trainer/ranks/nccl_interface.h"
#include "trainer/ranks/rank_keys.h"
#include "trainer/ranks/rank_monitor.h"
#include "trainer/ranks/rank_store.h"
#include "trainer/ranks/sockets.h"

namespace trainfare::trainer {
namespace {

using model::InputError;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

// No collective of a healthy run takes so long; the monitor is quicker.
constexpr milliseconds kCollectiveTimeout = std::chrono::minutes(30);

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

// Why a run does not begin: rank 0 takes the store with it.
void LetOthersRead(const RankPlace& place) {
  if (place.rank == 0) std::this_thread::sleep_for(std::chrono::seconds(1));
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
    RegisterRank(*state->store, place, gathering);
    own = state->store->clone();
  } catch (const InputError&) {
    LetOthersRead(place);
    throw;
  } catch (const std::exception& error) {
    LetOthersRead(place);
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
  const std::string value = TextOf(state_->store->get(key));
  if (value.empty() || value.front() == '-') return std::nullopt;
  return value.substr(1);
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
