#include "calibrate/command.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "calibrate/disturbance.h"
#include "calibrate/import/observations.h"
#include "calibrate/internal/files.h"
#include "calibrate/internal/trainer_process.h"
#include "calibrate/measurement.h"
#include "calibrate/plan.h"
#include "calibrate/rank_fit.h"
#include "calibrate/step_model.h"
#include "hardware/device_models.h"
#include "hardware/unit_text.h"
#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::calibrate {
namespace {

namespace fs = std::filesystem;

using Clock = std::chrono::steady_clock;
using internal::SignalGuard;
using internal::TrainerProcess;
using model::InputError;

// A run may take this share of the budget at most, so that one wrong guess
// does not use it up.
constexpr double kLongestShare = 0.2;
// A run is cut short, after one timed step at least, once it takes this many
// times what was expected, and more than a moment.
constexpr double kOverrun = 3.0;
constexpr double kLeastRunSeconds = 2.0;
// How long past its budget the trainer may stay silent.
constexpr double kPatienceSeconds = 60.0;
// Load a core from which on others are in the way.
constexpr double kBusyShare = 0.5;
// For the step in progress when interrupted.
constexpr double kGraceSeconds = 10.0;

std::string Now() {
  const auto now =
      std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

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
      device.kind == hardware::DeviceKind::kCpu
          ? fmt::format("{}_{}", device.name, Slug(device.reported_name))
          : device.name;
  return (fs::path(UserFitDirectory()) / (stem + ".yaml")).string();
}

// Before minutes are spent on what could not be kept.
void RequireWritable(const std::string& path) {
  internal::MakeFolderOf(path);
  const fs::path folder = fs::path(path).parent_path();
  const char* where = folder.empty() ? "." : folder.c_str();
  std::error_code ignored;
  if (::access(where, W_OK) != 0) {
    throw InputError(
        fmt::format("{}: cannot be written: {}",
                    path,
                    std::error_code(errno, std::generic_category()).message()));
  }
  if (fs::is_directory(path, ignored)) {
    throw InputError(path + ": cannot be written: it is a folder");
  }
}

bool IsExecutableFile(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) &&
         ::access(path.c_str(), X_OK) == 0;
}

std::string RequestLine(const PlannedRun& run, double max_seconds) {
  const model::Workload& w = run.workload;
  const model::Architecture& a = w.architecture;
  nlohmann::ordered_json request;
  const auto preset = model::TryFindArchitecture(a.name);
  if (preset && *preset == a) {
    request["model"] = a.name;
  } else {
    request["model"] = {{"name", a.name},
                        {"family", model::ToText(a.family)},
                        {"layers", a.layers},
                        {"hidden", a.hidden},
                        {"heads", a.heads},
                        {"intermediate", a.intermediate},
                        {"vocabulary", a.vocabulary},
                        {"positions", a.positions},
                        {"position_offset", a.position_offset},
                        {"token_types", a.token_types},
                        {"pooler", a.pooler},
                        {"classifier_dense", a.classifier_dense},
                        {"head", model::ToText(a.head)},
                        {"labels", a.labels},
                        {"dropout", a.dropout}};
  }
  request["batch"] = w.batch;
  request["sequence_length"] = w.sequence_length;
  request["accumulation"] = w.accumulation;
  request["precision"] = model::ToText(w.precision);
  request["optimizer"] = {
      {"name", model::ToText(w.optimizer.kind)},
      {"implementation", model::ToText(w.optimizer.implementation)}};
  request["stack"] = model::ToText(w.stack.fusion);
  request["attention"] = model::ToText(w.stack.attention);
  request["steps"] = run.steps;
  request["warmup"] = run.warmup;
  request["max_seconds"] = max_seconds;
  return request.dump();
}

std::string RunWords(const model::Workload& workload) {
  return fmt::format("{} {}, batch {}, length {}",
                     workload.architecture.name,
                     model::ToText(workload.precision),
                     workload.batch,
                     workload.sequence_length);
}

