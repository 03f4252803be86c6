#include "scenarios/command_line/help.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "hardware/files/terminal.h"

namespace trainfare::scenarios {
namespace {

// The library's words, without what an option is not for beside: the line that
// has both says so.
class Help : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string about = CLI::Formatter::make_option_opts(option);
    return about.substr(0, about.find(" Excludes:"));
  }
};

// The same, each paragraph in lines of the terminal.
class FittedHelp : public Help {
 public:
  explicit FittedHelp(size_t width) : width_(width) {
    column_width(std::min(get_column_width(), width / 3));
  }

  std::string make_option(const CLI::Option* option,
                          bool positional) const override {
    return Entry(
        make_option_name(option, positional) + make_option_opts(option),
        make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return Entry(command->get_name(), command->get_description());
  }
  std::string make_description(const CLI::App* app) const override {
    return Paragraphs(CLI::Formatter::make_description(app));
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    return Paragraphs(CLI::Formatter::make_usage(app, std::move(name)));
  }
  std::string make_footer(const CLI::App* app) const override {
    return Paragraphs(CLI::Formatter::make_footer(app));
  }

 private:
  // A name in the left column, what it means in the right one.
  std::string Entry(const std::string& name, const std::string& about) const {
    const size_t column = get_column_width();
    std::string out;
    for (const std::string& line : hardware::LinesOf(
             "  " + name, width_, "      ", hardware::LongWords::kBreak)) {
      out += line + "\n";
    }
    if (about.empty()) return out;
    const std::string indent(column, ' ');
    std::string right;
    for (const std::string& line :
         hardware::LinesOf(indent + about, width_, indent)) {
      right += line + "\n";
    }
    // The name stands before the first line where there is room for it.
    if (name.size() + 4 > column) return out + right;
    return right.replace(2, name.size(), name);
  }

  // A line that is indented is a command, which goes on behind a backslash as
  // a shell reads it.
  std::string Paragraphs(const std::string& text) const {
    std::istringstream given(text);
    std::string out;
    for (std::string line; std::getline(given, line);) {
      const bool is_command = line.starts_with("  ");
      const auto lines = hardware::LinesOf(
          line, width_ - (is_command ? 2 : 0), is_command ? "      " : "");
      for (const std::string& part : lines) {
        const bool goes_on = is_command && &part != &lines.back();
        out += part + (goes_on ? " \\\n" : "\n");
      }
    }
    return out;
  }

  size_t width_;
};

}  // namespace

void FitHelp(CLI::App& app) {
  if (const auto width = hardware::TerminalWidth(STDOUT_FILENO)) {
    app.formatter(std::make_shared<FittedHelp>(*width));
  } else {
    app.formatter(std::make_shared<Help>());
  }
}

}  // namespace trainfare::scenarios
