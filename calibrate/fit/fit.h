#pragma once

// A fit: parameters of one device model with how sure we are of them, as it
// stands in calibrate/fits/*.yaml, and the function that makes one from
// measurements.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/fit/discrepancy.h"
#include "calibrate/fit/fitted_run.h"
#include "calibrate/fit/posterior.h"
#include "calibrate/fit/power.h"
#include "calibrate/fit/rank_group.h"
#include "calibrate/records/observation.h"
#include "hardware/catalog/device.h"

namespace trainfare::calibrate {

struct FittedParameter {
  std::string name;
  double value = 0;
  double standard_error = 0;  // in the transformed scale (relative for logs)
  double prior = 0;
  // Whether the data narrowed it; else it stands at its prior.
  bool determined = false;
  std::string determined_by;  // the run that would, when it is not
};

struct Provenance {
  std::string source;  // "trainer" or the files fitted to
  // Who measured, as observations name them; sorted.
  std::vector<std::string> sources;
  std::string host;
  std::string software;
  std::string date;  // ISO 8601, UTC
  int64_t runs = 0;
  int64_t observations = 0;  // figures of these runs
  int64_t kernels = 0;       // operations timed by themselves, besides
};

// Range of what was measured: inside it a prediction interpolates.
struct FittedRange {
  int64_t min_tokens = 0;
  int64_t max_tokens = 0;
  int64_t min_sequence_length = 0;
  int64_t max_sequence_length = 0;
  int64_t min_parameters = 0;  // of the models
  int64_t max_parameters = 0;
  // Precision, stack and kind of work measured, as SettingsOf writes them.
  std::vector<std::string> settings;
};

// What these workloads span.
FittedRange RangeOver(const std::vector<const model::Workload*>& workloads);

struct Fit {
  std::string name;           // file stem
  std::string device;         // catalog name ("cpu" for a host processor)
  std::string reported_name;  // of the device measured, exact
  hardware::DeviceKind kind{};
  std::vector<FittedParameter> parameters;  // order of ParametersOf(kind)
  // Covariance of the transformed parameters, row by row.
  std::vector<double> covariance;
  double residual_scatter = 0;  // standard deviation of log(model / measured)
  int64_t degrees_of_freedom = 0;
  double in_sample_error = 0;      // median absolute relative error
  double leave_one_out_error = 0;  // corrected, each run left out in turn
  // The same of the kernels by themselves, uncorrected; 0: there are none.
  double kernel_in_sample_error = 0;
  double kernel_leave_one_out_error = 0;
  FittedRange range;
  std::vector<FittedRun> runs;
  std::vector<RankFit> ranks;  // groups of ranks, by how many
  // What runs over several devices whose links nobody timed say beside that
  // (calibrate/fit/joined_devices.h); empty: there are none.
  std::vector<FittedParameter> joined;
  std::optional<FittedPower> power;  // absent: of no run is it known
  Provenance provenance;
  // Dimensions the device was found to have (a host's cores, clock).
  std::optional<hardware::Device> measured_device;

  std::vector<double> Values() const;
  // The runs of whole steps where there are any: a step is what gets predicted,
  // and its parts add up to it.
  std::vector<const FittedRun*> ChiefRuns() const;
  // What the formula gets wrong by the runs of whole steps (of any figure
  // where there are none): by all, and by those of one device where there are
  // any.
  Discrepancy ModelDiscrepancy() const;
  Discrepancy DiscrepancyOfOne() const;
};

struct FitOptions {
  // Also what a fit without each run makes of it.
  bool leave_one_out = true;
  // Above this leverage a run that is left out is refitted (posterior.h); 0:
  // each is.
  double largest_leverage = kLargestLeverage;
  // Also name a run that would determine each parameter that is not: where the
  // fit is one of many on the way to an answer, nobody reads that.
  bool name_runs = true;
  // Scale of the robust (Cauchy) loss, in standard deviations.
  double robust_scale = 2.0;
  // Model error assumed for an observation besides its noise.
  double model_sigma = 0.05;
  // The same for a kernel by itself, before its residuals tell: errors that a
  // step averages over hundreds of kernels are all in one here.
  double kernel_sigma = 0.25;
};

// The scatter of a handful of residuals says little: FitOptions::model_sigma
// counts as this many more degrees of freedom.
inline constexpr int64_t kScatterPriorWeight = 3;
// Standard deviation of residuals with this sum of squares and these degrees of
// freedom, and of kScatterPriorWeight more that are as large as `assumed`.
double ScatterWithPrior(double squares, double freedom, double assumed);

// Fits the model of `device` to what was measured on it. Throws InputError
// when there is no observation, or none of this device.
Fit FitDevice(const hardware::Device& device,
              const std::vector<Observation>& observations,
              const FitOptions& options = {});
// And to kernels by themselves, which may be all that there is: then the fit
// knows no step, so that its answers are extrapolated, as widely as a
// datasheet's.
Fit FitDevice(const hardware::Device& device,
              const std::vector<Observation>& observations,
              const std::vector<KernelObservation>& kernels,
              const FitOptions& options = {});

// The prior itself as a fit without observations: datasheet only.
Fit PriorFit(const hardware::Device& device);

// One line for each parameter that the data does not determine: its name, the
// run that would, and that it stands at its prior.
std::vector<std::string> Refusals(const Fit& fit);

// Reads and writes calibrate/fits/*.yaml; written beside and renamed. What is
// read is finite and within bounds, its covariance is one. Nothing is written
// that could not be read again. Both throw InputError.
Fit LoadFit(const std::string& path);
void SaveFit(const Fit& fit, const std::string& path);

// The fits in the folders at hand.
struct LoadedFits {
  std::vector<Fit> fits;
  // Why a file is not among them, a line each: one that is not right stands in
  // the way of no other.
  std::vector<std::string> left_out;
};
// Shipped fits and those of the user's own calibrations (which come first).
LoadedFits LoadFits();
// A file in these folders, and the catalog's name of the device that it says it
// is of; empty where it says none.
struct FitFile {
  std::string path;
  std::string device;
};
std::vector<FitFile> ListFitFiles();
// Those of one device, out of `files`; reads none that names another.
LoadedFits LoadFitsOf(std::string_view device,
                      const std::vector<FitFile>& files = ListFitFiles());
std::string UserFitDirectory();  // $TRAINFARE_FITS, else below XDG_DATA_HOME

}  // namespace trainfare::calibrate
