// Groups of ranks: fitted to records that the formula itself made (synthetic),
// written, read, and used for other numbers of ranks.

#include "calibrate/fit/rank_fit.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "calibrate/fit/predictor.h"
#include "calibrate/fit/prior_fit.h"
#include "calibrate/fit/rank_pass.h"
#include "calibrate/fit/rank_step.h"
#include "hardware/catalog/device.h"
#include "model/error.h"
#include "model/offload.h"
#include "model/presets.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

hardware::Device RankedProcessor() {
  hardware::Device device = hardware::HostCpu();
  device.reported_name = "Example 9000";
  return device;
}

model::Workload Work(const char* name, int64_t batch) {
  model::Workload workload;
  workload.architecture = model::FindArchitecture(name);
  workload.batch = batch;
  workload.sequence_length = 64;
  return workload;
}

MeasuredCollective AllReduce(double size,
                             double time_s,
                             std::optional<double> speed = std::nullopt) {
  MeasuredCollective one;
  one.ranks = 2;
  one.size = model::Byte(size);
  one.time = model::Second(time_s);
  one.computation_speed = speed;
  one.device = "Example 9000";
  one.backend = "gloo";
  one.transport = "tcp within a host";
  one.threads = 1;
  return one;
}

MeasuredRun Run(const model::Workload& workload,
                int64_t ranks,
                int64_t threads) {
  MeasuredRun run;
  run.id = workload.architecture.name;
  run.device = "Example 9000";
  run.device_count = ranks;
  run.threads = threads;
  run.backend = ranks > 1 ? "gloo" : "none";
  run.workload = workload;
  return run;
}

// Two ranks of a thread each on a processor of two, by a ring of 0.1 ms and
// 1 GB/s that half computation slows twofold.
RankFit RankTruth() {
  RankFit truth;
  truth.network.ranks = 2;
  truth.network.alone.ring = {model::Second(1e-4),
                              model::BytesPerSecond<>(1e9)};
  truth.network.beside.ring = {model::Second(2e-4),
                               model::BytesPerSecond<>(5e8)};
  truth.network.beside_timed = true;
  truth.network.speed = 0.8;
  truth.share = 0.45;
  return truth;
}

RankRecords SyntheticRecords(const hardware::Device& device) {
  RankRecords records;
  records.source = "synthetic.jsonl";
  for (const double size : {1e6, 4e6, 25e6}) {
    records.collectives.push_back(AllReduce(size, 2e-4 + size / 1e9));
    records.collectives.push_back(AllReduce(size, 4e-4 + size / 5e8, 0.8));
  }
  const Predictor predictor(device);
  for (const char* name : {"bert-mini", "bert-small", "bert-medium"}) {
    const model::Workload workload = Work(name, 8);
    const RankStepTime step =
        StepOverRanks(workload, predictor.Time(workload), RankTruth());
    MeasuredRun run = Run(workload, 2, 1);
    Sample sample;
    sample.step = step.total();
    sample.forward = step.computing.forward.total();
    sample.backward = step.backward();
    sample.optimizer = step.computing.optimizer.total();
    run.samples.assign(5, sample);
    records.runs.push_back(run);
    MeasuredRun alone = Run(workload, 1, 2);
    sample = {};
    sample.step = predictor.Time(workload).total();
    alone.samples.assign(5, sample);
    records.runs.push_back(alone);
  }
  return records;
}

}  // namespace

TEST_CASE("a group of ranks is found again from records of it") {
  const hardware::Device device = RankedProcessor();
  const RankFits fits =
      FitRanks(device, PriorFit(device), SyntheticRecords(device));
  CHECK(fits.notes.empty());
  REQUIRE(fits.groups.size() == 1);
  const RankFit& group = fits.groups.front();
  CHECK(group.backend == "gloo");
  CHECK(group.transport == "tcp within a host");
  CHECK(group.source == "synthetic.jsonl");
  CHECK(group.ranks_per_device == 2);
  CHECK(group.share_prior == 0.5);
  CHECK(group.network.alone.ring.step_latency.base() == Near(1e-4));
  CHECK(group.network.alone.ring.link.base() == Near(1e9));
  CHECK(group.network.beside.ring.link.base() == Near(5e8));
  CHECK(group.network.speed == Near(0.8));
  CHECK(group.network.speed_error == 0.0);
  // Twelve figures against the prior.
  CHECK(group.share == Near(0.45, 0.01));
  CHECK(group.share_error > 0.005);
  CHECK(group.share_error < 0.03);
  CHECK(group.share_determined);
  CHECK(group.all_reduces.size() == 6);
  CHECK(group.all_reduces[0].modelled.base() ==
        Near(group.all_reduces[0].measured.base()));
  REQUIRE(group.runs.size() == 12);
  for (const FittedRun& run : group.runs) {
    CHECK(run.modelled.base() == Near(run.measured.base(), 0.01));
  }
}

