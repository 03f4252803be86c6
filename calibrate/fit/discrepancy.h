#pragma once

// What the formula itself gets wrong, learned from what a fit leaves over.
//
// A formula that is too slow at one batch and length is too slow nearby. The
// residuals of a fit, r = log(model / measured), are taken as a Gaussian
// process over where the runs stand:
//
//   D_ij = s^2 exp(-|x_i - x_j|^2 / 2) c_ij        A = D + n^2 I
//   mean(x) = d(x)^T A^-1 r      variance(x) = s^2 - d(x)^T A^-1 d(x)
//
//   x   logs of batch, length, hidden size squared and layers, over the log of
//       their reach, and of the limit of power, over that of its own
//   c   1 where precision, stack and kind of work agree, else less
//   s   size of the formula's error, n of the noise: the pair of a grid with
//       the greatest marginal likelihood
//
// A prediction is divided by exp(mean); far from all runs the mean is 0, and
// the formula stands alone. Reaches and c: hardware::ErrorFacts. Source:
// Kennedy & O'Hagan 2001, Bayesian calibration of computer models; Rasmussen &
// Williams 2006, equations 2.25, 2.26, 2.30 and 5.12. Check:
// tests/calibrate/fit/discrepancy_test.cc, docs/models/calibration.md.
//
// Runs of one place are one row: k of them with the mean m are, turned by an
// orthonormal matrix whose first row is 1 / sqrt(k), one value sqrt(k) m that
// the process moves, and k - 1 that are noise alone. Over places
//
//   B_gh = sqrt(k_g k_h) D_gh / s^2     y_g = sqrt(k_g) m_g
//   A  ->  s^2 B + n^2 I, and n^2 for each of the other runs
//
// B is taken as of low rank (low_rank.h): n places cost n r^2, a mean n, a
// variance r^2.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/catalog/device.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// Where a workload stands among others.
struct Place {
  int64_t batch = 1;
  int64_t sequence_length = 1;
  int64_t hidden = 1;
  int64_t layers = 1;
  std::string settings;  // as SettingsOf writes them
  // Of the power that the board may draw, where a limit below it is set.
  std::optional<double> power_share = std::nullopt;

  friend bool operator==(const Place&, const Place&) = default;
};
Place PlaceOf(const model::Workload& workload, const hardware::Device& device);
// Within the board's own limit, whichever is set.
Place PlaceOf(const model::Workload& workload);

// A place as coordinates in units of the reach.
struct ErrorPoint {
  std::array<double, 5> coordinates{};
  std::string settings;
};
ErrorPoint ErrorPointOf(const Place& place);
// A size's logarithm in units of the reach.
double InReaches(int64_t size);

// |x_i - x_j|^2, c_ij and D_ij / s^2 of two places.
double SquaredDistance(const ErrorPoint& a, const ErrorPoint& b);
double SettingsCorrelation(const ErrorPoint& a, const ErrorPoint& b);
double ErrorCorrelation(const ErrorPoint& a, const ErrorPoint& b);

struct Correction {
  double mean = 0;      // of log(model / measured)
  double variance = 0;  // of the same
};

class Discrepancy {
 public:
  // No runs: no correction, and no variance of its own.
  Discrepancy();
  // One residual a place. Residuals far off the others (a disturbed run) do
  // not count.
  Discrepancy(const std::vector<Place>& places, std::vector<double> residuals);

  bool empty() const;
  double MeanAt(const Place& place) const;
  Correction At(const Place& place) const;
  // The mean at each run from all runs but that one (Rasmussen & Williams
  // 5.12); 0 for a residual that does not count.
  std::vector<double> LeftOutMeans() const;

  double error_size() const;  // s
  double noise() const;       // n

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace trainfare::calibrate
