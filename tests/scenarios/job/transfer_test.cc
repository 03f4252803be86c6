#include "scenarios/job/transfer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "calibrate/fit/predictor.h"
#include "calibrate/fit/prior_fit.h"
#include "hardware/models/device_models.h"
#include "model/architecture.h"
#include "model/presets.h"

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
  fit.provenance.sources = {"owner/of_" + fit.device};
  return fit;
}

}  // namespace

// Nothing is known of the parameter but these fits: its prior is as wide as can
// be, so that the answer lies among them, and nearer to the device's own
// architecture the more those differ.
TEST_CASE("a device is as others are, its own architecture first") {
  const hardware::Device& device = Find("a100_sxm4_80gb");
  // Ampere (8.0) twice, Ada and Turing.
  const calibrate::Fit a = Fitted("a100_pcie_80gb", 0.60);
  const calibrate::Fit b = Fitted("a30", 0.62);
  const calibrate::Fit c = Fitted("l4", 0.40);
  const calibrate::Fit d = Fitted("l40", 0.42);
  const calibrate::Fit e = Fitted("t4", 0.80);
  const calibrate::Fit fit = TransferFit(device, {&a, &b, &c, &d, &e});
  CHECK(fit.device == device.name);
  CHECK(fit.provenance.sources ==
        std::vector<std::string>{"owner/of_a100_pcie_80gb",
                                 "owner/of_a30",
                                 "owner/of_l4",
                                 "owner/of_l40",
                                 "owner/of_t4"});
  const double value = fit.parameters[0].value;
  CHECK(value > 0.57);
  CHECK(value < 0.65);
  // One of another architecture has no family among them.
  const double other =
      TransferFit(Find("p4"), {&a, &b, &c, &d, &e}).parameters[0].value;
  CHECK(other > 0.42);
  CHECK(other < 0.90);
  CHECK(std::abs(other - 0.61) > std::abs(value - 0.61));
  // What nobody determined stays where it was.
  const calibrate::Fit prior = calibrate::PriorFit(device);
  for (size_t i = 1; i < fit.parameters.size(); ++i) {
    CHECK(fit.parameters[i].value == prior.parameters[i].value);
  }
}

// By hand, with two fits alike and exact: spread within an architecture is the
// smallest of the grid, 0.05 s, and so is that between, so that the answer is
// all but theirs.
TEST_CASE("fits that agree are believed") {
  const hardware::Device& device = Find("a100_sxm4_80gb");
  const auto exact = [](std::string_view name) {
    calibrate::Fit fit = Fitted(name, 0.5);
    fit.parameters[0].standard_error = 0;
    return fit;
  };
  const calibrate::Fit a = exact("a100_pcie_80gb");
  const calibrate::Fit b = exact("a30");
  const calibrate::Fit fit = TransferFit(device, {&a, &b});
  CHECK(fit.parameters[0].value == doctest::Approx(0.5).epsilon(0.01));
  const double sigma = hardware::ParametersOf(device)[0].prior_sigma;
  CHECK(fit.parameters[0].standard_error < 0.1 * sigma);
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
