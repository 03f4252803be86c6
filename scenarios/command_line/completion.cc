// What a shell offers behind Tab, made from the command line as it is defined.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hardware/files/unwritten.h"
#include "model/error.h"
#include "scenarios/command_line/arguments.h"
#include "scenarios/command_line/commands.h"

namespace trainfare::scenarios {
namespace {

// Options and arguments whose values are the names of a listing, asked for when
// Tab is pressed.
constexpr std::array kListed = {
    std::pair{std::string_view("--device"), std::string_view("devices")},
    std::pair{std::string_view("--also"), std::string_view("devices")},
    std::pair{std::string_view("--instance"), std::string_view("instances")},
    std::pair{std::string_view("--instances"), std::string_view("instances")},
    std::pair{std::string_view("--model"), std::string_view("models")},
    std::pair{std::string_view("--models"), std::string_view("models")},
    std::pair{std::string_view("--scenario"), std::string_view("scenarios")},
    std::pair{std::string_view("--for"), std::string_view("scenarios")},
    std::pair{std::string_view("SCENARIO"), std::string_view("scenarios")},
};
constexpr std::string_view kNames =
    "trainfare list {} --format csv 2>/dev/null | tail -n +2 | cut -d, -f1";
// A cloud is the front of its instances' names.
constexpr std::string_view kClouds =
    "trainfare list instances --format csv 2>/dev/null | tail -n +2 | "
    "cut -d/ -f1 | sort -u";

using Options = std::vector<const CLI::Option*>;

std::vector<const CLI::App*> Commands(const CLI::App& app) {
  return app.get_subcommands({});
}

std::string NamesOf(const std::vector<const CLI::App*>& commands) {
  std::string names;
  for (const CLI::App* command : commands) names += command->get_name() + " ";
  return names;
}

// Of a command and its parts (`prices import`).
Options OptionsOf(const CLI::App& command) {
  Options options = command.get_options();
  for (const CLI::App* part : Commands(command)) {
    const Options more = part->get_options();
    options.insert(options.end(), more.begin(), more.end());
  }
  return options;
}

// "--length", "--seq"; an argument has its own name.
std::vector<std::string> Spellings(const CLI::Option& option) {
  if (option.get_positional()) return {option.get_name(true)};
  std::vector<std::string> spellings;
  for (const std::string& name : option.get_lnames()) {
    spellings.push_back("--" + name);
  }
  return spellings;
}

// What may stand for a value.
struct Offer {
  std::string text;    // words, or the command that prints them
  bool asked = false;  // by that command

  // As a shell puts it into a variable.
  std::string Value() const {
    return asked ? "$(" + text + ")" : "'" + text + "'";
  }
};

// The words of its type that are no name for a kind of value ("k-runs=N").
std::string ChoicesOf(const CLI::Option& option) {
  std::string words;
  std::istringstream type(option.get_type_name());
  for (std::string word; std::getline(type, word, '|');) {
    const bool plain = std::none_of(word.begin(), word.end(), [](char letter) {
      return letter >= 'A' && letter <= 'Z';
    });
    if (plain && !word.empty()) words += word + " ";
  }
  return words;
}

Offer OfferOf(const CLI::Option& option) {
  for (const std::string& name : Spellings(option)) {
    if (name == "--cloud") return {std::string(kClouds), true};
    for (const auto& [listed, listing] : kListed) {
      if (name != listed) continue;
      return {fmt::format(fmt::runtime(kNames), listing), true};
    }
  }
  return {ChoicesOf(option), false};
}

// What stands behind a command's name: its parts, or its arguments.
Offer ArgumentsOf(const CLI::App& command) {
  if (const auto parts = Commands(command); !parts.empty()) {
    return {NamesOf(parts), false};
  }
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) return OfferOf(*option);
  }
  return {};
}

// In single quotes of a shell, up to the first sentence's end.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char letter : text.substr(0, text.find('\n'))) {
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return quoted + "'";
}

// The branches of a script of bash over commands, and over their options.
struct BashCases {
  std::string options;    // words='--batch --seq ..'
  std::string flags;      // options that take no value
  std::string values;     // of an option
  std::string arguments;  // what no option begins

