// Devices over links that nobody timed: their network by hand, the slopes of
// their step, and a fit made of nothing but such rows (synthetic).

#include "calibrate/fit/joined_devices.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/fit_file.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/rank_step.h"
#include "calibrate/fit/step_model.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/presets.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

const hardware::Device& Gpu() {
  return hardware::DeviceCatalog::Shipped().Find("a100_sxm4_80gb");
}

Observation Row(const char* name, int64_t batch, int64_t devices) {
  Observation row;
  row.label = name + std::to_string(batch) + " over " + std::to_string(devices);
  row.device = Gpu().name;
  row.device_count = devices;
  row.hosts = devices > 8 ? devices / 8 : 1;
  row.workload.architecture = model::FindArchitecture(name);
  row.workload.batch = batch;
  row.workload.sequence_length = 128;
  row.workload.precision = model::Precision::kFp16;
  return row;
}

// Its step by a fit's numbers, as predictions have it.
model::Seconds<> StepOf(const Observation& row,
                        const Predictor& predictor,
                        const JoinedNumbers& numbers) {
  const model::Workload workload = OnDevices(row.workload, row.device_count);
  const hardware::StepTime<double> alone = predictor.Time(workload);
  if (row.device_count == 1) return alone.total();
  return StepOverRanks(
             workload, alone, DatasheetRanks(JoinedBy(Gpu(), row), numbers))
      .total();
}

// Adapters of two matrices, each a unit of its own.
void Adapt(model::Workload& workload) {
  workload.trainable.lora_rank = 8;
  workload.trainable.lora.query = workload.trainable.lora.value = true;
  workload.trainable.adapters_as_units = true;
}

// What the synthetic rows are made with.
JoinedNumbers JoinedTruth() {
  JoinedNumbers numbers = NumbersOf(Gpu().kind, {});
  numbers.ring_share = 0.05;
  numbers.rank_host = model::Second(0.02);
  return numbers;
}

TEST_CASE("a ring of two at half its link, by hand") {
  // docs/models/data_parallel.md.
  JoinedDevices joined;
  joined.devices = 2;
  joined.link = hardware::Interconnect();
  joined.link->bandwidth = model::GBPerSecond(25);
  joined.link->latency = model::Second(3.4e-6);
  const auto network = DatasheetNetwork<double>(joined, 0.5, 0.8);
  CHECK(
      model::RingAllReduceTime<double>(
          2, model::Byte(100e6), network.alone.step_latency, network.alone.link)
          .base() == Near(8.0068e-3));
}

TEST_CASE("the slopes of a step over several are those of differences") {
  const auto infos = hardware::ParametersOf(Gpu());
  const auto joined_infos = JoinedParameters(Gpu().kind, 0.35);
  REQUIRE(joined_infos.size() == 6);
  // By model, and whether its state is shared: every gather of Mixtral's
  // experts and of adapters waits for the host.
  struct Case {
    const char* model = "";
    model::Shard shard = model::Shard::kNone;
    bool adapters = false;
  };
  for (const Case& of : {Case{"bert-large", model::Shard::kNone},
                         Case{"bert-large", model::Shard::kFsdp, true},
                         Case{"olmoe-1b-7b", model::Shard::kZero3}}) {
    for (const int64_t devices : {4, 16}) {
      CAPTURE(of.model);
      CAPTURE(devices);
      Observation row = Row(of.model, 2, devices);
      row.workload.parallel.shard = of.shard;
      if (of.adapters) Adapt(row.workload);
      std::vector<double> positions;
      for (const auto& info : infos) {
        positions.push_back(ToFitScale(info, info.prior));
      }
      // A position of others between.
      positions.push_back(1.0);
      const size_t first = positions.size();
      for (const auto& info : joined_infos) {
        positions.push_back(ToFitScale(info, info.prior));
      }
      const JoinedModel model(Gpu(), row.workload, JoinedBy(Gpu(), row), first);
      REQUIRE(model.positions() == positions.size());
      const LogTimes times = model.Evaluate(positions);
      CHECK(
          std::exp(times[Quantity::kStep]) ==
          Near(
              StepOf(row, Predictor(Gpu()), NumbersOf(Gpu().kind, {})).base()));
      const auto gradient = times.GradientOf(Quantity::kStep);
      for (size_t i = 0; i < positions.size(); ++i) {
        CAPTURE(i);
        constexpr double kStep = 1e-5;
        std::vector<double> up = positions;
        std::vector<double> down = positions;
        up[i] += kStep;
        down[i] -= kStep;
        const double difference =
            (model.EvaluateValues(up)[Quantity::kStep] -
             model.EvaluateValues(down)[Quantity::kStep]) /
            (2.0 * kStep);
        CHECK(gradient[i] == Near(difference, 1e-4, 1e-9));
      }
      CHECK(gradient[first - 1] == 0.0);
    }
  }
}

