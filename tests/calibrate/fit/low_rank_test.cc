#include "calibrate/fit/low_rank.h"

#include <doctest/doctest.h>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "calibrate/fit/discrepancy.h"
#include "calibrate/fit/process_likelihood.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

// Places of a table: a few models of two precisions, any batch and length.
std::vector<Place> RandomPlaces(int count) {
  constexpr std::array<std::array<int64_t, 2>, 5> kModels = {
      {{256, 4}, {512, 8}, {768, 12}, {1024, 24}, {1600, 48}}};
  std::mt19937 random(7);
  const auto draw = [&](uint32_t most) {
    return static_cast<int64_t>(random() % most);
  };
  std::vector<Place> places;
  for (int i = 0; i < count; ++i) {
    const auto& [hidden, layers] = kModels[random() % kModels.size()];
    places.push_back({1 + draw(96),
                      32 * (1 + draw(16)),
                      hidden,
                      layers,
                      random() % 2 == 0 ? "fp32" : "fp16"});
  }
  return places;
}

// Any model, too, so that few ranks do not hold them.
std::vector<Place> ScatteredPlaces(int count) {
  std::vector<Place> places = RandomPlaces(count);
  std::mt19937 random(13);
  for (Place& place : places) {
    place.hidden = 64 * static_cast<int64_t>(4 + random() % 28);
    place.layers = static_cast<int64_t>(2 + random() % 46);
  }
  return places;
}

// The same dense: D / s^2 of all pairs, one's own on the diagonal.
Eigen::MatrixXd DenseCorrelation(const std::vector<Place>& places) {
  const auto count = static_cast<Eigen::Index>(places.size());
  Eigen::MatrixXd correlation(count, count);
  for (Eigen::Index i = 0; i < count; ++i) {
    for (Eigen::Index j = 0; j < count; ++j) {
      correlation(i, j) =
          ErrorCorrelation(ErrorPointOf(places[static_cast<std::size_t>(i)]),
                           ErrorPointOf(places[static_cast<std::size_t>(j)]));
    }
  }
  return correlation;
}

LowRank LowRankOf(const Eigen::MatrixXd& dense) {
  return IncompleteCholesky(dense.rows(), [&](Eigen::Index i, Eigen::Index j) {
    return dense(i, j);
  });
}

// A smooth error of the formula and 3 % of noise.
std::vector<double> Residuals(const std::vector<Place>& places) {
  std::mt19937 random(11);
  std::normal_distribution<double> noise(0.0, 0.03);
  std::vector<double> residuals;
  for (const Place& place : places) {
    residuals.push_back(
        0.06 * std::sin(std::log(static_cast<double>(place.batch) *
                                 static_cast<double>(place.sequence_length))) +
        noise(random));
  }
  return residuals;
}

// The same process with a full covariance, of the sizes that one chose.
struct DenseProcess {
  DenseProcess(const std::vector<Place>& of,
               const std::vector<double>& residuals,
               const Discrepancy& chosen)
      : places(of),
        size(chosen.error_size() * chosen.error_size()),
        noise(chosen.noise() * chosen.noise()) {
    Eigen::MatrixXd a = size * DenseCorrelation(places);
    a.diagonal().array() += noise;
    factor.compute(a);
    weights = factor.solve(Eigen::Map<const Eigen::VectorXd>(
        residuals.data(), static_cast<Eigen::Index>(residuals.size())));
  }

  Correction At(const Place& place) const {
    Eigen::VectorXd at(weights.size());
    for (Eigen::Index i = 0; i < at.size(); ++i) {
      at[i] = size * ErrorCorrelation(
                         ErrorPointOf(place),
                         ErrorPointOf(places[static_cast<std::size_t>(i)]));
    }
    return {at.dot(weights), size - at.dot(factor.solve(at))};
  }

  std::vector<Place> places;
  double size;   // s^2
  double noise;  // n^2
  Eigen::LLT<Eigen::MatrixXd> factor;
  Eigen::VectorXd weights;  // A^-1 r
};

}  // namespace

