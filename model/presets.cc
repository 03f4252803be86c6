#include "model/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "model/decoder_presets.h"
#include "model/encoder_presets.h"
#include "model/error.h"
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

// nullptr when there is no such preset or alias.
const Architecture* Lookup(std::string_view name) {
  // The short names that tables and people use.
  static constexpr std::array kAliases = {
      std::pair{std::string_view("bert-base"),
                std::string_view("bert-base-uncased")},
      std::pair{std::string_view("bert-large"),
                std::string_view("bert-large-uncased")},
      std::pair{std::string_view("distilbert"),
                std::string_view("distilbert-base-uncased")},
      std::pair{std::string_view("gpt2-small"), std::string_view("gpt2")},
  };
  for (const auto& [alias, target] : kAliases) {
    if (alias == name) name = target;
  }
  for (const Architecture& preset : Presets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

}  // namespace

std::span<const Architecture> ArchitecturePresets() { return Presets(); }

std::optional<Architecture> TryFindArchitecture(std::string_view name) {
  if (const Architecture* found = Lookup(name)) return *found;
  return std::nullopt;
}

const Architecture& FindArchitecture(std::string_view name) {
  if (const Architecture* found = Lookup(name)) return *found;
  std::vector<std::string_view> names;
  for (const Architecture& preset : Presets()) names.push_back(preset.name);
  throw InputError(fmt::format("unknown model \"{}\"{}; known: {}",
                               name,
                               DidYouMean(name, names),
                               JoinNames(names, names.size())));
}

}  // namespace trainfare::model
