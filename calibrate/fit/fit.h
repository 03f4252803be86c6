#pragma once

// A fit: parameters of one device model with how sure we are of them. Made by
// device_fit.h, kept by fit_file.h.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/fit/discrepancy.h"
#include "calibrate/fit/fitted_parameter.h"
#include "calibrate/fit/fitted_power.h"
#include "calibrate/fit/fitted_run.h"
#include "calibrate/fit/rank_group.h"
#include "calibrate/records/observation.h"
#include "hardware/catalog/device.h"

namespace trainfare::calibrate {

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
  double in_sample_error = 0;  // median absolute relative error
  // Corrected, each run left out in turn; absent: none was. Reports have
  // LeftOutError().
  std::optional<double> leave_one_out_error;
  // The same of the kernels by themselves, uncorrected; 0: there are none.
  double kernel_in_sample_error = 0;
  std::optional<double> kernel_leave_one_out_error;
  FittedRange range;
  std::vector<FittedProfile> profiles;
  std::vector<FittedRun> runs;
  std::vector<RankFit> ranks;  // groups of ranks, by how many
  // Of kernels by themselves, the parameter that has another value there
  // (hardware::Kind::parameter_alone); absent: the fit has none.
  std::optional<FittedParameter> alone;
  // What runs over several devices whose links nobody timed say beside that
  // (calibrate/fit/joined_devices.h); empty: there are none.
  std::vector<FittedParameter> joined;
  std::optional<FittedPower> power;  // absent: of no run is it known
  Provenance provenance;
  // Dimensions the device was found to have (a host's cores, clock).
  std::optional<hardware::Device> measured_device;

  std::vector<double> Values() const;
  // nullopt: not known, as of one run alone, without which nothing is left that
  // would predict it. Files of such have 0.
  std::optional<double> LeftOutError() const;
  // The runs of whole steps where there are any, but for added ones: a step is
  // what gets predicted, and its parts add up to it.
  std::vector<const FittedRun*> ChiefRuns() const;
  // What the formula gets wrong by the runs of whole steps (of any figure
  // where there are none): by all, and by those of one device alone, where
  // there are others beside them.
  Discrepancy ModelDiscrepancy() const;
  std::optional<Discrepancy> DiscrepancyOfOne() const;
};

}  // namespace trainfare::calibrate
