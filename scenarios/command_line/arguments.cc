#include "scenarios/command_line/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace trainfare::scenarios {
namespace {

// A part of a list without the spaces around it: "8, 16" is "8,16".
std::string Trim(std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  const size_t last = text.find_last_not_of(' ');
  text = first == std::string::npos ? "" : text.substr(first, last - first + 1);
  return "";
}

// "8, 16" as values, each made of its part by `parse`, which says what is wrong
// with it; what is there already says nothing more. CLI11 by itself drops parts
// that are empty.
template <class Value, class Parse>
CLI::Option* AddList(CLI::App& app,
                     const std::string& name,
                     std::vector<Value>& values,
                     const Parse& parse,
                     const std::string& help) {
  CLI::Option* option = app.add_option_function<std::vector<std::string>>(
      name,
      [&values, parse, name](const std::vector<std::string>& lists) {
        values.clear();
        for (const std::string& list : lists) {
          size_t end = 0;
          for (size_t begin = 0; end != std::string::npos; begin = end + 1) {
            end = list.find(',', begin);
            std::string part = list.substr(begin, end - begin);
            Value value{};
            const std::string wrong = parse(part, value);
            if (!wrong.empty()) {
              // The first of several names stands for the option.
              throw CLI::ValidationError(name.substr(0, name.find(',')), wrong);
            }
            if (std::find(values.begin(), values.end(), value) ==
                values.end()) {
              values.push_back(std::move(value));
            }
          }
        }
      },
      help);
  // A word behind the list is no part of it, but the command's own.
  return option->expected(1)->allow_extra_args(false)->take_all();
}

// A value in words, by what --help calls it: "NAME|FILE" or words to choose
// from.
std::string WordsOfType(const std::string& type) {
  constexpr std::array kKinds = {
      std::pair{std::string_view("DATE"), std::string_view("a day")},
      std::pair{std::string_view("FILE"), std::string_view("a file")},
      std::pair{std::string_view("FOLDER"), std::string_view("a folder")},
      std::pair{std::string_view("KEY=VALUE"), std::string_view("KEY=VALUE")},
      std::pair{std::string_view("LIMIT"), std::string_view("a limit")},
      std::pair{std::string_view("N"), std::string_view("a whole number")},
      std::pair{std::string_view("NAME"), std::string_view("a name")},
      std::pair{std::string_view("RATE"), std::string_view("a rate")},
      std::pair{std::string_view("SHARE"), std::string_view("a share")},
      std::pair{std::string_view("TIME"), std::string_view("a time")},
      std::pair{std::string_view("USD"), std::string_view("an amount")}};
  std::string words;
  for (size_t begin = 0; begin < type.size();) {
    const size_t end = std::min(type.find('|', begin), type.size());
    const std::string_view word(type.data() + begin, end - begin);
    const auto kind =
        std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& one) {
          return one.first == word;
        });
    // The library's own word for what has no other.
    const std::string_view text = kind != kKinds.end() ? kind->second
                                  : word == "TEXT"     ? "a value"
                                                       : word;
    if (begin > 0) words += end == type.size() ? " or " : ", ";
    words += text;
    begin = end + 1;
  }
  return words;
}

// Its name from the root, also of one that is not there yet; as it was given
// where that cannot be told.
std::filesystem::path WholeName(const std::string& file) {
  std::error_code error;
  const std::filesystem::path from_root =
      std::filesystem::absolute(file, error);
  if (error) return file;
  std::filesystem::path whole =
      std::filesystem::weakly_canonical(from_root, error);
  return error ? std::filesystem::path(file) : whole;
}

// "; hint: 2048 or 2000" for what is left of a number where that is "k".
std::string HintOfThousands(int64_t number, std::string_view unread) {
  constexpr int64_t kMost = 1'000'000;
  if (number < 1 || number > kMost || (unread != "k" && unread != "K")) {
    return "";
  }
  return fmt::format("; hint: {} or {}", number * 1024, number * 1000);
}

}  // namespace

bool IsSameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) ||
         WholeName(a) == WholeName(b);
}

