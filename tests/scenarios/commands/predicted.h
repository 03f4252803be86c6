#pragma once

// What predict is asked by its tests, and what it answers in notes.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "scenarios/commands/predict.h"

namespace trainfare::scenarios {

inline PredictOptions On(std::string_view device) {
  PredictOptions options;
  options.scenario = "emotion_bert_base";
  options.device = {std::string(device)};
  return options;
}

// A model without a scenario.
inline PredictOptions OfModel(const char* model,
                              int64_t length,
                              const char* device) {
  PredictOptions options;
  options.overrides.model = model;
  options.overrides.samples = 1000;
  options.overrides.lengths = {length};
  options.device = {device};
  return options;
}

inline bool HasNote(const Report& report, std::string_view words) {
  return std::any_of(
      report.notes.begin(), report.notes.end(), [&](const Note& note) {
        return note.text.find(words) != std::string::npos;
      });
}

}  // namespace trainfare::scenarios
