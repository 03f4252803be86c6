#include "scenarios/job/step_estimate.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_folders.h"
#include "calibrate/fit/prior_fit.h"
#include "hardware/catalog/instance.h"
#include "model/collective.h"
#include "model/error.h"
#include "model/kernels.h"
#include "model/presets.h"
#include "scenarios/job/estimate.h"
#include "scenarios/job/fits.h"
#include "tests/near.h"
#include "tests/scenarios/hermetic.h"
#include "tests/scenarios/job/datasheet.h"
#include "tests/units.h"

namespace trainfare::scenarios {

TEST_CASE("a source that is not behind the fit widens, and moves no time") {
  const Scenario scenario = LoadScenario("emotion_bert_base");
  calibrate::Fit fit = calibrate::PriorFit(A100());
  const auto step = [&](int64_t devices, std::string_view source) {
    const calibrate::Predictor predictor(A100(), fit);
    return EstimateStep(
        predictor, scenario.workload, ClusterOf(A100(), devices), source);
  };
  for (const int64_t devices : {1, 2, 8}) {
    CAPTURE(devices);
    fit.provenance.sources = {"owner/a", "owner/b"};
    const StepEstimate seen = step(devices, "owner/a");
    const StepEstimate unseen = step(devices, "owner/c");
    CHECK(seen.source_seen);
    CHECK(seen.source_sigma == 0);
    CHECK_FALSE(unseen.source_seen);
    CHECK(unseen.source_sigma > 0);
    CHECK(unseen.total() == seen.total());
    CHECK(unseen.grade == seen.grade);
    CHECK(unseen.log_sigma > seen.log_sigma);
    CHECK(unseen.backward_log_sigma > seen.backward_log_sigma);
    CHECK(unseen.low_factor < seen.low_factor);
    CHECK(unseen.high_factor > seen.high_factor);
    // The more sources a fit has, the less a new one differs from their mean.
    fit.provenance.sources.emplace_back("owner/d");
    CHECK(step(devices, "owner/c").log_sigma < unseen.log_sigma);
    CHECK(step(devices, "owner/c").log_sigma > seen.log_sigma);
  }
}

TEST_CASE("one device communicates nothing, more of them something") {
  const Scenario scenario = LoadScenario("emotion_bert_base");
  const calibrate::Predictor predictor = Datasheet(A100());
  const auto step = [&](int64_t devices) {
    return EstimateStep(
        predictor, scenario.workload, ClusterOf(A100(), devices));
  };
  const StepEstimate one = step(1);
  CHECK(one.communication == model::Seconds<>());
  const StepEstimate two = step(2);
  CHECK(two.communication.base() > 0);
  // At the least the last bucket is exposed, at the most all of it.
  const auto bytes =
      model::Byte(4.0 * static_cast<double>(model::TotalParameters(
                            scenario.workload.architecture)));
  const Cluster cluster = ClusterOf(A100(), 2);
  CHECK(two.communication <
        model::RingAllReduceTime<double>(
            2, bytes, cluster.link->latency, cluster.link->bandwidth * 0.5) *
            2.0);
  CHECK(step(8).communication > two.communication);
  // Nothing of the link was measured.
  CHECK(two.log_sigma != one.log_sigma);
}

TEST_CASE("a faster link never makes a step slower") {
  const Scenario scenario = LoadScenario("imdb_bert_base");
  const calibrate::Predictor predictor = Datasheet(A100());
  model::Seconds<> last = model::Hours(1);
  for (const double gb : {1.0, 10.0, 100.0, 1000.0}) {
    Cluster cluster;
    cluster.devices = 8;
    cluster.link = hardware::Interconnect{};
    cluster.link->bandwidth = model::GBPerSecond(gb);
    cluster.link->latency = model::Microseconds(5);
    const auto time =
        EstimateStep(predictor, scenario.workload, cluster).total();
    CHECK(time <= last);
    last = time;
  }
}

TEST_CASE("ranks as measured answer instead of a datasheet's link") {
  const Scenario scenario = LoadScenario("imdb_bert_base");
  calibrate::Fit fit = calibrate::PriorFit(A100());
  const calibrate::Predictor without(A100(), fit);
  CHECK_FALSE(ClusterOf(without, 2).ranks.has_value());
  calibrate::RankFit two;
  two.backend = "nccl";
  two.transport = "nccl within a host";
  two.network.ranks = 2;
  two.network.alone.ring = {model::Microseconds(10), model::GBPerSecond(20)};
  two.network.alone.link_error = 0.2;
  two.network.beside = two.network.alone;
  two.network.beside_timed = true;
  two.network.speed = 0.8;
  two.share = 0.97;
  fit.ranks = {two};
  const calibrate::Predictor with(A100(), fit);
  const Cluster cluster = ClusterOf(with, 2);
  REQUIRE(cluster.ranks.has_value());
  CHECK(cluster.measured_ranks == 2);
  const StepEstimate one =
      EstimateStep(with, scenario.workload, ClusterOf(with, 1));
  const StepEstimate step = EstimateStep(with, scenario.workload, cluster);
  CHECK(step.forward.total() / one.forward.total() == Near(1.0 / 0.97));
  CHECK(step.communication.base() > 0);
  CHECK(step.slowed_computation.base() > 0);
  CHECK(step.ring_ranks == 2);
  CHECK(GradeWords(step, 2) == "extrapolated");
  double sum = 0;
  bool exposed = false;
  for (const Term& term : TermsOf(step)) {
    sum += term.time.base();
    exposed = exposed || (term.name == "exposed communication" &&
                          term.time == step.communication);
  }
  CHECK(exposed);
  CHECK(sum == Near(step.total().base(), 1e-12));
  // What the ring leaves open is in the interval.
  fit.ranks[0].network.alone.link_error = 0;
  fit.ranks[0].network.beside.link_error = 0;
  const calibrate::Predictor sure(A100(), fit);
  const StepEstimate narrow =
      EstimateStep(sure, scenario.workload, ClusterOf(sure, 2));
  CHECK(narrow.total() == step.total());
  CHECK(narrow.log_sigma < step.log_sigma);

  // Another number of ranks is said, and less sure.
  const StepEstimate eight =
      EstimateStep(with, scenario.workload, ClusterOf(with, 8));
  CHECK(eight.communication > step.communication);
  CHECK(eight.log_sigma > step.log_sigma);
  CHECK(GradeWords(eight, 8).ends_with(", ring of 2 ranks"));
}

// 4 GPUs over a slow link: sending half, or thin factors, takes less of a step.
TEST_CASE("what rounding leaves of a difference is nothing") {
  Scenario scenario = LoadScenario("emotion_bert_base");
  scenario.workload.architecture = model::FindArchitecture("gpt2");
  scenario.workload.architecture.head = model::Head::kCausalLanguageModel;
  scenario.workload.precision = model::Precision::kFp16;
  scenario.workload.stack.fusion = model::Fusion::kEager;
  for (const int64_t batch : {1, 2, 4, 8}) {
    for (const int64_t length : {32, 128, 512}) {
      CAPTURE(batch);
      CAPTURE(length);
      scenario.workload.batch = batch;
      scenario.PadTo(length);
      const StepEstimate step = EstimateStep(
          calibrate::Predictor(A100(), calibrate::PriorFit(A100())),
          scenario.workload,
          ClusterOf(A100(), 8));
      for (const Term& term : TermsOf(step)) {
        CAPTURE(term.name);
        CHECK((term.time.base() == 0 ||
               term.time.base() > 1e-12 * step.total().base()));
      }
    }
  }
}

TEST_CASE("compressed gradients leave less to wait for") {
  Scenario scenario = LoadScenario("imdb_bert_base");
  const hardware::Device& v100 =
      hardware::DeviceCatalog::Shipped().Find("v100_pcie_16gb");
  scenario.workload.precision = model::Precision::kFp16;
  scenario.workload.batch = 8;
  const calibrate::Predictor predictor = Datasheet(v100);
  Cluster cluster;
  cluster.devices = 4;
  cluster.link = hardware::Interconnect{};
  cluster.link->bandwidth = model::GBPerSecond(3.0);
  cluster.link->latency = model::Microseconds(100);
  const auto step = [&](model::GradientCompression compression,
                        const Cluster& on) {
    scenario.workload.compression = compression;
    return EstimateStep(predictor, scenario.workload, on);
  };
  const auto plain = step({}, cluster);
  const auto half = step({model::CompressionKind::kTo16Bits, 0}, cluster);
  const auto factors = step({model::CompressionKind::kPowerSgd, 4}, cluster);
  CHECK(half.communication < plain.communication);
  CHECK(factors.communication < half.communication);
  // The casts take time on the device.
  CHECK(half.optimizer.total() > plain.optimizer.total());
  CHECK(factors.optimizer.total() > half.optimizer.total());
  // One device sends nothing and compresses nothing.
  CHECK(step({model::CompressionKind::kTo16Bits, 0}, ClusterOf(v100, 1))
            .optimizer.total() ==
        step({}, ClusterOf(v100, 1)).optimizer.total());
}

// docs/models/sharding.md, "What is sent", in two micro-batches.
TEST_CASE("ranks that share state send what is counted by hand") {
  Scenario scenario = LoadScenario("llama_8b_fsdp");
  const hardware::Device& h100 =
      hardware::DeviceCatalog::Shipped().Find("h100_sxm");
  const calibrate::Predictor predictor = Datasheet(h100);
  const JobEstimate job = EstimateJob(scenario, predictor, ClusterOf(h100, 8));
  REQUIRE(job.fits());
  REQUIRE(job.step.traffic.size() == 2);
  const auto& forward = job.step.traffic[0];
  const auto& backward = job.step.traffic[1];
  CHECK(ToBytes(forward.sent) == Near(2 * 14'052'957'184.0, 1e-5));
  CHECK(ToBytes(backward.sent) == Near(2 * 40'320'186'368.0, 1e-5));
  CHECK(forward.exposed < forward.sending);
  CHECK(ToSeconds(forward.exposed + backward.exposed) ==
        Near(ToSeconds(job.step.communication), 1e-5));
  double sum = 0;
  for (const Term& term : TermsOf(job.step)) sum += ToSeconds(term.time);
  CHECK(sum == Near(ToSeconds(job.step.total()), 1e-5));
  // Not resharded: nothing but sums in the backward pass.
  scenario.workload.parallel.reshard_after_forward = false;
  const StepEstimate kept =
      EstimateStep(predictor, scenario.workload, ClusterOf(h100, 8));
  CHECK(ToBytes(kept.traffic[1].sent) == Near(2 * 28'105'914'368.0, 1e-5));
  CHECK(kept.total() < job.step.total());
  // Muon's matrices go to one rank each and come back, behind all else.
  model::Workload muon = scenario.workload;
  muon.optimizer.kind = model::OptimizerKind::kMuon;
  const StepEstimate whole = EstimateStep(predictor, muon, ClusterOf(h100, 8));
  REQUIRE(whole.traffic.size() == 3);
  CHECK(whole.traffic[2].part == "update");
  CHECK(ToBytes(whole.traffic[2].sent) == 3'053'453'312.0);
  CHECK(whole.traffic[2].exposed == whole.traffic[2].sending);
  // Over one device there is nothing to share; over four it was not asked for.
  scenario.workload.parallel.data = 0;
  CHECK(EstimateJob(scenario, predictor, Cluster()).memory.total() >
        model::GiB(100));
  scenario.workload.parallel.data = 8;
  CHECK_THROWS_AS(EstimateJob(scenario, predictor, ClusterOf(h100, 4)),
                  model::InputError);
}

// docs/models/sharding.md, "On the host".
TEST_CASE("what is offloaded is copied, updated and held by the host") {
  Scenario scenario = LoadScenario("llama_8b_fsdp");
  model::Workload& w = scenario.workload;
  w.parallel = {};
  w.parallel.shard = model::Shard::kZero2;
  w.parallel.offload = model::Offload::kOptimizer;
  w.stack.narrow_weights = true;
  w.accumulation = 1;
  const calibrate::Predictor predictor = Datasheet(A100());
  Cluster one = ClusterOf(A100(), 1);
  const JobEstimate job = EstimateJob(scenario, predictor, one);
  REQUIRE(job.fits());
  REQUIRE(job.host);
  CHECK(ToBytes(job.host->total()) == 192'726'269'952.0);
  CHECK(ToSeconds(job.step.host_update) == Near(1.9586, 1e-4));
  CHECK(job.step.optimizer.total().base() == 0.0);
  REQUIRE(job.step.traffic.size() == 2);
  const auto& backward = job.step.traffic[0];
  const auto& update = job.step.traffic[1];
  CHECK(ToBytes(backward.copied) == 4 * 8'030'261'248.0);
  CHECK(ToSeconds(backward.sending) == Near(1.1588, 1e-4));
  CHECK(backward.exposed < backward.sending);
  CHECK(ToSeconds(update.exposed) == Near(0.5794, 1e-4));
  CHECK(ToBytes(backward.sent) == 0.0);
  double sum = 0;
  for (const Term& term : TermsOf(job.step)) sum += ToSeconds(term.time);
  CHECK(sum == Near(ToSeconds(job.step.total()), 1e-5));
  // All of it on the device, were there room: nothing to wait for, and surer.
  model::Workload without = w;
  without.parallel = {};
  const StepEstimate held = EstimateStep(predictor, without, one);
  CHECK(held.total() < job.step.total());
  CHECK(held.log_sigma < job.step.log_sigma);

  // A host without the room for it says so.
  one.host_memory = model::GiB(64);
  const JobEstimate small = EstimateJob(scenario, predictor, one);
  CHECK_FALSE(small.fits());
  CHECK(small.Obstacle().starts_with("does not fit the host's memory by "));

  // Ranks have a share each of the state, and their host's memory in common.
  const StepEstimate four = EstimateStep(predictor, w, ClusterOf(A100(), 4));
  CHECK(ToSeconds(four.host_update) ==
        Near(ToSeconds(job.step.host_update), 1e-5));
}

TEST_CASE("parameters from the host come before every pass") {
  Scenario scenario = LoadScenario("llama_8b_fsdp");
  model::Workload& w = scenario.workload;
  w.parallel.data = 0;
  w.parallel.offload = model::Offload::kParameters;
  w.accumulation = 1;
  const calibrate::Predictor predictor = Datasheet(A100());
  const StepEstimate step = EstimateStep(predictor, w, ClusterOf(A100(), 1));
  REQUIRE(step.traffic.size() == 2);
  // FSDP's fp32 shard: all forward, the blocks again backward, gradients down.
  CHECK(ToBytes(step.traffic[0].copied) == 4 * 8'030'261'248.0);
  CHECK(ToBytes(step.traffic[1].copied) ==
        4 * (6'979'584'000.0 + 8'030'261'248.0));
  w.parallel.offload_activations = true;
  const StepEstimate more = EstimateStep(predictor, w, ClusterOf(A100(), 1));
  CHECK(more.traffic[0].copied > step.traffic[0].copied);
  CHECK(more.total() > step.total());
  // A CPU's memory is the host's, TPUs have a link that nobody states.
  const hardware::Device& tpu =
      hardware::DeviceCatalog::Shipped().Find("tpu_v3");
  CHECK_THROWS_AS(EstimateStep(Datasheet(tpu), w, ClusterOf(tpu, 1)),
                  model::InputError);
}

// docs/models/sharding.md, "Over several hosts".
TEST_CASE("hosts share a network, and one that nobody named is less sure") {
  const hardware::Device& h100 =
      hardware::DeviceCatalog::Shipped().Find("h100_sxm");
  const hardware::Instance& p5 =
      hardware::InstanceCatalog::Shipped().Find("aws/p5.48xlarge");
  const calibrate::Predictor predictor = Datasheet(h100);
  const Cluster host = ClusterOf(p5, 8);
  const Cluster one = OverHosts(host, 1, h100, &p5, std::nullopt);
  CHECK(one.devices == 8);
  CHECK_FALSE(one.network.has_value());
  const Cluster two = OverHosts(host, 2, h100, &p5, std::nullopt);
  CHECK(two.devices == 16);
  CHECK(two.devices_of_host() == 8);
  const calibrate::RankNetwork network =
      calibrate::DatasheetRanks(two, predictor.joined()).network;
  CHECK(network.ranks == 16);
  CHECK(network.hosts == 2);
  // 3200 Gbit/s a host, 235 / 300 of it, 8 ranks: 39.17 GB/s each.
  CHECK(network.across.link.base() ==
        Near(400e9 * (235.0 / 300.0) / 8.0, 1e-5));

  model::Workload w = LoadScenario("llama_8b_fsdp").workload;
  w.parallel.data = 16;
  const StepEstimate wide = EstimateStep(predictor, w, two);
  // The same without a name: as the catalog's hosts, and less sure.
  const StepEstimate unnamed =
      EstimateStep(predictor, w, OverHosts(host, 2, h100, nullptr, {}));
  CHECK(unnamed.log_sigma > wide.log_sigma);
  // Slow Ethernet is slower; copies in each host send less over it.
  const Cluster slow =
      OverHosts(host, 2, h100, nullptr, model::GBPerSecond(12.5));
  const StepEstimate far = EstimateStep(predictor, w, slow);
  CHECK(far.total() > wide.total());
  w.parallel.replicate = 2;
  CHECK(EstimateStep(predictor, w, slow).total() < far.total());
  // Each host alone with one device: the network is all there is.
  w.parallel.replicate = 1;
  w.parallel.data = 2;
  const Cluster single = OverHosts(ClusterOf(h100, 1), 2, h100, nullptr, {});
  CHECK(EstimateStep(predictor, w, single).communication.base() > 0);
  // A device that no host of the catalog carries has a network, too.
  const hardware::Device& gh200 =
      hardware::DeviceCatalog::Shipped().Find("gh200_96gb");
  CHECK(OverHosts(Cluster(), 4, gh200, nullptr, {}).network->sigma >
        two.network->sigma);
  CHECK_THROWS_AS(OverHosts(host, int64_t{1} << 20, h100, nullptr, {}),
                  model::InputError);
}

TEST_CASE("hosts of a slice have its links, and each its own memory") {
  const hardware::Device& v6e =
      hardware::DeviceCatalog::Shipped().Find("tpu_v6e");
  const hardware::Instance& eight =
      hardware::InstanceCatalog::Shipped().Find("gcp/tpu-v6e-8");
  const Cluster slice =
      OverHosts(ClusterOf(eight, 8), 4, v6e, &eight, std::nullopt);
  CHECK(slice.devices == 32);
  CHECK(slice.hosts == 4);
  CHECK(slice.devices_of_host() == 8);
  CHECK(slice.racks == 1);
  CHECK_FALSE(slice.network.has_value());

  // What ranks hold on their hosts is divided over four of them.
  Scenario scenario = LoadScenario("llama_8b_fsdp");
  model::Workload& w = scenario.workload;
  w.parallel.data = 0;
  w.parallel.shard = model::Shard::kZero3;
  w.parallel.offload = model::Offload::kParameters;
  const calibrate::Predictor predictor = Datasheet(v6e);
  const auto held = [&](int64_t hosts) {
    const JobEstimate job = EstimateJob(
        scenario,
        predictor,
        OverHosts(ClusterOf(eight, 8), hosts, v6e, &eight, std::nullopt));
    REQUIRE(job.host);
    return ToBytes(job.host->total());
  };
  CHECK(held(4) == Near(held(1) / 4.0, 0.01));
}

TEST_CASE("more is divided, less is held; the update is shorter") {
  Scenario scenario = LoadScenario("llama_1b_pretraining");
  const hardware::Device& h100 =
      hardware::DeviceCatalog::Shipped().Find("h100_sxm");
  const calibrate::Predictor predictor = Datasheet(h100);
  const auto job = [&](model::Shard shard) {
    scenario.workload.parallel.shard = shard;
    return EstimateJob(scenario, predictor, ClusterOf(h100, 8));
  };
  const JobEstimate none = job(model::Shard::kNone);
  const JobEstimate zero1 = job(model::Shard::kZero1);
  const JobEstimate zero3 = job(model::Shard::kZero3);
  CHECK(none.step.traffic.empty());
  CHECK(zero1.memory.total() < none.memory.total());
  CHECK(zero3.memory.total() < zero1.memory.total());
  CHECK(zero1.step.optimizer.total() < none.step.optimizer.total() * 0.2);
  // Nobody measured it: wider than a ring of the same link alone.
  CHECK(zero3.step.log_sigma > none.step.log_sigma);
  // A slower link hides less.
  Cluster slow = ClusterOf(h100, 8);
  slow.link->bandwidth = model::GBPerSecond(10);
  scenario.workload.parallel.shard = model::Shard::kZero3;
  CHECK(EstimateStep(predictor, scenario.workload, slow).communication >
        zero3.step.communication);
}

// docs/models/trainium.md: a core's step has the all-reduce with the other core
// in it, so two of them take what the chip takes for twice the batch, and four
// what two chips do.
TEST_CASE("cores of one chip are the chip") {
  const auto& devices = hardware::DeviceCatalog::Shipped();
  const hardware::Device& core = devices.Find("trainium1_core");
  const hardware::Device& chip = devices.Find("trainium1");
  Scenario scenario = LoadScenario("emotion_bert_base");
  model::Workload& workload = scenario.workload;
  workload.precision = model::Precision::kBf16;
  workload.stack.fusion = model::Fusion::kCompiled;
  for (const int64_t chips : {1, 4}) {
    const Cluster cores = ClusterOf(core, 2 * chips);
    CHECK(cores.chips() == chips);
    CHECK(cores.link.has_value() == (chips > 1));
    workload.batch = 8;
    const StepEstimate by_core = EstimateStep(Datasheet(core), workload, cores);
    workload.batch = 16;
    const StepEstimate by_chip =
        EstimateStep(Datasheet(chip), workload, ClusterOf(chip, chips));
    CHECK(ToSeconds(by_core.total()) ==
          Near(ToSeconds(by_chip.total()), 0.002));
    CHECK((by_core.communication.base() > 0) == (chips > 1));
  }
  CHECK(ClusterOf(core, 1).chips() == 1);
  CHECK_THROWS_WITH_AS(
      ClusterOf(core, 5),
      "--devices: trainium1_core is one of 2 parts of trainium1; expected up "
      "to 2, or whole chips, got 5; hint: 4 or 6",
      model::InputError);
}

// Runs of TPUs went over four chips, whose exchange is in their steps.
TEST_CASE("a run over four chips is measured on four, with nothing added") {
  const FitFolder none;
  Fits fits;
  const hardware::Device& tpu =
      hardware::DeviceCatalog::Shipped().Find("tpu_v2");
  const calibrate::Fit* fit = fits.Of(tpu);
  REQUIRE(fit != nullptr);
  const calibrate::Predictor predictor(tpu, *fit);
  Scenario scenario = LoadScenario("imdb_bert_base");
  model::Workload& workload = scenario.workload;
  workload.architecture = model::FindArchitecture("bert-base-cased");
  workload.precision = model::Precision::kBf16;
  workload.stack.fusion = model::Fusion::kCompiled;
  workload.stack.attention = model::Attention::kMaterialised;
  workload.optimizer.kind = model::OptimizerKind::kAdamW;
  workload.optimizer.implementation =
      model::OptimizerImplementation::kMultiTensor;
  workload.batch = 32;
  workload.sequence_length = 512;
  const auto step = [&](int64_t chips) {
    return EstimateStep(predictor, workload, ClusterOf(predictor, chips));
  };
  const StepEstimate four = step(4);
  // The document of these runs does not state their length.
  CHECK(four.grade == calibrate::Grade::kInterpolated);
  calibrate::Fit stated = *fit;
  for (calibrate::FittedRun& run : stated.runs) run.assumed = false;
  const calibrate::Predictor surely(tpu, stated);
  CHECK(EstimateStep(surely, workload, ClusterOf(surely, 4)).grade ==
        calibrate::Grade::kMeasured);
  CHECK(four.communication.base() == 0.0);
  CHECK(step(1).grade == calibrate::Grade::kExtrapolated);
  const StepEstimate eight = step(8);
  CHECK(eight.grade == calibrate::Grade::kExtrapolated);
  CHECK(eight.communication.base() > 0.0);
  CHECK(eight.log_sigma > four.log_sigma);
}

TEST_CASE("ranks as many as were measured, but over hosts, were not") {
  const Scenario scenario = LoadScenario("imdb_bert_base");
  calibrate::Fit fit = calibrate::PriorFit(A100());
  calibrate::RankFit eight;
  eight.network.ranks = 8;
  eight.network.alone.ring = {model::Microseconds(10), model::GBPerSecond(20)};
  eight.network.beside = eight.network.alone;
  fit.ranks = {eight};
  const calibrate::Predictor predictor(A100(), fit);
  const Cluster inside = ClusterOf(predictor, 8);
  const Cluster across = OverHosts(
      ClusterOf(predictor, 4), 2, A100(), nullptr, model::GBPerSecond(20));
  REQUIRE(across.devices == 8);
  CHECK(inside.measured());
  CHECK_FALSE(across.measured());
  CHECK(EstimateStep(predictor, scenario.workload, across).log_sigma >
        EstimateStep(predictor, scenario.workload, inside).log_sigma);
}

}  // namespace trainfare::scenarios
