#include "scenarios/job/transfer.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "calibrate/fit/predictor.h"
#include "calibrate/fit/prior_fit.h"
#include "calibrate/fit/step_model.h"
#include "hardware/catalog/device.h"
#include "hardware/models/device_models.h"
#include "model/error.h"

namespace trainfare::scenarios {

namespace {

// A parameter as a fit of another device found it, in the scale of the fit.
struct Found {
  double position = 0;
  double error = 0;     // its standard deviation
  bool family = false;  // of the device's own architecture
  std::string_view architecture;
};

// How far devices differ: between architectures, and within one.
struct Spreads {
  double families = 0;
  double devices = 0;
};

struct Shrunk {
  double position = 0;
  double sigma = 0;
};

// y_j = x + m + f_architecture + d_j + error_j, with m, f and d normal around
// 0: what it says of one more device, and the log of its likelihood.
class Hierarchy {
 public:
  Hierarchy(const std::vector<Found>& found,
            double prior,
            double prior_sigma,
            const Spreads& spreads)
      : found_(found), variance_(prior_sigma * prior_sigma), spreads_(spreads) {
    const auto count = static_cast<Eigen::Index>(found.size());
    Eigen::MatrixXd covariance(count, count);
    offsets_.resize(count);
    for (Eigen::Index j = 0; j < count; ++j) {
      const Found& a = found[static_cast<size_t>(j)];
      offsets_[j] = a.position - prior;
      for (Eigen::Index k = 0; k < count; ++k) {
        const Found& b = found[static_cast<size_t>(k)];
        covariance(j, k) =
            Shared(a.architecture == b.architecture) +
            (j == k ? spreads.devices * spreads.devices + a.error * a.error
                    : 0.0);
      }
    }
    factor_.compute(covariance);
    solved_ = factor_.solve(offsets_);
  }

  double LogLikelihood() const {
    const Eigen::VectorXd diagonal =
        factor_.matrixL().toDenseMatrix().diagonal();
    return -0.5 * offsets_.dot(solved_) - diagonal.array().log().sum();
  }

  Shrunk OneMore(double prior) const {
    Eigen::VectorXd with(offsets_.size());
    for (Eigen::Index j = 0; j < with.size(); ++j) {
      with[j] = Shared(found_[static_cast<size_t>(j)].family);
    }
    const double known = with.dot(factor_.solve(with));
    const double all = Shared(true) + spreads_.devices * spreads_.devices;
    return {prior + with.dot(solved_), std::sqrt(std::max(all - known, 0.0))};
  }

 private:
  double Shared(bool same_family) const {
    return variance_ +
           (same_family ? spreads_.families * spreads_.families : 0.0);
  }

  const std::vector<Found>& found_;
  double variance_;
  Spreads spreads_;
  Eigen::VectorXd offsets_;
  Eigen::VectorXd solved_;
  Eigen::LLT<Eigen::MatrixXd> factor_;
};

// Candidates of a spread, over the prior's: a grid is as good as any solver in
// two dimensions of which so few devices tell.
constexpr auto kSpreadGrid =
    std::to_array({0.05, 0.1, 0.2, 0.3, 0.45, 0.7, 1.0, 1.5});
// Widths of the half-normal priors of both spreads, over the prior's of the
// parameter.
constexpr double kSpreadWidth = 1.0;

// The likeliest pair of spreads decides.
Shrunk Shrink(const std::vector<Found>& found, double prior, double sigma) {
  std::optional<Shrunk> best;
  double most = 0;
  for (const double families : kSpreadGrid) {
    for (const double devices : kSpreadGrid) {
      const Hierarchy hierarchy(
          found, prior, sigma, {families * sigma, devices * sigma});
      const double likelihood = hierarchy.LogLikelihood() -
                                0.5 *
                                    (families * families + devices * devices) /
                                    (kSpreadWidth * kSpreadWidth);
      if (best && likelihood <= most) continue;
      most = likelihood;
      best = hierarchy.OneMore(prior);
    }
  }
  return *best;
}

std::string_view ArchitectureOf(const calibrate::Fit& fit) {
  return hardware::DeviceCatalog::Shipped().Find(fit.device).architecture;
}

}  // namespace

calibrate::Fit TransferFit(const hardware::Device& device,
                           const std::vector<const calibrate::Fit*>& others) {
  calibrate::Fit fit = calibrate::PriorFit(device);
  fit.provenance.source = "transfer";
  // The scatter of log(time) that no parameter explains, on a device nobody
  // measured.
  fit.residual_scatter = calibrate::kDatasheetScatter;
  const auto infos = hardware::ParametersOf(device.kind);
  const size_t count = infos.size();
  std::vector<const calibrate::Fit*> alike;  // of one kind with it
  std::set<std::string> sources;
  for (const calibrate::Fit* other : others) {
    ENSURE(other->device != device.name, "a device tells nothing of itself");
    if (other->kind != device.kind) continue;
    alike.push_back(other);
    sources.insert(other->provenance.sources.begin(),
                   other->provenance.sources.end());
  }
  fit.degrees_of_freedom = static_cast<int64_t>(alike.size());
  fit.provenance.sources.assign(sources.begin(), sources.end());
  for (size_t i = 0; i < count; ++i) {
    // What is known of the device itself comes before what others are like.
    if (fit.parameters[i].prior != infos[i].prior) continue;
    std::vector<Found> found;
    for (const calibrate::Fit* other : alike) {
      if (!other->parameters[i].determined) continue;
      const std::string_view architecture = ArchitectureOf(*other);
      found.push_back(
          {calibrate::ToFitScale(infos[i], other->parameters[i].value),
           other->parameters[i].standard_error,
           architecture == device.architecture,
           architecture});
    }
    if (found.size() < 2) continue;
    const Shrunk shrunk =
        Shrink(found,
               calibrate::ToFitScale(infos[i], infos[i].prior),
               infos[i].prior_sigma);
    fit.parameters[i].value =
        calibrate::FromFitScale(infos[i], shrunk.position);
    fit.parameters[i].standard_error = shrunk.sigma;
    fit.parameters[i].determined = true;
    fit.covariance[i * count + i] = shrunk.sigma * shrunk.sigma;
  }
  return fit;
}

}  // namespace trainfare::scenarios