// A step of t with both threads takes 2.1 t with one beside another rank: log
// share of the run -0.7419 (weight 1 / 0.05^2 = 400), of the prior log 0.5 =
// -0.6931 (1 / 0.3^2 = 11.1): (400 x -0.7419 + 11.1 x -0.6931) / 411.1 =
// -0.7406, share 0.477 +- 4.9 %.
TEST_CASE("a share, by hand") {
  const hardware::Device device = RankedProcessor();
  const model::Workload workload = Work("bert-mini", 8);
  const auto alone = Predictor(device).Time(workload).total();
  RankRecords records;
  // So fast that nothing of it shows.
  for (const double size : {1e6, 1e9}) {
    records.collectives.push_back(AllReduce(size, 1e-15 + size / 1e18));
  }
  MeasuredRun run = Run(workload, 2, 1);
  Sample sample;
  sample.step = alone * 2.1;
  run.samples.assign(3, sample);
  records.runs = {run, Run(workload, 1, 2)};
  const RankFits fits = FitRanks(device, PriorFit(device), records);
  REQUIRE(fits.groups.size() == 1);
  CHECK(fits.groups[0].share == Near(0.4768, 1e-3));
  CHECK(fits.groups[0].share_error == Near(0.0493, 1e-2));
}

// Figures of a GPU's steps over two ranks with a host that adds 40 ms to each,
// as whole steps and, where asked for, their parts.
RankRecords WithHost(const hardware::Device& device, bool parts) {
  RankRecords records;
  for (const double size : {1e6, 4e6, 25e6}) {
    MeasuredCollective one = AllReduce(size, 2e-5 + size / 1e10);
    one.device = device.name;
    one.backend = one.transport = "";
    records.collectives.push_back(one);
  }
  RankFit truth;
  truth.network.ranks = 2;
  truth.network.alone.ring = {model::Second(1e-5),
                              model::BytesPerSecond<>(1e10)};
  truth.host = model::Second(0.04);
  const Predictor predictor(device);
  for (const int64_t batch : {8, 16}) {
    Observation one;
    one.workload = Work("bert-base-uncased", batch);
    one.device = device.name;
    one.device_count = 2;
    one.relative_noise = 0.01;
    const RankStepTime step =
        StepOverRanks(one.workload, predictor.Time(one.workload), truth);
    one.measured = step.total();
    records.observations.push_back(one);
    if (!parts) continue;
    one.quantity = Quantity::kOptimizer;
    one.measured = step.computing.optimizer.total();
    records.observations.push_back(one);
    one.quantity = Quantity::kBackward;
    one.measured = step.backward();
    records.observations.push_back(one);
  }
  return records;
}

TEST_CASE("what the host adds is no slower device") {
  const hardware::Device& device =
      hardware::DeviceCatalog::Shipped().Find("v100_pcie_16gb");
  const RankFits fits =
      FitRanks(device, PriorFit(device), WithHost(device, true));
  CHECK(fits.notes.empty());
  REQUIRE(fits.groups.size() == 1);
  const RankFit& group = fits.groups.front();
  CHECK(group.host.base() == Near(0.04, 0.1));
  CHECK(group.host_determined);
  CHECK(group.host_error < 0.3);
  CHECK(group.share == Near(1.0, 0.02));
  CHECK(group.runs.size() == 6);
  // Both make a step longer: where one is less, the other is more.
  CHECK(group.host_share_correlation > 0.0);
  // Steps alone say less of which it is.
  const RankFits steps =
      FitRanks(device, PriorFit(device), WithHost(device, false));
  REQUIRE(steps.groups.size() == 1);
  CHECK(steps.groups[0].host_error > group.host_error);
  CHECK(steps.groups[0].host_share_correlation > group.host_share_correlation);
}

