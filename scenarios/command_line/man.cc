// Pages of the manual, made from the command line as it is defined.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/error.h"
#include "model/nearest.h"
#include "scenarios/command_line/arguments.h"
#include "scenarios/command_line/commands.h"
#include "scenarios/report/output.h"

namespace trainfare::scenarios {
namespace {

// Text as roff prints it: no letter of it is a request.
std::string Roff(std::string_view text) {
  std::string escaped;
  bool begins = true;  // a line
  for (const char letter : text) {
    if (begins && (letter == '.' || letter == '\'')) escaped += "\\&";
    if (letter == '\\') {
      escaped += "\\e";
    } else if (letter == '-') {
      escaped += "\\-";
    } else {
      escaped += letter;
    }
    begins = letter == '\n';
  }
  return escaped;
}

std::string TitleOf(const CLI::App& app, const CLI::App& command) {
  return &app == &command ? app.get_name()
                          : app.get_name() + "-" + command.get_name();
}

// Words to choose from, between which a line may be broken.
std::string RoffChoices(std::string_view type) {
  std::string text;
  for (const char letter : Roff(type)) {
    text += letter;
    if (letter == '|') text += "\\:";
  }
  return text;
}

// Options and what they take, a paragraph each.
std::string Paragraphs(const CLI::App& command, bool positional) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional() != positional) continue;
    const std::string name = option->get_name(positional, !positional);
    const std::string type = option->get_type_name();
    // Of an argument the name says as much, but for words to choose from.
    const bool says = !positional || type.find('|') != std::string::npos;
    const std::string takes = says ? type : "";
    text += fmt::format(".TP\n\\fB{}\\fR{}{}\n{}\n",
                        Roff(name),
                        takes.empty() ? "" : " ",
                        RoffChoices(takes),
                        Roff(option->get_description()));
  }
  return text;
}

// The footer's examples as they are typed, what follows them as prose.
std::string Footer(const std::string& footer) {
  constexpr std::string_view kExamples = "Examples:\n";
  std::string text;
  std::string rest = footer;
  if (rest.starts_with(kExamples)) {
    const size_t end = rest.find("\n\n");
    text += fmt::format(
        ".SH EXAMPLES\n.nf\n{}\n.fi\n",
        Roff(rest.substr(kExamples.size(),
                         end == std::string::npos ? std::string::npos
                                                  : end - kExamples.size())));
    rest = end == std::string::npos ? "" : rest.substr(end + 2);
  }
  if (!rest.empty()) text += fmt::format(".SH NOTES\n{}\n", Roff(rest));
  return text;
}

std::string Page(const CLI::App& app, const CLI::App& command) {
  const std::string title = TitleOf(app, command);
  const bool whole = &app == &command;
  std::string upper = title;
  for (char& letter : upper) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 32);
  }
  // Ragged on the right: lists of words have no spaces to widen.
  std::string text = fmt::format(
      ".TH \"{}\" 1 \"\" \"trainfare {}\"\n.ad l\n"
      ".SH NAME\n{} \\- {}\n"
      ".SH SYNOPSIS\n\\fB{}\\fR {}\n",
      upper,
      Version(),
      Roff(title),
      Roff(command.get_description()),
      whole ? "trainfare" : "trainfare " + Roff(command.get_name()),
      whole ? "COMMAND [OPTIONS]" : "[OPTIONS] [ARGUMENTS]");
  const auto parts = command.get_subcommands({});
  if (!parts.empty()) text += ".SH COMMANDS\n";
  for (const CLI::App* part : parts) {
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n",
                        Roff(part->get_name()),
                        Roff(part->get_description()));
  }
  if (const auto arguments = Paragraphs(command, true); !arguments.empty()) {
    text += ".SH ARGUMENTS\n" + arguments;
  }
  text += ".SH OPTIONS\n" + Paragraphs(command, false);
  text += Footer(command.get_footer());
  return text + (whole ? "" : ".SH SEE ALSO\n\\fBtrainfare\\fR(1)\n");
}

int WriteAll(const CLI::App& app, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::vector<const CLI::App*> pages = app.get_subcommands({});
  pages.push_back(&app);
  const auto file_of = [&](const CLI::App& page) {
    return (std::filesystem::path(folder) / (TitleOf(app, page) + ".1"))
        .string();
  };
  for (const CLI::App* page : pages) {
    RequireOurs("--output-folder",
                file_of(*page),
                "a page of the manual",
                [](std::string_view text) {
                  return text.starts_with(".TH \"TRAINFARE");
                });
  }
  for (const CLI::App* page : pages) {
    WriteFile(file_of(*page), Page(app, *page));
  }
  return kOk;
}

struct ManualFlags {
  std::string command;
  std::string folder;
};

int Manual(const CLI::App& app, const ManualFlags& flags) {
  if (!flags.folder.empty()) return WriteAll(app, flags.folder);
  if (flags.command.empty()) return WriteNew(Page(app, app), "");
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == flags.command) {
      return WriteNew(Page(app, *command), "");
    }
    known.push_back(command->get_name());
  }
  throw model::InputError(
      fmt::format("man: unknown command \"{}\"{}",
                  flags.command,
                  model::OfKnown(flags.command, model::NameViews(known))));
}

}  // namespace

Command AddMan(CLI::App& sub) {
  auto flags = std::make_shared<ManualFlags>();
  AddExamples(sub,
              {"man predict | man -l -", "man --output-folder share/man/man1"});
  sub.add_option("COMMAND",
                 flags->command,
                 "The command that it is of (default: all of them)");
  sub.add_option(
         "--output-folder", flags->folder, "Write every page there instead")
      ->type_name("FOLDER");
  Exclude(sub, "--output-folder", {"COMMAND"});
  return [flags, &sub] { return sub ? Manual(*sub.get_parent(), *flags) : -1; };
}

}  // namespace trainfare::scenarios
