#include "calibrate/fit/predictor.h"

#include <doctest/doctest.h>

#include <cmath>

#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/prior_fit.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/records/statistics.h"
#include "hardware/catalog/kind_facts.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/presets.h"
#include "model/product_kernel.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

using hardware::Device;
using model::InputError;
using model::Workload;

Workload WorkAt(const char* name, int64_t batch, int64_t length) {
  Workload workload;
  workload.architecture = model::FindArchitecture(name);
  workload.batch = batch;
  workload.sequence_length = length;
  return workload;
}

const Device& V100() {
  return hardware::DeviceCatalog::Shipped().Find("v100_sxm2_16gb");
}

// Exact times of the prior itself, which a fit must reproduce.
Fit FitOfV100() {
  std::vector<Observation> observations;
  const Fit prior = PriorFit(V100());
  for (const int64_t batch : {1, 8, 32}) {
    for (const int64_t length : {32, 128}) {
      const Workload workload = WorkAt("bert-base-uncased", batch, length);
      Observation observation;
      observation.label = Describe(workload);
      observation.device = "v100_sxm2_16gb";
      observation.workload = workload;
      observation.measured =
          StepModel(V100(), workload).Time(prior.Values()).total();
      observations.push_back(observation);
    }
  }
  return FitDevice(V100(), observations);
}

// Rate of a product of three sides of 8192 in bf16, by the datasheet and the
// priors of a device [FLOP/s].
double RateOfLongProduct(const Device& device) {
  const int64_t side = 8192;
  Workload workload = WorkAt("gpt2", 1, 1024);
  workload.precision = model::Precision::kBf16;
  const model::Kernel product = model::ProductKernel(
      "feed-forward in", side, side, side, /*launches=*/1, /*element=*/2);
  const model::Seconds<> time =
      Predictor(device).KernelTime(workload, model::Phase::kForward, product);
  return static_cast<double>(product.matrix_flops) / time.base();
}

// The best products in bf16 that anybody measured, in FLOP/s:
// stas00/ml-engineering@744d01e, compute/accelerator/README.md. A long product
// of a training step goes at the same share of them on AMD's devices as on
// H100, where steps tell it.
TEST_CASE("long products of AMD's devices reach what H100's do of the best") {
  const auto share = [](const char* name, double best) {
    const auto& catalog = hardware::DeviceCatalog::Shipped();
    return RateOfLongProduct(catalog.Find(name)) / best;
  };
  const double usual = share("h100_sxm", 794.5e12);
  CHECK(share("mi300x", 668.4e12) == Near(usual, 0.02));
  CHECK(share("mi325x", 784.9e12) == Near(usual, 0.02));
  CHECK(share("mi355x", 1565e12) == Near(usual, 0.02));
}

TEST_CASE("a part of a step has an interval of its own") {
  const Predictor fitted(V100(), FitOfV100());
  Workload workload = WorkAt("bert-base-uncased", 8, 64);
  const StepPrediction known = fitted.Predict(workload);
  // A small part's errors average out in the step.
  CHECK(known.optimizer_log_sigma > known.log_sigma);
  CHECK(known.forward_log_sigma > known.log_sigma);
  CHECK(known.optimizer_log_sigma > known.backward_log_sigma);
  workload.work = model::Work::kForward;
  const StepPrediction pass = fitted.Predict(workload);
  CHECK(pass.forward_log_sigma == Near(pass.log_sigma, 1e-5));
  CHECK(pass.optimizer_log_sigma == 0);
}

TEST_CASE("without a fit the datasheet answers, with the widest interval") {
  const Predictor datasheet(V100());
  const Workload workload = WorkAt("bert-base-uncased", 8, 64);
  const StepPrediction bare = datasheet.Predict(workload);
  CHECK(bare.grade == Grade::kDatasheetOnly);
  const double width = hardware::FactsOfKind(V100().kind).width_datasheet;
  CHECK(width < 1.0);
  CHECK(bare.log_sigma > width * kDatasheetScatter);
  CHECK(bare.low_factor * bare.high_factor == Near(1.0, 1e-12));
  // Student's t of 3: 3.18245 / 1.63774.
  CHECK(bare.width_95 == Near(1.94319, 1e-5));

  const Predictor fitted(V100(), FitOfV100());
  const StepPrediction known = fitted.Predict(workload);
  CHECK(known.grade == Grade::kInterpolated);
  CHECK(known.log_sigma < bare.log_sigma);
}

