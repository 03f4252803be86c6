#include "scenarios/validation/translation_rates.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "hardware/models/device_models.h"
#include "model/error.h"
#include "scenarios/job/estimate.h"
#include "tests/hardware/temporary_folder.h"

namespace trainfare::scenarios {
namespace {

const hardware::Device& V100() {
  return hardware::DeviceCatalog::Shipped().Find("v100_sxm2_32gb");
}

struct Errors {
  double median = 0;
  double worst = 0;
  size_t count = 0;
};

// Of steps on so many devices, or on one.
Errors ErrorsOf(bool one_device) {
  const TranslationRates rates = ShippedTranslationRates();
  const calibrate::Predictor predictor =
      TranslationPredictor(V100(), FitTranslation(rates));
  std::vector<double> errors;
  for (const TranslationRate& rate : rates.rates) {
    if ((rate.devices == 1) != one_device) continue;
    const StepEstimate step = EstimateStep(
        predictor, TranslationWorkload(rate), ClusterOf(V100(), rate.devices));
    errors.push_back(std::abs(step.total() / rate.step() - 1.0));
  }
  std::sort(errors.begin(), errors.end());
  return {errors[errors.size() / 2], errors.back(), errors.size()};
}

}  // namespace

// docs/results/validation_published.md, "Speed-ups of LightSeq2": by hand.
TEST_CASE("published rates of translation training") {
  const TranslationRates rates = ShippedTranslationRates();
  CHECK(rates.device == "v100_sxm2_32gb");
  CHECK(rates.rates.size() == 18 * 3);
  const TranslationRate& apex = rates.rates[1];
  CHECK(apex.stack == "fairseq-apex");
  // 512 tokens at 4677 a second.
  CHECK(model::ToMilliseconds(apex.step()) ==
        doctest::Approx(109.472).epsilon(1e-5).scale(0));
  const model::Workload w = TranslationWorkload(apex);
  CHECK(w.batch == 16);
  CHECK(w.architecture.decoder_layers == 6);
  CHECK(w.stack.fusion == model::Fusion::kFairseq);
  // Without Apex the update is eight operations.
  CHECK(TranslationWorkload(rates.rates[0]).optimizer.implementation ==
        model::OptimizerImplementation::kMultiTensor);
}

TEST_CASE("one host explains three stacks at six batches") {
  const Errors one = ErrorsOf(true);
  CHECK(one.count == 18);
  CHECK(one.median < 0.03);
  CHECK(one.worst < 0.14);
  const double launch = FitTranslation(
      ShippedTranslationRates())[hardware::models::kGpuLaunchCost];
  CHECK(launch == doctest::Approx(60.0e-6).epsilon(0.02).scale(0));
}

// Nothing was fitted to eight devices.
TEST_CASE("eight devices and other depths, from the rates of one") {
  const Errors eight = ErrorsOf(false);
  CHECK(eight.count == 36);
  CHECK(eight.median < 0.14);
  CHECK(eight.worst < 0.36);
}

TEST_CASE("a bad file of rates is refused where it is wrong") {
  const hardware::TemporaryFolder folder;
  const auto message = [&](const std::string& text) {
    folder.Write("f.yaml", text);
    return hardware::MessageOf<model::InputError>(
        folder, [&] { LoadTranslationRates(folder.path() + "/f.yaml"); });
  };
  const std::string head =
      "schema: trainfare.translation_rates/1\ndevice: t4\nsource: s\n"
      "date: 2026-11-22\nrates:\n";
  CHECK(message(head + "  - { layers: 6, devices: 1, tokens: 512, fairseq: 1, "
                       "fairseq_apex: 2, lightseq: 3 }\n") == "no error");
  CHECK(message(head + "  - { layers: 0 }\n").starts_with("f.yaml:6:"));
  CHECK(message("schema: x\n").starts_with("f.yaml:1:9: schema: expected"));
}

}  // namespace trainfare::scenarios
