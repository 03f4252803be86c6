#pragma once

// An answer of predict or recommend as its JSON was saved, read back to be
// compared with another one.

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/units.h"

namespace trainfare::scenarios {

// What two answers are compared by. Its key in JSON is the stem and the unit:
// "run_time_s".
struct Figure {
  std::string_view stem;
  std::string_view unit;
  std::string_view words;

  std::string Key() const;
  // "run_time_before_s", "run_time_percent".
  std::string Key(std::string_view middle) const;
  // "1 h 3 min".
  std::string Text(double base_value) const;
};
constexpr auto kFigures = std::to_array<Figure>({
    {"step_time", "s", "step"},
    {"run_time", "s", "time"},
    {"cost", "usd", "cost"},
    {"energy", "j", "energy"},
    {"memory", "bytes", "memory"},
});

// What tells one row of an answer from the others.
struct Part {
  std::string_view key;
  bool is_count = false;
  std::string_view words = "";  // in front of it
  // What recommend may choose for a candidate, and so does not tell it apart.
  bool is_choice = false;
};
constexpr auto kParts = std::to_array<Part>({
    {"instance"},
    {"device"},
    {"devices", true, "devices "},
    {"hosts", true, "hosts "},
    {"batch", true, "batch ", true},
    {"sequence_length", true, "length "},
    {"precision", false, "", true},
});

struct SavedRow {
  std::array<std::string, kParts.size()> parts;  // empty: not said
  std::array<std::optional<double>, kFigures.size()> figures;
  bool chosen = false;
  std::string reason;  // why it is not, or does not fit; may be empty
};

struct SavedAnswer {
  std::string file;
  std::string schema;
  std::string title;  // of the job
  bool recommends = false;
  // All that stands beside the rows, "scenario.stack" = "eager".
  std::map<std::string, std::string> settings;
  std::vector<SavedRow> rows;
};

// Throws InputError "file: path.to.key: expected X, got Y" for what is no
// answer of predict or recommend.
SavedAnswer LoadAnswer(const std::string& path);
// The same of its text; `file` stands for it in messages.
SavedAnswer ParseAnswer(const std::string& text, const std::string& file);

}  // namespace trainfare::scenarios