// Of a stack with few tensors: else the host's part of the update could be its
// work over ranks.
TEST_CASE("a fit made of rows over several devices alone") {
  const Predictor datasheet(Gpu());
  std::vector<Observation> rows;
  for (const char* name : {"bert-base", "bert-large", "gpt2"}) {
    for (const int64_t batch : {1, 2, 4, 8, 16, 32, 64}) {
      for (const int64_t devices : {2, 8}) {
        rows.push_back(Row(name, batch, devices));
        rows.back().workload.stack.fusion = model::Fusion::kLightSeq;
        rows.back().measured = StepOf(rows.back(), datasheet, JoinedTruth());
      }
    }
  }
  const Fit fit = FitDevice(Gpu(), rows);
  REQUIRE(fit.joined.size() == 6);
  CHECK(fit.provenance.runs == static_cast<int64_t>(rows.size()));
  CHECK(fit.runs.back().ranks == 8);
  // The link is far below what its prior has, the host far above.
  CHECK(fit.joined[0].determined);
  CHECK(fit.joined[0].value == Near(0.05, 0.1));
  CHECK_FALSE(fit.joined[1].determined);
  CHECK(fit.joined[1].value == fit.joined[1].prior);
  CHECK_FALSE(fit.joined[3].determined);
  CHECK(fit.joined[5].determined);
  CHECK(fit.joined[5].value == Near(0.02, 0.1));
  // It answers for other numbers of devices, and for one.
  const Predictor fitted(Gpu(), fit);
  for (const int64_t devices : {1, 4}) {
    Observation other = Row("bert-large", 8, devices);
    other.workload.stack.fusion = model::Fusion::kLightSeq;
    CHECK(StepOf(other, fitted, fitted.joined()).base() ==
          Near(StepOf(other, datasheet, JoinedTruth()).base(), 0.03));
  }
  CHECK(fitted.GradeOverRanks(rows[0].workload, 2, 1) == Grade::kMeasured);
  CHECK(fitted.GradeOverRanks(rows[0].workload, 4, 1) == Grade::kInterpolated);
  CHECK(fitted.GradeOverRanks(rows[0].workload, 16, 2) == Grade::kExtrapolated);
  CHECK(fitted.GradeOver(rows[0].workload, 1) == Grade::kInterpolated);
  Fit assumed = fit;
  for (FittedRun& run : assumed.runs) run.assumed = true;
  CHECK(Predictor(Gpu(), assumed).GradeOverRanks(rows[0].workload, 2, 1) ==
        Grade::kInterpolated);
  // Its file says the same.
  const auto path =
      std::filesystem::temp_directory_path() / "trainfare_joined_fit.yaml";
  SaveFit(fit, path.string());
  const Fit read = LoadFit(path.string());
  std::filesystem::remove(path);
  REQUIRE(read.joined.size() == fit.joined.size());
  for (size_t i = 0; i < fit.joined.size(); ++i) {
    CHECK(read.joined[i].name == fit.joined[i].name);
    CHECK(read.joined[i].value == Near(fit.joined[i].value, 1e-5));
    CHECK(read.joined[i].determined == fit.joined[i].determined);
  }
  CHECK(read.runs.back().ranks == 8);
}

