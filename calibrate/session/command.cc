#include "calibrate/session/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <ostream>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "calibrate/fit/added_runs.h"
#include "calibrate/fit/fit_folders.h"
#include "calibrate/fit/prior_fit.h"
#include "calibrate/fit/rank_fit.h"
#include "calibrate/fit/replacement.h"
#include "calibrate/records/import/observations.h"
#include "calibrate/session/machine.h"
#include "calibrate/session/output_lock.h"
#include "calibrate/session/progress_log.h"
#include "calibrate/session/session.h"
#include "hardware/files/date.h"
#include "hardware/files/held_signals.h"
#include "hardware/files/unit_text.h"
#include "hardware/models/device_models.h"
#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;

using model::InputError;

// Lower-case letters, digits and single underscores: a file name.
std::string Slug(std::string_view text) {
  std::string slug;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    if (letter || digit) {
      slug += letter ? static_cast<char>(c | 0x20) : c;
    } else if (!slug.empty() && slug.back() != '_') {
      slug += '_';
    }
  }
  while (!slug.empty() && slug.back() == '_') slug.pop_back();
  return slug;
}

std::string FitPath(const hardware::Device& device,
                    const CalibrateOptions& options) {
  if (!options.output.empty()) return options.output;
  const std::string stem =
      hardware::KindOf(device).is_host
          ? fmt::format("{}_{}", device.name, Slug(device.reported_name))
          : device.name;
  return (fs::path(UserFitDirectory()) / (stem + ".yaml")).string();
}

bool IsExecutableFile(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) &&
         ::access(path.c_str(), X_OK) == 0;
}

// The one device that the measurements are of.
const hardware::Device& OnlyDevice(const ObservationFiles& files) {
  std::set<std::string> names;
  for (const Observation& observation : files.observations) {
    names.insert(observation.device);
  }
  for (const KernelObservation& kernel : files.kernels) {
    names.insert(kernel.device);
  }
  for (const EngineProfile& profile : files.profiles) {
    names.insert(profile.device);
  }
  if (names.size() == 1) {
    const std::string& name = *names.begin();
    const hardware::DeviceCatalog& catalog = hardware::DeviceCatalog::Shipped();
    if (const hardware::Device* found = catalog.TryFind(name)) return *found;
    const hardware::Device& host = catalog.Find("cpu");
    if (IsDevice(host, name)) return host;
    std::vector<std::string_view> known;
    for (const hardware::Device& one : catalog.devices()) {
      known.emplace_back(one.name);
    }
    throw InputError(fmt::format(
        "the measurements are of \"{}\", which no device file names{}; write a "
        "name of `trainfare list devices` in its place",
        name,
        model::DidYouMean(name, known)));
  }
  if (names.empty()) {
    throw InputError(fmt::format(
        "expected measurements of steps, operations or engines, got none{}",
        files.memory.empty()
            ? ""
            : fmt::format(": {} of memory, which no fit takes",
                          hardware::Plural(std::ssize(files.memory), "row"))));
  }
  throw InputError(
      fmt::format("the measurements are of several devices; choose one with "
                  "--device: {}",
                  model::JoinNames(model::NameViews(names))));
}

// The user's own or the shipped one, else what is believed of the device.
Fit FitAtHand(const hardware::Device& device) {
  const std::vector<Fit> fits = LoadFitsOf(device.name).fits;
  const Fit* fit = FitFor(device, fits);
  return fit != nullptr ? *fit : PriorFit(device);
}

// The fit at hand with the steps of the files, which are all that it takes.
MadeFit Added(const hardware::Device& device, const ObservationFiles& files) {
  AddedFit added = AddRuns(device, FitAtHand(device), files.observations);
  const int64_t others = std::ssize(files.kernels) + std::ssize(files.profiles);
  if (others > 0) added.left_out[kNoWholeStep] += others;
  return {std::move(added.fit), {}, std::move(added.left_out)};
}

