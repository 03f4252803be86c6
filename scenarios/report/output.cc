#include "scenarios/report/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <utility>

#include "hardware/files/terminal.h"
#include "hardware/files/unwritten.h"
#include "hardware/files/whole_file.h"
#include "model/error.h"
#include "model/nearest.h"
#include "scenarios/report/html.h"
#include "scenarios/report/result_json.h"

namespace trainfare::scenarios {
namespace {

namespace fs = std::filesystem;

constexpr std::array kFormats = {
    std::pair{Format::kTable, std::string_view("table")},
    std::pair{Format::kJson, std::string_view("json")},
    std::pair{Format::kCsv, std::string_view("csv")},
    std::pair{Format::kMarkdown, std::string_view("markdown")},
};

// What is in a file; nullopt where it cannot be read, or is larger than what
// the program writes.
std::optional<std::string> ContentsOf(const std::string& path) {
  constexpr uintmax_t kLargest = uintmax_t{1} << 28;
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error || size > kLargest) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::string text(size, '\0');
  file.read(text.data(), static_cast<std::streamsize>(size));
  if (!file) return std::nullopt;
  return text;
}

// The first line of a Markdown file of --export, which no reader sees: of any
// other Markdown nobody can tell who wrote it.
constexpr std::string_view kMarkdownMark = "<!-- written by trainfare -->\n";

bool IsMarkdownAnswer(std::string_view text) {
  return text.starts_with(kMarkdownMark);
}

std::string ExportText(const Report& report, Format format) {
  const std::string text = Render(report, format);
  return format == Format::kMarkdown ? std::string(kMarkdownMark) + text : text;
}

constexpr std::string_view kAnswer = "an answer";
constexpr std::string_view kTable = "an answer of these columns";

std::string TextReport(const Report& report,
                       bool colour,
                       std::optional<size_t> width) {
  std::string out;
  for (const std::string& line : report.headline) {
    out += hardware::Wrapped(line, width, "  ");
  }
  for (const Table& table : report.tables) {
    if (!IsForPeople(table)) continue;
    if (!out.empty()) out += "\n";
    out += TextTable(table, width, colour);
  }
  if (!report.notes.empty()) out += "\n";
  for (const Note& note : report.notes) {
    out += hardware::Wrapped("note: " + note.text, width, "  ");
  }
  if (!report.closing.empty()) {
    out += '\n';
    out += hardware::Wrapped(report.closing, width, "  ");
  }
  return out;
}

std::string MarkdownReport(const Report& report) {
  std::string out;
  for (const std::string& line : report.headline) {
    if (!out.empty()) out += "\n";
    out += hardware::Wrapped(line, std::nullopt, "");
  }
  for (const Table& table : report.tables) {
    if (!IsForPeople(table)) continue;
    if (!out.empty()) out += "\n";
    out += MarkdownTable(table);
  }
  if (!report.notes.empty()) out += "\n";
  for (const Note& note : report.notes) {
    out += hardware::Wrapped("- " + note.text, std::nullopt, "");
  }
  return out;
}

}  // namespace

Format FormatFromText(std::string_view text) {
  for (const auto& [format, name] : kFormats) {
    if (name == text) return format;
  }
  std::vector<std::string_view> words = FormatWords();
  const std::string_view last = words.back();
  words.pop_back();
  throw model::InputError(fmt::format("--format: expected {} or {}, got \"{}\"",
                                      fmt::join(words, ", "),
                                      last,
                                      text));
}

std::vector<std::string_view> FormatWords() {
  std::vector<std::string_view> words;
  for (const auto& [format, name] : kFormats) words.push_back(name);
  return words;
}

Format ExportFormat(const std::string& file) {
  constexpr std::array kEndings = {
      std::pair{std::string_view(".trace.json"), Format::kTrace},
      std::pair{std::string_view(".json"), Format::kJson},
      std::pair{std::string_view(".csv"), Format::kCsv},
      std::pair{std::string_view(".md"), Format::kMarkdown},
      std::pair{std::string_view(".html"), Format::kHtml}};
  if (file == "-") return Format::kJson;
  for (const auto& [ending, format] : kEndings) {
    if (file.ends_with(ending)) return format;
  }
  throw model::InputError(
      fmt::format("--export {}: expected a file ending in .html, .json, .csv, "
                  ".md or .trace.json, or - for standard output",
                  file));
}