TEST_CASE("a host that nobody timed is as its kind's, and as open") {
  const hardware::Device& device =
      hardware::DeviceCatalog::Shipped().Find("v100_pcie_16gb");
  RankRecords records = WithHost(device, false);
  records.observations.clear();
  const RankFits fits = FitRanks(device, PriorFit(device), records);
  REQUIRE(fits.groups.size() == 1);
  const RankFit& group = fits.groups.front();
  CHECK(group.host.base() == Near(0.003, 1e-6));
  CHECK(group.host_error == Near(1.2, 1e-6));
  CHECK_FALSE(group.host_determined);
  // d log(step) = host / step d log(host).
  RankFit open;
  open.network = group.network;
  open.host = group.host;
  const model::Workload workload = Work("bert-base-uncased", 16);
  const auto alone = Predictor(device).Time(workload);
  const double sure = StepOverRanks(workload, alone, open).log_sigma;
  open.host_error = 1.2;
  const RankStepTime step = StepOverRanks(workload, alone, open);
  CHECK(step.log_sigma ==
        Near(std::hypot(sure, 1.2 * (0.003 / step.total().base())), 1e-6));
  // No part of the backward pass.
  CHECK(step.total().base() ==
        Near((step.computing.total() + step.slowed + step.exposed).base() +
             0.003));
  // A step that is one graph has no host.
  model::Workload graph = workload;
  graph.stack.fusion = model::Fusion::kGraphs;
  CHECK(StepOverRanks(graph, alone, open).host.base() == 0.0);
  // A processor's ranks are in its own times.
  const hardware::Device processor = RankedProcessor();
  CHECK(FitRanks(processor, PriorFit(processor), SyntheticRecords(processor))
            .groups[0]
            .host.base() == 0.0);
}

TEST_CASE("parts of a step that shares state add up, each with what it sends") {
  const hardware::Device device = RankedProcessor();
  RankFit ranks = RankTruth();
  model::Workload workload = Work("bert-tiny", 4);
  const auto alone = Predictor(device).Time(workload);
  const auto step = [&](model::Shard shard) {
    workload.parallel = {.data = ranks.network.ranks, .shard = shard};
    return StepOverRanks(workload, alone, ranks);
  };
  for (const model::Shard shard : {model::Shard::kZero1,
                                   model::Shard::kZero2,
                                   model::Shard::kZero3,
                                   model::Shard::kFsdp}) {
    const RankStepTime one = step(shard);
    CHECK(
        (one.forward() + one.backward() + one.optimizer() + one.computing.other)
            .base() == Near((one.total() - one.host).base()));
    const bool gathers = shard >= model::Shard::kZero3;
    CHECK((one.forward() > one.computing.forward.total()) == gathers);
    CHECK((one.optimizer() > one.computing.optimizer.total()) == !gathers);
  }
  // Gathers that take twice as long as half an all-reduce are waited for
  // longer.
  const RankStepTime half = step(model::Shard::kFsdp);
  ranks.network.all_gather = CollectiveFactor{2.0, 0.1};
  const RankStepTime slow = step(model::Shard::kFsdp);
  CHECK(slow.exposed > half.exposed);
  CHECK(slow.forward() > half.forward());
  CHECK(slow.log_sigma > half.log_sigma);
}

// Each micro-batch's blocks go to the host and come back; gradients that ranks
// hold whole are summed once.
TEST_CASE("copies of activations are paid in each micro-batch, sums once") {
  const hardware::Device device = RankedProcessor();
  const RankFit ranks = RankTruth();
  model::Workload workload = Work("bert-tiny", 4);
  const auto traffic = [&](model::Shard shard,
                           int64_t accumulation,
                           std::string_view part) {
    workload.accumulation = accumulation;
    workload.parallel = {.data = ranks.network.ranks, .shard = shard};
    workload.parallel.offload_activations = true;
    const model::HostPath<double> host{model::GBPerSecond(16.0),
                                       model::BytesPerSecond<>(1e10),
                                       ranks.network.ranks};
    const RankMessages messages(workload);
    const RankSurroundings<double> around{.network = ranks.network.Formula(),
                                          .ranks = ranks.network.ranks,
                                          .host = host,
                                          .unhidden = ranks.unhidden.times};
    const AddedTime<double> added =
        AddedBy(workload, messages, Predictor(device).Time(workload), around);
    const auto found = std::find_if(
        added.traffic.begin(), added.traffic.end(), [&](const auto& one) {
          return one.part == part;
        });
    REQUIRE(found != added.traffic.end());
    return *found;
  };
  for (const model::Shard shard :
       {model::Shard::kZero1, model::Shard::kZero2, model::Shard::kZero3}) {
    CAPTURE(static_cast<int>(shard));
    for (const char* part : {"forward", "backward"}) {
      CHECK(traffic(shard, 1, part).copied > model::Bytes<>());
      CHECK(traffic(shard, 4, part).copied.base() ==
            Near(4.0 * traffic(shard, 1, part).copied.base()));
    }
    const bool each = shard != model::Shard::kZero1;
    CHECK(traffic(shard, 4, "backward").sent.base() ==
          Near((each ? 4.0 : 1.0) * traffic(shard, 1, "backward").sent.base()));
  }
}

