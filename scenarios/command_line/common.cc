#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <system_error>
#include <utility>

#include "hardware/files/date.h"
#include "hardware/files/foreign_text.h"
#include "hardware/files/progress_line.h"
#include "hardware/files/terminal.h"
#include "hardware/files/unwritten.h"
#include "model/error.h"
#include "scenarios/command_line/arguments.h"
#include "scenarios/command_line/commands.h"

namespace trainfare::scenarios {
namespace {

// The group of options that say where an answer goes, not what is asked.
constexpr const char* kOutputGroup = "Output";

std::chrono::sys_seconds TimeNow(const std::string& flag) {
  if (!flag.empty()) {
    if (const auto time = hardware::TimeFromText(flag)) return *time;
    throw model::InputError(fmt::format(
        "--now: expected a time such as 2026-11-23T18:01:31Z, got \"{}\"",
        flag));
  }
  // reproducible-builds.org: seconds since 1970 that stand for the clock.
  const char* fixed = std::getenv("SOURCE_DATE_EPOCH");
  if (fixed == nullptr || *fixed == '\0') return hardware::Now();
  const std::string_view text = fixed;
  constexpr int64_t kEndOfYears = 253402300799;  // 9999-12-31T23:59:59Z
  int64_t seconds = -1;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, seconds);
  if (error != std::errc() || rest != end || seconds < 0 ||
      seconds > kEndOfYears) {
    throw model::InputError(
        fmt::format("SOURCE_DATE_EPOCH: expected seconds since 1970, got "
                    "\"{}\"",
                    text));
  }
  return std::chrono::sys_seconds(std::chrono::seconds(seconds));
}

// An answer that is compared with may be replaced by the new one.
bool IsInput(const CLI::Option& option) {
  return !WritesFile(option) && option.get_name() != "--baseline";
}

// The files that a value may name: itself, or each of a list.
std::vector<std::string> FilesOf(const std::string& value) {
  std::vector<std::string> files = {value};
  if (value.find(',') == std::string::npos) return files;
  std::istringstream list(value);
  for (std::string part; std::getline(list, part, ',');) files.push_back(part);
  return files;
}

// Whether it is one of the files that the option reads.
bool IsReadBy(const CLI::Option& input, const std::string& file) {
  for (const std::string& value : input.results()) {
    for (const std::string& read : FilesOf(value)) {
      std::error_code ignored;
      if (std::filesystem::equivalent(file, read, ignored)) return true;
    }
  }
  return false;
}

bool IsWrittenBy(const CLI::Option& output, const std::string& file) {
  const std::vector<std::string>& files = output.results();
  return std::any_of(files.begin(), files.end(), [&](const std::string& one) {
    return IsSameFile(one, file);
  });
}

// Throws UsageError where a file that would be written is one that is read, or
// would be written twice.
void RequireOutputsApart(const CLI::App& command) {
  std::vector<const CLI::Option*> before;  // that write files
  for (const CLI::Option* output : command.get_options()) {
    if (!WritesFile(*output)) continue;
    RequireEachOnce(output->get_name(), output->results());
    for (const std::string& file : output->results()) {
      const auto refuse = [&](const CLI::Option& other, std::string_view does) {
        throw UsageError(
            fmt::format("{} {}: expected a file of its own, {} {} this one",
                        output->get_name(),
                        file,
                        other.get_name(),
                        does));
      };
      for (const CLI::Option* other : command.get_options()) {
        if (IsInput(*other) && IsReadBy(*other, file)) refuse(*other, "reads");
      }
      for (const CLI::Option* other : before) {
        if (IsWrittenBy(*other, file)) refuse(*other, "writes");
      }
    }
    before.push_back(output);
  }
}

// The report of what was asked, and whether it keeps to the limits.
Report Made(CommonOptions& common,
            const CLI::App& command,
            const std::function<Report(const Origin&)>& make,
            Unfound unfound = Unfound::kRefused) {
  const std::vector<Limit> limits = common.limits();
  Report report = make(common.OriginOf(command));
  common.EndProgress();
  FromValue([&] { CheckLimits(limits, report, unfound); });
  return report;
}

}  // namespace

