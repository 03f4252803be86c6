#pragma once

// Options whose values are words, such as those of the lists in model/. The
// library behind the command line stays out of this header.

#include <functional>
#include <string>

#include "trainer/command_line/cli.h"

namespace trainfare::trainer {

// Takes one word; throws InputError for one that it does not know.
using TakeWord = std::function<void(const std::string&)>;

// `--name WORD`; `usual` is what --help shows as its default.
void AddTakenWord(CLI::App* command,
                  const std::string& name,
                  const std::string& usual,
                  const TakeWord& take,
                  const std::string& help);

// The same for a `value` that has a word, which `parse` reads.
template <class Value, class Parse>
void AddWord(CLI::App* command,
             const std::string& name,
             Value& value,
             Parse parse,
             const std::string& help) {
  AddTakenWord(
      command,
      name,
      std::string(ToText(value)),
      [&value, parse](const std::string& text) { value = parse(text); },
      help);
}

// Each of several such words, between commas.
CLI::Option* AddWords(CLI::App* command,
                      const std::string& name,
                      const TakeWord& take,
                      const std::string& help);

}  // namespace trainfare::trainer
