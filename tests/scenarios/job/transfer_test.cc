#include "scenarios/job/transfer.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "calibrate/fit/predictor.h"
#include "hardware/models/device_models.h"
#include "model/architecture.h"

namespace trainfare::scenarios {
namespace {

const hardware::Device& Find(std::string_view name) {
  return hardware::DeviceCatalog::Shipped().Find(name);
}

// A fit whose first parameter was found to be `value`.
calibrate::Fit Fitted(std::string_view name, double value) {
  calibrate::Fit fit = calibrate::PriorFit(Find(name));
  fit.parameters[0].value = value;
  fit.parameters[0].determined = true;
  return fit;
}

}  // namespace

TEST_CASE("a parameter is the median of the fits that determine it") {
  const calibrate::Fit a = Fitted("a10", 0.3);
  const calibrate::Fit b = Fitted("l4", 0.5);
  const calibrate::Fit c = Fitted("t4", 0.4);
  const hardware::Device& device = Find("a100_sxm4_80gb");
  const calibrate::Fit fit = TransferFit(device, {&a, &b, &c});
  CHECK(fit.device == device.name);
  CHECK(fit.parameters[0].value == doctest::Approx(0.4).epsilon(1e-9));
  // What nobody determined stays where it was.
  const calibrate::Fit prior = calibrate::PriorFit(device);
  for (size_t i = 1; i < fit.parameters.size(); ++i) {
    CHECK(fit.parameters[i].value == prior.parameters[i].value);
  }
}

TEST_CASE("one fit, or fits of another kind, change nothing") {
  const hardware::Device& device = Find("a100_sxm4_80gb");
  const calibrate::Fit prior = calibrate::PriorFit(device);
  const calibrate::Fit one = Fitted("a10", 0.3);
  const calibrate::Fit trainium = Fitted("trainium1", 0.2);
  const calibrate::Fit fit = TransferFit(device, {&one, &trainium});
  for (size_t i = 0; i < fit.parameters.size(); ++i) {
    CHECK(fit.parameters[i].value == prior.parameters[i].value);
  }
}

TEST_CASE("the wider the fits spread, the wider the answer") {
  const hardware::Device& device = Find("a100_sxm4_80gb");
  const calibrate::Fit a = Fitted("a10", 0.39);
  const calibrate::Fit b = Fitted("l4", 0.41);
  const calibrate::Fit c = Fitted("a10", 0.2);
  const calibrate::Fit d = Fitted("l4", 0.8);
  CHECK(TransferFit(device, {&c, &d}).covariance[0] >
        TransferFit(device, {&a, &b}).covariance[0]);
}

TEST_CASE("a fit of nothing is as sure as the datasheet, near and far") {
  const hardware::Device& device = Find("a100_sxm4_80gb");
  const calibrate::Predictor transferred(device, TransferFit(device, {}));
  const calibrate::Predictor datasheet(device);
  model::Workload workload;
  workload.architecture = model::FindArchitecture("bert-base-uncased");
  workload.precision = model::Precision::kBf16;
  for (const int64_t batch : {1, 64, 4096}) {
    workload.batch = batch;
    workload.sequence_length = 128;
    CHECK(transferred.Predict(workload).log_sigma ==
          doctest::Approx(datasheet.Predict(workload).log_sigma));
  }
}

TEST_CASE("a device must not be among the others") {
  const calibrate::Fit self = Fitted("a10", 0.3);
  CHECK_THROWS_AS(TransferFit(Find("a10"), {&self}), std::logic_error);
}

}  // namespace trainfare::scenarios