  void Add(const CLI::App& command) {
    const std::string& name = command.get_name();
    std::string all;
    std::string alone;
    for (const CLI::Option* option : OptionsOf(command)) {
      if (option->get_positional()) continue;
      const Offer offer = OfferOf(*option);
      for (const std::string& spelling : Spellings(*option)) {
        all += spelling + " ";
        if (option->get_items_expected_max() == 0) alone += spelling + " ";
        if (offer.text.empty()) continue;
        values += fmt::format(
            "    '{} {}') words={} ;;\n", name, spelling, offer.Value());
      }
    }
    options += fmt::format("    {}) words='{}' ;;\n", name, all);
    flags += fmt::format("    {}) flags=' {}' ;;\n", name, alone);
    const Offer offer = ArgumentsOf(command);
    if (offer.text.empty()) return;
    arguments += fmt::format("    {}) words={} ;;\n", name, offer.Value());
  }
};

std::string Bash(const CLI::App& app) {
  BashCases cases;
  for (const CLI::App* command : Commands(app)) cases.Add(*command);
  return fmt::format(
      "_trainfare() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} words='' flags='' head=''\n"
      "  local before=${{COMP_WORDS[COMP_CWORD - 1]}}\n"
      "  case ${{COMP_WORDS[1]}} in\n{}  esac\n"
      "  if [[ $COMP_CWORD -eq 1 ]]; then\n"
      "    words='{}'\n"
      "  elif [[ $word == -* ]]; then\n"
      "    case ${{COMP_WORDS[1]}} in\n{}    esac\n"
      "  elif [[ $before == -* && $flags != *\" $before \"* ]]; then\n"
      "    case \"${{COMP_WORDS[1]}} $before\" in\n{}    esac\n"
      "  else\n"
      "    case ${{COMP_WORDS[1]}} in\n{}    esac\n"
      "  fi\n"
      // Of a list the last part is completed.
      "  [[ $word == *,* ]] && head=${{word%,*}},\n"
      "  COMPREPLY=($(compgen -P \"$head\" -W \"$words\" -- "
      "\"${{word##*,}}\"))\n"
      "}}\n"
      "complete -o default -F _trainfare trainfare\n",
      cases.flags,
      NamesOf(Commands(app)),
      cases.options,
      cases.values,
      cases.arguments);
}

std::string Zsh(const CLI::App& app) {
  return "autoload -U +X bashcompinit && bashcompinit\n" + Bash(app);
}

// " -xa 'training forward'": nothing where there is nothing to offer.
std::string FishValues(const char* flag, const Offer& offer) {
  if (offer.text.empty()) return "";
  return fmt::format(
      " {} '{}'", flag, offer.asked ? "(" + offer.text + ")" : offer.text);
}

std::string Fish(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : Commands(app)) {
    const std::string behind =
        fmt::format("complete -c trainfare -n '__fish_seen_subcommand_from {}'",
                    command->get_name());
    text += fmt::format(
        "complete -c trainfare -n __fish_use_subcommand -f -a {} -d {}\n",
        command->get_name(),
        Quoted(command->get_description()));
    if (const Offer offer = ArgumentsOf(*command); !offer.text.empty()) {
      text += behind + FishValues("-a", offer) + "\n";
    }
    for (const CLI::Option* option : OptionsOf(*command)) {
      for (const std::string& name : option->get_lnames()) {
        text += fmt::format("{} -l {}{} -d {}\n",
                            behind,
                            name,
                            FishValues("-xa", OfferOf(*option)),
                            Quoted(option->get_description()));
      }
    }
  }
  return text;
}

int Complete(const CLI::App& app, const std::string& shell) {
  std::string text;
  if (shell == "bash") {
    text = Bash(app);
  } else if (shell == "zsh") {
    text = Zsh(app);
  } else if (shell == "fish") {
    text = Fish(app);
  } else {
    throw model::InputError(fmt::format(
        "completion: expected bash, zsh or fish, got \"{}\"", shell));
  }
  hardware::WriteOut(std::cout, text);
  return kOk;
}

}  // namespace

Command AddCompletion(CLI::App& sub) {
  auto shell = std::make_shared<std::string>();
  AddExamples(sub, {"completion bash >> ~/.bashrc"});
  sub.add_option("SHELL", *shell, "Which one")
      ->type_name(Choices({"bash", "zsh", "fish"}))
      ->required();
  return
      [shell, &sub] { return sub ? Complete(*sub.get_parent(), *shell) : -1; };
}

}  // namespace trainfare::scenarios
