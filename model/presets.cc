#include "model/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "model/decoder_presets.h"
#include "model/encoder_presets.h"
#include "model/error.h"
#include "model/letters.h"
#include "model/nearest.h"
#include "model/preset_aliases.h"

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

const Architecture* PresetOf(std::string_view name) {
  const std::vector<Architecture>& all = Presets();
  const auto found =
      std::lower_bound(all.begin(),
                       all.end(),
                       name,
                       [](const Architecture& preset, std::string_view asked) {
                         return preset.name < asked;
                       });
  ENSURE(found != all.end() && found->name == name, "an alias of no preset");
  return &*found;
}

// Aliases that have other positions than their presets.
const std::deque<Architecture>& OfOtherLengths() {
  static const std::deque<Architecture> all = [] {
    std::deque<Architecture> others;
    for (const PresetAlias& alias : PresetAliases()) {
      if (alias.positions == 0) continue;
      Architecture& other = others.emplace_back(*PresetOf(alias.preset));
      other.name = alias.name;
      other.positions = alias.positions;
    }
    return others;
  }();
  return all;
}

// Words of checkpoints: who trained it, for what, in which format; of one
// family alone where another has them for a language.
struct IdleWord {
  std::string_view word;
  std::string_view family;
  std::string_view but_of = {};  // has another vocabulary in these
  // Of what repacked weights are quantised to; 0: none, or it says no number.
  int64_t bits = 0;
};
constexpr auto kOfCheckpoints =
    std::to_array<IdleWord>({{"4bit", "", "", 4},
                             {"8bit", "", "", 8},
                             {"awq", "", "", 4},
                             {"bf16", ""},
                             {"bnb", "", "", 4},
                             {"chat", ""},
                             {"deduped", "pythia"},
                             {"dpo", ""},
                             {"fp16", ""},
                             {"fp4", "", "", 4},
                             {"gguf", ""},
                             {"gptq", "", "", 4},
                             {"hf", ""},
                             {"instruct", "", "8x22b"},
                             {"int4", "", "", 4},
                             {"int8", "", "", 8},
                             {"it", "gemma"},
                             {"meta", ""},
                             {"mxfp4", "", "", 4},
                             {"nf4", "", "", 4},
                             {"nvfp4", "", "", 4},
                             {"pt", "gemma"},
                             {"sft", ""},
                             {"unsloth", ""}});

bool IsIdle(std::string_view word, std::string_view lowered_name) {
  return std::any_of(
      kOfCheckpoints.begin(), kOfCheckpoints.end(), [&](const IdleWord& idle) {
        const auto says = [&](std::string_view part) {
          return lowered_name.find(part) != std::string_view::npos;
        };
        return idle.word == word && says(idle.family) &&
               (idle.but_of.empty() || !says(idle.but_of));
      });
}

// Whose models bear the names of presets and have vocabularies of their own.
constexpr std::array<std::string_view, 1> kOthersOfAName = {"klue"};

// Whose blocks are other than those of presets that are spelled nearly alike
// ("deberta-v3-base", "roberta-base"): none is suggested in their place.
constexpr auto kFamiliesWithoutPreset = std::to_array<std::string_view>(
    {"deberta", "longformer", "mpnet", "xlnet"});

// Networks that read or make pictures or sound, or both and text.
constexpr auto kFamiliesBesideText =
    std::to_array<std::string_view>({"clip",
                                     "dinov2",
                                     "flux",
                                     "internvl",
                                     "llava",
                                     "pixtral",
                                     "resnet",
                                     "sdxl",
                                     "siglip",
                                     "stable-diffusion",
                                     "vit-",
                                     "wav2vec2",
                                     "whisper"});

// "llama" of "meta/llama", the form of a repository of models; a path stays.
std::string_view WithoutOrganisation(std::string_view name) {
  const size_t slash = name.find('/');
  const bool of_two = slash != std::string_view::npos && slash > 0 &&
                      name.find('/', slash + 1) == std::string_view::npos &&
                      name.front() != '.' && name.front() != '~' &&
                      std::find(kOthersOfAName.begin(),
                                kOthersOfAName.end(),
                                name.substr(0, slash)) == kOthersOfAName.end();
  return of_two ? name.substr(slash + 1) : name;
}

// How the numbers of a name are read, the surest first.
enum class Numbers {
  kPoints,       // "1.3b" is not "1-3b", which is not "13b"
  kUnderscores,  // "1_3b" is "1.3b", as names of repositories have it
  kWords,        // "1-3b" is "1.3b"
  kJoined        // so is "31-8b" "3.1-8b", but "13b" is no "1.3b"
};
constexpr std::array kNumbers = {
    Numbers::kPoints, Numbers::kUnderscores, Numbers::kWords, Numbers::kJoined};

