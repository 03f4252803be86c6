#include "scenarios/report/limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "hardware/files/unit_text.h"
#include "model/nearest.h"
#include "scenarios/report/column_unit.h"

namespace trainfare::scenarios {
namespace {

using hardware::Dimension;

// What the number of a limit may be written in, by the end of the key.
constexpr auto kUnits = std::to_array<std::pair<std::string_view, Dimension>>({
    {"_s", Dimension::kTime},
    {"_bytes", Dimension::kBytes},
    {"_j", Dimension::kEnergy},
    {"_w", Dimension::kPower},
    {"_usd", Dimension::kMoney},
});

std::optional<Dimension> DimensionOf(std::string_view figure) {
  if (figure.ends_with("_per_s")) return std::nullopt;
  for (const auto& [end, dimension] : kUnits) {
    if (figure.ends_with(end)) return dimension;
  }
  return std::nullopt;
}

// The number behind the sign; nullopt: it is none.
std::optional<double> ValueOf(std::string text, Limit& limit) {
  if (const auto number = hardware::ParseNumber(text)) return number;
  const std::optional<Dimension> dimension = DimensionOf(limit.figure);
  if (!dimension) {
    if (!text.ends_with('%')) return std::nullopt;
    limit.percent = true;
    text.pop_back();
    return hardware::ParseNumber(text);
  }
  if (*dimension == Dimension::kMoney) {
    // "20usd" is how one types it; the reader's unit is USD.
    std::transform(text.begin(), text.end(), text.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
  }
  return hardware::ParseBase(*dimension, text);
}

// Of "run_time" and "4h" that figures say their unit: "run_time_s".
std::string HintOfUnit(const std::string& figure, const std::string& amount) {
  if (DimensionOf(figure)) return "";
  for (const auto& [end, dimension] : kUnits) {
    if (!hardware::ParseBase(dimension, amount)) continue;
    return fmt::format("; hint: {}{}", figure, end);
  }
  return "";
}

bool IsFigureName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  });
}

// A value of an answer and its path within it.
struct Found {
  std::string path;
  const nlohmann::json* value = nullptr;
};

// All values of `object` and of the objects in it, by level: lists are of many
// things, and no figure.
std::vector<Found> ValuesOf(const nlohmann::json& object) {
  std::vector<Found> values;
  std::vector<Found> level = {{"", &object}};
  while (!level.empty()) {
    std::vector<Found> next;
    for (const Found& at : level) {
      for (const auto& item : at.value->items()) {
        Found found{at.path.empty() ? item.key()
                                    : fmt::format("{}.{}", at.path, item.key()),
                    &item.value()};
        if (item.value().is_object()) {
          next.push_back(std::move(found));
        } else if (!item.value().is_array()) {
          values.push_back(std::move(found));
        }
      }
    }
    level = std::move(next);
  }
  return values;
}

size_t DepthOf(std::string_view path) {
  return static_cast<size_t>(std::count(path.begin(), path.end(), '.'));
}

// The value of that name that is least deep; throws UsageError where several
// are.
const nlohmann::json* Find(const std::string& figure,
                           const nlohmann::json& object) {
  const Found* first = nullptr;
  const std::vector<Found> values = ValuesOf(object);
  for (const Found& found : values) {
    if (found.path != figure && !found.path.ends_with("." + figure)) continue;
    if (first == nullptr) {
      first = &found;
    } else if (DepthOf(found.path) == DepthOf(first->path)) {
      throw UsageError(fmt::format("--fail-if: \"{}\" is {} and {}; say which",
                                   figure,
                                   first->path,
                                   found.path));
    }
  }
  return first != nullptr ? first->value : nullptr;
}

bool IsPassed(const Limit& limit, double value, bool in_percent) {
  const bool is_share =
      limit.percent && !in_percent && !limit.figure.ends_with("_percent");
  const double most = is_share ? limit.value / 100.0 : limit.value;
  if (!std::isfinite(value)) return true;
  if (limit.inclusive && value == most) return true;
  return limit.above ? value > most : value < most;
}

// "cost_usd is 120.3, limit cost_usd>100"; "" where the limit holds.
std::string Judge(const Limit& limit,
                  const nlohmann::json* value,
                  const std::string& of,
                  bool in_percent) {
  const std::string what =
      of.empty() ? limit.figure : fmt::format("{} of {}", limit.figure, of);
  if (value == nullptr || value->is_null()) {
    return fmt::format("{} is not known, limit {}", what, limit.text);
  }
  if (!value->is_number()) {
    throw UsageError(fmt::format("--fail-if: expected a figure, \"{}\" is {}",
                                 limit.figure,
                                 value->dump()));
  }
  const double number = value->get<double>();
  if (!IsPassed(limit, number, in_percent)) return "";
  return fmt::format("{} is {}{}, limit {}",
                     what,
                     PlainNumber(number, 4),
                     in_percent ? " %" : "",
                     limit.text);
}

[[noreturn]] void RefuseUnknown(const std::string& figure,
                                const std::set<std::string>& known) {
  throw UsageError(
      fmt::format("--fail-if: unknown figure \"{}\"{}",
                  figure,
                  model::OfKnown(figure, model::NameViews(known))));
}

// The last names of all figures of the answers and of what stands beside them.
std::set<std::string> NamesOf(
    const std::vector<const nlohmann::json*>& objects) {
  std::set<std::string> names;
  for (const nlohmann::json* object : objects) {
    for (const Found& found : ValuesOf(*object)) {
      if (!found.value->is_number() && !found.value->is_null()) continue;
      names.insert(found.path.substr(found.path.rfind('.') + 1));
    }
  }
  return names;
}

