#include "scenarios/report/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "model/error.h"
#include "model/nearest.h"

namespace trainfare::scenarios {
namespace {

namespace fs = std::filesystem;

constexpr std::array kFormats = {
    std::pair{Format::kTable, std::string_view("table")},
    std::pair{Format::kJson, std::string_view("json")},
    std::pair{Format::kCsv, std::string_view("csv")},
    std::pair{Format::kMarkdown, std::string_view("markdown")},
};

Format ExportFormat(const std::string& path) {
  const std::string suffix = fs::path(path).extension().string();
  if (suffix == ".json") return Format::kJson;
  if (suffix == ".csv") return Format::kCsv;
  if (suffix == ".md") return Format::kMarkdown;
  if (suffix == ".html") {
    throw UsageError(fmt::format(
        "--export {}: the HTML report is not built yet; use .md or .json",
        path));
  }
  throw UsageError(fmt::format(
      "--export {}: expected a file ending in .json, .csv or .md", path));
}

[[noreturn]] void FailToWrite(const std::string& path, int error) {
  throw model::InputError(fmt::format("{}: cannot be written: {}",
                                      path,
                                      std::generic_category().message(error)));
}

}  // namespace

std::string_view Version() { return TRAINFARE_VERSION; }

std::string OfKnown(std::string_view name,
                    const std::vector<std::string_view>& known) {
  const std::string near = model::DidYouMean(name, known);
  return fmt::format(
      "{}{} known: {}", near, near.empty() ? ";" : "", model::JoinNames(known));
}

Format FormatFromText(std::string_view text) {
  for (const auto& [format, name] : kFormats) {
    if (name == text) return format;
  }
  throw UsageError(fmt::format(
      "--format: expected table, json, csv or markdown, got \"{}\"", text));
}

void CheckExports(const std::vector<std::string>& files) {
  for (const std::string& file : files) ExportFormat(file);
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
    case Format::kTable: {
      std::string out;
      for (const std::string& line : report.headline) {
        out += Wrapped(line, width, "  ");
      }
      for (const Table& table : report.tables) {
        if (!out.empty()) out += "\n";
        out += TextTable(table, width, colour);
      }
      if (!report.notes.empty()) out += "\n";
      for (const std::string& note : report.notes) {
        out += Wrapped(fmt::format("note: {}", note), width, "  ");
      }
      if (!report.closing.empty()) {
        out += '\n';
        out += Wrapped(report.closing, width, "  ");
      }
      return out;
    }
    case Format::kMarkdown: {
      std::string out;
      for (const std::string& line : report.headline) {
        if (!out.empty()) out += "\n";
        out += line + "\n";
      }
      for (const Table& table : report.tables) {
        if (!out.empty()) out += "\n";
        out += MarkdownTable(table);
      }
      if (!report.notes.empty()) out += "\n";
      for (const std::string& note : report.notes) {
        out += fmt::format("- {}\n", note);
      }
      return out;
    }
  }
  ENSURE(false, "a format without a writer");
}

void Write(const Report& report,
           const OutputOptions& options,
           std::ostream& out,
           std::ostream& log) {
  CheckExports(options.exports);
  out << Render(report, options.format, options.colour, options.width);
  out.flush();
  if (!out) {
    throw model::InputError("standard output: cannot be written");
  }
  if (!options.quiet) {
    for (const std::string& warning : report.warnings) {
      log << "trainfare: warning: " << warning << "\n";
    }
  }
  for (const std::string& file : options.exports) {
    WriteFile(file, Render(report, ExportFormat(file)));
    if (!options.quiet) log << "written: " << file << "\n";
  }
}

void WriteFile(const std::string& path, std::string_view text) {
  const std::string beside = fmt::format("{}.{}.part", path, ::getpid());
  std::FILE* file = std::fopen(beside.c_str(), "wbe");
  if (file == nullptr) FailToWrite(path, errno);
  const bool written =
      std::fwrite(text.data(), 1, text.size(), file) == text.size() &&
      std::fflush(file) == 0 && ::fsync(::fileno(file)) == 0;
  const int error = errno;
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed) {
    std::remove(beside.c_str());
    FailToWrite(path, written ? errno : error);
  }
  if (std::rename(beside.c_str(), path.c_str()) != 0) {
    const int rename_error = errno;
    std::remove(beside.c_str());
    FailToWrite(path, rename_error);
  }
}

}  // namespace trainfare::scenarios