bool IsStandardOutput(const std::string& file) {
  return file == "-" || file.starts_with("-.");
}

bool HasFormat(const std::vector<std::string>& files, Format format) {
  // All of them are looked at: a wrong ending is found wherever it stands.
  return std::count_if(
             files.begin(), files.end(), [&](const std::string& file) {
               return ExportFormat(file) == format;
             }) > 0;
}

std::string Render(const Report& report,
                   Format format,
                   bool colour,
                   std::optional<size_t> width) {
  switch (format) {
    case Format::kJson:
      return report.json + "\n";
    case Format::kCsv:
      ENSURE(!report.tables.empty(), "a report has a table");
      return CsvTable(report.tables.front());
    case Format::kTable:
      return TextReport(report, colour, width);
    case Format::kMarkdown:
      return MarkdownReport(report);
    case Format::kHtml:
      return HtmlPage(report);
    case Format::kTrace:
      ENSURE(report.trace.has_value(), "a report with a step");
      return ChromeTrace(report.headline.empty() ? "" : report.headline.front(),
                         *report.trace) +
             "\n";
  }
  ENSURE(false, "a format without a writer");
}

void RequireOurs(std::string_view flag,
                 const std::string& path,
                 std::string_view what,
                 const IsOurs& is_ours) {
  // What no regular file is, is refused where it is written.
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) == 0) {
    return;
  }
  const std::optional<std::string> text = ContentsOf(path);
  if (text && is_ours(*text)) return;
  throw model::InputError(
      fmt::format("{} {}: expected a new file, or {} to replace; the one that "
                  "is there is none",
                  flag,
                  path,
                  what));
}

void RequireOurExports(const OutputOptions& options) {
  for (const std::string& file : options.exports) {
    hardware::RequireWritable(file);
    const auto require = [&](const IsOurs& is_ours) {
      RequireOurs("--export", file, kAnswer, is_ours);
    };
    switch (ExportFormat(file)) {
      case Format::kJson:
        require(IsAnswer);
        break;
      case Format::kTrace:
        require(IsChromeTrace);
        break;
      case Format::kHtml:
        require(IsHtmlPage);
        break;
      case Format::kMarkdown:
        require(IsMarkdownAnswer);
        break;
      case Format::kCsv:
      case Format::kTable:
        break;
    }
  }
}

void RequireExportable(const Report& report, const OutputOptions& options) {
  const bool traces = HasFormat(options.exports, Format::kTrace) ||
                      options.format == Format::kTrace;
  if (traces && !report.trace) {
    throw UsageError(
        "--export: a .trace.json is of a step, which this answer does not "
        "have; predict and recommend have one");
  }
  for (const std::string& file : options.exports) {
    if (ExportFormat(file) != Format::kCsv) continue;
    ENSURE(!report.tables.empty(), "a report has a table");
    const std::string header = CsvHeader(report.tables.front());
    RequireOurs("--export", file, kTable, [&](std::string_view text) {
      return text.starts_with(header);
    });
  }
}

void Write(const Report& report,
           const OutputOptions& options,
           std::ostream& out,
           std::ostream& log) {
  RequireExportable(report, options);
  hardware::WriteOut(
      out, Render(report, options.format, options.colour, options.width));
  if (!options.quiet) {
    for (const Note& warning : report.warnings) {
      log << hardware::Wrapped(
          "trainfare: warning: " + warning.text, options.log_width, "  ");
    }
  }
  for (const std::string& file : options.exports) {
    WriteFile(file, ExportText(report, ExportFormat(file)));
    if (options.quiet) continue;
    log << hardware::Wrapped("written: " + file, options.log_width, "  ");
  }
}

void WriteFile(const std::string& path, std::string_view text) {
  hardware::WriteWholeFile(path, text);
}

}  // namespace trainfare::scenarios
