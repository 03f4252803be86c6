#include "trainer/bench/collective_bench.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

#include "model/error.h"
#include "trainer/device/device.h"
#include "trainer/device/device_clock.h"
#include "trainer/ranks/rank_records.h"
#include "trainer/record/record.h"
#include "trainer/runtime/signals.h"

namespace trainfare::trainer {
namespace {

// Small messages repeat, so that a sample is longer than the clock's grain and
// than the skew with which ranks leave a barrier.
int64_t Iterations(int64_t bytes) {
  constexpr int64_t kLeastBytes = 4 << 20;
  constexpr int64_t kMost = 32;
  return std::clamp<int64_t>(kLeastBytes / bytes, 1, kMost);
}

// Products, as the layers of a backward pass do them.
class Computation {
 public:
  explicit Computation(at::Device device)
      : a_(at::rand({Extent(device), Extent(device)}, device)),
        b_(at::rand_like(a_)),
        product_(at::empty_like(a_)) {}

  void Once() { at::mm_out(product_, a_, b_); }

 private:
  // A quarter of a millisecond of one core, a tenth of one of a GPU: many fit
  // into a message's time, and a GPU's are longer than their launch.
  static int64_t Extent(at::Device device) {
    return device.is_cpu() ? 256 : 1024;
  }
  at::Tensor a_;
  at::Tensor b_;
  at::Tensor product_;
};

// Rounds a second, of all ranks at once.
double RoundsAlone(Computation& computation, Communicator& ranks) {
  constexpr double kSeconds = 0.3;
  ranks.Barrier();
  int64_t rounds = 0;
  const double start = MonotonicSeconds();
  double now = start;
  while (now - start < kSeconds) {
    computation.Once();
    ++rounds;
    now = MonotonicSeconds();
  }
  return static_cast<double>(rounds) / (now - start);
}

// What the ranks send each other.
class Message {
 public:
  Message(model::Collective operation,
          int64_t bytes,
          at::Device device,
          Communicator& ranks)
      : operation_(operation), ranks_(ranks) {
    const int64_t elements = std::max<int64_t>(bytes / 4, 1);
    const int64_t share =
        (elements + ranks.world_size() - 1) / ranks.world_size();
    const bool divided = operation != model::Collective::kAllReduce;
    const at::TensorOptions kind = at::TensorOptions(device).dtype(at::kFloat);
    whole_ = at::zeros({divided ? share * ranks.world_size() : elements}, kind);
    if (divided) share_ = at::zeros({share}, kind);
  }

  std::unique_ptr<Transfer> Start(std::function<void()> done = {}) const {
    switch (operation_) {
      case model::Collective::kAllReduce:
        break;
      case model::Collective::kAllGather:
        return ranks_.AllGather(share_, whole_, std::move(done));
      case model::Collective::kReduceScatter:
        return ranks_.ReduceScatter(whole_, share_, std::move(done));
    }
    return ranks_.AllReduce(whole_, std::move(done));
  }

  int64_t bytes() const { return static_cast<int64_t>(whole_.nbytes()); }
  bool is_cpu() const { return whole_.is_cpu(); }
  at::TensorOptions options() const { return whole_.options(); }
  Communicator& ranks() const { return ranks_; }