// Each adapter's two matrices are gathered forward, again and backward, and
// summed, and nothing hides it: as worked in docs/models/sharding.md.
TEST_CASE("adapters that are units of their own cost their host's time") {
  const hardware::Device device = RankedProcessor();
  model::Workload workload = Work("bert-tiny", 4);
  workload.gradient_checkpointing = true;
  workload.accumulation = 2;
  workload.trainable.lora_rank = 8;
  workload.trainable.lora.query = workload.trainable.lora.value = true;
  const RankFit ranks = RankTruth();
  workload.parallel.data = ranks.network.ranks;
  const auto exposed = [&](model::Shard shard, bool as_units) {
    workload.parallel.shard = shard;
    workload.trainable.adapters_as_units = as_units;
    return StepOverRanks(workload, Predictor(device).Time(workload), ranks)
        .exposed.base();
  };
  // 2 layers, 2 adapters, 2 matrices, 4 times, 2 micro-batches.
  CHECK(exposed(model::Shard::kFsdp, true) -
            exposed(model::Shard::kFsdp, false) ==
        Near(2 * 2 * 2 * 4 * 2 * 0.3e-3));
  CHECK(exposed(model::Shard::kZero3, true) ==
        exposed(model::Shard::kZero3, false));
}

TEST_CASE("times of a step over ranks without how sure they are") {
  const hardware::Device device = RankedProcessor();
  const RankFit ranks = RankTruth();
  model::Workload workload = Work("bert-tiny", 4);
  const auto alone = Predictor(device).Time(workload);
  for (const model::Shard shard :
       {model::Shard::kNone, model::Shard::kZero1, model::Shard::kFsdp}) {
    workload.parallel = {.data = ranks.network.ranks, .shard = shard};
    const RankMessages messages(workload);
    const StepOfRank step(workload, alone, messages);
    const RankStepTime times = step.TimeOver(ranks);
    CHECK(times.total() == step.Over(ranks).total());
    CHECK(times.backward() == step.Over(ranks).backward());
    CHECK(times.log_sigma == 0.0);
  }
  // With the update on the host.
  workload.parallel.offload = model::Offload::kOptimizer;
  const model::HostPath<double> host{
      model::BytesPerSecond<>(20e9), model::BytesPerSecond<>(100e9), 2};
  const RankMessages messages(workload);
  const StepOfRank step(workload, alone, messages);
  const RankStepTime whole = step.Over(ranks, host);
  CHECK(whole.host_update.base() > 0.0);
  CHECK(step.TimeOver(ranks, host).total() == whole.total());
}

TEST_CASE("one size or no all-reduces: no ring, and it is said") {
  const hardware::Device device = RankedProcessor();
  RankRecords records = SyntheticRecords(device);
  records.collectives.resize(2);
  const RankFits fits = FitRanks(device, PriorFit(device), records);
  CHECK(fits.groups.empty());
  REQUIRE(fits.notes.size() == 1);
  CHECK(fits.notes[0].find("2 ranks: no ring is fitted, 3 runs over them are "
                           "not used") == 0);
}

TEST_CASE("ranks of another device are not this one's") {
  const hardware::Device device = RankedProcessor();
  RankRecords records = SyntheticRecords(device);
  for (MeasuredRun& run : records.runs) run.device = "Other";
  for (MeasuredCollective& one : records.collectives) one.device = "Other";
  const RankFits fits = FitRanks(device, PriorFit(device), records);
  CHECK(fits.groups.empty());
  REQUIRE(fits.notes.size() == 1);
  CHECK(fits.notes[0] == "6 all-reduces between other devices are not used");
}

