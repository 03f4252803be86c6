#pragma once

// What a fit is made to: the figures of a device with the formulas that explain
// them, as one problem. For the .cc files of this folder.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "calibrate/fit/fit_options.h"
#include "calibrate/fit/own_figures.h"
#include "calibrate/fit/problem.h"
#include "calibrate/fit/step_model.h"
#include "calibrate/records/engine_profile.h"
#include "calibrate/records/observation.h"
#include "hardware/catalog/device.h"
#include "hardware/catalog/parameter.h"
#include "model/units.h"
#include "model/workload.h"

namespace trainfare::calibrate {

// The times of one workload's step, on one device or on several, or of one
// operation by itself.
using TimeModel = std::variant<StepModel, KernelModel, JoinedModel>;

// The workload of a step; nullptr: it is an operation by itself.
const model::Workload* WorkloadOf(const TimeModel& model);
// log(time) at parameters in the scale of the fit, without gradients.
LogTimes EvaluateValues(const TimeModel& model,
                        std::span<const double> positions);

struct Datum {
  size_t model = 0;     // index of its TimeModel
  size_t run = 0;       // index of its run's label
  int64_t devices = 1;  // that the run went over
  int64_t hosts = 1;
  int64_t ranks = 1;  // that exchange beside the step of one
  bool assumed = false;
  Quantity quantity = Quantity::kStep;
  model::Seconds<> measured;
  double log_measured = 0;
  double noise = 0;  // of the measurement, relative
  double sigma = 0;  // noise and model error together

  bool kernel() const { return quantity == Quantity::kKernel; }
};

// What the engines of a run were seen to do besides its time.
struct SeenEngines {
  EngineProfile profile;
  size_t run = 0;
};

// Everything that all fits to (parts of) the same observations share.
struct FitData {
  // Those of the device, then, where there are kernels by themselves, the one
  // that has a value of its own there (Fit::alone). Then, where
  // there are runs over several devices, those of what joins them.
  std::vector<hardware::ParameterInfo> infos;
  size_t of_device = 0;
  size_t of_joined = 0;       // the first of them
  std::vector<double> prior;  // in the scale of the fit, as all positions
  std::vector<TimeModel> models;
  std::vector<std::string> words;  // of each, as Describe() has them
  std::vector<Datum> data;
  std::vector<SeenEngines> engines;
  std::vector<std::string> runs;
};

// Errors of the formula itself, relative: of steps of one device and their
// parts, of steps over several, and of kernels by themselves.
struct ModelErrors {
  double step = 0;
  double joined = 0;
  double kernel = 0;
};

ModelErrors AssumedErrors(const FitOptions& options);
// Noise of a figure and the formula's error together.
double Sigma(const Datum& datum, const ModelErrors& errors);
// What the residuals say of them: standard deviations of log(model / measured),
// robustly.
ModelErrors ErrorsAt(const FitData& data,
                     const std::vector<double>& positions,
                     const FitOptions& options);

// Throws InputError for a time that is none, and for a part of a step that has
// none.
FitData FitDataOf(const hardware::Device& device,
                  const OwnFigures& own,
                  const FitOptions& options);

// Which datum each of a problem's first residuals is of; those of engines are
// behind them.
std::vector<size_t> OrderOfResiduals(const FitData& data);

// `device` and `data` must outlive the problem; its sigmas may change meanwhile.
FitProblem ProblemOf(const hardware::Device& device,
                     const FitData& data,
                     double robust_scale);

}  // namespace trainfare::calibrate