CalibrateResult FitFiles(const CalibrateOptions& options, std::ostream& log) {
  internal::ProgressLog progress(options.progress, log);
  std::optional<RunContext> run;
  if (options.workload) {
    // Without a name the one that OnlyDevice() finds: the processor here.
    run = RunContext{*options.workload,
                     options.device.empty() ? "cpu" : options.device};
  }
  ObservationFiles files = ReadObservations(options.from, run);
  for (const std::string& note : files.notes) progress.Note(note);
  const hardware::Device& device =
      options.device.empty()
          ? OnlyDevice(files)
          : hardware::DeviceCatalog::Shipped().Find(options.device);
  const std::string path = FitPath(device, options);
  RequireFitWritable(options, path);
  FitOptions of_fit;
  of_fit.progress = &progress.line();
  MadeFit made;
  if (!options.add) made = MakeFit(device, files, of_fit);
  progress.line().End();
  for (const std::string& note : made.notes) progress.Note(note);
  // From here on what stands there is read and replaced, in a moment.
  const hardware::HeldSignals held;
  const internal::OutputLock lock(path);
  if (options.add) made = Added(device, files);
  Fit& fit = made.fit;
  fit.name = fs::path(path).stem().string();
  fit.provenance.host = files.host;
  fit.provenance.software = files.software;
  fit.provenance.date = hardware::TimeText(hardware::Now());
  const Placed placed = PlaceFit(
      fit,
      path,
      options.force || options.add ? Replace::kAlways : Replace::kIfNotWorse,
      /*provisional=*/false);
  if (!placed.note.empty()) progress.Warn(placed.note);
  CalibrateResult result;
  result.left_out = std::move(made.left_out);
  std::copy_if(
      files.observations.begin(),
      files.observations.end(),
      std::back_inserter(result.observations),
      [&](const Observation& o) { return IsDevice(device, o.device); });
  result.fit_path = placed.path;
  if (!placed.in_place) result.kept = placed.note;
  result.fit = std::move(fit);
  return result;
}

}  // namespace

std::string FindTrainer() {
  constexpr std::string_view kName = "trainfare-trainer";
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here writes the environment.
  const char* chosen = std::getenv("TRAINFARE_TRAINER");
  // ON and OFF are words of the set-up, not paths.
  if (chosen != nullptr &&
      std::string_view(chosen).find('/') != std::string_view::npos) {
    if (IsExecutableFile(chosen)) return chosen;
    throw InputError(fmt::format(
        "TRAINFARE_TRAINER: expected a program, got \"{}\"", chosen));
  }
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error && IsExecutableFile(self.parent_path() / kName)) {
    return (self.parent_path() / kName).string();
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): as above.
  const char* path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "" : path;
  while (!folders.empty()) {
    const size_t end = folders.find(':');
    const std::string_view folder = folders.substr(0, end);
    if (!folder.empty() && IsExecutableFile(fs::path(folder) / kName)) {
      return (fs::path(folder) / kName).string();
    }
    folders.remove_prefix(end == std::string_view::npos ? folders.size()
                                                        : end + 1);
  }
  throw InputError(
      "no trainfare-trainer beside this program or on PATH; build it, or fit "
      "measurements made elsewhere: calibrate --from FILE");
}

CalibrateResult Calibrate(const CalibrateOptions& options, std::ostream& log) {
  if (!options.from.empty()) return FitFiles(options, log);
  const double budget_s = model::ToSeconds(options.budget);
  if (!std::isfinite(budget_s) || budget_s <= 0.0) {
    throw InputError(
        fmt::format("budget: expected a time above 0, got {} s", budget_s));
  }
  // Nobody needs to be asked for a processor.
  const bool named_processor =
      !options.device.empty() &&
      hardware::KindOf(hardware::DeviceCatalog::Shipped().Find(options.device))
          .is_host;
  const std::string trainer = FindTrainer();
  const CalibrationTarget target = TargetOf(
      named_processor ? MachineDevices() : ProbeMachine(trainer), options);
  return CalibrateHere(
      target, trainer, options, FitPath(target.device, options), log);
}

}  // namespace trainfare::calibrate
