#include "scenarios/report/html.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "hardware/files/foreign_text.h"
#include "hardware/files/unit_text.h"
#include "scenarios/report/chart_configuration.h"
#include "scenarios/report/page_files.h"
#include "scenarios/report/result_json.h"
#include "scenarios/report/version.h"

namespace trainfare::scenarios {
namespace {

// No page is larger, so that it can be sent and opened anywhere.
constexpr size_t kMostBytes = 1'000'000;
constexpr size_t kMostRows = 500;  // of a table
// So many candidates keep their estimates before others go altogether.
constexpr size_t kWithEstimate = 10;

// What every page begins with, and has its answer in.
constexpr std::string_view kHead =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n";
constexpr std::string_view kResult = "result";

std::string OpeningTag(std::string_view id) {
  return fmt::format("<script type=\"application/json\" id=\"{}\">", id);
}

// What may be wider than the page scrolls by itself, by keyboard, too.
std::string Wide(std::string_view name, std::string_view inside) {
  return fmt::format(
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"{}\">{}</div>\n",
      Escaped(name),
      inside);
}

bool IsForPeople(const Column& column) {
  return column.audience != Audience::kMachines;
}

std::string HtmlRow(const Table& table, size_t row) {
  std::string out =
      table.marked == row ? "<tr class=\"chosen\">" : std::string("<tr>");
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (!IsForPeople(table.columns[c])) continue;
    const bool left = table.columns[c].align == Align::kLeft;
    out += fmt::format("<td{}>{}</td>",
                       left ? "" : " class=\"number\"",
                       Escaped(table.rows[row][c].text));
  }
  return out + "</tr>\n";
}

std::string HtmlTable(const Table& table, bool elided) {
  std::string out = "<table>\n<thead><tr>";
  for (const Column& column : table.columns) {
    if (!IsForPeople(column)) continue;
    out += fmt::format("<th scope=\"col\"{}>{}</th>",
                       column.align == Align::kLeft ? "" : " class=\"number\"",
                       Escaped(column.title));
  }
  out += "</tr></thead>\n<tbody>\n";
  size_t rows = 0;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (table.elided.contains(r) != elided) continue;
    if (rows++ < kMostRows) out += HtmlRow(table, r);
  }
  out += "</tbody></table>";
  if (rows > kMostRows) {
    out += fmt::format(
        "<p>{}: --export answer.json has all that this page has not.</p>",
        hardware::Plural(static_cast<int64_t>(rows - kMostRows), "more row"));
  }
  return Wide(table.title.empty() ? "table" : table.title, out);
}

std::string TableSection(const Table& table) {
  if (!IsForPeople(table)) return "";
  std::string out = "<section>\n";
  if (!table.title.empty()) {
    out += fmt::format("<h2>{}</h2>\n", Escaped(table.title));
  }
  out += HtmlTable(table, false);
  if (!table.rest.empty()) {
    out += fmt::format("<details><summary>{}</summary>\n{}</details>\n",
                       Escaped(table.rest),
                       HtmlTable(table, true));
  }
  return out + "</section>\n";
}

// JSON that no browser takes for the end of its element.
std::string JsonElement(std::string_view id, std::string_view json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return OpeningTag(id) + safe + "</script>\n";
}

// The chart is hidden, and its table open, until a script draws it.
std::string ChartSection(const Chart& chart) {
  Table twin = TableOf(chart);
  twin.title = chart.title;
  return fmt::format(
      "<section><h2>{}</h2>\n<figure>\n<div class=\"chart\" hidden><canvas "
      "role=\"img\" aria-label=\"{}: {}\"></canvas></div>\n"
      "<figcaption>{}</figcaption>\n</figure>\n"
      "<details class=\"twin\" open><summary>the same as a table</summary>\n{}"
      "</details></section>\n",
      Escaped(chart.title),
      Escaped(chart.title),
      Escaped(chart.caption),
      Escaped(chart.caption),
      HtmlTable(twin, false));
}

// What draws the charts: nothing where there are none.
std::string DrawingElements(const std::vector<Chart>& charts) {
  if (charts.empty()) return "";
  return fmt::format(
      "{}<!--\n{}-->\n<script>{}</script>\n<script>{}</script>\n",
      JsonElement("charts", ChartConfigurations(charts)),
      ChartLicence().text(),
      ChartLibrary().text(),
      PageScript().text());
}

std::string NoteSection(const Report& report) {
  std::string out = "<section><h2>assumptions and what is not counted</h2><ul>";
  std::set<std::string> said;
  for (const auto* lines :
       {&report.notes, &report.page_notes, &report.warnings}) {
    for (const Note& line : *lines) {
      if (!said.insert(line.text).second) continue;
      out += fmt::format("<li>{}</li>\n", Escaped(line.text));
    }
  }
  return out + "</ul></section>\n";
}

