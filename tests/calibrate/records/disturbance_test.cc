#include "calibrate/records/disturbance.h"

#include <doctest/doctest.h>

#include <cmath>

#include "calibrate/records/measured_observations.h"
#include "calibrate/records/repeated_runs.h"
#include "model/presets.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

MeasuredRun Run(int64_t batch,
                std::optional<double> waited_share,
                bool disturbed,
                double step_s) {
  MeasuredRun run;
  run.device = "AMD EPYC 9B45";
  run.workload.architecture = model::FindArchitecture("bert-tiny");
  run.workload.batch = batch;
  run.workload.sequence_length = 32;
  run.disturbed = disturbed;
  run.waited_share = waited_share;
  Sample sample;
  sample.step = model::Second(step_s);
  run.samples.assign(5, sample);
  return run;
}

}  // namespace

TEST_CASE("the noise of a disturbed run is what its threads waited, or more") {
  CHECK(DisturbanceNoise(Run(1, 0.01, false, 1.0)) == 0.0);
  CHECK(DisturbanceNoise(Run(1, 0.25, true, 1.0)) == 0.25);
  CHECK(DisturbanceNoise(Run(1, 0.02, true, 1.0)) == kLeastDisturbedNoise);
  CHECK(DisturbanceNoise(Run(1, std::nullopt, true, 1.0)) ==
        kLeastDisturbedNoise);
  // By hand: 0.6 s of 3 s on each of two processors are 10
  // %; beside 5 % of model error a sigma of 11.2 %, a fifth of the weight.
  CHECK(std::hypot(DisturbanceNoise(Run(1, 0.10, true, 1.0)), 0.05) ==
        Near(0.1118, 1e-3));
  // Equal samples: the disturbance is all the noise there is.
  CHECK(ObservationsOf(Run(1, 0.25, true, 1.0)).front().relative_noise ==
        Near(0.25, 1e-5));
  CHECK(ObservationsOf(Run(1, 0.25, false, 1.0)).front().relative_noise == 0.0);
}

TEST_CASE("of one workload the least disturbed runs are kept") {
  const KeptRuns kept = WithoutWorseRepeats({Run(1, 0.30, true, 3.0),
                                             Run(2, 0.10, true, 2.0),
                                             Run(1, 0.00, false, 1.0),
                                             Run(2, 0.20, true, 4.0),
                                             Run(1, 0.01, false, 1.1)});
  REQUIRE(kept.runs.size() == 3);
  CHECK(kept.left_out == 2);
  CHECK(kept.weighed_down == 1);
  CHECK(model::ToSeconds(kept.runs[0].samples[0].step) == 2.0);
  CHECK(model::ToSeconds(kept.runs[1].samples[0].step) == 1.0);
  CHECK(model::ToSeconds(kept.runs[2].samples[0].step) == 1.1);
  CHECK(WithoutWorseRepeats({}).runs.empty());
}

TEST_CASE("a machine's drift is that of the run that repeats the worst") {
  CHECK(!GreatestDrift({}));
  CHECK(!GreatestDrift({Run(1, 0.0, false, 1.0), Run(2, 0.0, false, 9.0)}));
  // A disturbed run says nothing of the machine.
  const auto drift = GreatestDrift({Run(1, 0.0, false, 1.00),
                                    Run(2, 0.0, false, 2.00),
                                    Run(1, 0.0, false, 1.05),
                                    Run(2, 0.0, false, 2.50),
                                    Run(2, 0.9, true, 8.00),
                                    Run(2, 0.0, false, 2.20)});
  REQUIRE(drift);
  CHECK(drift->workload.batch == 2);
  CHECK(model::ToSeconds(drift->least) == 2.0);
  CHECK(model::ToSeconds(drift->greatest) == 2.5);
  CHECK(drift->share() == Near(0.25, 1e-5));
}

TEST_CASE("a disturbance in words") {
  CHECK(DisturbanceWords(Run(1, 0.123, true, 1.0)) ==
        "its threads waited 12 % of the time for a processor");
  CHECK(DisturbanceWords(Run(1, std::nullopt, true, 1.0)) ==
        "other work on the machine, or a device held down");
}

}  // namespace trainfare::calibrate