TEST_CASE("sharded adapters tell what the host takes for a unit") {
  const Predictor datasheet(Gpu());
  JoinedNumbers truth = NumbersOf(Gpu().kind, {});
  truth.unhidden.times.small_unit = model::Second(0.7e-3);
  std::vector<Observation> rows;
  for (const int64_t batch : {1, 4, 16}) {
    for (const bool adapted : {false, true}) {
      rows.push_back(Row("bert-large", batch, 2));
      model::Workload& workload = rows.back().workload;
      workload.parallel.shard = model::Shard::kFsdp;
      if (adapted) Adapt(workload);
      rows.back().measured = StepOf(rows.back(), datasheet, truth);
    }
  }
  const Fit fit = FitDevice(Gpu(), rows);
  REQUIRE(fit.joined.size() == 6);
  CHECK(fit.joined[3].name == "small_unit");
  CHECK(fit.joined[3].determined);
  CHECK(fit.joined[3].value == Near(0.7e-3, 0.1));
  CHECK_FALSE(fit.joined[4].determined);
  // Answers are as sure of it as the fit is.
  const JoinedNumbers fitted = NumbersOf(Gpu().kind, fit.joined);
  CHECK(fitted.unhidden.small_unit_error == fit.joined[3].standard_error);
  const Observation& row = rows[1];
  const auto sigma = [&](double error) {
    JoinedNumbers numbers = fitted;
    numbers.unhidden.small_unit_error = error;
    const model::Workload workload = OnDevices(row.workload, 2);
    return StepOverRanks(workload,
                         datasheet.Time(workload),
                         DatasheetRanks(JoinedBy(Gpu(), row), numbers))
        .log_sigma;
  };
  CHECK(sigma(0.5) > sigma(0.05));
}

// v6e: up to 256 chips a slice, of hosts of 4 here.
TEST_CASE("hosts of a slice share its links, slices a network") {
  const hardware::Device& v6e =
      hardware::DeviceCatalog::Shipped().Find("tpu_v6e");
  CHECK(RacksOf(v6e, 256, 64, {}) == 1);
  CHECK(RacksOf(v6e, 512, 128, {}) == 2);
  // So many hosts are no two alike slices, but three; a prime number of them
  // are none; those of 256 are slices.
  CHECK(RacksOf(v6e, 300, 75, {}) == 3);
  CHECK(RacksOf(v6e, 316, 79, {}) == 79);
  CHECK(RacksOf(v6e, 1024, 4, {}) == 4);
  // Racks of 72 of which 64 work together: 16 of them are 1024.
  const hardware::Device& gb200 =
      hardware::DeviceCatalog::Shipped().Find("gb200");
  CHECK(RacksOf(gb200, 1024, 256, {}) == 16);
  CHECK(RacksOf(gb200, 72, 18, {}) == 1);
  // A network that is named joins hosts, and GPUs of a board lie within one.
  CHECK(RacksOf(v6e, 256, 64, model::GBPerSecond(25)) == 64);
  CHECK(RacksOf(Gpu(), 16, 2, {}) == 2);

  Observation row = Row("bert-base", 4, 512);
  row.hosts = 128;
  const JoinedDevices joined = JoinedBy(v6e, row);
  CHECK(joined.hosts == 128);
  CHECK(joined.devices_of_host() == 4);
  CHECK(joined.racks == 2);
  CHECK(joined.devices_of_rack() == 256);
  CHECK(joined.network->wire.bandwidth.base() ==
        Near(64.0 * NetworkOf(v6e, 4, nullptr, {}).wire.bandwidth.base()));
}

