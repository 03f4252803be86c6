// From end to end, with a trainer that only pretends.

#include "calibrate/session/several_ranks.h"

#include <doctest/doctest.h>

#include <map>
#include <sstream>
#include <string>

#include "calibrate/fit/fit_file.h"
#include "calibrate/records/measurement.h"
#include "calibrate/session/command.h"
#include "hardware/catalog/device.h"
#include "model/presets.h"
#include "model/units.h"
#include "model/workload.h"
#include "tests/calibrate/session/fake_trainer.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

// A processor has a core for each rank.
bool NoRanks() { return NoPython() || hardware::HostCpu().cores < 2; }

TEST_CASE("several ranks are timed, fitted and kept beside the runs of one" *
          doctest::skip(NoRanks())) {
  const FakeTrainer fake("");
  CalibrateOptions options = fake.Options();
  options.ranks = {1, 2};
  std::ostringstream log;
  const CalibrateResult result = Calibrate(options, log);
  REQUIRE(result.fit.has_value());
  REQUIRE(result.fit->ranks.size() == 1);
  const RankFit& two = result.fit->ranks.front();
  CHECK(two.network.ranks == 2);
  CHECK(two.backend == "gloo");
  CHECK(two.network.alone.ring.step_latency.base() == Near(1e-4, 1e-6));
  CHECK(two.network.alone.ring.link.base() == Near(2e9, 1e-6));
  CHECK(two.network.speed == Near(0.8, 1e-5));
  CHECK(two.ranks_per_device == 2);
  CHECK(two.all_reduces.size() == 8);
  CHECK_FALSE(two.runs.empty());
  CHECK(two.share < 1.0);
  CHECK(log.str().find("collectives over 2 ranks (") != std::string::npos);
  CHECK(log.str().find(": 2 ranks, bert-tiny fp32, batch ") !=
        std::string::npos);
  const Measurements all = ReadMeasurements(result.records_path);
  CHECK(all.collectives.size() == 8);
  // Runs of one are those that the parameters rest on.
  int64_t over_ranks = 0;
  for (const MeasuredRun& run : all.runs) {
    over_ranks += run.device_count == 2 ? 1 : 0;
  }
  CHECK(over_ranks == 1);
  CHECK(result.fit->provenance.runs + over_ranks ==
        static_cast<int64_t>(all.runs.size()));

  // The records give the same again.
  CalibrateOptions again;
  again.from = {result.records_path};
  again.output = fake / "again.yaml";
  const CalibrateResult refit = Calibrate(again, log);
  REQUIRE(refit.fit->ranks.size() == 1);
  CHECK(refit.fit->ranks[0].share == two.share);
  CHECK(refit.fit->ranks[0].source == "here.jsonl");
}

TEST_CASE(
    "towards ranks that share state their collectives and runs are timed" *
    doctest::skip(NoRanks())) {
  const FakeTrainer fake("towards");
  CalibrateOptions options = fake.Options();
  options.ranks = {2};
  model::Workload asked;
  asked.architecture = model::FindArchitecture("bert-tiny");
  asked.batch = 4;
  asked.sequence_length = 64;
  asked.parallel.shard = model::Shard::kFsdp;
  options.towards = {asked};
  std::ostringstream log;
  const CalibrateResult result = Calibrate(options, log);
  REQUIRE(result.fit.has_value());
  REQUIRE(result.fit->ranks.size() == 1);
  const RankNetwork& network = result.fit->ranks.front().network;
  REQUIRE(network.all_gather.has_value());
  REQUIRE(network.reduce_scatter.has_value());
  // A factor of half an all-reduce's time.
  CHECK(network.all_gather->factor == Near(1.2, 1e-6));
  CHECK(network.reduce_scatter->factor == Near(1.5, 1e-6));
  std::map<model::Shard, int> runs;
  const Measurements all = ReadMeasurements(result.records_path);
  CHECK(all.collectives.size() == 3 * 8);
  for (const MeasuredRun& run : all.runs) {
    if (run.device_count == 2) ++runs[run.workload.parallel.shard];
  }
  CHECK(runs[model::Shard::kFsdp] > 0);
  CHECK(runs[model::Shard::kFsdp] == runs[model::Shard::kNone]);

  // The fit's file has all of it.
  const Fit kept = LoadFit(result.fit_path);
  CHECK(kept.ranks.front().network.all_gather->factor ==
        network.all_gather->factor);
}

TEST_CASE("interrupted among all-reduces, the rest are timed the next time" *
          doctest::skip(NoRanks())) {
  const FakeTrainer fake("interrupt-ranks");
  CalibrateOptions options = fake.Options();
  options.ranks = {2};
  std::ostringstream log;
  const CalibrateResult first = Calibrate(options, log);
  CHECK(first.interrupted);
  REQUIRE(first.fit.has_value());
  const Measurements kept = ReadMeasurements(first.records_path);
  CHECK(kept.collectives.size() == 3);

  FakeTrainer::Mode("");
  const CalibrateResult second = Calibrate(options, log);
  CHECK(!second.interrupted);
  REQUIRE(second.fit->ranks.size() == 1);
  // The second size lacked its half beside computation and is done anew.
  const Measurements all = ReadMeasurements(second.records_path);
  CHECK(all.collectives.size() == 3 + 6);
  CHECK(all.runs.size() > kept.runs.size());
}

TEST_CASE("ranks that fail cost a line, not the runs of one" *
          doctest::skip(NoRanks())) {
  const FakeTrainer fake("no-ranks");
  CalibrateOptions options = fake.Options();
  options.ranks = {2};
  std::ostringstream log;
  const CalibrateResult result = Calibrate(options, log);
  REQUIRE(result.fit.has_value());
  CHECK(result.fit->ranks.empty());
  CHECK(log.str().find("2 ranks are not measured: ") != std::string::npos);
  CHECK(log.str().find("NCCL: no such library") != std::string::npos);
}

}  // namespace
}  // namespace trainfare::calibrate
