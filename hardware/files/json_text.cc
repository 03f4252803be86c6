#include "hardware/files/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "hardware/files/foreign_text.h"
#include "hardware/files/json_walk.h"
#include "model/error.h"

namespace trainfare::hardware {
namespace {

using model::InputError;
using nlohmann::json;

constexpr int kDeepest = 64;
constexpr size_t kMostShown = 60;

// Refuses, while the text is read, what the library itself lets pass.
class Strictness {
 public:
  // `line` as of ParseJson().
  Strictness(std::string_view text, const std::string& file, int line)
      : text_(text), file_(file), line_(line) {}

  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        if (depth >= kDeepest) {
          FailAt(
              [](const JsonWalk& walk) {
                return walk.depth() > size_t{kDeepest};
              },
              fmt::format("expected at most {} lists and objects within "
                          "each other, got more",
                          kDeepest));
        }
        if (event == json::parse_event_t::object_start) keys_.emplace_back();
        break;
      case json::parse_event_t::object_end:
        keys_.pop_back();
        break;
      case json::parse_event_t::key:
        ++count_of_keys_;
        if (!keys_.back().insert(parsed.get<std::string>()).second) {
          int64_t count = 0;
          FailAt(
              [&](const JsonWalk& walk) {
                return walk.is_key() && ++count == count_of_keys_;
              },
              fmt::format("the key {} stands twice", ShownJson(parsed)));
        }
        break;
      case json::parse_event_t::array_end:
      case json::parse_event_t::value:
        break;
    }
    return true;
  }

 private:
  // At the first token that `is_it` says yes to; where the text is a line, at
  // that line.
  template <class IsIt>
  [[noreturn]] void FailAt(IsIt is_it, const std::string& message) const {
    if (line_ > 0) throw InputError(file_, line_, 0, message);
    JsonWalk walk(text_);
    while (walk.Next() && !is_it(walk)) {
    }
    const JsonPlace place = walk.place();
    throw InputError(file_, place.line, place.column, message);
  }

  std::string_view text_;
  const std::string& file_;
  int line_;
  int64_t count_of_keys_ = 0;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
};

// The library stopped at a number that no double holds.
[[noreturn]] void FailAtLargeNumber(std::string_view text,
                                    const std::string& file,
                                    int line) {
  const auto is_too_large = [](const JsonWalk& walk) {
    const char first = walk.token().front();
    return (first == '-' || (first >= '0' && first <= '9')) &&
           !std::isfinite(std::strtod(std::string(walk.token()).c_str(),
                                      /*str_end=*/nullptr));
  };
  JsonWalk walk(text);
  while (walk.Next() && !is_too_large(walk)) {
  }
  const JsonPlace place = walk.place();
  throw InputError(
      file,
      line > 0 ? line : place.line,
      place.column,
      fmt::format("{}{}expected a number from {:.2g} to {:.2g}, got {}",
                  OneLine(walk.path(), kMostShown),
                  walk.path().empty() ? "" : ": ",
                  std::numeric_limits<double>::lowest(),
                  std::numeric_limits<double>::max(),
                  OneLine(walk.token(), kMostShown)));
}

// What stands where the library stopped, in place of JSON.
std::string_view InPlaceOfJson(std::string_view text, size_t at) {
  constexpr std::string_view kBlanks = " \t\r\n";
  if (text.find_first_not_of(kBlanks) == std::string_view::npos) {
    return "nothing";
  }
  return at >= text.size() ? "the end of the text; is it cut short?"
                           : "what is not JSON";
}

// The place of the first number that is not finite; empty: there is none.
template <class Json>
std::string NotFinite(const Json& value) {
  if (value.is_number_float()) {
    return std::isfinite(value.template get<double>()) ? "" : ".";
  }
  if (!value.is_structured()) return "";
  for (const auto& [key, item] : value.items()) {
    const std::string below = NotFinite(item);
    if (!below.empty()) return "." + key + (below == "." ? "" : below);
  }
  return "";
}

// Returns `text`, which is JSON, with what a terminal would act upon, and the
// library leaves as it is (C1, line separators, marks that turn the direction
// of writing), as escapes. Such stand inside of texts alone.
std::string Escaped(const std::string& text) {
  const auto plain = [](char letter) {
    return static_cast<unsigned char>(letter) < 0x7f;
  };
  if (std::all_of(text.begin(), text.end(), plain)) return text;
  std::string escaped;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t size = std::max<size_t>(CharacterSize(rest), 1);
    const std::string_view character = rest.substr(0, size);
    if (!plain(rest.front()) && OneLine(character) != character) {
      // Quotes around it, which the library writes.
      const std::string written = json(character).dump(-1, ' ', true);
      escaped += written.substr(1, written.size() - 2);
    } else {
      escaped += character;
    }
    rest.remove_prefix(size);
  }
  return escaped;
}

template <class Json>
std::string Written(const Json& value, JsonLayout layout) {
  const std::string place = NotFinite(value);
  if (!place.empty()) {
    throw InputError(
        fmt::format("{}: the answer is not a finite number; a figure of the "
                    "question is beyond what can be counted",
                    place.substr(1)));
  }
  return Escaped(value.dump(layout == JsonLayout::kIndented ? 2 : -1,
                            ' ',
                            false,
                            Json::error_handler_t::replace));
}

}  // namespace

json ParseJson(std::string_view text, const std::string& file, int line) {
  // A callback by reference: the library copies what it is given.
  Strictness strictness(text, file, line);
  try {
    return json::parse(text,
                       [&](int depth, json::parse_event_t event, json& parsed) {
                         return strictness(depth, event, parsed);
                       });
  } catch (const json::parse_error& error) {
    const size_t at =
        std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
    if (line > 0) {
      throw InputError(file,
                       line,
                       static_cast<int>(at) + 1,
                       fmt::format("expected one JSON object a line, got {}",
                                   InPlaceOfJson(text, at)));
    }
    const JsonPlace place = JsonWalk::PlaceOf(text, at);
    throw InputError(
        file,
        place.line,
        place.column,
        fmt::format("expected a JSON value, got {}", InPlaceOfJson(text, at)));
  } catch (const json::out_of_range&) {
    FailAtLargeNumber(text, file, line);
  }
}

std::optional<JsonPlace> FindInJson(std::string_view text,
                                    std::string_view path) {
  JsonWalk walk(text);
  while (walk.Next()) {
    if (!walk.is_key() && walk.path() == path) return walk.place();
  }
  return std::nullopt;
}

std::string WriteJson(const nlohmann::ordered_json& value, JsonLayout layout) {
  return Written(value, layout);
}

std::string WriteJson(const json& value, JsonLayout layout) {
  return Written(value, layout);
}

std::string ShownJson(const json& value) {
  std::string shown = value.dump(
      -1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  if (shown.size() > kMostShown) shown = shown.substr(0, kMostShown) + "...";
  return shown;
}

}  // namespace trainfare::hardware
