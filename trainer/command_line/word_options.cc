#include "trainer/command_line/word_options.h"

#include <CLI/CLI.hpp>
#include <vector>

#include "model/error.h"

namespace trainfare::trainer {
namespace {

// A word that is refused is the option's fault, not that of an input.
void Hand(const std::string& word,
          const TakeWord& take,
          const std::string& name) {
  try {
    take(word);
  } catch (const model::InputError& error) {
    throw CLI::ValidationError(name, error.what());
  }
}

}  // namespace

void AddTakenWord(CLI::App* command,
                  const std::string& name,
                  const std::string& usual,
                  const TakeWord& take,
                  const std::string& help) {
  command
      ->add_option_function<std::string>(
          name,
          [name, take](const std::string& word) { Hand(word, take, name); },
          help)
      ->default_str(usual);
}

CLI::Option* AddWords(CLI::App* command,
                      const std::string& name,
                      const TakeWord& take,
                      const std::string& help) {
  return command
      ->add_option_function<std::vector<std::string>>(
          name,
          [name, take](const std::vector<std::string>& words) {
            for (const std::string& word : words) Hand(word, take, name);
          },
          help)
      ->delimiter(',');
}

}  // namespace trainfare::trainer