bool IsDigit(char letter) { return letter >= '0' && letter <= '9'; }

// What stands for a point between two digits, with "p" in its place, at which
// no word ends.
std::string PointsAsLetters(std::string_view name, std::string_view points) {
  std::string letters(name);
  for (size_t i = 1; i + 1 < letters.size(); ++i) {
    if (points.find(letters[i]) != std::string_view::npos &&
        IsDigit(letters[i - 1]) && IsDigit(letters[i + 1])) {
      letters[i] = 'p';
    }
  }
  return letters;
}

bool HasPoint(std::string_view name) {
  return PointsAsLetters(name, ".") != name;
}

std::vector<std::string> WordsIn(std::string_view name, Numbers numbers) {
  switch (numbers) {
    case Numbers::kPoints:
      return WordsOf(PointsAsLetters(name, "."));
    case Numbers::kUnderscores:
      return WordsOf(PointsAsLetters(name, "._"));
    case Numbers::kWords:
    case Numbers::kJoined:
      return WordsOf(name);
  }
  ENSURE(false, "numbers without a reading");
}

// The words of a name joined, without those of a checkpoint; `base`:
// "bert-base" is not "bert". Between two digits a blank stays: "3 8b" is not "38b".
std::string LettersOf(std::string_view name, Numbers numbers, bool base) {
  const std::string lowered = Lowered(name);
  std::string letters;
  for (const std::string& word : WordsIn(lowered, numbers)) {
    if ((word == "base" && !base) || IsIdle(word, lowered)) continue;
    const bool of_version = numbers == Numbers::kJoined &&
                            word.front() != '0' &&
                            std::all_of(word.begin(), word.end(), IsDigit);
    if (!letters.empty() && IsDigit(letters.back()) && IsDigit(word.front()) &&
        !of_version) {
      letters += ' ';
    }
    letters += word;
  }
  return letters;
}

// A preset, or what one of its aliases means, by a name of it.
struct Named {
  std::string_view name;
  const Architecture* architecture;
};

// Presets before aliases.
const std::vector<Named>& AllNames() {
  static const std::vector<Named> names = [] {
    std::vector<Named> all;
    for (const Architecture& preset : Presets()) {
      all.push_back({preset.name, &preset});
    }
    for (const PresetAlias& alias : PresetAliases()) {
      if (alias.positions > 0) continue;
      all.push_back({alias.name, PresetOf(alias.preset)});
    }
    for (const Architecture& other : OfOtherLengths()) {
      all.push_back({other.name, &other});
    }
    return all;
  }();
  return names;
}

// nullptr when there is no such preset or alias.
const Architecture* Lookup(std::string_view name) {
  for (const Named& known : AllNames()) {
    if (known.name == name) return known.architecture;
  }
  return nullptr;
}

// A name's letters, by how its numbers are read. What a preset calls base
// stays: it has others of its name.
using Letters = std::array<std::string, kNumbers.size()>;

// Of each of AllNames(). Made when a spelling is asked for that no name has:
// most commands ask for none.
const std::vector<Letters>& AllLetters() {
  static const std::vector<Letters> all = [] {
    std::vector<Letters> letters;
    for (const Named& known : AllNames()) {
      Letters& of_name = letters.emplace_back();
      for (size_t i = 0; i < kNumbers.size(); ++i) {
        of_name[i] = LettersOf(known.name, kNumbers[i], /*base=*/true);
      }
    }
    return letters;
  }();
  return all;
}

// Where two models would answer none does.
const Architecture* OfLetters(std::string_view letters, size_t numbers) {
  const Architecture* found = nullptr;
  if (letters.empty()) return found;
  for (size_t i = 0; i < AllNames().size(); ++i) {
    if (AllLetters()[i][numbers] != letters) continue;
    const Architecture* known = AllNames()[i].architecture;
    if (found != nullptr && found != known) return nullptr;
    found = known;
  }
  return found;
}

// The last part of a name without the words of a checkpoint: what a mistyped
// name is compared by.
std::string ComparedName(std::string_view name) {
  const std::string last = Lowered(name.substr(name.rfind('/') + 1));
  std::string compared;
  for (size_t begin = 0; begin <= last.size();) {
    const size_t end = std::min(last.find('-', begin), last.size());
    const std::string word = last.substr(begin, end - begin);
    if (!IsIdle(word, last)) compared += (compared.empty() ? "" : "-") + word;
    begin = end + 1;
  }
  return compared;
}

