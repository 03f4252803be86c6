// What a shell offers behind Tab, made from the command line as it is defined.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/error.h"
#include "scenarios/command_line/commands.h"

namespace trainfare::scenarios {
namespace {

// Options whose values are the names of a listing, asked for when Tab is
// pressed.
constexpr std::array kListed = {
    std::pair{std::string_view("device"), std::string_view("devices")},
    std::pair{std::string_view("instance"), std::string_view("instances")},
    std::pair{std::string_view("model"), std::string_view("models")},
};
constexpr std::string_view kNames =
    "trainfare list {} --format csv 2>/dev/null | tail -n +2 | cut -d, -f1";

std::vector<const CLI::App*> Commands(const CLI::App& app) {
  return app.get_subcommands({});
}

std::vector<std::string> OptionsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

// In single quotes of a shell, up to the first sentence's end.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char letter : text.substr(0, text.find('\n'))) {
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return quoted + "'";
}

std::string Bash(const CLI::App& app) {
  std::string commands;
  std::string cases;
  for (const CLI::App* command : Commands(app)) {
    commands += command->get_name() + " ";
    cases += fmt::format("    {}) words='", command->get_name());
    for (const CLI::App* part : Commands(*command)) {
      cases += part->get_name() + " ";
    }
    for (const std::string& name : OptionsOf(*command)) {
      cases += "--" + name + " ";
    }
    cases += "' ;;\n";
  }
  std::string listed;
  for (const auto& [option, listing] : kListed) {
    listed += fmt::format("    --{}) words=$({}) ;;\n",
                          option,
                          fmt::format(fmt::runtime(kNames), listing));
  }
  return fmt::format(
      "_trainfare() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} words=''\n"
      "  local before=${{COMP_WORDS[COMP_CWORD - 1]}}\n"
      "  case $before in\n"
      "{}"
      "    --format) words='table json csv markdown' ;;\n"
      "    --color) words='auto always never' ;;\n"
      "  esac\n"
      "  if [[ -z $words && $COMP_CWORD -eq 1 ]]; then\n"
      "    words='{}'\n"
      "  elif [[ -z $words && $word == -* ]]; then\n"
      "    case ${{COMP_WORDS[1]}} in\n"
      "{}"
      "    esac\n"
      "  fi\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
      "}}\n"
      "complete -o default -F _trainfare trainfare\n",
      listed,
      commands,
      cases);
}

std::string Zsh(const CLI::App& app) {
  return "autoload -U +X bashcompinit && bashcompinit\n" + Bash(app);
}

std::string Fish(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : Commands(app)) {
    text += fmt::format(
        "complete -c trainfare -n __fish_use_subcommand -f -a {} -d {}\n",
        command->get_name(),
        Quoted(command->get_description()));
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        std::string values;
        for (const auto& [listed, listing] : kListed) {
          if (name != listed) continue;
          values = fmt::format(" -xa '({})'",
                               fmt::format(fmt::runtime(kNames), listing));
        }
        text += fmt::format(
            "complete -c trainfare -n '__fish_seen_subcommand_from {}' -l {}{} "
            "-d {}\n",
            command->get_name(),
            name,
            values,
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
    throw UsageError(fmt::format(
        "completion: expected bash, zsh or fish, got \"{}\"", shell));
  }
  std::cout << text << std::flush;
  if (!std::cout) {
    throw model::InputError("standard output: cannot be written");
  }
  return kOk;
}

}  // namespace

Command AddCompletion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* sub =
      app.add_subcommand("completion", "What a shell completes behind Tab");
  AddExamples(*sub, {"completion bash >> ~/.bashrc"});
  sub->add_option("SHELL", *shell, "bash, zsh or fish")->required();
  return [&app, shell, sub] { return *sub ? Complete(app, *shell) : -1; };
}

}  // namespace trainfare::scenarios