std::string ReproduceSection(const Report& report) {
  if (report.command.empty()) return "";
  return fmt::format(
      "<section><h2>how to reproduce</h2>\n<pre>{}</pre>\n<p>trainfare {}, "
      "prices and fits as named above.</p></section>\n",
      Escaped(report.command),
      Escaped(Version()));
}

// Takes estimates from all but the best candidates, then the last candidates or
// predictions, until the text is so much shorter. Returns what it took.
std::vector<std::string> Shorten(size_t excess,
                                 nlohmann::ordered_json& answer) {
  std::vector<std::string> taken;
  size_t shorter = 0;
  const char* list =
      answer.contains("candidates") ? "candidates" : "predictions";
  if (!answer.contains(list)) return taken;
  nlohmann::ordered_json& answers = answer[list];
  std::vector<size_t> without_estimate;
  for (size_t i = answers.size(); i > kWithEstimate && shorter < excess; --i) {
    nlohmann::ordered_json& one = answers[i - 1];
    if (!one.contains("estimate") || one["estimate"].is_null()) continue;
    shorter += one["estimate"].dump().size();
    one["estimate"] = nullptr;
    without_estimate.push_back(i - 1);
  }
  const size_t all = answers.size();
  // The first is the answer.
  while (shorter < excess && answers.size() > 1) {
    shorter += answers.back().dump().size();
    answers.erase(answers.size() - 1);
  }
  const auto estimates = std::count_if(
      without_estimate.begin(), without_estimate.end(), [&](size_t i) {
        return i < answers.size();
      });
  if (estimates > 0) {
    taken.push_back(fmt::format("the estimates of {} {}", estimates, list));
  }
  if (answers.size() < all) {
    taken.push_back(
        fmt::format("the last {} of {} {}", all - answers.size(), all, list));
  }
  return taken;
}

// The answer, behind a page of so many bytes.
std::string DataBlock(const Report& report, size_t page_bytes) {
  nlohmann::ordered_json answer = nlohmann::ordered_json::parse(report.json);
  std::string block = JsonElement(kResult, answer.dump());
  if (page_bytes + block.size() <= kMostBytes) return block;
  // Some room for signs that are written out.
  const size_t excess = page_bytes + block.size() - kMostBytes * 9 / 10;
  const std::vector<std::string> taken = Shorten(excess, answer);
  return fmt::format(
      "<p>The data in this page lack {}; --export answer.json has all.</p>\n{}",
      fmt::join(taken, " and "),
      JsonElement(kResult, answer.dump()));
}

// Nothing is asked of any network, and nothing runs but what is ours.
std::string Policy() {
  return fmt::format(
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
      "'none'; base-uri 'none'; form-action 'none'; style-src '{}'; "
      "script-src '{}' '{}'\">\n",
      PageStyle().digest(),
      ChartLibrary().digest(),
      PageScript().digest());
}

}  // namespace

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : hardware::OneLine(text, std::string::npos)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string HtmlPage(const Report& report) {
  const std::string title =
      Escaped(report.headline.empty() ? "trainfare" : report.headline.front());
  std::string out = fmt::format(
      "{}{}<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<title>{}</title>\n<style>{}</style></head>\n<body><main>\n"
      "<h1>{}</h1>\n",
      kHead,
      Policy(),
      title,
      PageStyle().text(),
      title);
  for (size_t i = 1; i < report.headline.size(); ++i) {
    out += fmt::format("<p>{}</p>\n", Escaped(report.headline[i]));
  }
  if (!report.tables.empty()) out += TableSection(report.tables.front());
  std::vector<Chart> charts = report.charts;
  std::erase_if(charts, [](const Chart& chart) { return chart.empty(); });
  for (const Chart& chart : charts) out += ChartSection(chart);
  for (size_t i = 1; i < report.tables.size(); ++i) {
    out += TableSection(report.tables[i]);
  }
  for (const Table& table : report.page_tables) out += TableSection(table);
  out += NoteSection(report) + ReproduceSection(report) + "</main>\n";
  out += DrawingElements(charts);
  return out + DataBlock(report, out.size()) + "</body></html>\n";
}

bool IsHtmlPage(std::string_view text) {
  const std::string tag = OpeningTag(kResult);
  const size_t at = text.find(tag);
  return text.starts_with(kHead) && at != std::string_view::npos &&
         IsAnswer(text.substr(at + tag.size()));
}

}  // namespace trainfare::scenarios
