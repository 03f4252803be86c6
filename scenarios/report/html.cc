#include "scenarios/report/html.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "scenarios/report/chart.h"

namespace trainfare::scenarios {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --grid: #d8dee4;
  --dot: #4b7bb5; --chosen: #c2410c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #14181d;
  --grid: #30363d; --dot: #79b0f0; --chosen: #ff9b5e; } }
@media print { :root { --ink: #000; --paper: #fff; --grid: #ccc; }
  section, figure { break-inside: avoid; } svg { min-width: 0; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
figure { margin: 0; } figcaption { font-size: .9rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; }
th, td { padding: .15rem .6rem; border-bottom: 1px solid var(--grid);
  text-align: left; white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.chosen { font-weight: bold; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
svg { width: 100%; min-width: 34rem; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--ink); }
.grid { stroke: var(--grid); } .mark { stroke: var(--ink); stroke-width: 2; }
.line { fill: none; stroke: var(--dot); stroke-width: 1.5; }
.dot, .bar { fill: var(--dot); fill-opacity: .75; }
.chosen { fill: var(--chosen); }
)";

// No page is larger, so that it can be sent and opened anywhere.
constexpr size_t kMostBytes = 1'000'000;

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
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (table.elided.contains(r) == elided) out += HtmlRow(table, r);
  }
  out += "</tbody></table>";
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

std::string ChartSection(const Chart& chart) {
  return fmt::format(
      "<section><h2>{}</h2>\n<figure>\n{}<figcaption>{}</figcaption>\n"
      "</figure>\n<details><summary>the same as a table</summary>\n{}"
      "</details></section>\n",
      Escaped(chart.title),
      Wide(chart.title, SvgChart(chart)),
      Escaped(chart.caption),
      HtmlTable(TableOf(chart), false));
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

// Takes estimates from the last candidates until the text is so much shorter;
// returns of how many.
size_t DropEstimates(size_t excess, nlohmann::ordered_json& answer) {
  size_t dropped = 0;
  size_t shorter = 0;
  if (!answer.contains("candidates")) return 0;
  nlohmann::ordered_json& candidates = answer["candidates"];
  for (auto c = candidates.rbegin(); c != candidates.rend(); ++c) {
    if (shorter >= excess) break;
    nlohmann::ordered_json& estimate = (*c)["estimate"];
    if (estimate.is_null()) continue;
    shorter += estimate.dump().size();
    estimate = nullptr;
    ++dropped;
  }
  return dropped;
}

// The answer as JSON that no browser takes for the end of its element, behind a
// page of so many bytes.
std::string DataBlock(const Report& report, size_t page_bytes) {
  nlohmann::ordered_json answer = nlohmann::ordered_json::parse(report.json);
  std::string compact = answer.dump();
  std::string said;
  if (page_bytes + compact.size() > kMostBytes) {
    // Some room for the signs that are written out below.
    const size_t excess = page_bytes + compact.size() - kMostBytes * 9 / 10;
    said = fmt::format(
        "<p>The data in this page has no estimates of the last {} candidates; "
        "--export answer.json has all.</p>\n",
        DropEstimates(excess, answer));
    compact = answer.dump();
  }
  std::string safe;
  safe.reserve(compact.size());
  for (const char c : compact) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return fmt::format(
      "{}<script type=\"application/json\" id=\"result\">{}</script>\n",
      said,
      safe);
}

}  // namespace

std::string HtmlPage(const Report& report) {
  const std::string title =
      Escaped(report.headline.empty() ? "trainfare" : report.headline.front());
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<title>{}</title>\n<style>{}</style></head>\n<body><main>\n"
      "<h1>{}</h1>\n",
      title,
      kStyle,
      title);
  for (size_t i = 1; i < report.headline.size(); ++i) {
    out += fmt::format("<p>{}</p>\n", Escaped(report.headline[i]));
  }
  if (!report.tables.empty()) out += TableSection(report.tables.front());
  for (const Chart& chart : report.charts) {
    if (!chart.empty()) out += ChartSection(chart);
  }
  for (size_t i = 1; i < report.tables.size(); ++i) {
    out += TableSection(report.tables[i]);
  }
  for (const Table& table : report.page_tables) out += TableSection(table);
  out += NoteSection(report) + ReproduceSection(report) + "</main>\n";
  return out + DataBlock(report, out.size()) + "</body></html>\n";
}

}  // namespace trainfare::scenarios
