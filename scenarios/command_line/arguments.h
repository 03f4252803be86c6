#pragma once

// Kinds of options that several commands have, in our own words where they are
// wrong. The library behind the command line stays out of this header.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.h"
#include "model/words.h"
#include "scenarios/report/output.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name is the library's.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace trainfare::scenarios {

// Turns the text of a whole number of 64 bits into one without spaces around
// it; else what is wrong with it in words. "" where it is one.
std::string WholeNumber(std::string& text);

// The words that an option's value may be, as its type: --help has
// "auto|always|never", and completion.cc offers those without a capital letter.
std::string Choices(const std::vector<std::string_view>& words);
template <model::HasWordTable Enum>
std::string Choices() {
  std::vector<std::string_view> words;
  for (const auto& word : model::kWords<Enum>.words) words.push_back(word.text);
  return Choices(words);
}

// What `read` makes of the value of a flag. One that cannot be is bad input, as
// a file is; usage is which flags there are.
template <class Read>
auto FromValue(const Read& read) {
  try {
    return read();
  } catch (const UsageError& error) {
    throw model::InputError(error.what());
  }
}

// Refuses a value without a letter of every option of the program that takes
// one: it would count as an option that was not given.
void RefuseEmptyValues(CLI::App& app);
// A line may have the first of these options or the others, not both: there is
// nothing for them to do beside it.
void Exclude(CLI::App& app,
             const std::string& option,
             const std::vector<std::string>& others);
// Whether what the option is given is a file to write.
bool WritesFile(const CLI::Option& option);
// Whether two names are of one file, also of one that is not there yet.
bool IsSameFile(const std::string& a, const std::string& b);
// Of files that are read together, where what is in one twice would count
// twice, or written together. Throws UsageError.
void RequireEachOnce(const std::string& option,
                     const std::vector<std::string>& files);

// A share of a whole, from 0 to 1: "5%" or "0.05".
CLI::Option* AddShare(CLI::App& app,
                      const std::string& name,
                      double& value,
                      const std::string& help);

// `--name N`.
CLI::Option* AddCount(CLI::App& app,
                      const std::string& name,
                      std::optional<int64_t>& value,
                      const std::string& help);
// `--name 8,16`; empty parts are refused, and what is said twice is said once.
CLI::Option* AddCounts(CLI::App& app,
                       const std::string& name,
                       std::vector<int64_t>& values,
                       const std::string& help);
// `--name aws,gcp`, likewise.
CLI::Option* AddNames(CLI::App& app,
                      const std::string& name,
                      std::vector<std::string>& values,
                      const std::string& help);
// `--name FILE`, which may be repeated.
CLI::Option* AddFiles(CLI::App& app,
                      const std::string& name,
                      std::vector<std::string>& files,
                      const std::string& help);

}  // namespace trainfare::scenarios
