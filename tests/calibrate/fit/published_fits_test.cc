// Shipped fits that rest on published figures: each is made here anew, by what
// `calibrate --from scenarios/published/ --device NAME` does, and compared with
// its file. docs/models/ has their error tables.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "calibrate/fit/device_fit.h"
#include "calibrate/fit/engine_figures.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_file.h"
#include "calibrate/fit/fit_options.h"
#include "calibrate/fit/own_figures.h"
#include "calibrate/fit/predictor.h"
#include "calibrate/records/engine_profile.h"
#include "calibrate/records/import/observations.h"
#include "calibrate/records/import/published_reader.h"
#include "calibrate/records/import/published_records.h"
#include "calibrate/records/import/published_workload.h"
#include "model/error.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

using hardware::DeviceCatalog;

constexpr const char* kFitFolder = TRAINFARE_ROOT "/calibrate/fits";

const Published& AllPublished() {
  static const Published published =
      LoadPublished(TRAINFARE_ROOT "/scenarios/published");
  return published;
}

const ObservationFiles& Records() {
  static const ObservationFiles records = RecordsOf(AllPublished());
  return records;
}

// Whether every run behind a fit is a published one.
bool IsOfPublishedFigures(const Fit& fit) {
  if (fit.runs.empty()) return false;
  for (const FittedRun& run : fit.runs) {
    const std::string name = run.label.substr(0, run.label.find('/'));
    if (!AllPublished().runs.contains(name)) return false;
  }
  return true;
}

Fit Shipped(const char* name) {
  return LoadFit(fmt::format("{}/{}.yaml", kFitFolder, name));
}

Fit Made(const char* device) {
  FitOptions options;
  options.leave_one_out = false;
  return MakeFit(DeviceCatalog::Shipped().Find(device), Records(), options).fit;
}

}  // namespace

TEST_CASE("shipped fits of published figures are what a command makes") {
  int64_t compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFitFolder)) {
    if (entry.path().extension() != ".yaml") continue;
    const Fit shipped = LoadFit(entry.path().string());
    if (!IsOfPublishedFigures(shipped)) continue;
    CAPTURE(shipped.device);
    const Fit made = Made(shipped.device.c_str());
    REQUIRE(shipped.parameters.size() == made.parameters.size());
    for (size_t i = 0; i < made.parameters.size(); ++i) {
      CAPTURE(made.parameters[i].name);
      // Compilers round differently on the solver's way to the same optimum.
      CHECK(shipped.parameters[i].value ==
            Near(made.parameters[i].value, 2e-3));
      CHECK(shipped.parameters[i].determined == made.parameters[i].determined);
    }
    CHECK(shipped.provenance.observations == made.provenance.observations);
    REQUIRE(shipped.runs.size() == made.runs.size());
    for (const FittedRun& run : made.runs) {
      CAPTURE(run.label);
      const auto same = [&](const FittedRun& one) {
        return one.label == run.label && one.quantity == run.quantity &&
               one.assumed == run.assumed;
      };
      CHECK(std::any_of(shipped.runs.begin(), shipped.runs.end(), same));
    }
    CHECK(shipped.ranks.size() == made.ranks.size());
    REQUIRE(shipped.power.has_value() == made.power.has_value());
    if (shipped.power) {
      CHECK(shipped.power->runs.size() == made.power->runs.size());
      CHECK(shipped.power->products == Near(made.power->products, 2e-3));
      CHECK(shipped.power->others == Near(made.power->others, 2e-3));
    }
    ++compared;
  }
  // V100, A10, A10G, TPU v2 and v3, Cerebras, Groq, SambaNova.
  CHECK(compared == 8);
}

