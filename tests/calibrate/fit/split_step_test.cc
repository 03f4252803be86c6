#include "calibrate/fit/split_step.h"

#include <doctest/doctest.h>

#include <vector>

#include "calibrate/fit/rank_step.h"
#include "model/presets.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

using hardware::StepTime;
using model::Seconds;

// Llama 3.1 8B over 4 x 2 ranks, as docs/models/splits.md works it.
model::Workload Divided() {
  model::Workload w;
  w.architecture = model::FindArchitecture("llama-3.1-8b");
  w.sequence_length = 4096;
  w.accumulation = 8;
  w.precision = model::Precision::kBf16;
  w.stack = {model::Fusion::kMegatron, model::Attention::kFlash};
  w.stack.narrow_weights = true;
  w.parallel.tensor = 4;
  w.parallel.pipeline = 2;
  return w;
}

// 300 GB/s and 3.4 us a step, in one host.
model::RankNetwork<double> Peers() {
  model::RankNetwork<double> network;
  network.alone = {model::Microseconds(3.4), model::GBPerSecond(300.0)};
  network.beside = network.alone;
  return network;
}

// Steps of both stages that compute 20 ms forward, 40 ms backward a
// micro-batch.
std::vector<StepTime<double>> Steps() {
  StepTime<double> step;
  step.forward.matrix = model::Second(8 * 0.020);
  step.backward.matrix = model::Second(8 * 0.040);
  step.optimizer.memory = model::Second(0.005);
  std::vector<StepTime<double>> steps(2, step);
  steps[1].optimizer.memory = model::Second(0.006);
  return steps;
}

TEST_CASE("sums within layers and waits between stages, by hand") {
  const model::Workload w = Divided();
  const ModelStages stages(w);
  REQUIRE(stages.distinct().size() == 2);
  const RankPlacement placement(w.parallel, 8);
  const std::vector<StepTime<double>> steps = Steps();
  const auto split =
      SplitBy<double, double>(stages, steps, placement, Peers(), 1.0);
  // An all-reduce of 32 MiB over four: 2 x 3 (3.4 us + 32 MiB / 1.2 TB/s).
  const double sum = 6.0 * (3.4e-6 + 33'554'432.0 / 1.2e12);
  CHECK(sum == Near(188.17e-6, 1e-4));
  // 33 + 32 of them in each stage's passes, of eight micro-batches.
  CHECK(split.sums.base() == Near(8 * 65 * sum));
  // Of equal stages the other's passes once, and of 32 MiB there and back, which
  // the first stage waits for in each of four pairs of micro-batches: it has run
  // one forward pass ahead, and its next one beside the first of the pair.
  const double both = 0.060 + 65 * sum;
  const double transfer = 3.4e-6 + 33'554'432.0 / 300e9;
  CHECK(split.waits.base() == Near(both + 4 * 2 * transfer));
  const StepTime<double> step = StepOfStages<double>(steps, split.busiest);
  CHECK(step.optimizer.total().base() == Near(0.006));
}

TEST_CASE("keys and values show what attention cannot hide, by hand") {
  model::Workload w = Divided();
  w.sequence_length = 16'384;
  w.parallel.context = 4;
  const ModelStages stages(w);
  const std::vector<StepTime<double>> steps = Steps();
  model::RankNetwork<double> network = Peers();
  network.across = {model::Microseconds(14.0), model::GBPerSecond(12.5)};
  const auto sums = [&](int64_t local) {
    const RankPlacement placement(w.parallel, local);
    return SplitBy<double, double>(stages, steps, placement, network, 1.0)
        .sums.base();
  };
  const double sum = 6.0 * (3.4e-6 + 33'554'432.0 / 1.2e12);
  // In one host 16 rounds of 3 (3.4 us + 4 MiB / 300 GB/s) are less than 0.235
  // of 20 ms.
  CHECK(sums(32) == Near(8 * 65 * sum));
  // Two ranks in each of two hosts: 3 (14 us + 4 MiB / 25 GB/s).
  const double round = 3.0 * (14e-6 + 4'194'304.0 / 25e9);
  CHECK(round == Near(545.3e-6, 1e-3));
  const double core = stages.distinct()[0].context.core;
  CHECK(core == Near(0.2353, 1e-3));
  CHECK(sums(8) == Near(8 * (65 * sum + 48 * round - core * 0.060)));
}

