#pragma once

// Kinds of options that several commands have, in our own words where they are
// wrong. The library behind the command line stays out of this header.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// NOLINTNEXTLINE(readability-identifier-naming): the name is the library's.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace trainfare::scenarios {

// Turns the text of a whole number of 64 bits into one without spaces around
// it; else what is wrong with it in words. "" where it is one.
std::string WholeNumber(std::string& text);

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
// `--name 8,16`; empty parts are refused.
CLI::Option* AddCounts(CLI::App& app,
                       const std::string& name,
                       std::vector<int64_t>& values,
                       const std::string& help);
// `--name aws,gcp`; empty parts are refused.
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