TEST_CASE("the interval is that of parameters and scatter, by hand") {
  const Fit fit = FitOfV100();
  const Predictor predictor(V100(), fit);
  const Workload workload = WorkAt("bert-base-uncased", 8, 64);
  const StepPrediction prediction = predictor.Predict(workload);
  // g^T C g with g by differences.
  const auto infos = hardware::ParametersOf(V100().kind);
  const StepModel model(V100(), workload);
  std::vector<double> positions;
  for (size_t i = 0; i < infos.size(); ++i) {
    positions.push_back(ToFitScale(infos[i], fit.parameters[i].value));
  }
  std::vector<double> gradient;
  for (size_t i = 0; i < infos.size(); ++i) {
    std::vector<double> moved = positions;
    moved[i] += 1e-6;
    gradient.push_back((model.EvaluateValues(moved)[Quantity::kStep] -
                        model.EvaluateValues(positions)[Quantity::kStep]) /
                       1e-6);
  }
  // What the runs leave open at this place, and their noise.
  const Discrepancy discrepancy = fit.ModelDiscrepancy();
  double variance = discrepancy.At(PlaceOf(workload)).variance +
                    discrepancy.noise() * discrepancy.noise();
  for (size_t i = 0; i < infos.size(); ++i) {
    for (size_t j = 0; j < infos.size(); ++j) {
      variance +=
          gradient[i] * fit.covariance[i * infos.size() + j] * gradient[j];
    }
  }
  CHECK(prediction.log_sigma == Near(std::sqrt(variance), 1e-4));
  const double quantile =
      StudentQuantile90(fit.degrees_of_freedom + kScatterPriorWeight);
  CHECK(prediction.high_factor ==
        Near(std::exp(quantile * std::sqrt(variance)), 1e-4));
  CHECK(quantile * prediction.width_95 ==
        Near(StudentQuantile975(fit.degrees_of_freedom + kScatterPriorWeight),
             1e-5));
}

TEST_CASE("an answer away from what was measured is less sure") {
  const Fit fit = FitOfV100();
  Workload half = WorkAt("bert-base-uncased", 8, 128);
  const double seen = Predictor(V100(), fit).Predict(half).log_sigma;
  half.precision = model::Precision::kFp16;
  const double other = Predictor(V100(), fit).Predict(half).log_sigma;
  const double alike = hardware::FactsOfErrors().other_settings;
  const double unseen = kDatasheetScatter * std::sqrt(1.0 - alike * alike);
  CHECK(seen < unseen);
  const double width = hardware::FactsOfKind(V100().kind).width_extrapolated;
  CHECK(other >= width * unseen);
  // Two runs show nothing of shapes: far from them is as bad.
  Fit few = fit;
  few.runs.resize(2);  // batch 1, lengths 32 and 128
  const Workload far = WorkAt("bert-base-uncased", 32, 128);
  CHECK(Predictor(V100(), few).Predict(far).log_sigma >
        Predictor(V100(), fit).Predict(far).log_sigma + 0.05);
}

TEST_CASE("grades: measured, inside the range, outside it") {
  const Predictor predictor(V100(), FitOfV100());
  const auto grade = [&](const Workload& workload) {
    return predictor.Predict(workload).grade;
  };
  CHECK(grade(WorkAt("bert-base-uncased", 8, 128)) == Grade::kMeasured);
  CHECK(grade(WorkAt("bert-base-uncased", 9, 128)) == Grade::kInterpolated);
  CHECK(grade(WorkAt("bert-base-uncased", 8, 256)) == Grade::kExtrapolated);
  CHECK(grade(WorkAt("bert-base-uncased", 64, 128)) == Grade::kExtrapolated);
  CHECK(grade(WorkAt("bert-large-uncased", 8, 128)) == Grade::kExtrapolated);
  Workload half = WorkAt("bert-base-uncased", 8, 128);
  half.precision = model::Precision::kFp16;
  CHECK(grade(half) == Grade::kExtrapolated);
  Workload accumulated = WorkAt("bert-base-uncased", 8, 128);
  accumulated.accumulation = 4;
  CHECK(grade(accumulated) == Grade::kInterpolated);
}

