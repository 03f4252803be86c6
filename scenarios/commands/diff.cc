#include "scenarios/commands/diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "hardware/files/json_text.h"
#include "hardware/files/unit_text.h"
#include "model/error.h"
#include "scenarios/commands/saved_answer.h"
#include "scenarios/report/result_json.h"

namespace trainfare::scenarios {
namespace {

// Less is not shown to people as a change: what they read has three digits.
constexpr double kSeenPercent = 0.05;
// Reasons and settings that people see of a long list.
constexpr size_t kShown = 10;

struct Pair {
  const SavedRow* before = nullptr;
  const SavedRow* after = nullptr;

  // Percent of what it was; nullopt: one of them is not known.
  std::optional<double> Change(size_t figure) const {
    const std::optional<double>& from = before->figures[figure];
    const std::optional<double>& to = after->figures[figure];
    if (!from || !to) return std::nullopt;
    if (*from == *to) return 0.0;
    if (*from == 0.0) return std::nullopt;
    return 100.0 * (*to / *from - 1.0);
  }
  bool Moved() const {
    for (size_t i = 0; i < kFigures.size(); ++i) {
      const std::optional<double> change = Change(i);
      if (change ? std::abs(*change) >= kSeenPercent
                 : before->figures[i] != after->figures[i]) {
        return true;
      }
    }
    return before->chosen != after->chosen;
  }
};

struct Comparison {
  std::vector<Pair> pairs;
  std::vector<const SavedRow*> only_before;
  std::vector<const SavedRow*> only_after;
};

std::set<std::string> ValuesOf(const SavedAnswer& answer, size_t part) {
  std::set<std::string> values;
  for (const SavedRow& row : answer.rows) values.insert(row.parts[part]);
  return values;
}

// Which parts tell rows apart; a part with one value in each file is a setting
// of that file.
std::vector<size_t> TellingParts(const SavedAnswer& before,
                                 const SavedAnswer& after) {
  std::vector<size_t> telling;
  for (size_t part = 0; part < kParts.size(); ++part) {
    if (ValuesOf(before, part).size() > 1 || ValuesOf(after, part).size() > 1) {
      telling.push_back(part);
    }
  }
  return telling;
}

std::vector<std::string> KeyOf(const SavedRow& row,
                               const std::vector<size_t>& telling) {
  std::vector<std::string> key;
  for (const size_t part : telling) key.push_back(row.parts[part]);
  return key;
}

Comparison Compare(const SavedAnswer& before, const SavedAnswer& after) {
  const std::vector<size_t> telling = TellingParts(before, after);
  std::map<std::vector<std::string>, const SavedRow*> unmatched;
  for (const SavedRow& row : before.rows) {
    unmatched.emplace(KeyOf(row, telling), &row);
  }
  Comparison comparison;
  for (const SavedRow& row : after.rows) {
    const auto found = unmatched.find(KeyOf(row, telling));
    if (found == unmatched.end()) {
      comparison.only_after.push_back(&row);
      continue;
    }
    comparison.pairs.push_back({found->second, &row});
    unmatched.erase(found);
  }
  for (const auto& [key, row] : unmatched) {
    comparison.only_before.push_back(row);
  }
  return comparison;
}

// "devices 8", "h100_sxm -> a100_sxm4_80gb" where the pair differs; "" for what
// is not said, and for a count of one, which goes without saying.
std::string PartText(const Part& part,
                     const std::string& before,
                     const std::string& after) {
  if (before == after) {
    if (after.empty() || (part.is_count && after == "1")) return "";
    return fmt::format("{}{}", part.words, after);
  }
  return fmt::format("{}{} -> {}",
                     part.words,
                     before.empty() ? "-" : before,
                     after.empty() ? "-" : after);
}

std::string NameOf(const Pair& pair) {
  std::vector<std::string> words;
  for (size_t i = 0; i < kParts.size(); ++i) {
    std::string text =
        PartText(kParts[i], pair.before->parts[i], pair.after->parts[i]);
    if (!text.empty()) words.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string NameOf(const SavedRow& row) { return NameOf({&row, &row}); }

std::string PercentText(double percent) {
  if (percent == 0.0) return "0 %";
  return fmt::format("{:+.{}f} %", percent, std::abs(percent) < 10 ? 2 : 1);
}

// "cost -12.0 %, time +3.10 %"; "" where nothing that both know moved.
std::string ChangeWords(const Pair& pair) {
  std::vector<std::string> words;
  for (size_t i = 0; i < kFigures.size(); ++i) {
    const std::optional<double> change = pair.Change(i);
    if (!change || std::abs(*change) < kSeenPercent) continue;
    words.push_back(
        fmt::format("{} {}", kFigures[i].words, PercentText(*change)));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

// The row that an answer recommends; nullptr: none.
const SavedRow* ChoiceOf(const SavedAnswer& answer) {
  for (const SavedRow& row : answer.rows) {
    if (row.chosen) return &row;
  }
  return nullptr;
}

std::string ChoiceName(const SavedRow* choice) {
  return choice != nullptr ? NameOf(*choice) : "none";
}

std::string ChoiceLine(const SavedRow* before, const SavedRow* after) {
  const bool same =
      before != nullptr && after != nullptr && before->parts == after->parts;
  std::string line = same
                         ? fmt::format("the choice stays {}", ChoiceName(after))
                         : fmt::format("the choice moves from {} to {}",
                                       ChoiceName(before),
                                       ChoiceName(after));
  if (before != nullptr && after != nullptr) {
    const std::string words = ChangeWords({before, after});
    line += words.empty() ? ": nothing of it moved" : ": " + words;
  }
  return line;
}

// One pair, a figure a line.
Table FigureTable(const Pair& pair, const std::string& title) {
  Table table;
  table.title = title;
  table.columns = {{"figure", "figure", Align::kLeft},
                   {"before", "", Align::kRight},
                   {"after", "", Align::kRight},
                   {"change", "change_percent", Align::kDecimal}};
  const auto cell = [](const Figure& figure,
                       const std::optional<double>& value) {
    return value ? Cell(figure.Text(*value), *value) : Cell("-", std::string());
  };
  for (size_t i = 0; i < kFigures.size(); ++i) {
    const std::optional<double> change = pair.Change(i);
    table.Add({std::string(kFigures[i].words),
               cell(kFigures[i], pair.before->figures[i]),
               cell(kFigures[i], pair.after->figures[i]),
               change ? Cell(PercentText(*change), *change)
                      : Cell("-", std::string())});
  }
  return table;
}

std::vector<Column> PairColumns() {
  std::vector<Column> columns = {
      {"answer", "", Align::kLeft, 0, Audience::kPeople}};
  for (const Part& part : kParts) {
    columns.push_back(
        {"", std::string(part.key), Align::kLeft, 0, Audience::kMachines});
  }
  int drop = 1;
  for (const Figure& figure : kFigures) {
    for (const char* when : {"before", "after"}) {
      columns.push_back(
          {"", figure.Key(when), Align::kDecimal, 0, Audience::kMachines});
    }
    columns.push_back({std::string(figure.words),
                       figure.Key("percent"),
                       Align::kDecimal,
                       drop++});
  }
  columns.push_back(
      {"", "chosen_before", Align::kLeft, 0, Audience::kMachines});
  columns.push_back({"", "chosen_after", Align::kLeft, 0, Audience::kMachines});
  return columns;
}

std::vector<Cell> PairRow(const Pair& pair) {
  std::vector<Cell> row = {NameOf(pair)};
  for (const std::string& part : pair.after->parts) row.emplace_back(part);
  const Cell none("-", std::string());
  for (size_t i = 0; i < kFigures.size(); ++i) {
    for (const SavedRow* side : {pair.before, pair.after}) {
      const std::optional<double>& value = side->figures[i];
      row.push_back(value ? Cell(kFigures[i].Text(*value), *value) : none);
    }
    const std::optional<double> change = pair.Change(i);
    row.push_back(change ? Cell(PercentText(*change), *change) : none);
  }
  for (const SavedRow* side : {pair.before, pair.after}) {
    row.emplace_back(side->chosen ? "yes" : "no");
  }
  return row;
}

// People see the first of what moved; of a single pair they have a table of its
// own.
Table PairTable(const Comparison& comparison) {
  Table table;
  table.title = "what moved, in percent of what it was";
  table.columns = PairColumns();
  size_t moved = 0;
  size_t shown = 0;
  for (const Pair& pair : comparison.pairs) {
    const bool has_moved = pair.Moved();
    if (has_moved) ++moved;
    if (has_moved && shown < kShown) {
      ++shown;
    } else {
      table.elided.insert(table.rows.size());
    }
    table.Add(PairRow(pair));
  }
  if (!table.elided.empty()) {
    table.rest = fmt::format(
        "not shown: {} more that moved, {} that did not; json and csv have "
        "them",
        moved - shown,
        comparison.pairs.size() - moved);
  }
  if (comparison.pairs.size() == 1) {
    for (Column& column : table.columns) column.audience = Audience::kMachines;
    table.columns.erase(table.columns.begin());  // the name that people read
    table.rows.front().erase(table.rows.front().begin());
  }
  return table;
}

struct Setting {
  std::string key;
  std::string before;
  std::string after;
};

// "stack" of "scenario.workload.stack".
std::string LastName(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

// Whether the rows say it themselves.
bool IsOfRows(const std::string& name, const SavedAnswer& answer) {
  for (size_t part = 0; part < kParts.size(); ++part) {
    if (kParts[part].key == name) {
      return !answer.rows.front().parts[part].empty();
    }
  }
  return false;
}

// What the two were asked, or rest on, that is not the same.
std::vector<Setting> ChangedSettings(const SavedAnswer& before,
                                     const SavedAnswer& after) {
  std::set<std::string> keys;
  for (const SavedAnswer* answer : {&before, &after}) {
    for (const auto& [key, value] : answer->settings) keys.insert(key);
  }
  const auto value_of = [](const SavedAnswer& answer, const std::string& key) {
    const auto found = answer.settings.find(key);
    return found == answer.settings.end() ? "-" : found->second;
  };
  std::vector<Setting> changed;
  for (const std::string& key : keys) {
    Setting setting{key, value_of(before, key), value_of(after, key)};
    const std::string name = LastName(key);
    if (setting.before == setting.after || IsOfRows(name, after)) continue;
    // The workload in full repeats what the scenario says in short.
    const bool repeated =
        std::any_of(changed.begin(), changed.end(), [&](const Setting& other) {
          return LastName(other.key) == name &&
                 other.before == setting.before && other.after == setting.after;
        });
    if (!repeated) changed.push_back(std::move(setting));
  }
  return changed;
}

Table SettingTable(const std::vector<Setting>& settings) {
  Table table;
  table.title = "what they rest on that is not the same";
  table.columns = {{"key", "key", Align::kLeft},
                   {"before", "before", Align::kLeft},
                   {"after", "after", Align::kLeft}};
  for (const Setting& setting : settings) {
    if (table.rows.size() >= kShown) table.elided.insert(table.rows.size());
    table.Add({setting.key, setting.before, setting.after});
  }
  if (!table.elided.empty()) {
    table.rest =
        fmt::format("not shown: {} more; json has them", table.elided.size());
  }
  return table;
}

Json SideJson(const SavedRow& row) {
  Json json;
  for (size_t i = 0; i < kParts.size(); ++i) {
    const std::string& part = row.parts[i];
    json[std::string(kParts[i].key)] = part.empty()         ? Json(nullptr)
                                       : kParts[i].is_count ? Json::parse(part)
                                                            : Json(part);
  }
  for (size_t i = 0; i < kFigures.size(); ++i) {
    json[kFigures[i].Key()] = OrNull(row.figures[i]);
  }
  json["chosen"] = row.chosen;
  json["reason"] = row.reason.empty() ? Json(nullptr) : Json(row.reason);
  return json;
}

// A side that is nullptr has nothing to compare.
Json PairJson(const SavedRow* before, const SavedRow* after) {
  const bool both = before != nullptr && after != nullptr;
  Json change;
  for (size_t i = 0; i < kFigures.size(); ++i) {
    change[kFigures[i].Key("percent")] =
        both ? OrNull(Pair{before, after}.Change(i)) : Json(nullptr);
  }
  return {{"before", before != nullptr ? SideJson(*before) : Json(nullptr)},
          {"after", after != nullptr ? SideJson(*after) : Json(nullptr)},
          {"change", change}};
}

Json ChoiceJson(const SavedRow* before, const SavedRow* after) {
  Json json = PairJson(before, after);
  json["moved"] = before != nullptr && after != nullptr
                      ? before->parts != after->parts
                      : before != after;
  return json;
}

Json JsonOf(const SavedAnswer& before,
            const SavedAnswer& after,
            const Comparison& comparison) {
  Json json;
  json["of"] = after.schema;
  json["before"] = before.file;
  json["after"] = after.file;
  json["choice"] = after.recommends
                       ? ChoiceJson(ChoiceOf(before), ChoiceOf(after))
                       : Json(nullptr);
  Json settings = Json::array();
  for (const Setting& setting : ChangedSettings(before, after)) {
    settings.push_back({{"key", setting.key},
                        {"before", setting.before},
                        {"after", setting.after}});
  }
  json["settings"] = std::move(settings);
  Json changes = Json::array();
  for (const Pair& pair : comparison.pairs) {
    changes.push_back(PairJson(pair.before, pair.after));
  }
  json["changes"] = std::move(changes);
  const auto sides = [](const std::vector<const SavedRow*>& rows) {
    Json list = Json::array();
    for (const SavedRow* row : rows) list.push_back(SideJson(*row));
    return list;
  };
  json["only_before"] = sides(comparison.only_before);
  json["only_after"] = sides(comparison.only_after);
  return json;
}

// Rows that one of the files has alone.
void NoteAlone(const std::vector<const SavedRow*>& rows,
               const std::string& file,
               std::vector<Note>& notes) {
  if (rows.empty()) return;
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(rows.size(), kShown); ++i) {
    names.push_back(NameOf(*rows[i]));
  }
  notes.push_back(
      fmt::format("{} of {} alone: {}{}",
                  hardware::Plural(static_cast<int64_t>(rows.size()), "answer"),
                  file,
                  fmt::join(names, "; "),
                  rows.size() > kShown ? "; ..." : ""));
}

std::string Summary(const SavedAnswer& after, const Comparison& comparison) {
  const auto moved = std::count_if(
      comparison.pairs.begin(), comparison.pairs.end(), [](const Pair& pair) {
        return pair.Moved();
      });
  if (comparison.pairs.size() == 1) {
    const std::string words = ChangeWords(comparison.pairs.front());
    return fmt::format("{}: {}: {}",
                       after.title,
                       NameOf(comparison.pairs.front()),
                       words.empty() ? "nothing moved" : words);
  }
  return fmt::format("{}: {} of {} answers moved",
                     after.title,
                     moved,
                     comparison.pairs.size());
}

}  // namespace

namespace {

struct Difference {
  Json json;
  Report report;  // without its JSON
};

Difference DifferenceOf(const SavedAnswer& before, const SavedAnswer& after) {
  if (before.schema != after.schema) {
    throw model::InputError(
        fmt::format("{}: schema: expected {} as in {}, got {}",
                    after.file,
                    before.schema,
                    before.file,
                    after.schema));
  }
  const Comparison comparison = Compare(before, after);
  if (comparison.pairs.empty()) {
    throw model::InputError(
        fmt::format("{}: expected an answer to what {} answers ({}), got none "
                    "of its devices and settings ({})",
                    after.file,
                    before.file,
                    NameOf(before.rows.front()),
                    NameOf(after.rows.front())));
  }
  Report report;
  report.headline.push_back(Summary(after, comparison));
  report.tables.push_back(PairTable(comparison));
  if (comparison.pairs.size() == 1) {
    report.tables.push_back(FigureTable(comparison.pairs.front(), ""));
  }
  for (size_t i = 0; i < comparison.pairs.size(); ++i) {
    report.answers.push_back(fmt::format("/changes/{}", i));
  }
  if (after.recommends) {
    report.answers = {"/choice"};
    const SavedRow* from = ChoiceOf(before);
    const SavedRow* to = ChoiceOf(after);
    report.headline.push_back(ChoiceLine(from, to));
    report.closing = report.headline.back();
    if (from != nullptr && to != nullptr) {
      report.tables.push_back(FigureTable({from, to}, "the choice"));
    }
  }
  const std::vector<Setting> settings = ChangedSettings(before, after);
  if (!settings.empty()) report.tables.push_back(SettingTable(settings));
  NoteAlone(comparison.only_before, before.file, report.notes);
  NoteAlone(comparison.only_after, after.file, report.notes);
  return {JsonOf(before, after, comparison), std::move(report)};
}

}  // namespace

Report Diff(const std::string& before_file,
            const std::string& after_file,
            const Origin& origin) {
  Difference difference =
      DifferenceOf(LoadAnswer(before_file), LoadAnswer(after_file));
  Json json = ResultHead("trainfare.diff/1", origin);
  json.update(difference.json);
  Report& report = difference.report;
  report.json = AnswerText(std::move(json), report);
  return std::move(report);
}

void AddBaseline(const std::string& baseline_file, Report& report) {
  // As a file of it would be read.
  Difference difference = DifferenceOf(LoadAnswer(baseline_file),
                                       ParseAnswer(report.json, "this answer"));
  Json json = Json::parse(report.json);
  json["baseline"] = std::move(difference.json);
  for (const std::string& pointer : difference.report.answers) {
    report.changes.push_back("/baseline" + pointer);
  }
  report.json = hardware::WriteJson(json, hardware::JsonLayout::kIndented);
  for (const std::string& line : difference.report.headline) {
    report.headline.push_back(fmt::format("since {}: {}", baseline_file, line));
  }
  for (Table& table : difference.report.tables) {
    report.tables.push_back(std::move(table));
  }
}

}  // namespace trainfare::scenarios