// Of 700 places the ranks beyond kExactRank are cut, and nothing but rounding
// of 200.
TEST_CASE("a covariance is what its factor leaves of it") {
  for (const int count : {200, 700}) {
    CAPTURE(count);
    const Eigen::MatrixXd dense = DenseCorrelation(RandomPlaces(count));
    const LowRank low_rank = LowRankOf(dense);
    const Eigen::MatrixXd left =
        dense - low_rank.factor * low_rank.factor.transpose();
    CHECK(low_rank.left == Near(left.diagonal().mean(), 1e-6, 1e-12));
    if (count == 200) CHECK(left.cwiseAbs().maxCoeff() < 2 * kNothingLeft);
    CHECK(low_rank.rank() <= std::min<Eigen::Index>(count, kMostRank));
    if (low_rank.rank() < kMostRank) {
      CHECK(left.cwiseAbs().maxCoeff() < 2 * kMostLeft);
    }
    CHECK(low_rank.pivots.size() == static_cast<std::size_t>(low_rank.rank()));
  }
}

TEST_CASE("likelihoods of low rank are the dense ones") {
  const std::vector<Place> places = RandomPlaces(500);
  const std::vector<double> residuals = Residuals(places);
  const Eigen::Map<const Eigen::VectorXd> values(
      residuals.data(), static_cast<Eigen::Index>(residuals.size()));
  const Eigen::MatrixXd dense = DenseCorrelation(places);
  const ProcessLikelihood likelihood(LowRankOf(dense), values);
  for (const double size : {0.0, 0.02, 0.07, 0.2}) {
    for (const double noise : {0.01, 0.04, 0.12}) {
      CAPTURE(size);
      CAPTURE(noise);
      Eigen::MatrixXd a = size * size * dense;
      a.diagonal().array() += noise * noise;
      const Eigen::LLT<Eigen::MatrixXd> factor(a);
      const double log_determinant =
          2.0 * factor.matrixLLT().diagonal().array().log().sum();
      const double quadratic = values.dot(factor.solve(values));
      // Of its two terms, which may cancel.
      CHECK(std::abs(likelihood.LogAt(size, noise) +
                     0.5 * (quadratic + log_determinant)) <
            1e-6 * (quadratic + std::abs(log_determinant)));
    }
  }
}

// The dense mean is a draw of what is not known given 512 of the places, plus
// what the others' runs say: it lies within that, and over all is surer.
TEST_CASE("of many places what varies between those taken counts as noise") {
  std::vector<Place> places = ScatteredPlaces(1600);
  const std::vector<Place> asked(places.begin() + 1500, places.end());
  places.resize(1500);
  const std::vector<double> residuals = Residuals(places);
  const Discrepancy discrepancy(places, residuals);
  REQUIRE(discrepancy.error_size() > 0.0);
  const DenseProcess dense(places, residuals, discrepancy);
  int inside = 0;
  double variances = 0;
  double dense_variances = 0;
  for (const Place& place : asked) {
    const Correction exact = dense.At(place);
    const Correction found = discrepancy.At(place);
    variances += found.variance;
    dense_variances += exact.variance;
    if (std::abs(found.mean - exact.mean) < std::sqrt(found.variance)) {
      ++inside;
    }
  }
  CHECK(variances > dense_variances);
  // Of a normal error 68 % would be; the two means share most of theirs.
  CHECK(inside > 68);
}

// Means, variances and what is left out, at the sizes that were chosen.
TEST_CASE("corrections of low rank are the dense ones") {
  std::vector<Place> places = RandomPlaces(600);
  const std::vector<Place> asked(places.begin() + 400, places.end());
  places.resize(400);
  const std::vector<double> residuals = Residuals(places);
  const Discrepancy discrepancy(places, residuals);
  REQUIRE(discrepancy.error_size() > 0.0);
  const DenseProcess dense(places, residuals, discrepancy);

  for (const Place& place : asked) {
    const Correction exact = dense.At(place);
    const Correction found = discrepancy.At(place);
    CHECK(found.mean == Near(exact.mean, 1e-6));
    CHECK(found.variance + dense.noise ==
          Near(exact.variance + dense.noise, 1e-6));
  }
  const auto count = static_cast<Eigen::Index>(places.size());
  const Eigen::VectorXd inverse =
      dense.factor.solve(Eigen::MatrixXd::Identity(count, count)).diagonal();
  const std::vector<double> left_out = discrepancy.LeftOutMeans();
  for (Eigen::Index i = 0; i < count; ++i) {
    CHECK(left_out[static_cast<std::size_t>(i)] ==
          Near(residuals[static_cast<std::size_t>(i)] -
                   dense.weights[i] / inverse[i],
               1e-6,
               1e-8));
  }
}

}  // namespace trainfare::calibrate