void CommonOptions::AddTo(CLI::App& app) {
  app.add_option("--format", format_, "Of standard output")
      ->type_name(Choices(FormatWords()))
      ->group(kOutputGroup);
  AddFiles(app,
           "--export",
           output_.exports,
           "Also write FILE; .html, .json, .csv, .md or .trace.json decides "
           "what; - is standard output, as JSON, -.csv as CSV; may be "
           "repeated. Machine formats have base units (s, B, J, USD)")
      ->group(kOutputGroup);
  app.add_option("--color", colour_, "When there are colours")
      ->type_name(Choices({"auto", "always", "never"}))
      ->group(kOutputGroup);
  app.add_flag("--quiet", output_.quiet, "Nothing on standard error but errors")
      ->group(kOutputGroup);
  app.add_option("--now",
                 now_,
                 "What counts as now, for the date of an answer and the age of "
                 "prices: 2026-11-23T18:01:31Z (default: SOURCE_DATE_EPOCH, "
                 "else the clock)")
      ->type_name("TIME")
      ->group(kOutputGroup);
  app.add_option(
         "--config",
         setting_files_.config,
         "Settings in place of trainfare.yaml of this folder; flags and "
         "TRAINFARE_* go first, ~/.config/trainfare/config.yaml last")
      ->type_name("FILE")
      ->group(kOutputGroup);
  app.add_flag(
         "--no-config", setting_files_.none, "Read no settings from files")
      ->group(kOutputGroup);
  Exclude(app, "--config", {"--no-config"});
}

void CommonOptions::AddLimitsTo(CLI::App& app) {
  app.add_option("--fail-if",
                 limits_,
                 "Exit 4 past a limit on a figure of the JSON answer, such as "
                 "'cost_usd>100' or 'run_time_s>4h'; may be repeated")
      ->type_name("LIMIT")
      ->group(kOutputGroup)
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
}

std::vector<Limit> CommonOptions::limits() const {
  std::vector<Limit> limits;
  for (const std::string& text : limits_) {
    limits.push_back(FromValue([&] { return LimitFromText(text); }));
  }
  return limits;
}

void CommonOptions::ResolveFormat() {
  std::string_view asked = "--format";
  if (!format_.empty()) output_.format = FormatFromText(format_);
  std::vector<std::string> files;
  for (const std::string& file : output_.exports) {
    const Format format = ExportFormat(file);
    if (!IsStandardOutput(file)) {
      files.push_back(file);
      continue;
    }
    if (!format_.empty()) {
      throw UsageError(fmt::format(
          "--export {}: standard output has its format already, by {} {}",
          file,
          asked,
          format_));
    }
    output_.format = format;
    asked = "--export";
    format_ = file;
  }
  output_.exports = std::move(files);
}

const OutputOptions& CommonOptions::Resolve() {
  ResolveFormat();
  if (colour_ != "auto" && colour_ != "always" && colour_ != "never") {
    throw model::InputError("--color: expected auto, always or never, got \"" +
                            colour_ + "\"");
  }
  const bool terminal = ::isatty(STDOUT_FILENO) != 0;
  const auto is_set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  const char* kind = std::getenv("TERM");
  const bool dumb = kind != nullptr && std::string_view(kind) == "dumb";
  output_.colour = colour_ == "always" || (colour_ == "auto" && terminal &&
                                           !is_set("NO_COLOR") && !dumb);
  output_.width = hardware::TerminalWidth(STDOUT_FILENO);
  output_.log_width = hardware::TerminalWidth(STDERR_FILENO);
  if (terminal && output_.log_width && !output_.quiet) {
    progress_ =
        std::make_shared<hardware::ProgressLine>(std::cerr, output_.log_width);
  }
  return output_;
}

void CommonOptions::SetCommand(std::vector<std::string> arguments) {
  command_ = std::move(arguments);
}