TEST_CASE("tokens are sent to experts and back, by hand") {
  model::Workload w = Divided();
  w.architecture = model::FindArchitecture("mixtral-8x7b");
  w.parallel = {};
  w.parallel.data = 8;
  w.parallel.expert = 8;
  const ModelStages stages(w);
  const std::vector<StepTime<double>> steps(1, Steps()[0]);
  model::RankNetwork<double> network = Peers();
  network.across = {model::Microseconds(14.0), model::GBPerSecond(50.0)};
  const auto sums = [&](int64_t local) {
    const RankPlacement placement(w.parallel, local);
    return SplitBy<double, double>(stages, steps, placement, network, 1.0)
        .sums.base();
  };
  // 7 (3.4 us + 64 MiB / (8 x 300 GB/s)), twice in each pass of 32 blocks.
  const double inside = 7.0 * (3.4e-6 + 67'108'864.0 / 2.4e12);
  CHECK(inside == Near(219.5e-6, 1e-3));
  CHECK(sums(8) == Near(8 * 128 * inside));
  // Half of it leaves each of two hosts: 4 (14 us + 64 MiB / (8 x 50 GB/s)).
  CHECK(sums(4) == Near(8 * 128 * 4.0 * (14e-6 + 67'108'864.0 / 400e9)));
}

// docs/models/splits.md, "By hand".
TEST_CASE("tokens of DeepSeek-V3 that go once to each host, by hand") {
  model::Workload w = Divided();
  w.architecture = model::FindArchitecture("deepseek-v3");
  w.batch = 1;
  w.parallel = {};
  w.parallel.data = w.parallel.expert = 64;
  const auto time = [&](model::ExpertExchange exchange, int64_t local) {
    w.parallel.expert_exchange = exchange;
    const model::ExpertMessages expert =
        model::ExpertMessagesOf(w, model::OfStage(w, 0));
    model::RankNetwork<double> network = Peers();
    network.across = {model::Microseconds(14.0), model::GBPerSecond(50.0)};
    const RankPlacement placement(w.parallel, local);
    return ExchangeTime(expert, placement.OfExpert(), network).base();
  };
  using enum model::ExpertExchange;
  // 4096 x 7168 x 2 B = 56 MiB; 3.63 of 8 hosts: 7 x 14 us + 7/8 x 3.629 x
  // 56 MiB / 50 GB/s. Eight copies: 56 (14 us + 8 x 56 MiB / (64 x 50 GB/s)).
  const double once = 58'720'256.0;
  CHECK(time(kByHost, 8) ==
        Near(7 * 14e-6 + 0.875 * 3.62901 * once / 50e9, 1e-6));
  CHECK(time(kAllToAll, 8) == Near(56 * (14e-6 + 8 * once / 64 / 50e9)));
  // In one host of 64: 63 x 3.4 us + 63/64 x 7.359 x 56 MiB / 300 GB/s.
  CHECK(time(kByHost, 64) ==
        Near(63 * 3.4e-6 + 63.0 / 64 * 7.35937 * once / 300e9, 1e-6));
}

