#include "hardware/catalog/device_spelling.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "model/letters.h"

namespace trainfare::hardware {
namespace {

// Words that tell no two devices apart.
constexpr std::array<std::string_view, 26> kIdleWords = {
    "nvidia", "amd",    "intel", "google",      "aws",         "amazon",
    "habana", "cloud",  "tesla", "geforce",     "instinct",    "gpu",
    "chip",   "ai",     "r",     "accelerator", "oam",         "hbm2",
    "hbm2e",  "hbm3",   "hbm3e", "server",      "workstation", "generation",
    "nvl72",  "edition"};

// How far apart two figures of one memory may be: 141 GB are 140.4.
constexpr double kSameMemory = 0.03;

constexpr size_t kMostMeant = 6;

// From the strictest on: which letters of the joined words count.
enum class Letters { kAll, kAnySocket, kNoSeries };
constexpr std::array kLetters = {
    Letters::kAll, Letters::kAnySocket, Letters::kNoSeries};

struct Spelling {
  std::string letters;
  std::optional<int64_t> gigabytes;
};

bool IsUnit(std::string_view text) {
  return text == "gb" || text == "gib" || text == "g";
}

// 80 of "80gb", or of "80" before "gb", which `next` is then.
std::optional<int64_t> GigabytesOf(std::string_view word,
                                   std::string_view next) {
  int64_t value = 0;
  const char* end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || rest == word.data()) return std::nullopt;
  const std::string_view unit(rest, static_cast<size_t>(end - rest));
  if (unit.empty() ? !IsUnit(next) : !IsUnit(unit)) return std::nullopt;
  return value;
}

Spelling SpellingOf(std::string_view name) {
  Spelling spelling;
  const std::vector<std::string> words = model::WordsOf(name);
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view next =
        i + 1 < words.size() ? std::string_view(words[i + 1]) : "";
    if (const auto gigabytes = GigabytesOf(words[i], next)) {
      spelling.gigabytes = gigabytes;
      if (IsUnit(next)) ++i;
    } else if (std::find(kIdleWords.begin(), kIdleWords.end(), words[i]) ==
               kIdleWords.end()) {
      spelling.letters += words[i];
    }
  }
  return spelling;
}

std::string Reduced(std::string letters, Letters which) {
  if (which == Letters::kAll) return letters;
  const size_t socket = letters.find("sxm");
  if (socket != std::string::npos && socket + 3 < letters.size() &&
      letters[socket + 3] >= '0' && letters[socket + 3] <= '9') {
    letters.erase(socket + 3, 1);
  }
  if (which == Letters::kNoSeries &&
      (letters.starts_with("rtx") || letters.starts_with("gtx"))) {
    letters.erase(0, 3);
  }
  return letters;
}

bool HasMemory(const DeviceNames& device, const Spelling& asked) {
  if (!asked.gigabytes) return true;
  const auto bytes = model::ToBytes(device.memory);
  const auto gigabytes = static_cast<double>(*asked.gigabytes);
  return std::abs(bytes / (gigabytes * 1e9) - 1.0) < kSameMemory ||
         std::abs(bytes / (gigabytes * 1073741824.0) - 1.0) < kSameMemory;
}

// Whether one of the device's names is spelled as `accepts` asks.
template <class Accepts>
bool AnyName(const DeviceNames& device, Letters which, const Accepts& accepts) {
  const auto accepted = [&](std::string_view name) {
    Spelling spelling = SpellingOf(name);
    spelling.letters = Reduced(std::move(spelling.letters), which);
    return accepts(spelling);
  };
  return accepted(device.name) ||
         std::any_of(device.others.begin(), device.others.end(), accepted);
}

// Places of those of the same letters: by their own names with as much said of
// the memory, else by any name with memory that agrees.
std::vector<size_t> Alike(const std::vector<DeviceNames>& devices,
                          const Spelling& asked,
                          Letters which) {
  const std::string letters = Reduced(asked.letters, which);
  std::vector<size_t> as_said;
  std::vector<size_t> agreeing;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (!HasMemory(devices[i], asked)) continue;
    if (!AnyName(devices[i], which, [&](const Spelling& of_device) {
          return of_device.letters == letters;
        })) {
      continue;
    }
    agreeing.push_back(i);
    const Spelling own = SpellingOf(devices[i].name);
    if (Reduced(own.letters, which) == letters &&
        own.gigabytes == asked.gigabytes) {
      as_said.push_back(i);
    }
  }
  return as_said.empty() ? agreeing : as_said;
}