TEST_CASE("Trainium: a chip is its two cores, each with half the batch") {
  const Fit core = Made("trainium1_core");
  const Fit chip = Made("trainium1");
  REQUIRE(core.runs.size() == chip.runs.size());
  REQUIRE(core.runs.size() == 4);
  for (size_t i = 0; i < core.runs.size(); ++i) {
    CHECK(chip.runs[i].label == core.runs[i].label);
    CHECK(chip.runs[i].place->batch == 2 * core.runs[i].place->batch);
    CHECK(chip.runs[i].modelled.base() ==
          Near(core.runs[i].modelled.base(), 0.02));
  }
  CHECK(core.provenance.observations == 23);
  CHECK(chip.provenance.observations == 23);
  CHECK(core.provenance.runs == 9);
}

// Rows that are not at hand stand beside the profiles in them.
TEST_CASE("Trainium: shipped fits are of the model that ships") {
  for (const char* name : {"trainium1_core", "trainium1"}) {
    CAPTURE(name);
    const hardware::Device& device = DeviceCatalog::Shipped().Find(name);
    const Fit fit = Shipped(name);
    int64_t compared = 0;
    for (const EngineProfile& profile :
         OfDevice(device, {}, {}, Records().profiles).profiles) {
      if (!profile.step) continue;
      CAPTURE(profile.label);
      const auto run =
          std::find_if(fit.runs.begin(), fit.runs.end(), [&](const auto& one) {
            return one.label == profile.label;
          });
      REQUIRE(run != fit.runs.end());
      CHECK(run->assumed == profile.assumed);
      CHECK(run->measured.base() == Near(profile.step->base(), 1e-5));
      const auto modelled = EnginesOf(device, profile.workload, fit.Values());
      CHECK(run->modelled.base() == Near(modelled->step->base(), 1e-6));
      ++compared;
    }
    CHECK(compared == 4);
  }
}

// Of the first batch and length are stated, but neither the device nor how its
// optimizer updates; of the second none of these.
TEST_CASE("what documents leave open measures nothing") {
  const auto graded = [](const char* device, const char* run) {
    const Predictor predictor(DeviceCatalog::Shipped().Find(device),
                              Shipped(device));
    return predictor.Predict(WorkloadOf(AllPublished().runs.at(run))).grade;
  };
  CHECK(graded("trainium1_core", "emotion_trn1_baseline") ==
        Grade::kInterpolated);
  CHECK(graded("a10g", "emotion_l4_baseline") == Grade::kInterpolated);
}

TEST_CASE("profiles of another kind of device are refused") {
  const std::vector<EngineProfile>& profiles = Records().profiles;
  const auto fit_of = [](const char* device, const EngineProfile& profile) {
    return FitDevice(DeviceCatalog::Shipped().Find(device), {}, {}, {profile});
  };
  EngineProfile of_tpu = profiles.front();
  of_tpu.device = "tpu_v2";
  CHECK_THROWS_WITH_AS(fit_of("tpu_v2", of_tpu),
                       (of_tpu.label + ": expected a profile of a device of "
                                       "NeuronCores, got one of tpu_v2")
                           .c_str(),
                       model::InputError);
  EngineProfile empty;
  empty.label = "nothing";
  empty.device = "trainium1_core";
  empty.workload = profiles.front().workload;
  CHECK_THROWS_WITH_AS(fit_of("trainium1_core", empty),
                       "nothing: expected a figure of the profile",
                       model::InputError);
}

TEST_CASE("a fit that rests on two numbers has a wide interval") {
  const Fit fit = Shipped("sambanova_sn10");
  CHECK(fit.provenance.observations == 2);
  const Predictor predictor(DeviceCatalog::Shipped().Find("sambanova_sn10"),
                            fit);
  model::Workload other =
      WorkloadOf(AllPublished().runs.at("sambanova_ntasks8"));
  other.batch = 64;
  const StepPrediction prediction = predictor.Predict(other);
  CHECK(prediction.grade == Grade::kExtrapolated);
  CHECK(GradeText(prediction.grade, prediction.figures) ==
        "extrapolated from 2 figures");
  CHECK(GradeText(Grade::kInterpolated, 25) == "interpolated");
  CHECK(GradeText(Grade::kDatasheetOnly, 0) == "datasheet only");
  CHECK(prediction.high_factor / prediction.low_factor > 1.2);
}

}  // namespace trainfare::calibrate
