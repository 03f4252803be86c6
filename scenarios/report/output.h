#pragma once

// Where results go: standard output in one of four formats, and files.

#include <functional>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/report/report.h"
#include "scenarios/report/version.h"

namespace trainfare::scenarios {

// The exit codes of the whole program.
enum ExitCode {
  kOk = 0,
  kInput = 1,          // a file, a name or a value that cannot be
  kUsage = 2,          // flags that are unknown, missing or of no use together
  kNothingFits = 3,    // no candidate fits or meets the limits
  kLimitPassed = 4,    // of --fail-if
  kInternal = 70,      // a defect of ours
  kInterrupted = 130,  // as a shell reports a program that SIGINT ended
};

// The command line itself is wrong: not what a flag says, but which there are.
class UsageError : public std::runtime_error {
 public:
  explicit UsageError(const std::string& message)
      : std::runtime_error(message) {}
};

enum class Format { kTable, kJson, kCsv, kMarkdown, kHtml, kTrace };
// What --format calls them: neither HTML nor a trace. Throws InputError.
Format FormatFromText(std::string_view text);
std::vector<std::string_view> FormatWords();

struct OutputOptions {
  Format format = Format::kTable;
  std::vector<std::string> exports;  // files; the suffix decides
  bool colour = false;
  std::optional<size_t> width;      // of the terminal, where there is one
  std::optional<size_t> log_width;  // of the one behind standard error
  bool quiet = false;
};

// The format of a file by its ending; "-" is JSON, "-.csv" CSV on standard
// output. Throws InputError for an ending that no format has.
Format ExportFormat(const std::string& file);
bool IsStandardOutput(const std::string& file);
// Whether one of them is of that format.
bool HasFormat(const std::vector<std::string>& files, Format format);

std::string Render(const Report& report,
                   Format format,
                   bool colour = false,
                   std::optional<size_t> width = std::nullopt);

// Whether a text is one that the program wrote.
using IsOurs = std::function<bool(std::string_view)>;
// No file is lost by a name that was typed too fast: throws InputError that
// names `flag` where a file at `path` is neither empty nor, by `is_ours`,
// written by this program. `what` may be replaced there: "an answer".
void RequireOurs(std::string_view flag,
                 const std::string& path,
                 std::string_view what,
                 const IsOurs& is_ours);
// The same of the files of --export, but for CSV, which is known by its columns:
// RequireExportable() looks at it.
void RequireOurExports(const OutputOptions& options);
// Throws UsageError where a report has not what is to be exported, InputError
// where a CSV file that is there has other columns. The report may be an example
// of one that is still to be made.
void RequireExportable(const Report& report, const OutputOptions& options);

// To `out` in the chosen format and to every exported file; says on `log`
// where those are unless quiet. Throws InputError when a write fails, and what
// RequireExportable() does before anything is written.
void Write(const Report& report,
           const OutputOptions& options,
           std::ostream& out,
           std::ostream& log);

// Written beside and renamed, so that no half of it is ever seen.
void WriteFile(const std::string& path, std::string_view text);

}  // namespace trainfare::scenarios
