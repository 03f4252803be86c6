#pragma once

// A device and its fit as one thing that answers for workloads: time with an
// interval and a grade.

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "calibrate/fit/added_runs.h"
#include "calibrate/fit/discrepancy.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/joined_devices.h"
#include "calibrate/fit/step_model.h"
#include "hardware/catalog/device.h"
#include "hardware/models/step_time.h"
#include "model/kernels.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// How far a prediction stands from what was measured.
enum class Grade { kMeasured, kInterpolated, kExtrapolated, kDatasheetOnly };
std::string_view ToText(Grade grade);

struct StepPrediction {
  hardware::StepTime<double> time;
  // Standard deviation of log(step time): parameters and residual scatter.
  double log_sigma = 0;
  // The same of its parts, each by its own terms.
  double forward_log_sigma = 0;
  double backward_log_sigma = 0;
  double optimizer_log_sigma = 0;
  // Multiply the time by these for the 80 % interval.
  double low_factor = 1;
  double high_factor = 1;
  double width_95 = 1;  // of the 95 % interval in 80 % ones, in the logarithm
  Grade grade = Grade::kDatasheetOnly;
  int64_t figures = 0;  // that the fit rests on; 0: no fit
  // Whether runs of the question's source are among them, and what is in
  // log_sigma where not.
  bool source_seen = false;
  double source_sigma = 0;
};

// So few figures behind a fit are said wherever its grade is.
inline constexpr int64_t kFewFigures = 3;
// "interpolated", or "extrapolated from 2 figures".
std::string GradeText(Grade grade, int64_t figures);

// The words by which a fit knows a run: where nothing is shared, how many
// devices it went over is beside them.
std::string WordsOfRun(const model::Workload& workload);

class Predictor {
 public:
  // Without a fit the datasheet and the priors of the kind answer.
  explicit Predictor(hardware::Device device);
  // Throws InputError when the fit is of another device.
  Predictor(hardware::Device device, Fit fit);

  // The step on a device in `source`'s hosts, by its software. Throws
  // InputError when the device cannot run the workload's precision, or the
  // workload is not valid.
  StepPrediction Predict(const model::Workload& workload,
                         std::string_view source = kOwnSource) const;

  // The time alone, several times cheaper. Throws as Predict.
  hardware::StepTime<double> Time(const model::Workload& workload) const;
  // The same to the last bit as in Predict, for sums with times from there.
  hardware::StepTime<double> PredictTime(const model::Workload& workload) const;

  // The time of one kernel of a step, by the formula alone: what runs nearby
  // say of a whole step cannot be laid on one kernel. Throws InputError where
  // the device has no kernels by themselves or not the precision.
  model::Seconds<> KernelTime(const model::Workload& workload,
                              model::Phase phase,
                              const model::Kernel& kernel) const;
  // The same of one that is timed by itself (Fit::alone).
  model::Seconds<> KernelTimeAlone(const model::Workload& workload,
                                   model::Phase phase,
                                   const model::Kernel& kernel) const;

  // How far a step of `devices` alike ones stands from what was measured, where
  // the exchange between them is in the step of one: measured is that workload
  // over so many, nothing of it assumed; interpolated lies within the counts of
  // the fit's runs. Runs of which the fit does not say the count were of one.
  Grade GradeOver(const model::Workload& workload, int64_t devices) const;
  // Whether the fit's runs went over several devices, so many among them: then
  // their exchange is in the step of one.
  bool HasExchangeOf(int64_t devices) const;

  // Whether its fit has runs of that source.
  bool HasSource(std::string_view source) const;
  // What a question's source adds to the standard deviation of log(time).
  double SourceSigma(std::string_view source) const;

  // What joins several devices whose links nobody timed, how far a step over
  // them stands from what was measured, and what its formula leaves open: the
  // scatter of such runs of the fit, `unmeasured` where there are none.
  const JoinedNumbers& joined() const { return joined_; }
  Grade GradeOverRanks(const model::Workload& workload,
                       int64_t ranks,
                       int64_t hosts) const;
  double RanksScatter(double unmeasured) const;
  // What the interval of such a step is multiplied by, by its grade, and what a
  // 95 % interval is of an 80 % one where errors have heavy tails: both in the
  // logarithm.
  double WidthOverRanks(Grade over_ranks) const;
  double HeavyWidth95() const;
  // What runs that were added leave of what is open at a step, as a share of
  // its standard deviation; 1: there are none.
  double OpenShare(const model::Workload& workload) const;