TEST_CASE("measured is only what ran on as many devices") {
  const Workload workload = WorkAt("bert-base-uncased", 8, 128);
  Fit fit = FitOfV100();
  const auto grade = [&](int64_t devices) {
    return Predictor(V100(), fit).GradeOver(workload, devices);
  };
  CHECK(grade(1) == Grade::kMeasured);
  CHECK(grade(2) == Grade::kExtrapolated);
  // A file that does not say the count is no witness of several.
  for (FittedRun& run : fit.runs) run.devices.reset();
  CHECK(grade(1) == Grade::kMeasured);
  CHECK(grade(4) == Grade::kExtrapolated);
  CHECK_FALSE(Predictor(V100(), fit).HasExchangeOf(4));
  // Runs of four, whose exchange is in the step of one.
  for (FittedRun& run : fit.runs) run.devices = 4;
  CHECK(grade(4) == Grade::kMeasured);
  CHECK(grade(1) == Grade::kExtrapolated);
  CHECK(Predictor(V100(), fit).Predict(workload).grade == Grade::kExtrapolated);
  CHECK(Predictor(V100(), fit).HasExchangeOf(4));
  CHECK_FALSE(Predictor(V100(), fit).HasExchangeOf(1));
  // Counts on both sides, none like it.
  fit.runs.front().devices = 1;
  CHECK(grade(2) == Grade::kInterpolated);
  CHECK_FALSE(Predictor(V100(), fit).HasExchangeOf(2));
  // A part that stands for a whole device was not one.
  for (FittedRun& run : fit.runs) run.devices = 0;
  CHECK(grade(1) == Grade::kInterpolated);
}

TEST_CASE("no answer is measured by a run of which something is assumed") {
  const Workload workload = WorkAt("bert-base-uncased", 8, 128);
  Fit fit = FitOfV100();
  const StepPrediction stated = Predictor(V100(), fit).Predict(workload);
  for (FittedRun& run : fit.runs) run.assumed = true;
  const Predictor predictor(V100(), fit);
  const StepPrediction assumed = predictor.Predict(workload);
  CHECK(stated.grade == Grade::kMeasured);
  CHECK(assumed.grade == Grade::kInterpolated);
  CHECK(predictor.GradeOver(workload, 1) == Grade::kInterpolated);
  // The interval is of the place, whatever the grade.
  CHECK(assumed.log_sigma == stated.log_sigma);
  CHECK(assumed.high_factor == stated.high_factor);
  // Another run of the same is surely of it.
  fit.runs.push_back(fit.runs[3]);
  CHECK(fit.runs.back().workload == Describe(workload));
  fit.runs.back().assumed = false;
  CHECK(Predictor(V100(), fit).GradeOver(workload, 1) == Grade::kMeasured);
}

TEST_CASE("an extrapolated answer is no surer than the datasheet") {
  // To anybody but who measured the fit's runs.
  constexpr std::string_view kOther = "owner/b";
  const hardware::KindFacts& kind = hardware::FactsOfKind(V100().kind);
  const Predictor fitted(V100(), FitOfV100());
  const Predictor datasheet(V100());
  // Other blocks, other sizes, longer; each further than the one before.
  double before = 0.0;
  for (const int64_t length : {256, 512, 1024}) {
    Workload gpt = WorkAt("gpt2", 8, length);
    const StepPrediction far = fitted.Predict(gpt);
    const StepPrediction bare = datasheet.Predict(gpt, kOther);
    CAPTURE(length);
    CHECK(far.grade == Grade::kExtrapolated);
    CHECK(far.log_sigma >= kind.width_extrapolated * kDatasheetScatter);
    CHECK(far.width_95 == Near(bare.width_95, 1e-5));
    CHECK(far.log_sigma < bare.log_sigma);
    CHECK(fitted.Predict(gpt, kOther).log_sigma > 0.95 * bare.log_sigma);
    CHECK(far.log_sigma > before - 0.02);
    before = far.log_sigma;
  }
  const StepPrediction near =
      fitted.Predict(WorkAt("bert-base-uncased", 9, 128));
  CHECK(near.log_sigma < before);
}