 private:
  model::Collective operation_;
  Communicator& ranks_;
  at::Tensor whole_;
  at::Tensor share_;
};

// A signal to one rank ends all behind the same sample: the others would wait
// for it.
void ThrowIfAnyIsStopped(const Message& message) {
  const at::Tensor asked =
      at::full({1}, StopRequested() ? 1.0 : 0.0, message.options());
  message.ranks().AllReduce(asked)->Wait();
  if (asked.item<double>() > 0.0) throw Interrupted();
}

struct Timed {
  double seconds = 0;  // of one message of several in a row
  double rounds_a_second = 0;
};

// `computation`: goes on until the last message has arrived; null: nothing
// does.
Timed TimeMessages(const Message& message,
                   int64_t iterations,
                   const DeviceClock& clock,
                   Computation* computation) {
  message.ranks().Barrier();
  clock.Wait();
  const double start = MonotonicSeconds();
  std::vector<std::unique_ptr<Transfer>> transfers;
  const auto arrived = std::make_shared<std::atomic<int64_t>>(0);
  const auto last = std::make_shared<std::atomic<double>>(0.0);
  for (int64_t i = 0; i < iterations; ++i) {
    std::function<void()> done;
    if (computation != nullptr) {
      done = [arrived, last] {
        last->store(MonotonicSeconds());
        arrived->fetch_add(1);
      };
    }
    transfers.push_back(message.Start(std::move(done)));
  }
  int64_t rounds = 0;
  while (computation != nullptr && arrived->load() < iterations) {
    computation->Once();
    ++rounds;
  }
  const double computed = MonotonicSeconds();
  for (const auto& transfer : transfers) transfer->Wait();
  clock.Wait();
  const double end = computation == nullptr ? MonotonicSeconds() : last->load();
  return {(end - start) / static_cast<double>(iterations),
          static_cast<double>(rounds) / (computed - start)};
}

// Rounds a second on a GPU, by its own clock, of all ranks at once.
double RoundsAloneOnGpu(Computation& computation,
                        DeviceClock& clock,
                        Communicator& ranks) {
  constexpr int64_t kRounds = 200;
  computation.Once();
  ranks.Barrier();
  clock.Wait();
  clock.Clear();
  const size_t start = clock.Mark();
  for (int64_t i = 0; i < kRounds; ++i) computation.Once();
  const size_t end = clock.Mark();
  clock.Wait();
  return static_cast<double>(kRounds) / clock.SecondsBetween(start, end);
}

// As TimeMessages() beside computation, where both are queued ahead: messages
// first, which would otherwise wait for the products, then products for longer
// than the messages take, of which the device says when they were done.
Timed TimeMessagesOnGpu(const Message& message,
                        int64_t iterations,
                        double alone_s,
                        double rounds_alone,
                        DeviceClock& clock,
                        Computation& computation) {
  Communicator& ranks = message.ranks();
  constexpr int kTries = 6;  // each with twice the products
  double expected_s = 1.5 * alone_s * static_cast<double>(iterations);
  for (int i = 0; i < kTries; ++i, expected_s *= 2) {
    const auto rounds =
        static_cast<int64_t>(std::ceil(expected_s * rounds_alone));
    ranks.Barrier();
    clock.Wait();
    clock.Clear();
    const size_t start = clock.Mark();
    std::vector<std::unique_ptr<Transfer>> transfers;
    for (int64_t one = 0; one < iterations; ++one) {
      transfers.push_back(message.Start());
    }
    const size_t arrived = clock.MarkEndOf([&] { transfers.back()->Wait(); });
    for (int64_t round = 0; round < rounds; ++round) computation.Once();
    const size_t computed = clock.Mark();
    for (const auto& transfer : transfers) transfer->Wait();
    clock.Wait();
    const double message_s = clock.SecondsBetween(start, arrived);
    const std::optional<double> beside = RoundsBeside(
        rounds, clock.SecondsBetween(start, computed), message_s, rounds_alone);
    // All ranks try as often: their sums would not meet otherwise.
    const at::Tensor missed =
        at::full({1}, beside ? 0.0 : 1.0, message.options());
    ranks.AllReduce(missed)->Wait();
    if (missed.item<double>() > 0.0) continue;
    return {message_s / static_cast<double>(iterations), *beside};
  }
  throw std::runtime_error(
      "bench collectives: the messages outlast all computation beside them");
}

// Its times again while every rank computes: they share processors and memory,
// a GPU its multiprocessors and memory with NCCL's kernels.
void TimeBesideComputation(const Message& message,
                           int64_t samples,
                           DeviceClock& clock,
                           Computation& computation,
                           CollectiveRecord& record) {
  Communicator& ranks = message.ranks();
  const double alone_s =
      *std::max_element(record.samples_s.begin(), record.samples_s.end());
  record.samples_s.clear();
  record.rounds_alone = message.is_cpu()
                            ? RoundsAlone(computation, ranks)
                            : RoundsAloneOnGpu(computation, clock, ranks);
  double rounds = 0;
  for (int64_t i = 0; i < samples; ++i) {
    ThrowIfAnyIsStopped(message);
    const Timed timed =
        message.is_cpu()
            ? TimeMessages(message, record.iterations, clock, &computation)
            : TimeMessagesOnGpu(message,
                                record.iterations,
                                alone_s,
                                *record.rounds_alone,
                                clock,
                                computation);
    record.samples_s.push_back(timed.seconds);
    rounds += timed.rounds_a_second;
  }
  record.rounds_beside = rounds / static_cast<double>(samples);
}

CollectiveRecord RecordOf(model::Collective operation,
                          const Message& message,
                          at::Device device) {
  const Communicator& ranks = message.ranks();
  CollectiveRecord record;
  record.device = Describe(device);
  record.operation = operation;
  record.ranks = {ranks.rank(),
                  ranks.world_size(),
                  ranks.place().launcher,
                  ranks.backend(),
                  ranks.transport(),
                  {},
                  {}};
  record.bytes = message.bytes();
  record.iterations = Iterations(record.bytes);
  return record;
}

// Alone and beside computation, a record each.
void TimeOperation(model::Collective operation,
                   int64_t bytes,
                   int64_t samples,
                   at::Device device,
                   Communicator& ranks,
                   DeviceClock& clock,
                   Computation& computation,
                   LineWriter* records) {
  const Message message(operation, bytes, device, ranks);
  CollectiveRecord record = RecordOf(operation, message, device);
  TimeMessages(message, record.iterations, clock, nullptr);
  for (int64_t i = 0; i < samples; ++i) {
    ThrowIfAnyIsStopped(message);
    record.samples_s.push_back(
        TimeMessages(message, record.iterations, clock, nullptr).seconds);
  }
  if (records != nullptr) records->Write(ToJsonLine(record));
  TimeBesideComputation(message, samples, clock, computation, record);
  if (records != nullptr) records->Write(ToJsonLine(record));
}

}  // namespace

std::optional<double> RoundsBeside(int64_t rounds,
                                   double compute_end_s,
                                   double message_end_s,
                                   double rounds_alone_per_s) {
  if (compute_end_s < message_end_s) return std::nullopt;
  const double alone = rounds_alone_per_s * (compute_end_s - message_end_s);
  // Rounding of a device that messages do not slow down at all.
  return std::max(static_cast<double>(rounds) - alone, 0.0) / message_end_s;
}

int RunCollectiveBench(const CollectiveBenchOptions& options,
                       at::Device device,
                       Communicator& ranks) {
  if (ranks.world_size() < 2) {
    throw model::InputError("bench collectives: expected two ranks and more");
  }
  const std::unique_ptr<LineWriter> records = OpenRecords(options.out, &ranks);
  DeviceClock clock(device);
  Computation computation(device);
  try {
    for (const model::Collective operation : options.operations) {
      for (const int64_t bytes : options.bytes) {
        TimeOperation(operation,
                      bytes,
                      options.samples,
                      device,
                      ranks,
                      clock,
                      computation,
                      records.get());
      }
    }
  } catch (const Interrupted&) {
    return kInterruptedExit;  // all ranks, which take leave
  }
  return 0;
}

}  // namespace trainfare::trainer
