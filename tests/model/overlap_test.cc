#include "model/overlap.h"

#include <doctest/doctest.h>

#include <numeric>

#include "model/presets.h"
#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::model {
namespace {

// Dense head, twelve encoders, embeddings: compute and all-reduce times in ms.
std::vector<OverlapTask<double>> BertTasks(double head,
                                           double head_sent,
                                           double encoder,
                                           double encoder_sent,
                                           double embedding,
                                           double embedding_sent) {
  std::vector<OverlapTask<double>> tasks;
  tasks.push_back({Milliseconds(head), Milliseconds(head_sent)});
  for (int i = 0; i < 12; ++i) {
    tasks.push_back({Milliseconds(encoder), Milliseconds(encoder_sent)});
  }
  tasks.push_back({Milliseconds(embedding), Milliseconds(embedding_sent)});
  return tasks;
}

}  // namespace

// Layer times of a backward pass of BERT-base, LightSeq2 with fused Adan, on
// V100 PCIe 16 GB: published/s003_t4_11_t4_12 (thesis tables 4.11 and 4.12).
// The overhead of 0.09 ms a gap reproduces both printed sums.
TEST_CASE("measured layer times give the published backward times") {
  const OverlapTime<double> two = OverlapBackward(
      BertTasks(0.513, 1.773, 7.4, 8.7, 1.8, 22.45), Milliseconds(0.09));
  CHECK(ToMilliseconds(two.end) == Near(134.853));
  const OverlapTime<double> four = OverlapBackward(
      BertTasks(0.483, 4.698, 6.94, 10.94, 2.22, 27.477), Milliseconds(0.09));
  CHECK(ToMilliseconds(four.end) == Near(166.27));
  // By hand for two: one head, one gap, one encoder, then the channel is never
  // idle: 0.513 + 0.09 + 7.4 + 12 x 8.7 + 22.45.
  CHECK(ToMilliseconds(two.end) ==
        Near(0.513 + 0.09 + 7.4 + 12 * 8.7 + 22.45, 1e-12));
  // Computation alone: 0.513 + 12 x 7.4 + 1.8 + 13 gaps = 92.283 ms.
  CHECK(ToMilliseconds(two.compute_end) == Near(92.283, 1e-12));
  CHECK(ToMilliseconds(two.exposed()) == Near(134.853 - 92.283));
}

TEST_CASE("computation and a transfer on the same cores slow each other") {
  const auto piece = [](double compute, double alone, double beside) {
    return ContendedTask<double>{
        Milliseconds(compute), Milliseconds(alone), Milliseconds(beside)};
  };
  const auto run = [](const std::vector<ContendedTask<double>>& tasks,
                      double speed) { return OverlapContended(tasks, speed); };
  // 5 ms alone; then 4 ms of sending leave 4 x 0.5 = 2 ms of the next 5 ms
  // done, and 3 ms follow alone: 5 + 4 + 3 = 12 ms, and 3 ms of sending.
  const auto half = run({piece(5, 4, 4), piece(5, 3, 3)}, 0.5);
  CHECK(ToMilliseconds(half.compute_end) == Near(12.0, 1e-12));
  CHECK(ToMilliseconds(half.end) == Near(15.0, 1e-12));
  // Sending outlasts the next piece: 5 + 5 / 0.8 = 11.25 ms, sent at 15 + 3.
  const auto long_one = run({piece(5, 10, 10), piece(5, 3, 3)}, 0.8);
  CHECK(ToMilliseconds(long_one.compute_end) == Near(11.25, 1e-12));
  CHECK(ToMilliseconds(long_one.end) == Near(18.0, 1e-12));
  // Sending takes twice as long beside computation: 8 ms, in which 4 of 5 ms
  // are computed; 1 ms alone, 14 ms, and 3 ms of sending alone.
  const auto both = run({piece(5, 4, 8), piece(5, 3, 6)}, 0.5);
  CHECK(ToMilliseconds(both.compute_end) == Near(14.0, 1e-12));
  CHECK(ToMilliseconds(both.end) == Near(17.0, 1e-12));
  // Without contention it is the recursion; a piece without gradients too.
  const auto full = run({piece(5, 4, 4), piece(2, 0, 0), piece(5, 3, 3)}, 1.0);
  CHECK(full.end == OverlapBackward(
                        std::vector<OverlapTask<double>>{
                            {Milliseconds(5.0), Milliseconds(4.0)},
                            {Milliseconds(2.0), Seconds<>()},
                            {Milliseconds(5.0), Milliseconds(3.0)}},
                        Seconds<>())
                        .end);
  CHECK(run({}, 1.0).end == Seconds<>());
  // A transfer that ends with a piece is sent once: 5 + 10 + 5 + 3 ms.
  const auto tie =
      run({piece(5, 10, 10), piece(10, 0, 0), piece(5, 3, 3)}, 1.0);
  CHECK(ToMilliseconds(tie.compute_end) == Near(20.0, 1e-12));
  CHECK(ToMilliseconds(tie.end) == Near(23.0, 1e-12));
}

TEST_CASE("what is sent in time costs nothing, what is last is exposed") {
  const std::vector<OverlapTask<double>> hidden = {
      {Milliseconds(5.0), Milliseconds(4.0)},
      {Milliseconds(5.0), Milliseconds(3.0)}};
  const OverlapTime<double> time = OverlapBackward(hidden, Seconds<>());
  CHECK(ToMilliseconds(time.compute_end) == Near(10.0, 1e-12));
  CHECK(ToMilliseconds(time.end) == Near(13.0, 1e-12));
  CHECK(OverlapBackward(std::vector<OverlapTask<double>>{}, Seconds<>()).end ==
        Seconds<>());
}

TEST_CASE("end lies between the longer of the two and their sum") {
  for (const double sent : {0.0, 1.0, 7.0, 20.0}) {
    const OverlapTime<double> time =
        OverlapBackward(BertTasks(1, sent, 7, sent, 2, sent), Seconds<>());
    const double compute = 1 + 12 * 7 + 2;
    const double communication = 14 * sent;
    CHECK(ToMilliseconds(time.end) >=
          std::max(compute, communication) * (1 - 1e-12));
    CHECK(ToMilliseconds(time.end) <= (compute + communication) * (1 + 1e-12));
  }
}

TEST_CASE("buckets hold every gradient once, in backward order") {
  const Architecture& bert = FindArchitecture("bert-base-uncased");
  const std::vector<ParameterTensor> tensors = ParameterTensorsOf(bert);
  const std::vector<GradientBucket> buckets = BucketGradients(tensors, 4);
  const int64_t sum = std::accumulate(
      buckets.begin(),
      buckets.end(),
      int64_t{0},
      [](int64_t s, const GradientBucket& b) { return s + b.elements; });
  CHECK(sum == TotalParameters(bert));
  // Head and pooler: 1538 + 590592 elements pass 1 MiB of fp32 with the
  // pooler's matrix, so the first bucket waits for the head alone.
  CHECK(buckets.front().ready_after_layer >= bert.layers);
  CHECK(buckets.back().ready_after_layer == 0);
  for (size_t i = 1; i < buckets.size(); ++i) {
    CHECK(buckets[i].ready_after_layer <= buckets[i - 1].ready_after_layer);
  }
  // 25 MiB of fp32 are 6,553,600 elements; a block has 7,087,872: about one
  // bucket a block, and the tables at the end.
  CHECK(buckets.size() >= 13);
  CHECK(buckets.size() <= 16);
}

}  // namespace trainfare::model
