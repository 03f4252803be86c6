#include "calibrate/records/import/system_name.h"

#include <cctype>
#include <map>
#include <set>

#include "hardware/catalog/device.h"
#include "model/letters.h"

namespace trainfare::calibrate {
namespace {

bool IsDigit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool IsLetter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

// Adds those of a name in lower case: "a4000", "v100", "3090", "mi250"; not its
// memory, "480gb".
void AddNumbers(const std::string& name, std::set<std::string>& numbers) {
  constexpr size_t kLeastDigits = 3;
  for (size_t i = 0; i < name.size();) {
    if (!IsDigit(name[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < name.size() && IsDigit(name[end])) ++end;
    size_t begin = i;
    while (begin > 0 && IsLetter(name[begin - 1])) --begin;
    const bool is_size = name.compare(end, 1, "g") == 0;
    if (end - i >= kLeastDigits && !is_size) {
      numbers.insert(name.substr(begin, end - begin));
    }
    i = end;
  }
}

const std::map<std::string, std::set<std::string>>& NumbersOfDevices() {
  static const auto numbers = [] {
    std::map<std::string, std::set<std::string>> of_devices;
    for (const hardware::Device& device :
         hardware::DeviceCatalog::Shipped().devices()) {
      std::set<std::string>& own = of_devices[device.name];
      AddNumbers(model::Lowered(device.reported_name), own);
      for (const std::string& alias : device.aliases) {
        AddNumbers(model::Lowered(alias), own);
      }
    }
    return of_devices;
  }();
  return numbers;
}

// As a word of its own, or behind a count: "4xv100".
bool NamesByItself(const std::string& system, const std::string& number) {
  for (size_t at = system.find(number); at != std::string::npos;
       at = system.find(number, at + 1)) {
    const size_t end = at + number.size();
    const auto is_word = [&](size_t i) {
      return IsDigit(system[i]) || IsLetter(system[i]);
    };
    const bool begins =
        at == 0 || !is_word(at - 1) ||
        (at >= 2 && system[at - 1] == 'x' && IsDigit(system[at - 2]));
    if (begins && (end == system.size() || !is_word(end))) return true;
  }
  return false;
}

}  // namespace

std::string OtherDeviceNamed(std::string_view system, std::string_view device) {
  const std::string name = model::Lowered(system);
  const auto& numbers = NumbersOfDevices();
  const auto own = numbers.find(std::string(device));
  if (own == numbers.end() || own->second.empty()) return "";
  for (const std::string& number : own->second) {
    if (name.find(number) != std::string::npos) return "";
  }
  for (const auto& [other, of_other] : numbers) {
    for (const std::string& number : of_other) {
      if (NamesByItself(name, number)) return other;
    }
  }
  return "";
}

}  // namespace trainfare::calibrate