TEST_CASE("exchanges beside another micro-batch show what this cannot hide") {
  model::Workload w = Divided();
  w.architecture = model::FindArchitecture("mixtral-8x7b");
  w.parallel = {};
  w.parallel.data = w.parallel.expert = 8;
  w.parallel.expert_overlap = true;
  const ModelStages stages(w);
  const std::vector<StepTime<double>> steps(1, Steps()[0]);
  model::RankNetwork<double> network = Peers();
  const RankPlacement placement(w.parallel, 8);
  const auto sums = [&] {
    return SplitBy<double, double>(stages, steps, placement, network, 1.0)
        .sums.base();
  };
  // As above 128 of 219.5 us a micro-batch, of which 40 and 20 ms of blocks of
  // another one hide all; of eight one has none beside it.
  const double inside = 7.0 * (3.4e-6 + 67'108'864.0 / 2.4e12);
  CHECK(sums() == Near(128 * inside));
  // Ten times as long: 64 x 2.1 ms a pass, less 40 and 20 ms seven times.
  network.alone.link = model::GBPerSecond(30.0);
  const double long_one = 7.0 * (3.4e-6 + 67'108'864.0 / 0.24e12);
  CHECK(sums() == Near(8 * 128 * long_one - 7 * 0.060));
}

TEST_CASE("gradients of experts go among ranks with the same ones") {
  model::Workload w = Divided();
  w.architecture = model::FindArchitecture("mixtral-8x7b");
  w.accumulation = 1;
  w.parallel = {};
  w.parallel.data = 16;
  w.parallel.expert = 8;
  w.parallel.shard = model::Shard::kZero1;
  const ModelStages stages(w);
  const std::vector<StepTime<double>> steps(1, Steps()[0]);
  const JoinedRanks ranks(stages, {w.parallel, 16});
  const RankSurroundings<double> around{.network = Peers(), .ranks = 16};
  const auto step = ranks.Step<double, double>(steps, around);
  // What is updated is gathered behind the backward pass, in 2 bytes each: the
  // 1,605,636,096 that are not of experts among 16 ranks, and the expert of
  // 5,637,144,576 between the two that have it.
  const auto& update = step.added.traffic.back();
  CHECK(update.part == "update");
  const double rest = 2 * 1'605'636'096.0;
  const double experts = 2 * 5'637'144'576.0;
  CHECK(update.sent.base() == Near(15.0 / 16 * rest + experts / 2));
  CHECK(update.sending.base() == Near(15 * 3.4e-6 + 15.0 / 16 * rest / 300e9 +
                                      3.4e-6 + experts / 2 / 300e9));
}

TEST_CASE("gradients of experts are summed by ranks with the same ones") {
  model::Workload w = Divided();
  w.architecture = model::FindArchitecture("mixtral-8x7b");
  w.accumulation = 1;
  w.parallel = {};
  w.parallel.data = 16;
  w.parallel.expert = 8;
  const ModelStages stages(w);
  // No pass backward hides any of it.
  std::vector<StepTime<double>> steps(1);
  steps[0].forward.matrix = model::Second(0.020);
  model::Bytes<> sent;
  model::Bytes<> of_experts;
  double transfers = 0;
  double transfers_of_experts = 0;
  for (const auto& piece : stages.messages().Pieces(steps[0].backward_units)) {
    sent += piece.sent;
    of_experts += piece.sent_of_experts;
    transfers += static_cast<double>(piece.transfers);
    transfers_of_experts += static_cast<double>(piece.transfers_of_experts);
  }
  // In 2 bytes each, as wide as the weights of a step of one micro-batch.
  const double rest = 2 * 1'605'636'096.0;
  const double experts = 2 * 5'637'144'576.0;
  CHECK(sent.base() == rest);
  CHECK(of_experts.base() == experts);
  const JoinedRanks ranks(stages, {w.parallel, 16});
  const RankSurroundings<double> around{.network = Peers(), .ranks = 16};
  const auto step = ranks.Step<double, double>(steps, around);
  const double exchanges = 128 * 7.0 * (3.4e-6 + 67'108'864.0 / 2.4e12);
  const double sums = 30 * (transfers * 3.4e-6 + rest / 16 / 300e9) +
                      2 * (transfers_of_experts * 3.4e-6 + experts / 2 / 300e9);
  CHECK(step.added.exposed.base() == Near(exchanges + sums));
}

