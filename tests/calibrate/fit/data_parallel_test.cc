#include "calibrate/fit/data_parallel.h"

#include <doctest/doctest.h>

#include <cmath>
#include <optional>
#include <string>

#include "model/error.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

// The run of docs/models/data_parallel.md: two buckets, one rank.
MeasuredRun OneRank() {
  MeasuredRun run;
  run.id = "one";
  run.buckets = {model::Byte(1e6), model::Byte(4e6)};
  for (int i = 0; i < 3; ++i) {
    Sample sample;
    sample.warmup = i == 0;
    sample.step = model::Second(i == 0 ? 9.0 : 0.500);
    sample.backward = model::Second(0.312);
    sample.backward_compute = model::Second(0.310);
    sample.bucket_ready = {model::Second(0.100), model::Second(0.300)};
    sample.bucket_start = sample.bucket_ready;
    sample.bucket_end = sample.bucket_ready;
    run.samples.push_back(sample);
  }
  return run;
}

NearNumber ToRounding(double value) { return Near(value, 1e-12); }

}  // namespace

TEST_CASE("two ranks from one, as worked in docs/models/data_parallel.md") {
  RankNetwork network;
  network.ranks = 2;
  network.alone.ring = {model::Second(1e-3), model::BytesPerSecond<>(1e8)};
  network.beside.ring = {model::Second(2e-3), model::BytesPerSecond<>(5e7)};
  network.beside_timed = true;
  network.speed = 0.8;
  const RankStep step = PredictRanks(OneRank(), network);
  CHECK(step.communication.base() == ToRounding(0.012 + 0.042));
  CHECK(step.compute_end.base() == ToRounding(0.3173));
  CHECK(step.exposed.base() == ToRounding(0.03575));
  CHECK(step.backward.base() == ToRounding(0.35505));
  CHECK(step.step.base() == ToRounding(0.54305));
}

TEST_CASE("a network from its all-reduces") {
  std::vector<MeasuredCollective> all;
  const auto add = [&](int64_t ranks,
                       double size,
                       double time_s,
                       std::optional<double> speed) {
    MeasuredCollective one;
    one.ranks = ranks;
    one.size = model::Byte(size);
    one.time = model::Second(time_s);
    one.computation_speed = speed;
    all.push_back(one);
  };
  for (const double size : {1e6, 2e6}) {
    // 2 (1 ms + S / (2 x 100 MB/s)), beside computation twice that.
    const double time_s = 0.002 + size / 1e8;
    add(2, size, time_s, std::nullopt);
    add(2, size, 2.0 * time_s, size == 1e6 ? 0.9 : 0.7);
    add(4, size, 1.0, std::nullopt);
  }
  const RankNetwork network = FitNetwork(all, 2);
  const auto near = [](double value) { return Near(value); };
  CHECK(network.alone.ring.step_latency.base() == near(1e-3));
  CHECK(network.alone.ring.link.base() == near(1e8));
  CHECK(network.beside.ring.step_latency.base() == near(2e-3));
  CHECK(network.beside.ring.link.base() == near(5e7));
  // Weighed by 24 and 44 ms.
  CHECK(network.speed == near((0.024 * 0.9 + 0.044 * 0.7) / 0.068));
  CHECK(network.beside_timed);
  // Two speeds, 0.1282 below and 0.0718 above.
  CHECK(network.speed_error ==
        Near(std::hypot(0.9 - network.speed, 0.7 - network.speed) / 2.0));
  CHECK_THROWS_AS(FitNetwork(all, 3), model::InputError);
}

TEST_CASE("the run's own bucket times give its backward") {
  MeasuredRun run = OneRank();
  for (Sample& sample : run.samples) {
    sample.bucket_end = {model::Second(0.350), model::Second(0.420)};
    sample.bucket_start[1] = model::Second(0.350);
  }
  const BackwardPass pass = MedianBackward(run);
  CHECK(pass.communication[0].base() == ToRounding(0.250));
  CHECK(pass.communication[1].base() == ToRounding(0.070));
  CHECK(RecursionBackward(run).base() == ToRounding(0.420));
}

TEST_CASE("a run without buckets is refused") {
  MeasuredRun run = OneRank();
  run.samples.back().bucket_ready.clear();
  CHECK_THROWS_AS(MedianBackward(run), model::InputError);
}

TEST_CASE("records of all-reduces and buckets are read") {
  const std::string head = R"({"schema": "trainfare.measurement/1", )";
  const std::string reduce =
      head + R"("kind": "collective", "operation": "all_reduce", )";
  const Measurements read = ParseMeasurements(
      reduce +
          R"("world_size": 2, "bytes": 1000, )"
          R"("computation": {"rounds_per_s": 60, "rounds_alone_per_s": 80}, )"
          R"("samples": [{"time_s": 1}, {"time_s": 3}, {"time_s": 2}]})"
          "\n",
      "f");
  REQUIRE(read.collectives.size() == 1);
  CHECK(read.collectives[0].ranks == 2);
  CHECK(read.collectives[0].time.base() == 2.0);
  CHECK(read.collectives[0].computation_speed == 0.75);
  CHECK_THROWS_WITH(ParseMeasurements(reduce + R"("world_size": 1, "bytes": 1})"
                                               "\n",
                                      "f"),
                    "f:1: world_size: expected an integer from 2 to "
                    "1000000000000000, got 1");
}

}  // namespace trainfare::calibrate