  const hardware::Device& device() const { return device_; }
  const Fit& fit() const { return fit_; }
  // The parameters' values, in order.
  const std::vector<double>& values() const { return values_; }

 private:
  void AddJoined(const FittedRun& run);
  const Discrepancy& DiscrepancyOf(const model::Workload& workload) const;
  // By the workload alone, on whatever number of devices; never measured.
  Grade ShapeGrade(const model::Workload& workload) const;
  // The same over so many, given that.
  Grade GradeOver(Grade of_shape,
                  const model::Workload& workload,
                  int64_t devices) const;
  // Whether the fit's runs were of this very workload over so many devices,
  // and surely so.
  bool IsMeasured(const model::Workload& workload, int64_t devices) const;
  // Whether steps are behind the answers: not of a datasheet, nor of a fit to
  // kernels.
  bool KnowsSteps() const { return fitted_ && fit_.range.max_tokens > 0; }
  // What an interval of training is multiplied by, in the logarithm.
  double WidthAt(Grade of_shape, bool source_seen) const;
  // What a 95 % interval is of an 80 % one, in the logarithm.
  double Width95(Grade of_shape) const;
  // What the runs of the fit say of a workload.
  struct Footing {
    Grade grade = Grade::kDatasheetOnly;  // of its shape
    double scatter = 0;   // what the formula leaves unexplained of the step
    double unseen = 0;    // how little the runs say of that, of its variance
    double distance = 0;  // what standing beyond them adds to all of that
  };
  // Standard deviation of the log of a part of the step, or of all of it.
  double LogSigma(const LogTimes& times,
                  Quantity part,
                  const Footing& footing) const;
  // What the formula leaves unexplained of a part.
  double PartScatter(const LogTimes& times,
                     Quantity part,
                     double step_scatter) const;
  // Throws InputError for a time that nothing takes.
  void RequirePlausible(const model::Workload& workload,
                        model::Seconds<> time,
                        double log_sigma) const;
  // Those of a workload that the device can be asked about; throws InputError
  // where it cannot.
  model::KernelList KernelsOf(const model::Workload& workload) const;
  // The formula's time, divided by what the fit's runs say that it gets wrong.
  hardware::StepTime<double> Corrected(const model::Workload& workload,
                                       const model::KernelList& kernels,
                                       double log_error) const;

  hardware::Device device_;
  Fit fit_;
  bool fitted_;
  std::vector<double> values_;  // of the parameters
  JoinedNumbers joined_;
  Discrepancy discrepancy_;  // of the formula at the fit's runs
  Discrepancy over_ranks_;   // the same for steps over ranks
  AddedRuns added_;          // what was measured since
  double quantile_ = 0;      // half an 80 % interval, in log_sigma
  double width_95_ = 1;      // of a 95 % interval in those, by the runs' number
  // What every prediction asks of the fit's runs. Steps over so many devices,
  // of which it is stated what they were:
  struct MeasuredStep {
    std::string words;
    int64_t devices = 1;
    std::optional<Place> place;
  };
  std::vector<MeasuredStep> measured_;
  // Where they stand, of those of which it is known.
  std::vector<ErrorPoint> run_points_;
  // Residuals of the parts that were measured by themselves.
  struct Residuals {
    double squares = 0;
    double count = 0;
  };
  std::array<Residuals, kQuantities> residuals_{};
  // The fewest devices of these runs; 0: there are none.
  int64_t least_devices_ = 0;
  int64_t most_devices_ = 0;
  // The same of runs over ranks that are joined by links nobody timed; ranks
  // and hosts of each of which it is stated what it was.
  std::set<std::tuple<std::string, int64_t, int64_t>> measured_joined_;
  int64_t least_joined_ = 0;
  int64_t most_joined_ = 0;
  double joined_squares_ = 0;  // of log(model / measured)
  int64_t joined_runs_ = 0;
};

}  // namespace trainfare::calibrate