TEST_CASE("a rank's step has sums, waits and the exchange of its copies") {
  model::Workload w = Divided();
  w.parallel.data = 2;
  const ModelStages stages(w);
  RankFit ranks;
  ranks.network.ranks = 16;
  ranks.network.hosts = 2;
  ranks.network.alone.ring = Peers().alone;
  ranks.network.alone.link_error = 0.1;
  ranks.network.beside = ranks.network.alone;
  ranks.network.across = {model::Microseconds(14.0), model::GBPerSecond(12.5)};
  const StepOfRank of_rank(stages, Steps(), {w.parallel, 8});
  const RankStepTime step = of_rank.Over(ranks);
  CHECK(step.waiting.base() > 0.060);
  CHECK(step.exposed.base() > 8 * 65 * 188e-6);
  CHECK(step.total().base() == Near((step.computing.total() + step.slowed +
                                     step.exposed + step.waiting)
                                        .base()));
  CHECK(step.log_sigma > 0.0);
  const RankStepTime time = of_rank.TimeOver(ranks);
  CHECK(time.total().base() == step.total().base());
  // On a slower link all of it takes longer.
  ranks.network.alone.ring.link = ranks.network.alone.ring.link * 0.5;
  CHECK(of_rank.TimeOver(ranks).exposed > step.exposed);
}

TEST_CASE("sums beside products show what these cannot hide") {
  model::Parallel parallel;
  parallel.tensor = 4;
  const auto exposed = [&](double sums, double computed, double of_weights) {
    return ExposedSums<double>(
               Seconds<>(sums), Seconds<>(computed), parallel, of_weights)
        .base();
  };
  CHECK(exposed(2.0, 10.0, 0.5) == 2.0);
  parallel.tensor_overlap = model::TensorOverlap::kGradients;
  CHECK(exposed(2.0, 10.0, 0.0) == 2.0);
  CHECK(exposed(2.0, 10.0, 0.5) == 0.0);
  CHECK(exposed(8.0, 10.0, 0.5) == 3.0);
  parallel.tensor_overlap = model::TensorOverlap::kProducts;
  CHECK(exposed(2.0, 10.0, 0.0) == 0.5);
  CHECK(exposed(16.0, 10.0, 0.0) == 4.0 + 2.0);
}

// Sums over 8 GB/s, 33 forward, 32 again and 32 backward, that are longer than
// what they go beside: 20 ms, 20 ms, and 40 of the 60 ms with the former.
TEST_CASE("sums hide beside what runs again once, by hand") {
  model::Workload w = Divided();
  w.parallel.tensor_overlap = model::TensorOverlap::kProducts;
  w.gradient_checkpointing = true;
  model::RankNetwork<double> network = Peers();
  network.alone.link = model::GBPerSecond(8.0);
  const double sum = 6.0 * (3.4e-6 + 33'554'432.0 / 32e9);
  const model::PipelinePart<double> computed{model::Second(0.020),
                                             model::Second(0.060)};
  const auto exposed = [&] {
    return ExposedWithinLayers<double>(ModelStages(w).distinct().front(),
                                       w.parallel,
                                       computed,
                                       computed,
                                       RankPlacement(w.parallel, 8),
                                       network);
  };
  CHECK(exposed().forward.base() == Near(33 * sum - 0.020));
  CHECK(exposed().backward.base() == Near(64 * sum - 0.060));
  w.gradient_checkpointing = false;
  w.parallel.tensor_overlap = model::TensorOverlap::kGradients;
  CHECK(exposed().backward.base() == Near(32 * sum - 0.030));
  // Adapters' matrices have no gradient that sums could go beside.
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = true;
  CHECK(exposed().backward.base() == Near(32 * sum));
}

}  // namespace
}  // namespace trainfare::calibrate