// The records of a calibration, one line a finished run, each on the disk
// before the next is asked for.
class RecordFile {
 public:
  explicit RecordFile(std::string path) : path_(std::move(path)) {
    descriptor_ =
        ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor_ < 0) Fail(errno);
  }
  ~RecordFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  void Append(const std::string& line) {
    const off_t before = ::lseek(descriptor_, 0, SEEK_END);
    const std::string text = line + "\n";
    std::string_view left = text;
    while (!left.empty()) {
      const ssize_t written = ::write(descriptor_, left.data(), left.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        const int error = errno;
        // Half a line would make the whole file unreadable.
        if (before >= 0 && ::ftruncate(descriptor_, before) != 0) Fail(errno);
        Fail(error);
      }
      left.remove_prefix(static_cast<size_t>(written));
    }
    if (::fsync(descriptor_) != 0 && errno != EINVAL) Fail(errno);
  }

 private:
  [[noreturn]] void Fail(int error) const {
    throw InputError(
        fmt::format("{}: cannot be written: {}",
                    path_,
                    std::error_code(error, std::generic_category()).message()));
  }

  std::string path_;
  int descriptor_ = -1;
};

// Notes and progress, as lines or as one line that is redrawn.
class ProgressLog {
 public:
  ProgressLog(Progress style, std::ostream& log) : style_(style), log_(log) {}
  ~ProgressLog() { Clear(); }
  ProgressLog(const ProgressLog&) = delete;
  ProgressLog& operator=(const ProgressLog&) = delete;

  void Note(const std::string& text) {
    if (style_ == Progress::kNone) return;
    Clear();
    log_ << "calibrate: " << text << std::endl;
  }
  // What must be seen even without progress.
  void Warn(const std::string& text) {
    Clear();
    log_ << "calibrate: " << text << std::endl;
  }
  void Finished(const std::string& text) {
    if (style_ == Progress::kLines) Note(text);
  }
  void Redraw(double spent_s, double budget_s, const std::string& text) {
    if (style_ != Progress::kBar) return;
    constexpr int kWidth = 24;
    const double share = std::clamp(spent_s / budget_s, 0.0, 1.0);
    const int full = static_cast<int>(share * kWidth);
    std::string line = fmt::format("[{:#<{}}{:.<{}}] {:.0f} of {:.0f} s  {}",
                                   "",
                                   full,
                                   "",
                                   kWidth - full,
                                   spent_s,
                                   budget_s,
                                   text);
    constexpr size_t kMost = 79;
    if (line.size() > kMost) line.resize(kMost);
    log_ << '\r' << fmt::format("{:<{}}", line, drawn_) << std::flush;
    drawn_ = line.size();
  }

 private:
  void Clear() {
    if (drawn_ == 0) return;
    log_ << '\r' << std::string(drawn_, ' ') << '\r' << std::flush;
    drawn_ = 0;
  }

  Progress style_;
  std::ostream& log_;
  size_t drawn_ = 0;
};

double TimedSeconds(const MeasuredRun& run) {
  double sum = 0.0;
  for (const Sample& sample : run.samples) {
    sum += model::ToSeconds(sample.step);
  }
  return sum;
}