void CommonOptions::Restate(const std::string& given, const std::string& text) {
  for (std::string& word : command_) {
    const bool behind_equals =
        word.starts_with("--") && word.ends_with("=" + given);
    if (word == given || behind_equals) {
      word.replace(word.size() - given.size(), given.size(), text);
    }
  }
}

std::string CommonOptions::command() const {
  // Quoted where a word has more than plain letters.
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "_-+=:,./%@";
  std::string line = "trainfare";
  for (const std::string& word : command_) {
    line += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) {
      if (c == '\'') {
        line += "'\\''";
      } else {
        line += c;
      }
    }
    line += '\'';
  }
  return line;
}

int Fail(std::string_view message, int code) {
  std::cerr << hardware::Wrapped("trainfare: " + hardware::OneLine(message),
                                 hardware::TerminalWidth(STDERR_FILENO),
                                 "  ");
  return code;
}

void WarnOfUnknownVariables(CLI::App& app) {
  if (!TakesSettings(AskedCommand(app))) return;
  for (const std::string& line : UnknownVariables(app)) {
    Fail("warning: " + line, kOk);
  }
}

const char* const kStreamsAndCodes =
    "Results go to standard output, everything else to standard error.\n"
    "Exit codes: 0 ok, 1 a file, name or value that cannot be, 2 flags that "
    "are unknown, missing or of no use together, 3 nothing fits, 4 a "
    "--fail-if limit passed, 70 internal, 130 interrupted.";

Origin CommonOptions::OriginOf(const CLI::App& command) const {
  return {AskedOf(command), TimeNow(now_)};
}

int Show(CommonOptions& common,
         const CLI::App& command,
         const std::function<Report(const Origin&)>& make,
         const std::function<Report(const Origin&)>& example) {
  const OutputOptions& output = common.Resolve();
  RequireOutputsApart(command);
  RequireOurExports(output);
  if (example) {
    const std::vector<Limit> limits = common.limits();
    Report like_it = example(common.OriginOf(command));
    RequireExportable(like_it, output);
    FromValue([&] { CheckLimits(limits, like_it); });
  }
  Report report = Made(
      common, command, make, example ? Unfound::kNotKnown : Unfound::kRefused);
  report.command = common.command();
  Write(report, output, std::cout, std::cerr);
  if (!report.complaint.empty()) Fail(report.complaint, report.exit_code);
  return report.exit_code;
}

void Check(CommonOptions& common,
           const CLI::App& command,
           const std::function<Report(const Origin&)>& make) {
  common.Resolve();
  try {
    Made(common, command, make);
  } catch (const model::NothingFits&) {
    // An answer, too.
    common.EndProgress();
  }
}

std::vector<std::string> AskedOf(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::App* part = &command; part->get_parent() != nullptr;
       part = part->get_parent()) {
    words.insert(words.begin(), part->get_name());
  }
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group() == kOutputGroup) continue;
    for (const std::string& value : option->results()) {
      if (option->get_lnames().empty()) {
        words.push_back(value);
        continue;
      }
      const std::string name = "--" + option->get_lnames().front();
      const bool is_flag = option->get_items_expected_max() == 0;
      words.push_back(is_flag ? name : fmt::format("{}={}", name, value));
    }
  }
  return words;
}

int WriteNew(const std::string& text, const std::string& output) {
  if (output.empty()) {
    hardware::WriteOut(std::cout, text);
    return kOk;
  }
  if (std::filesystem::exists(output)) {
    throw model::InputError(output +
                            ": expected a new file, this one is there");
  }
  WriteFile(output, text);
  return kOk;
}

size_t FileWidth(const std::string& output) {
  constexpr size_t kEdited = 80;
  if (!output.empty()) return kEdited;
  return hardware::TerminalWidth(STDOUT_FILENO).value_or(kEdited);
}

void AddExamples(CLI::App& app, const std::vector<std::string>& commands) {
  std::string text = "Examples:";
  for (const std::string& command : commands) {
    text += "\n  trainfare " + command;
  }
  app.footer(text + "\n\n" + kStreamsAndCodes);
}

}  // namespace trainfare::scenarios