// CLI11 takes what is beyond 64 bits for the largest number there is. What a
// flag's number may be at most its command knows.
std::string WholeNumber(std::string& text) {
  Trim(text);
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && rest == end) return "";
  const bool is_read = error == std::errc();
  return "expected a whole number" +
         std::string(error == std::errc::result_out_of_range ? " of 64 bits"
                                                             : "") +
         ", got \"" + text + "\"" +
         (is_read ? HintOfThousands(number, {rest, end}) : "");
}

std::string Choices(const std::vector<std::string_view>& words) {
  return fmt::format("{}", fmt::join(words, "|"));
}

void RefuseEmptyValues(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;
    option->check([option](const std::string& value) -> std::string {
      if (!value.empty()) return "";
      return fmt::format("expected {}, got \"\"",
                         WordsOfType(option->get_type_name()));
    });
  }
  for (CLI::App* part : app.get_subcommands({})) RefuseEmptyValues(*part);
}

void Exclude(CLI::App& app,
             const std::string& option,
             const std::vector<std::string>& others) {
  for (const std::string& other : others) {
    app.get_option(option)->excludes(app.get_option(other));
  }
}

bool WritesFile(const CLI::Option& option) {
  constexpr std::array<std::string_view, 4> kOutputs = {
      "export", "output", "plan", "script"};
  const std::vector<std::string>& names = option.get_lnames();
  return !names.empty() &&
         std::find(kOutputs.begin(), kOutputs.end(), names.front()) !=
             kOutputs.end();
}

void RequireEachOnce(const std::string& option,
                     const std::vector<std::string>& files) {
  for (auto file = files.begin(); file != files.end(); ++file) {
    const auto before =
        std::find_if(files.begin(), file, [&](const std::string& one) {
          return IsSameFile(one, *file);
        });
    if (before == file) continue;
    throw UsageError(
        fmt::format("{}: expected each file once, {} is given several times",
                    option,
                    *before));
  }
}

CLI::Option* AddCount(CLI::App& app,
                      const std::string& name,
                      std::optional<int64_t>& value,
                      const std::string& help) {
  return app.add_option(name, value, help)
      ->type_name("N")
      ->transform(CLI::Validator(WholeNumber, ""));
}

CLI::Option* AddCounts(CLI::App& app,
                       const std::string& name,
                       std::vector<int64_t>& values,
                       const std::string& help) {
  return AddList(
             app,
             name,
             values,
             [](std::string& part, int64_t& value) {
               std::string wrong = WholeNumber(part);
               if (wrong.empty()) value = std::stoll(part);
               return wrong;
             },
             help)
      ->type_name("N");
}

CLI::Option* AddNames(CLI::App& app,
                      const std::string& name,
                      std::vector<std::string>& values,
                      const std::string& help) {
  return AddList(
             app,
             name,
             values,
             [](std::string& part, std::string& value) -> std::string {
               Trim(part);
               if (part.empty()) return "expected a name, got \"\"";
               value = part;
               return "";
             },
             help)
      ->type_name("NAME");
}

CLI::Option* AddShare(CLI::App& app,
                      const std::string& name,
                      double& value,
                      const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [&value, name](std::string text) {
            Trim(text);
            const bool percent = text.ends_with('%');
            double number = 0;
            const char* end = text.data() + text.size() - (percent ? 1 : 0);
            const auto [rest, error] =
                std::from_chars(text.data(), end, number);
            if (percent) number /= 100.0;
            if (error != std::errc() || rest != end ||
                !(number >= 0.0 && number <= 1.0)) {
              throw CLI::ValidationError(
                  name.substr(0, name.find(',')),
                  "expected a share from 0 to 1, such as 5% or 0.05, got \"" +
                      text + "\"");
            }
            value = number;
          },
          help)
      ->type_name("SHARE");
}

CLI::Option* AddFiles(CLI::App& app,
                      const std::string& name,
                      std::vector<std::string>& files,
                      const std::string& help) {
  return app.add_option(name, files, help)
      ->type_name("FILE")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
}

}  // namespace trainfare::scenarios
