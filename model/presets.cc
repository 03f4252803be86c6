#include "model/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "model/decoder_presets.h"
#include "model/encoder_presets.h"
#include "model/error.h"
#include "model/letters.h"
#include "model/nearest.h"

namespace trainfare::model {
namespace {

const std::vector<Architecture>& Presets() {
  static const std::vector<Architecture> presets = [] {
    std::vector<Architecture> all = EncoderPresets();
    const std::vector<Architecture> decoders = DecoderPresets();
    all.insert(all.end(), decoders.begin(), decoders.end());
    std::sort(all.begin(),
              all.end(),
              [](const Architecture& a, const Architecture& b) {
                return a.name < b.name;
              });
    return all;
  }();
  return presets;
}

// The short names that tables and people use, and checkpoints whose
// architecture is another one's.
constexpr auto kAliases =
    std::to_array<std::pair<std::string_view, std::string_view>>(
        {{"bert-base", "bert-base-uncased"},
         {"bert-large", "bert-large-uncased"},
         {"deepseek-r1", "deepseek-v3"},
         {"deepseek-r1-distill-llama-8b", "llama-3.1-8b"},
         {"deepseek-r1-distill-llama-70b", "llama-3.1-70b"},
         {"deepseek-r1-distill-qwen-7b", "qwen2.5-7b"},
         {"deepseek-r1-distill-qwen-14b", "qwen2.5-14b"},
         {"deepseek-r1-distill-qwen-32b", "qwen2.5-32b"},
         {"distilbert", "distilbert-base-uncased"},
         {"flan-t5-small", "t5-v1.1-small"},
         {"flan-t5-base", "t5-v1.1-base"},
         {"flan-t5-large", "t5-v1.1-large"},
         {"flan-t5-xl", "t5-v1.1-xl"},
         {"flan-t5-xxl", "t5-v1.1-xxl"},
         {"gpt2-small", "gpt2"},
         {"llama-7b", "llama-2-7b"},
         {"llama-13b", "llama-2-13b"},
         {"llama-33b", "llama-30b"},
         {"llama-3.3-70b", "llama-3.1-70b"},
         {"mistral-7b-v0.3", "mistral-7b"},
         {"mixtral-8x7b-v0.1", "mixtral-8x7b"},
         {"mixtral-8x22b-v0.1", "mixtral-8x22b"},
         {"phi-3-mini-4k", "phi-3-mini"},
         {"qwen2-0.5b", "qwen2.5-0.5b"},
         {"qwen2-1.5b", "qwen2.5-1.5b"},
         {"qwen2-7b", "qwen2.5-7b"},
         {"qwen2-72b", "qwen2.5-72b"},
         {"qwen3-coder-30b-a3b", "qwen3-30b-a3b"},
         {"qwq-32b", "qwen2.5-32b"},
         {"starcoder-15b", "starcoder"},
         {"vicuna-7b", "llama-2-7b"},
         {"vicuna-13b", "llama-2-13b"},
         {"yi-1.5-6b", "yi-6b"},
         {"yi-1.5-34b", "yi-34b"},
         {"zephyr-7b", "mistral-7b-v0.1"}});

const Architecture* PresetOf(std::string_view name) {
  for (const Architecture& preset : Presets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

// nullptr when there is no such preset or alias.
const Architecture* Lookup(std::string_view name) {
  for (const auto& [alias, target] : kAliases) {
    if (alias == name) return PresetOf(target);
  }
  return PresetOf(name);
}

// Words of checkpoints: who trained it, for what, in which format.
constexpr std::array<std::string_view, 5> kOfCheckpoints = {
    "meta", "hf", "instruct", "chat", "it"};

// "llama" of "meta/llama", the form of a repository of models; a path stays.
std::string_view WithoutOrganisation(std::string_view name) {
  const size_t slash = name.find('/');
  const bool of_two = slash != std::string_view::npos && slash > 0 &&
                      name.find('/', slash + 1) == std::string_view::npos &&
                      name.front() != '.' && name.front() != '~';
  return of_two ? name.substr(slash + 1) : name;
}

// What of a name tells models apart, from all to the least.
struct Reading {
  bool points;  // "1.3b" is not "13b"
  bool base;    // "bert-base" is not "bert"
};
constexpr std::array<Reading, 4> kReadings = {
    {{true, true}, {true, false}, {false, true}, {false, false}}};

// A digit, a point and a digit with "p" for the point, which no word ends at.
std::string PointsAsLetters(std::string_view name) {
  std::string letters(name);
  const auto digit = [&](size_t i) {
    return i < letters.size() && letters[i] >= '0' && letters[i] <= '9';
  };
  for (size_t i = 1; i < letters.size(); ++i) {
    if (letters[i] == '.' && digit(i - 1) && digit(i + 1)) letters[i] = 'p';
  }
  return letters;
}

// The words of a name joined, without those of a checkpoint.
std::string LettersOf(std::string_view name, const Reading& reading) {
  std::string letters;
  for (const std::string& word :
       WordsOf(reading.points ? PointsAsLetters(name) : std::string(name))) {
    const bool idle =
        (word == "base" && !reading.base) ||
        std::find(kOfCheckpoints.begin(), kOfCheckpoints.end(), word) !=
            kOfCheckpoints.end();
    if (!idle) letters += word;
  }
  return letters;
}

}  // namespace

const Architecture* SpelledArchitecture(std::string_view name) {
  if (const Architecture* found = Lookup(name)) return found;
  const std::string_view of_model = WithoutOrganisation(name);
  if (of_model.find('/') != std::string_view::npos) return nullptr;
  for (const Reading& reading : kReadings) {
    const std::string letters = LettersOf(of_model, reading);
    if (letters.empty()) continue;
    // What a preset calls base stays: it has others of its name.
    const Reading of_preset{reading.points, true};
    for (const Architecture& preset : Presets()) {
      if (LettersOf(preset.name, of_preset) == letters) return &preset;
    }
    for (const auto& [alias, target] : kAliases) {
      if (LettersOf(alias, of_preset) == letters) return PresetOf(target);
    }
  }
  return nullptr;
}

std::span<const Architecture> ArchitecturePresets() { return Presets(); }

std::optional<Architecture> TryFindArchitecture(std::string_view name) {
  if (const Architecture* found = Lookup(name)) return *found;
  return std::nullopt;
}

const Architecture& FindArchitecture(std::string_view name) {
  if (const Architecture* found = SpelledArchitecture(name)) return *found;
  std::vector<std::string_view> names;
  for (const auto& [alias, target] : kAliases) names.push_back(alias);
  for (const Architecture& preset : Presets()) names.push_back(preset.name);
  throw InputError(
      fmt::format("unknown model \"{}\"{}; see trainfare list models, or give "
                  "its config.json",
                  name,
                  DidYouMean(name, names)));
}

}  // namespace trainfare::model