TEST_CASE("ranks on hosts of their own keep their speed") {
  const hardware::Device device = RankedProcessor();
  RankRecords records = SyntheticRecords(device);
  for (MeasuredCollective& one : records.collectives) {
    one.transport = "tcp between hosts";
  }
  records.runs.clear();
  const RankFits fits = FitRanks(device, PriorFit(device), records);
  REQUIRE(fits.groups.size() == 1);
  CHECK(fits.groups[0].ranks_per_device == 1);
  CHECK(fits.groups[0].share == Near(1.0, 1e-6));
  CHECK_FALSE(fits.groups[0].share_determined);
}

TEST_CASE("more ranks than measured share the processor by more") {
  Fit fit = PriorFit(RankedProcessor());
  CHECK_FALSE(RanksOf(fit, 2).has_value());
  RankFit two = RankTruth();
  two.ranks_per_device = 2;
  fit.ranks = {two};
  CHECK_FALSE(RanksOf(fit, 1).has_value());
  const auto four = RanksOf(fit, 4);
  REQUIRE(four.has_value());
  CHECK(four->network.ranks == 4);
  CHECK(four->ranks_per_device == 4);
  CHECK(four->share == Near(0.225));
  // Other links carry more ranks: as open as what nobody measured.
  CHECK(two.network.alone.link_error == 0.0);
  CHECK(four->network.alone.link_error == 0.35);
  // Its own device keeps its speed.
  fit.ranks[0].ranks_per_device = 1;
  CHECK(RanksOf(fit, 4)->share == 0.45);
  // The nearest as a factor.
  RankFit many = two;
  many.network.ranks = 16;
  fit.ranks.push_back(many);
  CHECK(NearestRanks(fit, 8)->network.ranks == 16);
  CHECK(NearestRanks(fit, 3)->network.ranks == 2);
}

TEST_CASE("buckets as recorded, and what their ring leaves open") {
  const hardware::Device device = RankedProcessor();
  const model::Workload workload = Work("bert-small", 8);
  const auto alone = Predictor(device).Time(workload);
  // All in one bucket: it leaves after the last gradient.
  const double all =
      4.0 * static_cast<double>(model::TotalParameters(workload.architecture));
  const auto pieces =
      RankMessages(workload, {model::Byte(all)}).Pieces(alone.backward_units);
  CHECK(pieces.back().sent.base() == all);
  CHECK(pieces.back().transfers == 1);
  CHECK(pieces.front().transfers == 0);
  RankFit sure = RankTruth();
  const RankStepTime late =
      StepOverRanks(workload, alone, sure, {model::Byte(all)});
  CHECK(late.exposed.base() == Near(2e-4 + all / 1e9));
  CHECK(late.slowed.base() == 0.0);
  CHECK(late.log_sigma == 0.0);
  // 2 da and S du with their correlation, over the whole step.
  RankFit unsure = sure;
  unsure.network.alone.latency_error = model::Second(5e-5);
  unsure.network.alone.link_error = 0.1;
  unsure.network.alone.correlation = -0.5;
  const RankStepTime open =
      StepOverRanks(workload, alone, unsure, {model::Byte(all)});
  const double by_latency = 2.0 * 5e-5;
  const double by_link = all / 1e9 * 0.1;
  const double sigma = std::sqrt(by_latency * by_latency + by_link * by_link -
                                 by_latency * by_link);
  CHECK(open.log_sigma == Near(sigma / open.total().base(), 1e-6));
  // The default sends earlier and hides some.
  CHECK(StepOverRanks(workload, alone, sure).exposed < late.exposed);
}

TEST_CASE("one all-reduce is as sure as its ring and as messages scatter") {
  // 2 (1 ms + 2 MB / (2 x 100 MB/s)) = 22 ms. A latency that is unsure by 0.1
  // ms moves it by 0.2 ms, a link that is so by 5 % by 1 ms.
  RankFit group;
  group.network.ranks = 2;
  group.network.alone.ring = {model::Second(1e-3),
                              model::BytesPerSecond<>(1e8)};
  group.network.alone.latency_error = model::Second(1e-4);
  group.network.alone.link_error = 0.05;
  group.network.alone.scatter = 0.02;
  const MessageTime one = AllReduceOver(group, model::Byte(2e6));
  CHECK(one.time.base() == Near(0.022, 1e-12));
  CHECK(one.log_sigma == Near(std::hypot(0.2 / 22, 1.0 / 22, 0.02), 1e-9));
  // Both wrong the same way: their shares add up.
  group.network.alone.correlation = 1.0;
  CHECK(AllReduceOver(group, model::Byte(2e6)).log_sigma ==
        Near(std::hypot(1.2 / 22, 0.02), 1e-9));
}

}  // namespace trainfare::calibrate