bool BeginsWithOneOf(std::string_view compared,
                     std::span<const std::string_view> families) {
  return std::any_of(
      families.begin(), families.end(), [&](std::string_view family) {
        return compared.starts_with(family);
      });
}

// "qwen2-vl-7b" is beside text, whatever its family.
bool IsBesideText(std::string_view compared) {
  return BeginsWithOneOf(compared, kFamiliesBesideText) ||
         fmt::format("{}-", compared).find("-vl-") != std::string::npos;
}

// Names that go on from a family's as it is spelled, the shortest first:
// "llama-3-8b" from "llama3", which "llama-30b" does not.
std::vector<std::string_view> NamesOfFamily(std::string_view name) {
  constexpr size_t kMost = 3;
  const std::string family =
      LettersOf(ComparedName(name), Numbers::kPoints, /*base=*/true);
  std::vector<std::string_view> members;
  if (family.size() < 2 || !IsDigit(family.back())) return members;
  for (const Named& known : AllNames()) {
    const std::string letters =
        LettersOf(known.name, Numbers::kPoints, /*base=*/true);
    if (letters.size() > family.size() && letters.starts_with(family) &&
        !IsDigit(letters[family.size()])) {
      members.push_back(known.name);
    }
  }
  std::stable_sort(members.begin(), members.end(), [](auto a, auto b) {
    return a.size() < b.size();
  });
  if (members.size() > kMost) members.resize(kMost);
  return members;
}

}  // namespace

int64_t BitsInName(std::string_view name) {
  int64_t bits = 0;
  for (const std::string& word : WordsOf(name)) {
    for (const IdleWord& idle : kOfCheckpoints) {
      // "bnb-8bit": the number says more than who quantised it.
      if (idle.word == word && idle.bits > 0) bits = idle.bits;
    }
  }
  return bits;
}

const Architecture* SpelledArchitecture(std::string_view name) {
  if (const Architecture* found = Lookup(name)) return found;
  const std::string_view of_model = WithoutOrganisation(name);
  if (of_model.find('/') != std::string_view::npos) return nullptr;
  for (size_t i = 0; i < kNumbers.size(); ++i) {
    // Who writes points means them.
    if (kNumbers[i] >= Numbers::kWords && HasPoint(of_model)) break;
    for (const bool base : {true, false}) {
      const std::string letters = LettersOf(of_model, kNumbers[i], base);
      if (const Architecture* found = OfLetters(letters, i)) return found;
    }
  }
  return nullptr;
}

std::span<const Architecture> ArchitecturePresets() { return Presets(); }

std::vector<Architecture> CheckpointsOfOtherLengths() {
  return {OfOtherLengths().begin(), OfOtherLengths().end()};
}

std::vector<std::string_view> AliasesOf(std::string_view preset) {
  std::vector<std::string_view> aliases;
  for (const PresetAlias& alias : PresetAliases()) {
    if (alias.preset == preset && alias.positions == 0) {
      aliases.push_back(alias.name);
    }
  }
  return aliases;
}

std::optional<Architecture> TryFindArchitecture(std::string_view name) {
  if (const Architecture* found = Lookup(name)) return *found;
  return std::nullopt;
}

const Architecture& FindArchitecture(std::string_view name) {
  return FindArchitectureOr(name, "");
}

std::string ArchitecturesMeant(std::string_view name) {
  const std::vector<std::string_view> family = NamesOfFamily(name);
  if (!family.empty()) {
    return fmt::format("; did you mean {}?",
                       QuotedAlternatives({family.begin(), family.end()}));
  }
  const std::string compared = ComparedName(name);
  if (IsBesideText(compared)) return "; models of text alone are counted";
  if (BeginsWithOneOf(compared, kFamiliesWithoutPreset)) return "";
  std::vector<std::string_view> names;
  for (const Named& known : AllNames()) names.push_back(known.name);
  return DidYouMean(compared, names);
}

const Architecture& FindArchitectureOr(std::string_view name,
                                       std::string_view or_else) {
  if (const Architecture* found = SpelledArchitecture(name)) return *found;
  const std::string near = ArchitecturesMeant(name);
  throw InputError(
      fmt::format("unknown model \"{}\"{}{} see trainfare list models{}",
                  name,
                  near,
                  near.ends_with('?') ? "" : ";",
                  or_else));
}

}  // namespace trainfare::model
