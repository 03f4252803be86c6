#include "scenarios/report/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "hardware/files/foreign_text.h"
#include "hardware/files/whole_file.h"
#include "model/error.h"
#include "model/nearest.h"
#include "scenarios/report/html.h"

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
  if (suffix == ".html") return Format::kHtml;
  throw UsageError(fmt::format(
      "--export {}: expected a file ending in .html, .json, .csv or .md",
      path));
}

}  // namespace

std::string_view Version() { return TRAINFARE_VERSION; }

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

bool HasPage(const std::vector<std::string>& files) {
  return std::any_of(files.begin(), files.end(), [](const std::string& file) {
    return ExportFormat(file) == Format::kHtml;
  });
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
        if (!IsForPeople(table)) continue;
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
        out += Wrapped(line, std::nullopt, "");
      }
      for (const Table& table : report.tables) {
        if (!IsForPeople(table)) continue;
        if (!out.empty()) out += "\n";
        out += MarkdownTable(table);
      }
      if (!report.notes.empty()) out += "\n";
      for (const std::string& note : report.notes) {
        out += Wrapped("- " + note, std::nullopt, "");
      }
      return out;
    }
    case Format::kHtml:
      return HtmlPage(report);
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
      log << "trainfare: warning: " << hardware::OneLine(warning) << "\n";
    }
  }
  for (const std::string& file : options.exports) {
    WriteFile(file, Render(report, ExportFormat(file)));
    if (!options.quiet) log << "written: " << file << "\n";
  }
}

void WriteFile(const std::string& path, std::string_view text) {
  hardware::WriteWholeFile(path, text);
}

}  // namespace trainfare::scenarios
