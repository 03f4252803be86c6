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
constexpr std::array<std::pair<std::string_view, std::string_view>, 11>
    kAliases = {{{"bert-base", "bert-base-uncased"},
                 {"bert-large", "bert-large-uncased"},
                 {"distilbert", "distilbert-base-uncased"},
                 {"gpt2-small", "gpt2"},
                 {"llama-7b", "llama-2-7b"},
                 {"llama-13b", "llama-2-13b"},
                 {"llama-3.3-70b", "llama-3.1-70b"},
                 {"mistral-7b-v0.3", "mistral-7b"},
                 {"mixtral-8x7b-v0.1", "mixtral-8x7b"},
                 {"mixtral-8x22b-v0.1", "mixtral-8x22b"},
                 {"phi-3-mini-4k", "phi-3-mini"}}};

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

// The words of a name joined, without those of a checkpoint; without "base",
// too, where that is one.
std::string LettersOf(std::string_view name, bool base_counts) {
  std::string letters;
  for (const std::string& word : WordsOf(name)) {
    const bool idle =
        (word == "base" && !base_counts) ||
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
  for (const bool base_counts : {true, false}) {
    const std::string letters = LettersOf(of_model, base_counts);
    if (letters.empty()) continue;
    for (const Architecture& preset : Presets()) {
      if (LettersOf(preset.name, true) == letters) return &preset;
    }
    for (const auto& [alias, target] : kAliases) {
      if (LettersOf(alias, true) == letters) return PresetOf(target);
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
  for (const Architecture& preset : Presets()) names.push_back(preset.name);
  throw InputError(fmt::format("unknown model \"{}\"{}; known: {}",
                               name,
                               DidYouMean(name, names),
                               JoinNames(names, names.size())));
}

}  // namespace trainfare::model
