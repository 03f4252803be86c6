#include "calibrate/fit/added_runs.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/discrepancy.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/fit/prior_fit.h"
#include "hardware/catalog/device.h"
#include "model/error.h"
#include "model/presets.h"
#include "model/split.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

using hardware::Device;
using model::Workload;

const Device& A100() {
  return hardware::DeviceCatalog::Shipped().Find("a100_sxm4_80gb");
}

Workload Llama(int64_t batch) {
  Workload w;
  w.architecture = model::FindArchitecture("llama-3.2-1b");
  w.batch = batch;
  w.sequence_length = 1024;
  w.precision = model::Precision::kBf16;
  w.stack.fusion = model::Fusion::kLiger;
  w.stack.attention = model::Attention::kFlash;
  return w;
}

// A run whose formula is too slow by so much, in its logarithm.
Observation Run(const Workload& workload, double error) {
  Observation o;
  o.label = "run";
  o.device = A100().name;
  o.workload = workload;
  o.measured = Predictor(A100()).Time(workload).total() * std::exp(-error);
  o.source = "somebody/else";
  return o;
}

double Moved(const Fit& fit, const Workload& workload) {
  return std::log(Predictor(A100()).Time(workload).total() /
                  Predictor(A100(), fit).Time(workload).total());
}

double Nothing(const FittedRun&) { return 0; }