// One source of tau and another differ by tau sqrt(2), a third one from the
// mean of both by tau sqrt(3 / 2).
TEST_CASE("a source that the fit has not seen is less sure, others are not") {
  const double tau = hardware::FactsOfKind(V100().kind).source_sigma;
  REQUIRE(tau > 0);
  Fit fit = FitOfV100();
  const auto sigma = [&](std::string_view source) {
    return Predictor(V100(), fit).SourceSigma(source);
  };
  CHECK(fit.provenance.sources == std::vector{std::string(kOwnSource)});
  CHECK(sigma(kOwnSource) == 0);
  CHECK(sigma("owner/b") == Near(tau * std::sqrt(2.0), 1e-5));
  // docs/models/calibration.md, "Sources".
  CHECK(std::hypot(0.12, sigma("owner/b")) == Near(0.131, 2e-3));
  fit.provenance.sources = {"owner/a", "owner/b"};
  CHECK(sigma("owner/b") == 0);
  CHECK(sigma(kOwnSource) == Near(tau * std::sqrt(1.5), 1e-5));
  CHECK_FALSE(Predictor(V100(), fit).HasSource("owner"));
  // Priors are of nobody.
  CHECK(Predictor(V100()).SourceSigma(kOwnSource) == tau);
  // No question gets surer by being of another source, and no time moves.
  const Predictor predictor(V100(), fit);
  for (const char* name : {"bert-base-uncased", "gpt2"}) {
    for (const int64_t batch : {1, 9, 64}) {
      for (const model::Work work :
           {model::Work::kTraining, model::Work::kForward}) {
        Workload workload = WorkAt(name, batch, 128);
        workload.work = work;
        const StepPrediction seen = predictor.Predict(workload, "owner/a");
        const StepPrediction unseen = predictor.Predict(workload, "owner/c");
        CAPTURE(workload.batch);
        CHECK(seen.source_seen);
        CHECK_FALSE(unseen.source_seen);
        CHECK(unseen.time.total() == seen.time.total());
        CHECK(unseen.grade == seen.grade);
        CHECK(unseen.log_sigma >=
              std::hypot(seen.log_sigma, unseen.source_sigma) - 1e-12);
        CHECK(unseen.forward_log_sigma > seen.forward_log_sigma);
        CHECK(unseen.high_factor > seen.high_factor);
        CHECK(unseen.low_factor < seen.low_factor);
      }
    }
  }
}

TEST_CASE("Time and Predict agree") {
  const Predictor predictor(V100(), FitOfV100());
  const Workload workload = WorkAt("bert-base-uncased", 5, 77);
  const model::Seconds<> time = predictor.Predict(workload).time.total();
  CHECK(predictor.Time(workload).total() == time);
  CHECK(predictor.PredictTime(workload).total() == time);
}

// The time and its slopes come of one evaluation, in Jets: its value is the
// formula's in double, to the last bit.
TEST_CASE("a prediction's time is the formula's on every device") {
  for (const Device& device : hardware::DeviceCatalog::Shipped().devices()) {
    CAPTURE(device.name);
    const Predictor predictor(device);
    for (const model::Precision precision :
         {model::Precision::kFp32, model::Precision::kBf16}) {
      if (!device.MatrixPeak(precision)) continue;
      Workload workload = WorkAt("bert-base-uncased", 16, 128);
      workload.precision = precision;
      if (device.inference_only) workload.work = model::Work::kForward;
      const hardware::StepTime<double> one = predictor.Predict(workload).time;
      const hardware::StepTime<double> other = predictor.PredictTime(workload);
      CHECK(one.forward.total() == other.forward.total());
      CHECK(one.backward.total() == other.backward.total());
      CHECK(one.optimizer.total() == other.optimizer.total());
      CHECK(one.total() == other.total());
    }
  }
}

TEST_CASE("a fit of another device is refused") {
  const auto& catalog = hardware::DeviceCatalog::Shipped();
  CHECK_THROWS_WITH_AS(Predictor(catalog.Find("t4"), FitOfV100()),
                       "fit v100_sxm2_16gb is of v100_sxm2_16gb, not of t4; "
                       "calibrate on the device itself",
                       InputError);
  Device here = hardware::HostCpu();
  here.reported_name = "Example 9000";
  Device there = here;
  there.reported_name = "Other 5000";
  CHECK_THROWS_WITH_AS(Predictor(there, PriorFit(here)),
                       "fit cpu is of the processor \"Example 9000\", this one "
                       "is \"Other 5000\"; calibrate here",
                       InputError);
}

TEST_CASE("a processor keeps the dimensions that it was measured with") {
  Device then = hardware::HostCpu();
  then.memory_bandwidth = model::GBPerSecond(20);
  Device now = then;
  now.memory_bandwidth = model::GBPerSecond(40);
  const Workload workload = WorkAt("bert-tiny", 8, 32);
  CHECK(Predictor(now, PriorFit(then)).Time(workload).total() ==
        Predictor(then).Time(workload).total());
}

TEST_CASE("what the device does not run is refused") {
  Workload workload = WorkAt("bert-base-uncased", 8, 128);
  workload.precision = model::Precision::kTf32;
  CHECK_THROWS_AS((void)Predictor(V100()).Predict(workload), InputError);
  CHECK_THROWS_AS((void)Predictor(V100()).Time(workload), InputError);
  workload = WorkAt("bert-base-uncased", 0, 128);
  CHECK_THROWS_AS((void)Predictor(V100()).Predict(workload), InputError);
}

}  // namespace
}  // namespace trainfare::calibrate
