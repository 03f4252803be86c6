// Reads the command line, and says why one is refused in our own words.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "model/nearest.h"
#include "scenarios/command_line/arguments.h"
#include "scenarios/command_line/commands.h"
#include "scenarios/command_line/settings.h"

namespace trainfare::scenarios {
namespace {

std::vector<std::string> SubcommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands({})) {
    names.push_back(sub->get_name());
  }
  return names;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

bool IsOption(const std::string& argument) {
  return argument.size() > 2 && argument.starts_with("--");
}

// What is wrong with a command line that was refused; "" where nothing is.
std::string UnknownCommand(const CLI::App& app,
                           const std::vector<std::string>& arguments) {
  const std::vector<std::string> names = SubcommandNames(app);
  const auto known = model::NameViews(names);
  const std::string all = model::JoinNames(known, known.size());
  if (arguments.empty()) {
    return "expected a subcommand: " + all + "; trainfare --help says more";
  }
  const std::string& word = arguments.front();
  if (word.starts_with('-') ||
      std::find(names.begin(), names.end(), word) != names.end()) {
    return "";
  }
  const std::string near = model::DidYouMean(word, known);
  return "unknown subcommand \"" + word + "\"" + near +
         (near.empty() ? "; known: " : " known: ") + all;
}

std::string UnexpectedArgument(CLI::App& app,
                               const std::vector<std::string>& arguments) {
  const CLI::App* at = &AskedCommand(app);
  const std::vector<std::string> known = OptionNames(*at);
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (name.size() < 2 || name.front() != '-' ||
        std::find(known.begin(), known.end(), name) != known.end()) {
      continue;
    }
    const std::string near = model::DidYouMean(name, model::NameViews(known));
    return fmt::format("unknown option \"{}\"{}{}{}{} --help lists them",
                       name,
                       near,
                       near.empty() ? "; " : " ",
                       at == &app ? "" : "trainfare ",
                       at->get_name());
  }
  const std::vector<std::string> rest = app.remaining(true);
  return "unexpected argument \"" + (rest.empty() ? "" : rest.front()) + "\"";
}

// An option that wants one value and has none, or that was given twice.
std::string MiscountedOption(CLI::App& app,
                             const std::vector<std::string>& arguments) {
  const CLI::App& asked = AskedCommand(app);
  std::vector<std::string> seen;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!IsOption(arguments[i])) continue;
    const size_t equals = arguments[i].find('=');
    const std::string name = arguments[i].substr(0, equals);
    const CLI::Option* option = asked.get_option_no_throw(name);
    if (option == nullptr || option->get_items_expected_max() == 0) continue;
    const bool has_value =
        equals != std::string::npos ||
        (i + 1 < arguments.size() && !IsOption(arguments[i + 1]));
    if (!has_value) return name + ": expected a value, got nothing";
    // --set may stand as often as one likes.
    const bool repeated =
        std::find(seen.begin(), seen.end(), name) != seen.end() &&
        option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw;
    if (repeated && option->get_items_expected_max() == 1) {
      return name + ": expected once, given several times";
    }
    seen.push_back(name);
  }
  return "";
}

std::string MissingSubcommand(CLI::App& app) {
  const CLI::App& asked = AskedCommand(app);
  if (asked.get_require_subcommand_min() == 0) return "";
  const std::vector<std::string> names = SubcommandNames(asked);
  const auto known = model::NameViews(names);
  const std::vector<std::string> rest = asked.remaining();
  if (!rest.empty() && !rest.front().starts_with('-')) {
    return asked.get_name() + ": unknown subcommand \"" + rest.front() + "\"" +
           model::OfKnown(rest.front(), known);
  }
  return asked.get_name() +
         ": expected a subcommand: " + model::JoinNames(known);
}

// The library takes what follows "--budget=" for its value.
std::vector<std::string> WithEmptyValues(
    const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  for (const std::string& argument : arguments) {
    if (IsOption(argument) && argument.find('=') == argument.size() - 1) {
      words.push_back(argument.substr(0, argument.size() - 1));
      words.emplace_back();
    } else {
      words.push_back(argument);
    }
  }
  return words;
}

// "--top excludes --all" as we say it.
std::string NotBoth(const std::string& message) {
  constexpr std::string_view kExcludes = " excludes ";
  const size_t at = message.find(kExcludes);
  if (at == std::string::npos) return message;
  return message.substr(0, at) + ": not with " +
         message.substr(at + kExcludes.size());
}

// The same message with the name of the option at its front as it was typed:
// the library says the first of several names.
std::string AsTyped(CLI::App& app,
                    const std::vector<std::string>& arguments,
                    const std::string& message) {
  const std::string first = message.substr(0, message.find(':'));
  const CLI::Option* option = AskedCommand(app).get_option_no_throw(first);
  if (option == nullptr) return message;
  std::string typed;
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (name == first) return message;
    if (IsOption(name) && option->check_name(name)) typed = name;
  }
  return typed.empty() ? message : typed + message.substr(first.size());
}

// What is wrong with the number of options or their values; "" where that is
// not it.
std::string Miscounted(CLI::App& app,
                       const std::vector<std::string>& arguments) {
  const std::string message = MissingSubcommand(app);
  return message.empty() ? MiscountedOption(app, arguments) : message;
}

}  // namespace

std::optional<int> Parse(CLI::App& app,
                         const std::vector<std::string>& arguments) {
  const auto refuse = [](const std::string& message) {
    return Fail(message, kUsage);
  };
  // A value that cannot be is bad input, whatever its option.
  const auto refuse_value = [&](const CLI::ParseError& error) {
    const std::string message = Miscounted(app, arguments);
    return message.empty() ? Fail(AsTyped(app, arguments, error.what()), kInput)
                           : refuse(message);
  };
  RefuseEmptyValues(app);
  if (const std::string unknown = UnknownCommand(app, arguments);
      !unknown.empty()) {
    return refuse(unknown);
  }
  try {
    // CLI11 takes them from the back.
    const std::vector<std::string> words = WithEmptyValues(arguments);
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ExtrasError&) {
    return refuse(UnexpectedArgument(app, arguments));
  } catch (const CLI::ValidationError& error) {
    return refuse_value(error);
  } catch (const CLI::ConversionError& error) {
    return refuse_value(error);
  } catch (const CLI::ParseError& error) {
    if (app.get_subcommands().empty()) {
      return refuse(UnexpectedArgument(app, arguments));
    }
    const std::string message = Miscounted(app, arguments);
    return refuse(message.empty() ? NotBoth(error.what()) : message);
  }
  return std::nullopt;
}

}  // namespace trainfare::scenarios