// r s^2 / (s^2 + n^2) = 0.10 x 0.0225 / 0.025 = 0.09.
TEST_CASE("one added run by hand") {
  const Fit fit = AddRuns(A100(), PriorFit(A100()), {Run(Llama(4), 0.10)}).fit;
  CHECK(Moved(fit, Llama(4)) == Near(0.09, 1e-6));
  // A factor of four away, exp(-1/2) of it; far away, nothing.
  CHECK(Moved(fit, Llama(16)) == Near(0.09 * std::exp(-0.5), 1e-6));
  CHECK(std::abs(Moved(fit, Llama(16'384))) < 1e-6);
  // Its parameters stay.
  CHECK(fit.Values() == PriorFit(A100()).Values());
  CHECK(AddedRuns(fit.runs, Nothing).At(Llama(4), A100()).variance ==
        Near(0.1, 1e-6));
}

// Far from each other, so that each is alone: v = s^2 + n^2 is 0.025, and 0.36 +
// 0.0025 with 4 times the size, the likeliest for four of 0.6; of three, and of
// four of 0.10, sizes stay. For four of 0.02 half the size is the likeliest,
// exp(4 (-0.0004 / 0.01625 - ln(0.008125) / 2) - 1) = exp(8.53), after
// exp(4 (-0.0004 / 0.05 - ln(0.025) / 2)) = exp(7.35).
TEST_CASE("four runs tell how far the formula is off") {
  std::vector<Workload> workloads;
  for (const int64_t batch : {1, 1024}) {
    for (const int64_t length : {16, 16'384}) {
      workloads.push_back(Llama(batch));
      workloads.back().sequence_length = length;
    }
  }
  const auto moved = [&](size_t count, double error) {
    std::vector<Observation> runs;
    for (size_t i = 0; i < count; ++i) runs.push_back(Run(workloads[i], error));
    return Moved(AddRuns(A100(), PriorFit(A100()), runs).fit,
                 workloads.front());
  };
  CHECK(moved(4, 0.6) == Near(0.6 * 0.36 / 0.3625, 1e-4));
  CHECK(moved(3, 0.6) == Near(0.54, 1e-4));
  CHECK(moved(4, 0.1) == Near(0.09, 1e-4));
  CHECK(moved(4, 0.02) == Near(0.02 * 0.005625 / 0.008125, 1e-4));
}

// Two of one place 0.4 apart: there is more noise than 0.05, and it is seen in
// the answer, of which rows leave nothing else open.
TEST_CASE("runs of one place that differ leave the answer less sure") {
  const auto sigma = [](double apart) {
    std::vector<Observation> runs;
    for (int i = 0; i < 20; ++i) {
      runs.push_back(Run(Llama(4), 0.1 + (i % 2 == 0 ? apart : -apart)));
      runs.back().label += std::to_string(i);
    }
    const Fit fit = AddRuns(A100(), PriorFit(A100()), runs).fit;
    return Predictor(A100(), fit).Predict(Llama(4), "somebody/else").log_sigma;
  };
  CHECK(sigma(0.01) < 0.1);
  CHECK(sigma(0.2) > 0.18);
}

// What a fit's own runs correct is not corrected again.
TEST_CASE("a run that is as predicted moves nothing") {
  Fit fit = PriorFit(A100());
  for (const int64_t batch : {2, 3, 4, 6, 8}) {
    fit.runs.push_back({.label = std::to_string(batch),
                        .workload = Describe(Llama(batch)),
                        .place = PlaceOf(Llama(batch), A100()),
                        .devices = 1,
                        .ranks = 1,
                        .measured = model::Second(1.0),
                        .modelled = model::Second(std::exp(0.1)),
                        .left_out = std::nullopt});
  }
  const Predictor before(A100(), fit);
  REQUIRE(Moved(fit, Llama(4)) == Near(0.1, 0.1));
  Observation run = Run(Llama(4), 0.0);
  run.measured = before.Time(Llama(4)).total();
  const Predictor after(A100(), AddRuns(A100(), fit, {run}).fit);
  CHECK(after.Time(Llama(4)).total() / run.measured == Near(1.0));
}

TEST_CASE("a measurement that is there is not added again") {
  const Observation run = Run(Llama(4), 0.10);
  const Fit once = AddRuns(A100(), PriorFit(A100()), {run}).fit;
  const AddedFit twice = AddRuns(A100(), once, {run, run});
  CHECK(twice.fit.runs.size() == once.runs.size());
  CHECK(twice.fit.provenance.runs == once.provenance.runs);
  CHECK(twice.left_out == LeftOut{{kAddedBefore, 2}});
  // Another of the same point is.
  CHECK(AddRuns(A100(), once, {Run(Llama(4), 0.11)}).fit.runs.size() ==
        once.runs.size() + 1);
}

TEST_CASE("the answer is surer near an added run, and knows its source") {
  const Fit prior = PriorFit(A100());
  const Fit fit = AddRuns(A100(), prior, {Run(Llama(4), 0.10)}).fit;
  const auto at = [](const Fit& by, const char* source) {
    return Predictor(A100(), by).Predict(Llama(4), source);
  };
  // A tenth of the variance is left of what priors leave open besides sources,
  // and nine tenths of the noise.
  const StepPrediction before = at(prior, "somebody/else");
  const double open = before.log_sigma * before.log_sigma -
                      before.source_sigma * before.source_sigma;
  const double after = at(fit, "somebody/else").log_sigma;
  CHECK(after < before.log_sigma);
  CHECK(after ==
        Near(std::sqrt(0.1 * open + 0.9 * kAddedNoise * kAddedNoise), 1e-6));
  CHECK(at(fit, "somebody/else").source_seen);
  CHECK_FALSE(at(fit, "yet another").source_seen);
}

// Two copies of a model that four ranks divide: asked about as one of the four
// (model::OfStage), the run is right there, of two ranks alike.
TEST_CASE("a run of a divided model moves its own ranks as it is far off") {
  Observation run = Run(Llama(4), 0.0);
  run.device_count = 8;
  run.workload.parallel.tensor = 4;
  run.workload.parallel.data = 2;
  const Fit prior = PriorFit(A100());
  const Fit fit = AddRuns(A100(), prior, {run}).fit;
  REQUIRE(fit.runs.size() == 1);
  CHECK(fit.runs.front().devices == 8);
  CHECK(fit.runs.front().ranks == 2);
  const double error =
      std::log(fit.runs.front().modelled / fit.runs.front().measured);
  // s^2 / (s^2 + n^2) of it, as of a run on one device.
  CHECK(AddedRuns(fit.runs, Nothing)
            .At(model::OfStage(run.workload, 0), A100())
            .mean == Near(0.9 * error, 1e-6));
}

TEST_CASE("ranks over known links are added, kernels and other devices not") {
  Observation ranks = Run(Llama(4), 0.0);
  ranks.device_count = 8;
  const Fit fit = AddRuns(A100(), PriorFit(A100()), {ranks}).fit;
  REQUIRE(fit.runs.size() == 1);
  CHECK(fit.runs.front().devices == 8);
  CHECK(fit.runs.front().modelled > ranks.measured);  // it also sends
  Observation other = Run(Llama(4), 0.0);
  other.device = "h100_sxm";
  CHECK_THROWS_AS(AddRuns(A100(), PriorFit(A100()), {other}),
                  model::InputError);
}

TEST_CASE("what is not added is counted by why") {
  const Observation run = Run(Llama(4), 0.10);
  Observation part = run;
  part.quantity = Quantity::kForward;  // beside its whole
  Observation alone = part;
  alone.label = "without its whole";
  Observation other = run;
  other.device = "l4";
  Observation unknown = run;
  unknown.device = "l44";
  Observation many = run;
  many.device_count = 8;
  many.hosts = 3;
  const AddedFit added =
      AddRuns(A100(),
              PriorFit(A100()),
              {run, run, part, alone, other, other, unknown, many});
  CHECK(added.fit.runs.size() == 1);
  CHECK(added.left_out ==
        LeftOut{{kTwice, 1},
                {kNoWholeStep, 1},
                {"of l4", 2},
                {"unknown device \"l44\"; did you mean \"l4\" or \"l40\"?", 1},
                {kOverUnknownLinks, 1}});
}

}  // namespace
}  // namespace trainfare::calibrate
