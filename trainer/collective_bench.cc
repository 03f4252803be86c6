#include "trainer/collective_bench.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "model/error.h"
#include "trainer/device.h"
#include "trainer/device_clock.h"
#include "trainer/record.h"
#include "trainer/signals.h"

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
      : a_(at::rand({kRows, kDepth}, device)),
        b_(at::rand({kDepth, kColumns}, device)),
        product_(at::empty({kRows, kColumns}, device)) {}

  void Once() { at::mm_out(product_, a_, b_); }

 private:
  // A quarter of a millisecond of one core: many fit into a message's time.
  static constexpr int64_t kRows = 256;
  static constexpr int64_t kColumns = 256;
  static constexpr int64_t kDepth = 256;
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

struct Timed {
  double seconds = 0;  // of one all-reduce of several in a row
  double rounds_a_second = 0;
};

// `computation`: goes on until the last message has arrived; null: nothing
// does.
Timed TimeAllReduces(const at::Tensor& message,
                     int64_t iterations,
                     const DeviceClock& clock,
                     Computation* computation,
                     Communicator& ranks) {
  ranks.Barrier();
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
    transfers.push_back(ranks.AllReduce(message, std::move(done)));
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

}  // namespace

int RunCollectiveBench(const CollectiveBenchOptions& options,
                       at::Device device,
                       Communicator& ranks) {
  if (ranks.world_size() < 2) {
    throw model::InputError("bench collectives: expected two ranks and more");
  }
  const std::unique_ptr<LineWriter> records = OpenRecords(options.out, &ranks);
  const DeviceClock clock(device);
  Computation computation(device);
  for (const int64_t bytes : options.bytes) {
    const at::Tensor message =
        at::zeros({std::max<int64_t>(bytes / 4, 1)},
                  at::TensorOptions(device).dtype(at::kFloat));
    CollectiveRecord record;
    record.device = Describe(device);
    record.ranks = {ranks.rank(),
                    ranks.world_size(),
                    ranks.place().launcher,
                    ranks.backend(),
                    ranks.transport(),
                    {},
                    {}};
    record.bytes = static_cast<int64_t>(message.nbytes());
    record.iterations = Iterations(record.bytes);
    TimeAllReduces(message, record.iterations, clock, nullptr, ranks);
    for (int64_t i = 0; i < options.samples; ++i) {
      record.samples_s.push_back(
          TimeAllReduces(message, record.iterations, clock, nullptr, ranks)
              .seconds);
    }
    if (records) records->Write(ToJsonLine(record));
    if (!device.is_cpu()) continue;
    // Again while every rank computes: they share processors and memory.
    record.samples_s.clear();
    record.rounds_alone = RoundsAlone(computation, ranks);
    double rounds = 0;
    for (int64_t i = 0; i < options.samples; ++i) {
      const Timed timed = TimeAllReduces(
          message, record.iterations, clock, &computation, ranks);
      record.samples_s.push_back(timed.seconds);
      rounds += timed.rounds_a_second;
    }
    record.rounds_beside = rounds / static_cast<double>(options.samples);
    if (records) records->Write(ToJsonLine(record));
    if (StopRequested()) return kInterruptedExit;
  }
  return 0;
}

}  // namespace trainfare::trainer
