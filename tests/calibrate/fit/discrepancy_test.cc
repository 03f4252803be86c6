#include "calibrate/fit/discrepancy.h"

#include <doctest/doctest.h>

#include <Eigen/Core>
#include <Eigen/LU>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "calibrate/records/observation.h"
#include "hardware/catalog/device.h"
#include "model/presets.h"
#include "model/split.h"
#include "model/workload.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

Place At(int64_t batch, int64_t length, const char* settings = "fp32") {
  return {batch, length, 768, 12, settings};
}

}  // namespace

// By hand: batch 4 and 8 stand log 2 / log 4 = 1/2 apart, so
// their errors correlate by exp(-1/8) = 0.8825; of another stack by 0.3 of it.
TEST_CASE("errors are alike where workloads are near") {
  CHECK(ErrorCorrelation(ErrorPointOf(At(4, 128)), ErrorPointOf(At(8, 128))) ==
        Near(std::exp(-0.125), 1e-12));
  CHECK(ErrorCorrelation(ErrorPointOf(At(4, 128)),
                         ErrorPointOf(At(8, 128, "bf16"))) ==
        Near(0.3 * std::exp(-0.125), 1e-12));
}

// By hand: half of a board's power stands log 2 / log 1.5 = 1.71 off all of it,
// which is what no limit leaves: exp(-1.71^2 / 2) = 0.232.
TEST_CASE("errors are alike under limits of power that are near") {
  const hardware::Device& v100 =
      hardware::DeviceCatalog::Shipped().Find("v100_pcie_16gb");
  model::Workload w;
  w.architecture = model::FindArchitecture("bert-base-uncased");
  const auto point = [&](double watts) {
    w.power_limit = model::Watt(watts);
    return ErrorPointOf(PlaceOf(w, v100));
  };
  CHECK(ErrorCorrelation(point(125), point(0)) == Near(0.232, 0.002));
  CHECK(ErrorCorrelation(point(250), point(0)) == 1.0);
  CHECK(ErrorCorrelation(point(400), point(0)) == 1.0);
  CHECK(PlaceOf(w, v100) == PlaceOf(w));
}

TEST_CASE("blocks of other mixers are other settings") {
  const auto settings = [](const char* name) {
    model::Workload w;
    w.architecture = model::FindArchitecture(name);
    return SettingsOf(w);
  };
  const std::string llama = settings("llama-3.1-8b");
  CHECK(llama == "fp32 eager materialised training gated rms-norm grouped");
  CHECK(settings("granite-4.0-h-micro") == llama + " state-space");
  CHECK(settings("qwen3.5-4b") == llama + " delta-rule gated-attention");
  CHECK(settings("lfm2-1.2b") == llama + " convolution");
  CHECK(settings("nemotron-h-8b") ==
        "fp32 eager materialised training rms-norm grouped state-space "
        "single-part");
}

// A rank's time is asked for by what that rank has (model::OfStage).
TEST_CASE("a run of a divided model is stored where its ranks are asked of") {
  model::Workload w;
  w.architecture = model::FindArchitecture("llama-3.1-8b");
  w.sequence_length = 8192;
  w.batch = 2;
  w.parallel.data = w.parallel.tensor = w.parallel.pipeline = 4;
  w.parallel.context = 2;
  const Place stored = PlaceOf(w);
  CHECK(stored.hidden == 2048);
  CHECK(stored.layers == 8);
  CHECK(stored.sequence_length == 4096);
  CHECK(stored == PlaceOf(model::OfStage(w, 0)));
}

TEST_CASE("a smooth error is corrected between runs and not far from them") {
  // The formula is 10 % slow at long sequences and right at short ones.
  std::vector<Place> places;
  std::vector<double> residuals;
  for (const int64_t batch : {1, 4, 16}) {
    for (const int64_t length : {16, 64, 256}) {
      places.push_back(At(batch, length));
      residuals.push_back(length == 256 ? 0.10 : length == 64 ? 0.05 : 0.0);
    }
  }
  const Discrepancy discrepancy(places, residuals);
  CHECK(discrepancy.MeanAt(At(8, 256)) == Near(0.10, 0.15));
  CHECK(discrepancy.MeanAt(At(2, 128)) == Near(0.075, 0.3));
  const Place far = {1, 64, 8192, 96, "fp32"};
  CHECK(std::abs(discrepancy.MeanAt(far)) < 0.01);
  CHECK(discrepancy.At(far).variance ==
        Near(discrepancy.error_size() * discrepancy.error_size(), 0.05));
  CHECK(discrepancy.At(At(4, 64)).variance <
        0.2 * discrepancy.error_size() * discrepancy.error_size());
  CHECK(discrepancy.At(At(4, 64)).mean ==
        Near(discrepancy.MeanAt(At(4, 64)), 1e-12));
}