TEST_CASE("what no fit of one device takes") {
  Observation row = Row("bert-base", 4, 8);
  CHECK(FittableOver(Gpu(), row));
  row.quantity = Quantity::kBackward;
  CHECK_FALSE(FittableOver(Gpu(), row));
  row.quantity = Quantity::kStep;
  row.of_timed_ranks = true;
  CHECK_FALSE(FittableOver(Gpu(), row));
  row.of_timed_ranks = false;
  row.hosts = 3;
  CHECK_FALSE(FittableOver(Gpu(), row));
  CHECK_THROWS_AS(JoinedBy(Gpu(), row), model::InputError);
  CHECK_THROWS_WITH_AS(
      FitDevice(Gpu(), {row}),
      "fit of a100_sxm4_80gb: expected runs on one device, or over links "
      "that are known, got 1 measurement over several",
      model::InputError);
  CHECK_FALSE(FittableOver(hardware::HostCpu(), Row("bert-base", 4, 2)));
}

// An H100 of another memory and limit of power: no host of the catalog has it,
// and its network is the mean of those of H100's and H200's hosts.
TEST_CASE("a network of hosts of devices alike") {
  const auto& catalog = hardware::DeviceCatalog::Shipped();
  const auto network = [&](const char* name) {
    return NetworkOf(catalog.Find(name), 8, nullptr, std::nullopt);
  };
  const HostNetwork own = network("h100_sxm");
  const HostNetwork alike = network("h100_sxm_96gb_500w");
  CHECK(alike.wire.bandwidth.base() == Near(own.wire.bandwidth.base(), 0.5));
  CHECK(alike.wire.name ==
        "as hosts of devices like h100_sxm_96gb_500w have it");
  // One of more clock and power is another.
  CHECK(network("v100_sxm3_32gb_dgx2h").wire.name ==
        "as hosts of other devices have it");
}

TEST_CASE("a network is no faster than the links that lead to it") {
  const hardware::Device& t4 = hardware::DeviceCatalog::Shipped().Find("t4");
  const auto bandwidth = [&](int64_t local, double gigabytes) {
    return NetworkOf(t4, local, nullptr, model::GBPerSecond(gigabytes))
        .wire.bandwidth.base();
  };
  CHECK(bandwidth(1, 1.25) == Near(1.25e9));
  CHECK(bandwidth(1, 400.0) == Near(t4.host_bandwidth->base()));
  CHECK(bandwidth(4, 400.0) == Near(4.0 * t4.host_bandwidth->base()));
}

TEST_CASE("copies lie over whole hosts, or several in one") {
  const hardware::Device& device =
      hardware::DeviceCatalog::Shipped().Find("h100_sxm");
  JoinedDevices joined;
  joined.devices = 24;
  joined.hosts = joined.racks = 3;
  model::Parallel parallel;
  parallel.data = 24;
  parallel.shard = model::Shard::kZero3;
  for (const int64_t copies : {1, 3, 6, 12}) {
    parallel.replicate = copies;
    CHECK_NOTHROW(RequireJoinable(parallel, joined, device));
  }
  parallel.replicate = 2;
  CHECK_THROWS_WITH_AS(
      RequireJoinable(parallel, joined, device),
      "parallel.replicate: expected copies that lie over whole hosts of 8 "
      "devices, or several in one, got 2 of 12 devices each; hint: 1, 3, 6, 12",
      model::InputError);
}

// No host of one B200 or of two of them says what network it has: a share of
// that of a host of eight.
TEST_CASE("a small host has its share of a large one's network") {
  const hardware::Device& device =
      hardware::DeviceCatalog::Shipped().Find("b200_sxm");
  const auto bandwidth = [&](int64_t local) {
    return NetworkOf(device, local, nullptr, std::nullopt)
        .wire.bandwidth.base();
  };
  CHECK(bandwidth(1) == Near(bandwidth(8) / 8.0));
  CHECK(bandwidth(2) == Near(bandwidth(8) / 4.0));
}

}  // namespace
}  // namespace trainfare::calibrate
