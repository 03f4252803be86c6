#pragma once

// A few free parameters with priors, fitted to a handful of figures of any
// kind. Device models have calibrate::FitDevice; this is for the small
// formulas around them: a ring, a power, a pipeline. Internal to scenarios/.

#include <functional>
#include <vector>

namespace trainfare::scenarios {

// Positive; fitted as a logarithm, the prior normal around that of `prior`.
struct FreeParameter {
  double prior = 1;
  double sigma = 0.5;  // of log(value)
  // Where the search starts, in sigmas from the prior: a term under a maximum
  // is not seen from the other side of it.
  double start = 0;
};

// Errors of the figures at some parameters, each over what it may be off by.
using ResidualsOf =
    std::function<std::vector<double>(const std::vector<double>&)>;

// Smallest sum of squares of residuals and of distances from the priors over
// their sigmas (Levenberg-Marquardt, derivatives by central differences).
// Check: tests/scenarios/published/published_validation_test.cc.
// `cost`, where given, becomes that sum.
std::vector<double> FitToPriors(const std::vector<FreeParameter>& parameters,
                                const ResidualsOf& residuals,
                                double* cost = nullptr);

}  // namespace trainfare::scenarios
