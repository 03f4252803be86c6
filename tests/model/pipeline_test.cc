#include "model/pipeline.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "tests/near.h"

namespace trainfare::model {
namespace {

PipelinePart<double> Part(double forward, double backward) {
  return {Second(forward), Second(backward)};
}

// A number and its derivative by one parameter.
struct Sloped {
  double value = 0;
  double slope = 0;
  // NOLINTNEXTLINE(google-explicit-constructor): as scalars of a fit are.
  Sloped(double constant = 0, double by = 0) : value(constant), slope(by) {}

  Sloped& operator+=(const Sloped& b) { return *this = *this + b; }
  Sloped& operator-=(const Sloped& b) { return *this = *this + -b; }
  Sloped operator-() const { return {-value, -slope}; }
  friend Sloped operator+(const Sloped& a, const Sloped& b) {
    return {a.value + b.value, a.slope + b.slope};
  }
  friend Sloped operator-(const Sloped& a, const Sloped& b) { return a + -b; }
  friend Sloped operator*(const Sloped& a, const Sloped& b) {
    return {a.value * b.value, a.value * b.slope + a.slope * b.value};
  }
  friend bool operator<(const Sloped& a, const Sloped& b) {
    return a.value < b.value;
  }
};

struct PipelinePass {
  bool forward = true;
  int64_t part = 0;
  int64_t micro_batch = 0;
};

// Passes of a stage as Megatron lists them: warm-up, by turns, the rest.
std::vector<PipelinePass> OrderOfStage(const PipelineSchedule& schedule,
                                       int64_t stage) {
  const int64_t p = schedule.stages;
  const int64_t v = schedule.chunks;
  const int64_t full = v == 1 ? schedule.micro_batches
                              : (schedule.micro_batches + p - 1) / p * p;
  std::vector<PipelinePass> forward;
  std::vector<PipelinePass> backward;
  for (int64_t first = 0; first < full; first += p) {
    for (int64_t chunk = 0; chunk < v; ++chunk) {
      for (int64_t i = first; i < std::min(first + p, full); ++i) {
        forward.push_back({true, chunk * p + stage, i});
        backward.push_back({false, (v - 1 - chunk) * p + stage, i});
      }
    }
  }
  const int64_t warm_up = std::min(
      v == 1 ? p - stage - 1 : (p - stage - 1) * 2 + (v - 1) * p, full * v);
  std::vector<PipelinePass> order;
  const auto add = [&](const PipelinePass& pass) {
    if (pass.micro_batch < schedule.micro_batches) order.push_back(pass);
  };
  for (int64_t k = 0; k < full * v + warm_up; ++k) {
    if (k < full * v) add(forward[static_cast<size_t>(k)]);
    if (k >= warm_up) add(backward[static_cast<size_t>(k - warm_up)]);
  }
  return order;
}

// Runs whatever pass is next on its stage and has what it needs, until all ran.
template <class T>
Seconds<T> SimulatedPipeline(const std::vector<PipelinePart<T>>& parts,
                             const PipelineSchedule& schedule,
                             Seconds<T> transfer) {
  using Key = std::tuple<bool, int64_t, int64_t>;
  std::map<Key, Seconds<T>> ended;
  const auto stages = static_cast<size_t>(schedule.stages);
  std::vector<std::vector<PipelinePass>> orders;
  for (int64_t s = 0; s < schedule.stages; ++s) {
    orders.push_back(OrderOfStage(schedule, s));
  }
  std::vector<size_t> next(stages);
  std::vector<Seconds<T>> free(stages);
  const auto last = static_cast<int64_t>(parts.size()) - 1;
  bool ran = true;
  while (ran) {
    ran = false;
    for (size_t s = 0; s < stages; ++s) {
      for (; next[s] < orders[s].size(); ++next[s]) {
        const PipelinePass& pass = orders[s][next[s]];
        const PipelinePart<T>& part = parts[static_cast<size_t>(pass.part)];
        if (pass.part != (pass.forward ? 0 : last)) {
          const int64_t from = pass.part + (pass.forward ? -1 : 1);
          const auto input =
              ended.find(Key(pass.forward, from, pass.micro_batch));
          if (input == ended.end()) break;
          const Seconds<T> arrival =
              stages == 1 ? input->second : input->second + transfer;
          free[s] = std::max(free[s], arrival);
        }
        free[s] += pass.forward ? part.forward : part.backward;
        ended[Key(pass.forward, pass.part, pass.micro_batch)] = free[s];
        ran = true;
      }
    }
  }
  for (size_t s = 0; s < stages; ++s) REQUIRE(next[s] == orders[s].size());
  return *std::max_element(free.begin(), free.end());
}

int64_t PassesHeld(const PipelineSchedule& schedule, int64_t stage) {
  int64_t held = 0;
  int64_t most = 0;
  for (const PipelinePass& pass : OrderOfStage(schedule, stage)) {
    held += pass.forward ? 1 : -1;
    most = std::max(most, held);
  }
  return most;
}

class RandomPipelines {
 public:
  explicit RandomPipelines(unsigned seed) : random_(seed) {}
  int64_t Count(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  double Time() {
    return std::uniform_real_distribution<double>(0.1, 1.0)(random_);
  }
  PipelineSchedule Schedule(int64_t most_micro_batches) {
    PipelineSchedule schedule;
    schedule.stages = Count(1, 6);
    schedule.chunks = Count(1, 3);
    schedule.micro_batches = Count(1, most_micro_batches);
    return schedule;
  }
  std::vector<PipelinePart<double>> Parts(const PipelineSchedule& schedule) {
    std::vector<PipelinePart<double>> parts;
    for (int64_t j = 0; j < schedule.group_places(); ++j) {
      parts.push_back(Part(Time(), 2 * Time()));
    }
    return parts;
  }

 private:
  std::mt19937 random_;
};

}  // namespace

// docs/models/pipeline.md.
TEST_CASE("a pipeline of two stages by hand") {
  const PipelineTime<double> time =
      PipelinePassTime({Part(1, 2), Part(2, 4)}, {2, 1, 3}, Second(1.0));
  CHECK(ToSeconds(time.total) == Near(23.0, 1e-14));
  CHECK(ToSeconds(time.busiest) == Near(18.0, 1e-14));
  CHECK(ToSeconds(time.waiting()) == Near(5.0, 1e-14));
  CHECK(PassesInFlight({2, 1, 3}, 0) == 2);
  CHECK(PassesInFlight({2, 1, 3}, 1) == 1);
  // Eight micro-batches of four stages, as one chunk each and as two halves.
  const std::vector<PipelinePart<double>> whole(4, Part(2, 4));
  CHECK(ToSeconds(PipelinePassTime(whole, {4, 1, 8}, Seconds<>()).total) ==
        Near(66.0, 1e-14));
  const std::vector<PipelinePart<double>> halves(8, Part(1, 2));
  CHECK(ToSeconds(PipelinePassTime(halves, {4, 2, 8}, Seconds<>()).total) ==
        Near(57.0, 1e-14));
  // 3 x 2 + 4 + 1 halves on the first stage, 4 + 1 on the last.
  CHECK(PassesInFlight({4, 1, 8}, 0) == 4);
  CHECK(PassesInFlight({4, 2, 8}, 0) == 11);
  CHECK(PassesInFlight({4, 2, 8}, 3) == 5);
}

TEST_CASE("equal stages wait for p - 1 passes of one chunk") {
  for (const int64_t stages : {1, 2, 3, 8}) {
    for (const int64_t chunks : {1, 2, 4}) {
      for (const int64_t groups : {1, 2, 5, 400}) {
        const PipelineSchedule schedule{stages, chunks, groups * stages};
        CAPTURE(stages);
        CAPTURE(chunks);
        CAPTURE(groups);
        const std::vector<PipelinePart<double>> parts(
            static_cast<size_t>(stages * chunks), Part(0.3, 0.7));
        const auto time = PipelinePassTime(parts, schedule, Seconds<>());
        CHECK(
            ToSeconds(time.busiest) ==
            Near(static_cast<double>(schedule.micro_batches * chunks), 1e-12));
        CHECK(ToSeconds(time.waiting()) ==
              Near(static_cast<double>(stages - 1), 1e-9, 1e-9));
      }
    }
  }
}

TEST_CASE("one stage never waits, and sends nothing") {
  const std::vector<PipelinePart<double>> parts = {Part(1, 3), Part(2, 5)};
  for (const int64_t micro_batches : {1, 2, 100}) {
    const auto time =
        PipelinePassTime(parts, {1, 2, micro_batches}, Second(10.0));
    CHECK(ToSeconds(time.total) ==
          Near(11.0 * static_cast<double>(micro_batches), 1e-5));
    CHECK(time.total == time.busiest);
  }
}

TEST_CASE("forward passes alone are a line that the slowest stage gates") {
  const std::vector<PipelinePart<double>> parts = {
      Part(1, 0), Part(4, 0), Part(2, 0)};
  for (const int64_t micro_batches : {1, 2, 3, 50}) {
    const auto time =
        PipelinePassTime(parts, {3, 1, micro_batches}, Seconds<>());
    CHECK(ToSeconds(time.total) ==
          Near(7.0 + 4.0 * static_cast<double>(micro_batches - 1), 1e-5));
  }
  const std::vector<PipelinePart<double>> none(3);
  CHECK(PipelinePassTime(none, {3, 1, 50}, Seconds<>()).total == Seconds<>());
  // Nothing comes back that the next micro-batches would wait for.
  const auto sending =
      PipelinePassTime(parts,
                       {.stages = 3, .micro_batches = 50, .forward_only = true},
                       Second(3.0));
  CHECK(ToSeconds(sending.total) == Near(7.0 + 2 * 3 + 4.0 * 49, 1e-5));
  // Four stages of two chunks, eight micro-batches: 16 + 3 halves.
  const std::vector<PipelinePart<double>> halves(8, Part(1, 0));
  const auto chunks = PipelinePassTime(
      halves,
      {.stages = 4, .chunks = 2, .micro_batches = 8, .forward_only = true},
      Seconds<>());
  CHECK(ToSeconds(chunks.total) == Near(19.0, 1e-5));
}

TEST_CASE("any pipeline takes as long as pass by pass") {
  RandomPipelines random(48);
  for (int run = 0; run < 400; ++run) {
    const PipelineSchedule schedule = random.Schedule(20);
    CAPTURE(schedule.stages);
    CAPTURE(schedule.chunks);
    CAPTURE(schedule.micro_batches);
    const std::vector<PipelinePart<double>> parts = random.Parts(schedule);
    const Seconds<> transfer = Second(run % 3 == 0 ? 0.0 : random.Time());
    const auto time = PipelinePassTime(parts, schedule, transfer);
    CHECK(ToSeconds(time.total) ==
          Near(ToSeconds(SimulatedPipeline(parts, schedule, transfer)), 1e-12));
    CHECK(time.total * (1 + 1e-12) >= time.busiest);
    if (schedule.chunks > 1) continue;
    // No order is faster than all of a stage between a way there and back.
    Seconds<> way;
    for (const PipelinePart<double>& part : parts) {
      const Seconds<> work = part.forward + part.backward;
      const auto all = static_cast<double>(schedule.micro_batches) * work;
      CHECK(time.total * (1 + 1e-12) >= way + all);
      way += work + 2.0 * transfer;
    }
    CHECK(time.total * (1 + 1e-12) >= way - 2.0 * transfer);
  }
}

TEST_CASE("periods that are skipped take as long as those that are run") {
  RandomPipelines random(7);
  for (int run = 0; run < 120; ++run) {
    const PipelineSchedule schedule = random.Schedule(400);
    CAPTURE(schedule.stages);
    CAPTURE(schedule.chunks);
    CAPTURE(schedule.micro_batches);
    std::vector<PipelinePart<double>> parts = random.Parts(schedule);
    // Transfers that 1F1B does not hide: several micro-batches make a period.
    const Seconds<> transfer = Second(run % 3 == 0 ? 0.0 : random.Time());
    // Stages that are nearly alike take long to find their pace.
    if (run % 4 == 0) {
      for (auto& part : parts) {
        part = {Second(1.0) + 0.01 * part.forward,
                Second(2.0) + 0.01 * part.backward};
      }
    }
    CHECK(ToSeconds(PipelinePassTime(parts, schedule, transfer).total) ==
          Near(ToSeconds(SimulatedPipeline(parts, schedule, transfer)), 1e-10));
  }
}

// docs/models/pipeline.md.
TEST_CASE("the pace is that of the slowest stages that wait for each other") {
  RandomPipelines random(3);
  for (int run = 0; run < 50; ++run) {
    PipelineSchedule schedule = random.Schedule(1);
    schedule.chunks = 1;
    CAPTURE(schedule.stages);
    const std::vector<PipelinePart<double>> parts = random.Parts(schedule);
    const Seconds<> transfer = Second(random.Time());
    Seconds<> pace;
    for (size_t s = 0; s < parts.size(); ++s) {
      Seconds<> around;
      for (size_t t = s; t < parts.size(); ++t) {
        if (t > s) around += 2.0 * transfer;
        around += parts[t].forward + parts[t].backward;
        pace = std::max(pace, around / static_cast<double>(t - s + 1));
      }
    }
    const auto total = [&](int64_t micro_batches) {
      schedule.micro_batches = micro_batches;
      return PipelinePassTime(parts, schedule, transfer).total;
    };
    // Any number of stages up to six divides 60.
    CHECK(ToSeconds(total(6060) - total(6000)) ==
          Near(ToSeconds(60.0 * pace), 1e-7));
  }
}

TEST_CASE("derivatives are those of the passes that gate") {
  RandomPipelines random(11);
  for (int run = 0; run < 120; ++run) {
    const PipelineSchedule schedule = random.Schedule(200);
    CAPTURE(schedule.stages);
    CAPTURE(schedule.chunks);
    CAPTURE(schedule.micro_batches);
    std::vector<PipelinePart<Sloped>> parts;
    for (int64_t j = 0; j < schedule.group_places(); ++j) {
      parts.push_back({Seconds<Sloped>({random.Time(), random.Time()}),
                       Seconds<Sloped>({2 * random.Time(), random.Time()})});
    }
    const Seconds<Sloped> transfer({random.Time(), random.Time()});
    const Sloped time =
        PipelinePassTime(parts, schedule, transfer).total.base();
    const Sloped all = SimulatedPipeline(parts, schedule, transfer).base();
    CHECK(time.value == Near(all.value, 1e-10));
    CHECK(time.slope == Near(all.slope, 1e-10));
  }
}

TEST_CASE("passes in flight are those that the order of a stage holds") {
  for (int64_t stages = 1; stages <= 6; ++stages) {
    for (int64_t chunks = 1; chunks <= 3; ++chunks) {
      for (int64_t micro_batches = 1; micro_batches <= 20; ++micro_batches) {
        const PipelineSchedule schedule{stages, chunks, micro_batches};
        CAPTURE(stages);
        CAPTURE(chunks);
        CAPTURE(micro_batches);
        for (int64_t s = 0; s < stages; ++s) {
          CAPTURE(s);
          const int64_t held = PassesInFlight(schedule, s);
          CHECK(held == PassesHeld(schedule, s));
          if (chunks == 1) CHECK(held == std::min(stages - s, micro_batches));
          if (chunks > 1 && micro_batches % stages == 0) {
            CHECK(held ==
                  std::min(2 * (stages - s - 1) + (chunks - 1) * stages + 1,
                           micro_batches * chunks));
          }
        }
      }
    }
  }
}

}  // namespace trainfare::model
