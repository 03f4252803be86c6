#pragma once

// `trainfare calibrate --launch`: a script that measures a list of instances,
// each on its own machine, and collects the records.

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/session/command.h"
#include "model/workload.h"

namespace trainfare::calibrate {

enum class Launcher {
  kTorchrun,  // to be run on the instance itself
  kSlurm,     // a job an instance
  kSkyPilot,  // a cluster an instance, ended behind its run
};
Launcher LauncherFromText(std::string_view text);  // throws InputError
std::vector<std::string_view> LauncherWords();

struct LaunchOptions {
  Launcher launcher = Launcher::kTorchrun;
  // Names of the instance catalog. Several devices: also all-reduces, and the
  // runs over all of them.
  std::vector<std::string> instances;
  std::vector<std::string> models;  // presets; empty: BERT-base
  std::vector<model::Precision> precisions = {model::Precision::kFp32};
};

// A bash script. Throws InputError for an unknown instance or model, and for
// runs that the trainer would refuse on an instance.
std::string LaunchScript(const LaunchOptions& options);
// To `path`, written beside it and renamed; to `out` where it is empty.
void WriteLaunchScript(const LaunchOptions& options,
                       const std::string& path,
                       std::ostream& out);

// Whether a file begins as such a script, or as a plan of runs.
bool IsLaunchScript(std::string_view text);
bool IsPlan(std::string_view text);

// The runs of a calibration of `options.device`, or this machine's processor,
// in its budget, by what its datasheet expects: a request of the trainer a
// line.
std::string PlanText(const CalibrateOptions& options);
// The same as a plan for a machine that has the trainer alone; the records go
// to `calibrate --from`.
void WritePlan(const CalibrateOptions& options, const std::string& path);

}  // namespace trainfare::calibrate