// Without the series that people leave out, "quadro" too: "RTX 6000" is of two
// generations.
std::string WithoutSeries(std::string letters) {
  constexpr std::string_view kQuadro = "quadro";
  if (letters.starts_with(kQuadro)) letters.erase(0, kQuadro.size());
  return Reduced(std::move(letters), Letters::kNoSeries);
}

// Without the form that a device of its family has, and what is said behind it:
// "p100" of "p100pcie".
std::string WithoutForm(std::string letters) {
  constexpr std::array<std::string_view, 3> kForms = {"pcie", "sxm", "nvl"};
  for (const std::string_view form : kForms) {
    const size_t at = letters.find(form);
    if (at != std::string::npos) letters.erase(at);
  }
  return letters;
}

// Names of the devices from which so spelled a name goes on, the nearest: those
// of most letters.
std::vector<std::string_view> GoesOnFrom(
    const std::vector<DeviceNames>& devices, std::string_view letters) {
  constexpr size_t kFewestLetters = 3;
  std::vector<std::string_view> nearest;
  size_t most = kFewestLetters;
  for (const DeviceNames& device : devices) {
    const std::string own = WithoutSeries(SpellingOf(device.name).letters);
    if (own.size() < most || !letters.starts_with(own)) continue;
    if (own.size() > most) nearest.clear();
    most = own.size();
    nearest.push_back(device.name);
  }
  return nearest;
}

}  // namespace

std::optional<size_t> SpelledAlike(const std::vector<DeviceNames>& devices,
                                   std::string_view name) {
  const Spelling asked = SpellingOf(name);
  for (const Letters which : kLetters) {
    if (Reduced(asked.letters, which).empty()) return std::nullopt;
    const std::vector<size_t> alike = Alike(devices, asked, which);
    if (alike.size() > 1) return std::nullopt;
    if (!alike.empty()) return alike.front();
  }
  return std::nullopt;
}

std::optional<size_t> OnlyForm(const std::vector<DeviceNames>& devices,
                               std::string_view name) {
  const Spelling asked = SpellingOf(name);
  std::optional<size_t> only;
  if (asked.letters.empty()) return only;
  for (size_t i = 0; i < devices.size(); ++i) {
    const Spelling own = SpellingOf(devices[i].name);
    if (WithoutForm(own.letters) != asked.letters) continue;
    if (only) return std::nullopt;
    only = i;
  }
  if (only && !HasMemory(devices[*only], asked)) return std::nullopt;
  return only;
}

std::vector<std::string_view> PerhapsMeant(
    const std::vector<DeviceNames>& devices, std::string_view name) {
  const Spelling asked = SpellingOf(name);
  const std::string letters = WithoutSeries(asked.letters);
  std::vector<std::string_view> meant;
  if (letters.size() < 2) return meant;
  for (const DeviceNames& device : devices) {
    if (meant.size() == kMostMeant) break;
    if (!HasMemory(device, asked)) continue;
    if (AnyName(device, Letters::kAll, [&](const Spelling& of_device) {
          return WithoutSeries(of_device.letters).starts_with(letters);
        })) {
      meant.push_back(device.name);
    }
  }
  return meant.empty() ? GoesOnFrom(devices, letters) : meant;
}

std::vector<std::string_view> OtherForms(
    const std::vector<DeviceNames>& devices,
    std::string_view taken,
    std::string_view name) {
  const Spelling asked = SpellingOf(name);
  const std::string family = asked.letters + "_";
  std::vector<std::string_view> others;
  if (!taken.starts_with(family)) return others;
  for (const DeviceNames& device : devices) {
    if (device.name != taken && device.name.starts_with(family) &&
        HasMemory(device, asked)) {
      others.push_back(device.name);
    }
  }
  return others;
}

}  // namespace trainfare::hardware