// An object of an answer and the figure that a limit is on; nullptr: it has
// none of that name.
struct Place {
  std::string name;  // empty: the only one
  const nlohmann::json* object = nullptr;
  const nlohmann::json* value = nullptr;
};

std::vector<Place> PlacesOf(const std::string& figure,
                            const std::vector<std::string>& pointers,
                            const nlohmann::json& whole) {
  std::vector<Place> places;
  for (const std::string& pointer : pointers) {
    const nlohmann::json& object =
        whole.at(nlohmann::json::json_pointer(pointer));
    places.push_back({pointers.size() > 1 ? pointer.substr(1) : "",
                      &object,
                      Find(figure, object)});
  }
  return places;
}

// Whether the part that a path leads into is null there.
bool LacksPart(const std::string& figure, const nlohmann::json& object) {
  const size_t end = figure.rfind('.');
  if (end == std::string::npos) return false;
  const nlohmann::json* part = Find(figure.substr(0, end), object);
  return part != nullptr && part->is_null();
}

bool HaveIt(const std::vector<Place>& places) {
  return std::any_of(places.begin(), places.end(), [](const Place& place) {
    return place.value != nullptr;
  });
}

// Where the figure of a limit stands: in the answers, else in what moved since
// a baseline, else beside them. Throws UsageError: nowhere.
std::vector<Place> PlacesOf(const Limit& limit,
                            const nlohmann::json& whole,
                            const Report& report,
                            Unfound unfound) {
  std::vector<const nlohmann::json*> objects;
  bool absent = unfound == Unfound::kNotKnown;
  for (const auto* pointers : {&report.answers, &report.changes}) {
    std::vector<Place> places = PlacesOf(limit.figure, *pointers, whole);
    if (HaveIt(places)) return places;
    for (const Place& place : places) {
      objects.push_back(place.object);
      absent = absent || place.object->is_null() ||
               LacksPart(limit.figure, *place.object);
    }
  }
  std::vector<Place> beside = {{"", &whole, Find(limit.figure, whole)}};
  if (HaveIt(beside)) return beside;
  objects.push_back(&whole);
  absent = absent || LacksPart(limit.figure, whole);
  // What an answer, or a part of one, that is not there would say cannot be
  // known.
  if (!absent) RefuseUnknown(limit.figure, NamesOf(objects));
  return beside;
}

// What is passed of one limit.
std::vector<std::string> JudgeAll(const Limit& limit,
                                  const nlohmann::json& whole,
                                  const Report& report,
                                  Unfound unfound) {
  std::vector<std::string> passed;
  for (const Place& place : PlacesOf(limit, whole, report, unfound)) {
    std::string words =
        Judge(limit, place.value, place.name, report.answers_in_percent);
    if (!words.empty()) passed.push_back(std::move(words));
  }
  return passed;
}

// A list may have a thousand rows; a complaint is one line.
std::string FirstOf(const std::vector<std::string>& passed) {
  constexpr size_t kNamed = 10;
  if (passed.size() <= kNamed) {
    return fmt::format("{}", fmt::join(passed, "; "));
  }
  const auto end = passed.begin() + kNamed;
  return fmt::format("{}; and {} more",
                     fmt::join(passed.begin(), end, "; "),
                     passed.size() - kNamed);
}

}  // namespace

Limit LimitFromText(std::string_view text) {
  const auto refuse = [&](const std::string& hint = "") {
    throw UsageError(fmt::format(
        "--fail-if: expected a limit such as \"cost_usd>100\" or \"mape>5%\", "
        "a figure of the JSON answer, got \"{}\"{}",
        text,
        hint));
  };
  Limit limit;
  limit.text = text;
  std::string compact;
  for (const char letter : text) {
    if (letter != ' ') compact += letter;
  }
  const size_t sign = compact.find_first_of("<>");
  if (sign == std::string::npos) refuse();
  limit.figure = compact.substr(0, sign);
  limit.above = compact[sign] == '>';
  size_t number = sign + 1;
  if (number < compact.size() && compact[number] == '=') {
    limit.inclusive = true;
    ++number;
  }
  const std::string amount = compact.substr(number);
  const std::optional<double> value = ValueOf(amount, limit);
  if (!value && IsFigureName(limit.figure)) {
    refuse(HintOfUnit(limit.figure, amount));
  }
  if (!value || !IsFigureName(limit.figure)) refuse();
  limit.value = *value;
  return limit;
}

void RequireFigures(const std::vector<Limit>& limits,
                    const std::vector<std::string>& known) {
  const std::set<std::string> names(known.begin(), known.end());
  for (const Limit& limit : limits) {
    if (limit.figure.find('.') == std::string::npos &&
        !names.contains(limit.figure)) {
      RefuseUnknown(limit.figure, names);
    }
  }
}

void CheckLimits(const std::vector<Limit>& limits,
                 Report& report,
                 Unfound unfound) {
  if (limits.empty() || report.exit_code != kOk) return;
  const nlohmann::json whole = nlohmann::json::parse(report.json);
  std::vector<std::string> passed;
  for (const Limit& limit : limits) {
    for (std::string& words : JudgeAll(limit, whole, report, unfound)) {
      passed.push_back(std::move(words));
    }
  }
  if (passed.empty()) return;
  report.exit_code = kLimitPassed;
  report.complaint = fmt::format("--fail-if: {}", FirstOf(passed));
}

}  // namespace trainfare::scenarios