TEST_CASE("the left-out mean is that of a process without the run") {
  const std::vector<Place> places = {
      At(1, 16), At(2, 32), At(4, 64), At(8, 128), At(16, 256), At(4, 32)};
  const std::vector<double> residuals = {0.08, 0.07, 0.05, 0.02, -0.01, 0.06};
  const Discrepancy all(places, residuals);
  // The closed form holds for the same s and n: those of `all`.
  const double mean = all.LeftOutMeans()[2];
  CHECK(mean > 0.0);
  CHECK(mean < 0.08);
}

// All runs as rows of their own, in the form that the header states first.
TEST_CASE("runs of one place are one row, and change nothing") {
  const std::vector<Place> places = {At(1, 16),
                                     At(4, 64),
                                     At(4, 64),
                                     At(8, 128),
                                     At(4, 64),
                                     At(8, 128),
                                     At(16, 256, "bf16")};
  const std::vector<double> residuals = {
      0.18, 0.07, 0.10, -0.11, 0.05, -0.14, -0.02};
  const Discrepancy discrepancy(places, residuals);
  const double size = discrepancy.error_size() * discrepancy.error_size();
  REQUIRE(size > 0.0);

  const auto count = static_cast<Eigen::Index>(places.size());
  const auto of = [&](Eigen::Index i) {
    return ErrorPointOf(places[static_cast<std::size_t>(i)]);
  };
  Eigen::MatrixXd covariance(count, count);
  const Place asked = At(6, 100);
  Eigen::VectorXd at(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    at[i] = size * ErrorCorrelation(ErrorPointOf(asked), of(i));
    for (Eigen::Index j = 0; j < count; ++j) {
      covariance(i, j) = size * ErrorCorrelation(of(i), of(j));
    }
  }
  covariance.diagonal().array() += discrepancy.noise() * discrepancy.noise();
  const Eigen::MatrixXd inverse = covariance.inverse();
  const Eigen::VectorXd values =
      Eigen::Map<const Eigen::VectorXd>(residuals.data(), count);
  const Eigen::VectorXd weights = inverse * values;

  const Correction found = discrepancy.At(asked);
  CHECK(found.mean == Near(at.dot(weights)));
  CHECK(found.variance == Near(size - at.dot(inverse * at)));
  const std::vector<double> left_out = discrepancy.LeftOutMeans();
  for (Eigen::Index i = 0; i < count; ++i) {
    CAPTURE(i);
    CHECK(left_out[static_cast<std::size_t>(i)] ==
          Near(values[i] - weights[i] / inverse(i, i)));
  }
}

// The pair is the best of the grid's 30 by the likelihood of all runs as rows
// of their own.
TEST_CASE("sizes of the error and of the noise are the likeliest") {
  std::vector<Place> places;
  std::vector<double> residuals;
  for (int i = 0; i < 12; ++i) {
    places.push_back(At(1 << (i / 3), 64));
    residuals.push_back(0.05 * (i / 3) + 0.02 * (i % 3 - 1));
  }
  const Discrepancy discrepancy(places, residuals);
  const auto count = static_cast<Eigen::Index>(places.size());
  const Eigen::VectorXd values =
      Eigen::Map<const Eigen::VectorXd>(residuals.data(), count);
  const auto likelihood = [&](double error_size, double noise) {
    Eigen::MatrixXd a(count, count);
    for (Eigen::Index i = 0; i < count; ++i) {
      for (Eigen::Index j = 0; j < count; ++j) {
        a(i, j) =
            error_size * error_size *
            ErrorCorrelation(ErrorPointOf(places[static_cast<std::size_t>(i)]),
                             ErrorPointOf(places[static_cast<std::size_t>(j)]));
      }
    }
    a.diagonal().array() += noise * noise;
    return -0.5 * values.dot(a.inverse() * values) -
           0.5 * std::log(a.determinant());
  };
  const double best = likelihood(discrepancy.error_size(), discrepancy.noise());
  for (const double error_size : {0.0, 0.02, 0.04, 0.07, 0.12, 0.2}) {
    for (const double noise : {0.01, 0.02, 0.04, 0.07, 0.12}) {
      CAPTURE(error_size);
      CAPTURE(noise);
      CHECK(likelihood(error_size, noise) <= best + 1e-9);
    }
  }
}

TEST_CASE("a disturbed run teaches nothing") {
  std::vector<Place> places;
  std::vector<double> residuals;
  for (const int64_t batch : {1, 2, 4, 8, 16, 32}) {
    places.push_back(At(batch, 64));
    residuals.push_back(batch % 4 == 0 ? 0.01 : -0.01);
  }
  residuals[3] = -2.0;  // 7 times too long
  const Discrepancy discrepancy(places, residuals);
  CHECK(std::abs(discrepancy.MeanAt(At(8, 64))) < 0.02);
  CHECK(discrepancy.LeftOutMeans()[3] == 0.0);
}

TEST_CASE("few runs leave the formula alone") {
  const Discrepancy none;
  CHECK(none.empty());
  CHECK(none.MeanAt(At(1, 1)) == 0.0);
  const Discrepancy two({At(1, 16), At(4, 64)}, {0.2, 0.2});
  CHECK(two.empty());
  CHECK(two.LeftOutMeans() == std::vector{0.0, 0.0});
}

}  // namespace trainfare::calibrate
