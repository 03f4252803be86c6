#pragma once

// The command line: what every command takes, and a function for each command
// that says what it takes beside. The library behind it stays out of this header.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/command_line/settings.h"
#include "scenarios/report/limits.h"
#include "scenarios/report/origin.h"
#include "scenarios/report/output.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name is the library's.
namespace CLI {
class App;
}  // namespace CLI

namespace trainfare::hardware {
class ProgressLine;
}  // namespace trainfare::hardware

namespace trainfare::scenarios {

// The options that every command has.
class CommonOptions {
 public:
  void AddTo(CLI::App& app);
  // --fail-if, of commands that answer.
  void AddLimitsTo(CLI::App& app);
  // Once the command line is read: looks at the terminal and the environment.
  // Throws InputError or UsageError.
  const OutputOptions& Resolve();
  // Throws InputError.
  std::vector<Limit> limits() const;
  const std::vector<std::string>& limit_texts() const { return limits_; }
  bool quiet() const { return output_.quiet; }
  const SettingFiles& setting_files() const { return setting_files_; }
  // Whether a trace of the predicted step, a page with charts is asked for.
  bool trace() const { return HasFormat(output_.exports, Format::kTrace); }
  bool page() const { return HasFormat(output_.exports, Format::kHtml); }
  // Whether anything of the output, or a limit, reads the answer as JSON; of
  // what Resolve() made of it.
  bool json() const {
    return output_.format == Format::kJson || output_.format == Format::kHtml ||
           HasFormat(output_.exports, Format::kJson) || page() ||
           !limits_.empty();
  }
  // How far the answer is, for a terminal that waits for one; nullptr: nobody
  // does. Of what Resolve() found.
  hardware::ProgressLine* progress() const { return progress_.get(); }
  void EndProgress() { progress_.reset(); }
  // The origin of an answer of `command`, which was read. Throws InputError.
  Origin OriginOf(const CLI::App& command) const;
  // What was typed behind the program's name, for reports to be made again.
  void SetCommand(std::vector<std::string> arguments);
  // Puts `text` where a value of an option was `given`.
  void Restate(const std::string& given, const std::string& text);
  // As a shell reads it back.
  std::string command() const;

 private:
  // One format of standard output, by --format or by --export -.
  void ResolveFormat();

  std::string format_;
  std::string colour_ = "auto";
  std::vector<std::string> command_;
  std::string now_;
  SettingFiles setting_files_;
  std::vector<std::string> limits_;
  OutputOptions output_;
  std::shared_ptr<hardware::ProgressLine> progress_;
};

// Runs a command and returns its exit code; -1 where another one was asked for.
using Command = std::function<int()>;
// Runs the program on what is behind its name; returns the exit code.
using RunLine = std::function<int(const std::vector<std::string>&)>;

// Each says what its command takes, `sub` of a program; the options live as long
// as what it returns, `common` as long as both.
Command AddCalibrate(CLI::App& sub, CommonOptions& common);
Command AddPredict(CLI::App& sub, CommonOptions& common);
Command AddRecommend(CLI::App& sub, CommonOptions& common);
Command AddValidate(CLI::App& sub, CommonOptions& common);
Command AddDiff(CLI::App& sub, CommonOptions& common);
Command AddList(CLI::App& sub, CommonOptions& common);
Command AddCompletion(CLI::App& sub);
Command AddConfig(CLI::App& sub, CommonOptions& common);
Command AddMan(CLI::App& sub);
Command AddImport(CLI::App& sub);
Command AddInit(CLI::App& sub);
Command AddReplay(CLI::App& sub, CommonOptions& common, RunLine run);
Command AddShow(CLI::App& sub, CommonOptions& common);
Command AddPrices(CLI::App& sub, CommonOptions& common);

// One line on standard error, which a terminal shows at its width; returns
// `code`.
int Fail(std::string_view message, int code);
// Such a line for each variable of the environment that looks like a setting and
// is none (settings.h), where the command that was asked for takes settings.
void WarnOfUnknownVariables(CLI::App& app);
// Writes what `make` returns to `command` where `common` says; returns its exit
// code. Where `make` leaves more behind than its answer, `example` makes one
// with the same columns and figures: an --export or --fail-if that cannot be is
// refused by it, before anything is done.
int Show(CommonOptions& common,
         const CLI::App& command,
         const std::function<Report(const Origin&)>& make,
         const std::function<Report(const Origin&)>& example = nullptr);
// Makes that report, and writes nothing: for what a question has wrong.
void Check(CommonOptions& common,
           const CLI::App& command,
           const std::function<Report(const Origin&)>& make);
// `text` to a file that is not there yet, or to standard output where `output`
// is empty; returns the exit code. Throws InputError.
int WriteNew(const std::string& text, const std::string& output);
// How wide the lines of such a text are to be: as the terminal is that shows
// it, else as people edit files.
size_t FileWidth(const std::string& output);

// What a command was asked, in one form whatever the order and spelling: its
// name and options, without those of the output.
std::vector<std::string> AskedOf(const CLI::App& command);

// At the end of every --help.
extern const char* const kStreamsAndCodes;
void AddExamples(CLI::App& app, const std::vector<std::string>& commands);

// Reads the command line. Returns an exit code where that is all there is to
// do: help was asked for, or the line was refused in one line of ours.
std::optional<int> Parse(CLI::App& app,
                         const std::vector<std::string>& arguments);

}  // namespace trainfare::scenarios