std::string Plural(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// One calibration of this machine, from the first request to the fit.
class Session {
 public:
  Session(const hardware::Device& device,
          const CalibrateOptions& options,
          std::string fit_path,
          std::ostream& log)
      : device_(device),
        options_(options),
        progress_(options.progress, log),
        fit_path_(std::move(fit_path)),
        budget_s_(model::ToSeconds(options.budget)),
        planner_(device, PlanFor(device, options)) {
    const fs::path stem = fs::path(fit_path_).replace_extension();
    partial_path_ = stem.string() + ".partial.jsonl";
    records_path_ = stem.string() + ".jsonl";
  }

  CalibrateResult Run() {
    RequireWritable(fit_path_);
    const std::string trainer = FindTrainer();
    // Before the trainer starts: a signal must never leave it behind.
    const SignalGuard signals;
    start_ = Clock::now();
    WarnIfBusy();
    Resume();
    RecordFile records(partial_path_);
    try {
      Measure(trainer, records);
    } catch (const InputError& error) {
      if (runs_.empty()) throw;
      throw InputError(fmt::format("{}; {} kept in {}",
                                   error.what(),
                                   Plural(runs_.size(), "finished run"),
                                   partial_path_));
    }
    return Finish();
  }

 private:
  static PlanOptions PlanFor(const hardware::Device& device,
                             const CalibrateOptions& options) {
    for (const model::Precision precision : options.precisions) {
      hardware::RequirePrecision(device, precision);
    }
    PlanOptions plan;
    plan.candidates = CandidateRuns(device, options.precisions, options.models);
    return plan;
  }

  double SpentSeconds() const {
    return resumed_s_ +
           std::chrono::duration<double>(Clock::now() - start_).count();
  }

  // Others' work on the same cores is measured along with ours.
  void WarnIfBusy() {
    double load = 0.0;  // runnable processes, mean of the last minute
    const auto cores = static_cast<double>(device_.cores);
    if (::getloadavg(&load, 1) != 1 || load < kBusyShare * cores) return;
    progress_.Warn(fmt::format(
        "this machine is busy (load {:.1f} on {}); the fit will be of a busy "
        "machine",
        load,
        Plural(static_cast<size_t>(device_.cores), "core")));
  }

  void SetAside(const std::string& why) {
    const std::string aside = partial_path_ + ".old";
    std::error_code error;
    fs::rename(partial_path_, aside, error);
    if (error) {
      throw InputError(fmt::format(
          "{}: cannot be renamed: {}", partial_path_, error.message()));
    }
    progress_.Note(fmt::format("{}; set aside as {}", why, aside));
  }

  void Resume() {
    std::error_code ignored;
    if (!fs::exists(partial_path_, ignored)) return;
    if (options_.fresh) {
      SetAside("starting afresh");
      return;
    }
    Measurements earlier;
    try {
      earlier = ReadMeasurements(partial_path_, CutTail::kDrop);
    } catch (const InputError& error) {
      SetAside(error.what());
      return;
    }
    for (const MeasuredRun& run : earlier.runs) {
      if (!IsDevice(device_, run.device) ||
          run.software != earlier.runs.front().software) {
        SetAside("the earlier runs are of another machine or trainer");
        return;
      }
    }
    if (earlier.dropped_tail) {
      progress_.Note(*earlier.dropped_tail);
      DropTail();
    }
    for (MeasuredRun& run : earlier.runs) {
      resumed_s_ += TimedSeconds(run);
      Keep(std::move(run));
    }
    if (!runs_.empty()) {
      progress_.Note(fmt::format("going on from {} of {:.0f} s",
                                 Plural(runs_.size(), "finished run"),
                                 resumed_s_));
    }
  }

  // So that the next line does not join what was cut off.
  void DropTail() {
    std::error_code error;
    const auto size = fs::file_size(partial_path_, error);
    const int descriptor = ::open(partial_path_.c_str(), O_RDWR | O_CLOEXEC);
    if (error || descriptor < 0) return;
    auto end = static_cast<off_t>(size);
    char byte = 0;
    while (end > 0 && ::pread(descriptor, &byte, 1, end - 1) == 1 &&
           byte != '\n') {
      --end;
    }
    const bool cut = ::ftruncate(descriptor, end) == 0;
    ::close(descriptor);
    if (!cut) SetAside("its last line is cut off");
  }

  void Keep(MeasuredRun run) {
    planner_.Done(run.workload);
    runs_.push_back(std::move(run));
    kept_ = WithoutWorseRepeats(runs_);
    observations_ = ObservationsOf(kept_.runs);
  }

  // What is known so far, for the plan; a fit that is refused changes nothing.
  void Refit() {
    if (observations_.empty()) return;
    FitOptions fit_options;
    fit_options.leave_one_out = false;
    try {
      known_ = FitDevice(device_, observations_, fit_options);
    } catch (const InputError& error) {
      progress_.Note(error.what());
    }
  }

  void Measure(const std::string& trainer, RecordFile& records) {
    known_ = PriorFit(device_);
    Refit();
    TrainerProcess process(trainer);
    while (!interrupted_) {
      const double left_s = budget_s_ - SpentSeconds();
      if (options_.target_interval > 0.0 && !observations_.empty() &&
          planner_.ExpectedInterval(known_) < options_.target_interval) {
        progress_.Note("the target interval is reached");
        return;
      }
      std::optional<PlannedRun> next = std::exchange(again_, std::nullopt);
      if (!next || model::ToSeconds(next->expected_duration) > left_s) {
        next = planner_.Next(
            known_, model::Second(std::min(left_s, kLongestShare * budget_s_)));
      }
      if (!next) return;
      // A machine that is busy for a moment must not use up the budget.
      const double longest_s =
          std::max(kLeastRunSeconds,
                   kOverrun * model::ToSeconds(next->expected_duration));
      process.Send(RequestLine(*next, std::clamp(left_s, 0.1, longest_s)));
      const std::optional<std::string> line = Await(process, *next, left_s);
      if (!line) continue;
      Take(*line, *next, records);
      Refit();
    }
  }

  // nullopt when interrupted and the run in progress had nothing to report.
  std::optional<std::string> Await(TrainerProcess& process,
                                   const PlannedRun& run,
                                   double left_s) {
    const auto until =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(
                           std::chrono::duration<double>(std::max(left_s, 0.0) +
                                                         kPatienceSeconds));
    const std::string words = RunWords(run.workload);
    while (true) {
      progress_.Redraw(SpentSeconds(),
                       budget_s_,
                       fmt::format("run {}: {}", runs_.size() + 1, words));
      std::optional<std::string> line =
          process.Receive(std::chrono::duration<double>(0.25));
      if (line) return line;
      if (SignalGuard::Received()) {
        interrupted_ = true;
        return process.Stop(std::chrono::duration<double>(kGraceSeconds));
      }
      if (Clock::now() > until) {
        throw InputError(
            fmt::format("the trainer does not answer ({})", words));
      }
    }
  }

  void Take(const std::string& line,
            const PlannedRun& asked,
            RecordFile& records) {
    const int number = static_cast<int>(runs_.size()) + 1;
    MeasurementLine answer =
        ParseMeasurementLine(line, "answer of the trainer", number);
    if (answer.refused) {
      progress_.Warn(fmt::format("{}: the trainer refuses: {}",
                                 RunWords(asked.workload),
                                 answer.refused->message));
      planner_.Done(asked.workload);
      if (++refused_ > 3 && runs_.empty()) {
        throw InputError("the trainer refuses every run: " +
                         answer.refused->message);
      }
      return;
    }
    if (!answer.run) {
      throw InputError("the trainer answers with something else than a run");
    }
    MeasuredRun& run = *answer.run;
    if (!IsDevice(device_, run.device)) {
      throw InputError(
          fmt::format("the trainer ran on \"{}\", not on {} (\"{}\")",
                      run.device,
                      device_.name,
                      device_.reported_name));
    }
    if (!runs_.empty() && runs_.front().software != run.software) {
      progress_.Warn(
          "the earlier runs are of another version of the trainer; --fresh "
          "starts without them");
    }
    records.Append(line);
    planner_.Done(asked.workload);
    const double step_s =
        model::ToSeconds(ObservationsOf(run).front().measured);
    if (run.disturbed && repeated_.insert(Describe(asked.workload)).second) {
      again_ = asked;
      progress_.Note(fmt::format("{}: disturbed, {}; it is run once more",
                                 RunWords(asked.workload),
                                 DisturbanceWords(run)));
    }
    Keep(std::move(run));
    progress_.Finished(fmt::format("run {}: {}: {} a step ({:.0f} of {:.0f} s)",
                                   runs_.size(),
                                   RunWords(asked.workload),
                                   hardware::FormatTime(model::Second(step_s)),
                                   SpentSeconds(),
                                   budget_s_));
  }

  CalibrateResult Finish() {
    CalibrateResult result;
    result.interrupted = interrupted_;
    result.records_path = interrupted_ ? partial_path_ : records_path_;
    if (interrupted_) {
      progress_.Warn(fmt::format(
          "interrupted; {} kept in {}, the next calibrate goes on from there",
          Plural(runs_.size(), "finished run"),
          partial_path_));
      if (runs_.empty()) {
        std::error_code ignored;
        fs::remove(partial_path_, ignored);
        return result;
      }
    }
    if (runs_.empty()) {
      throw InputError(
          fmt::format("no run fits in the budget of {:.0f} s", budget_s_));
    }
    if (kept_.weighed_down > 0) {
      progress_.Warn(
          fmt::format("{} disturbed by something else on this machine and "
                      "weigh less in the "
                      "fit; where it is quiet, calibrate --fresh",
                      kept_.weighed_down == 1
                          ? "1 run was"
                          : fmt::format("{} runs were", kept_.weighed_down)));
    }
    Fit fit = FitDevice(device_, observations_);
    fit.name = FitName();
    fit.provenance.source = "trainfare-trainer";
    fit.provenance.host = runs_.front().host;
    fit.provenance.software = runs_.front().software;
    fit.provenance.date = Now();
    SaveFit(fit, fit_path_);
    if (!interrupted_) {
      std::error_code error;
      fs::rename(partial_path_, records_path_, error);
      if (error) result.records_path = partial_path_;
    }
    result.fit = std::move(fit);
    result.fit_path = fit_path_;
    return result;
  }

  std::string FitName() const { return fs::path(fit_path_).stem().string(); }

  const hardware::Device& device_;
  const CalibrateOptions& options_;
  ProgressLog progress_;
  std::string fit_path_;
  std::string partial_path_;
  std::string records_path_;
  double budget_s_;
  Planner planner_;
  Clock::time_point start_;
  double resumed_s_ = 0;  // of the runs of an interrupted calibration
  std::vector<MeasuredRun> runs_;
  KeptRuns kept_;                          // of these, what is fitted to
  std::vector<Observation> observations_;  // of what is kept
  std::optional<PlannedRun> again_;        // disturbed, to be repeated
  std::set<std::string> repeated_;         // workloads, each once
  Fit known_;
  int refused_ = 0;
  bool interrupted_ = false;
};

// The one device that the measurements are of.
const hardware::Device& OnlyDevice(
    const std::vector<Observation>& observations) {
  std::set<std::string> names;
  for (const Observation& observation : observations) {
    names.insert(observation.device);
  }
  if (names.size() == 1) {
    const std::string& name = *names.begin();
    const hardware::DeviceCatalog& catalog = hardware::DeviceCatalog::Shipped();
    if (const hardware::Device* found = catalog.TryFind(name)) return *found;
    const hardware::Device& host = catalog.Find("cpu");
    if (IsDevice(host, name)) return host;
    throw InputError(fmt::format(
        "the measurements are of \"{}\", which no device file names; say which "
        "device it is with --device",
        name));
  }
  throw InputError(
      fmt::format("the measurements are of several devices; choose one with "
                  "--device: {}",
                  model::JoinNames(model::NameViews(names))));
}

CalibrateResult FitFiles(const CalibrateOptions& options, std::ostream& log) {
  ProgressLog progress(options.progress, log);
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
          ? OnlyDevice(files.observations)
          : hardware::DeviceCatalog::Shipped().Find(options.device);
  CalibrateResult result;
  result.fit_path = FitPath(device, options);
  RequireWritable(result.fit_path);
  Fit fit = FitDevice(device, files.observations);
  RankFits ranks = FitRanks(device, fit, files.ranks);
  for (const std::string& note : ranks.notes) progress.Note(note);
  fit.ranks = std::move(ranks.groups);
  fit.name = fs::path(result.fit_path).stem().string();
  fit.provenance.source = files.source;
  fit.provenance.host = files.host;
  fit.provenance.software = files.software;
  fit.provenance.date = Now();
  SaveFit(fit, result.fit_path);
  result.fit = std::move(fit);
  return result;
}

std::string ShownValue(const hardware::ParameterInfo& info, double value) {
  if (info.unit == "s") return hardware::FormatTime(model::Second(value));
  if (info.unit == "B/s") {
    return hardware::FormatBandwidth(model::BytesPerSecond<>(value));
  }
  return fmt::format("{:.4g}", value);
}

std::string ShownError(const hardware::ParameterInfo& info, double error) {
  return info.transform == hardware::Transform::kLog
             ? fmt::format("{:.1f} %", 100.0 * error)
             : fmt::format("{:.2g}", error);
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
  const hardware::Device& device = hardware::DeviceCatalog::Shipped().Find(
      options.device.empty() ? "cpu" : options.device);
  if (device.kind != hardware::DeviceKind::kCpu) {
    throw InputError(fmt::format(
        "device: the runs are made on the processor here, not on {}; measure "
        "there, then: calibrate --from FILE --device {}",
        device.name,
        device.name));
  }
  Session session(device, options, FitPath(device, options), log);
  return session.Run();
}

std::string FitSummary(const Fit& fit) {
  const auto infos = hardware::ParametersOf(fit.kind);
  std::string text = fmt::format(
      "fit of {}: {}, {}\n",
      fit.reported_name.empty()
          ? fit.device
          : fmt::format("{} ({})", fit.device, fit.reported_name),
      Plural(static_cast<size_t>(fit.provenance.runs), "run"),
      Plural(static_cast<size_t>(fit.provenance.observations), "observation"));
  size_t widest = 0;
  for (const FittedParameter& parameter : fit.parameters) {
    widest = std::max(widest, parameter.name.size());
  }
  text += fmt::format("  {:<{}}  {:>10}  {:>9}  {:>10}\n",
                      "parameter",
                      widest,
                      "value",
                      "+-",
                      "prior");
  for (size_t i = 0; i < fit.parameters.size(); ++i) {
    const FittedParameter& parameter = fit.parameters[i];
    if (!parameter.determined) continue;
    text += fmt::format("  {:<{}}  {:>10}  {:>9}  {:>10}\n",
                        parameter.name,
                        widest,
                        ShownValue(infos[i], parameter.value),
                        ShownError(infos[i], parameter.standard_error),
                        ShownValue(infos[i], parameter.prior));
  }
  bool first = true;
  for (size_t i = 0; i < fit.parameters.size(); ++i) {
    const FittedParameter& parameter = fit.parameters[i];
    if (parameter.determined) continue;
    if (first) text += "not determined, at its prior; would be by:\n";
    first = false;
    text += fmt::format("  {:<{}}  {:>10}  {}\n",
                        parameter.name,
                        widest,
                        ShownValue(infos[i], parameter.value),
                        parameter.determined_by);
  }
  text += fmt::format("median error of a step: {:.1f} %",
                      100.0 * fit.in_sample_error);
  if (fit.leave_one_out_error > 0.0) {
    text += fmt::format(", of each run left out in turn: {:.1f} %",
                        100.0 * fit.leave_one_out_error);
  }
  return text + "\n";
}

std::string FitJson(const Fit& fit) {
  const auto infos = hardware::ParametersOf(fit.kind);
  nlohmann::ordered_json parameters = nlohmann::ordered_json::array();
  for (size_t i = 0; i < fit.parameters.size(); ++i) {
    const FittedParameter& parameter = fit.parameters[i];
    nlohmann::ordered_json row = {
        {"name", parameter.name},
        {"unit", infos[i].unit},
        {"value", parameter.value},
        {"standard_error", parameter.standard_error},
        {"scale",
         infos[i].transform == hardware::Transform::kLog ? "log" : "linear"},
        {"prior", parameter.prior},
        {"determined", parameter.determined}};
    if (!parameter.determined) row["determined_by"] = parameter.determined_by;
    parameters.push_back(std::move(row));
  }
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (const RankFit& group : fit.ranks) {
    const RankNetwork& network = group.network;
    const auto ring = [](const RingFit& one) {
      return nlohmann::ordered_json{
          {"step_latency_s", model::ToSeconds(one.ring.step_latency)},
          {"step_latency_error_s", model::ToSeconds(one.latency_error)},
          {"link_bytes_per_s", one.ring.link.base()},
          {"link_error", one.link_error},
          {"scatter", one.scatter}};
    };
    nlohmann::ordered_json row = {{"ranks", network.ranks},
                                  {"ranks_per_device", group.ranks_per_device},
                                  {"backend", group.backend},
                                  {"transport", group.transport},
                                  {"alone", ring(network.alone)},
                                  {"beside", nullptr},
                                  {"speed", network.speed},
                                  {"share", group.share},
                                  {"share_error", group.share_error},
                                  {"share_prior", group.share_prior},
                                  {"scatter", group.scatter},
                                  {"all_reduces", group.all_reduces.size()},
                                  {"observations", group.runs.size()}};
    if (network.beside_timed) row["beside"] = ring(network.beside);
    ranks.push_back(std::move(row));
  }
  const nlohmann::ordered_json json = {
      {"schema_version", 1},
      {"device", fit.device},
      {"reported_name", fit.reported_name},
      {"runs", fit.provenance.runs},
      {"observations", fit.provenance.observations},
      {"date", fit.provenance.date},
      {"in_sample_error", fit.in_sample_error},
      {"leave_one_out_error", fit.leave_one_out_error},
      {"residual_scatter", fit.residual_scatter},
      {"parameters", std::move(parameters)},
      {"ranks", std::move(ranks)}};
  return json.dump(
      2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace trainfare::calibrate
