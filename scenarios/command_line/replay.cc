#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "hardware/files/date.h"
#include "hardware/files/json_text.h"
#include "hardware/files/text_file.h"
#include "model/error.h"
#include "scenarios/command_line/commands.h"

namespace trainfare::scenarios {
namespace {

using model::InputError;
using nlohmann::json;

// An answer may have been asked about what came through a pipe. Standard input
// may be given again.
void RequireStays(const std::string& argument, const std::string& where) {
  std::string value = argument;
  // "--set=model=.." has two.
  for (const std::string_view option : {"--", "--set="}) {
    const size_t equals = argument.find('=', option.size());
    if (argument.starts_with(option) && equals != std::string::npos) {
      value = argument.substr(equals + 1);
    }
  }
  if (!hardware::IsOpenFile(value) || value == "/dev/stdin") return;
  throw InputError(fmt::format(
      "{}: expected a file that is still there, got {}, which was a "
      "pipe; hint: ask again, with a file",
      where,
      hardware::ShownJson(argument)));
}

// What the answer was asked by. Only questions, and no files but those that
// they read: an answer may come from anybody.
std::vector<std::string> ArgumentsOf(const json& answer,
                                     const std::string& path) {
  const auto found = answer.find("arguments");
  if (found == answer.end() || !found->is_array() || found->empty()) {
    throw InputError(fmt::format(
        "{}: arguments: expected what predict or recommend was "
        "asked, got {}",
        path,
        found == answer.end() ? "nothing" : hardware::ShownJson(*found)));
  }
  std::vector<std::string> arguments;
  for (const json& word : *found) {
    const std::string where =
        fmt::format("{}: arguments[{}]", path, arguments.size());
    if (!word.is_string()) {
      throw InputError(fmt::format(
          "{}: expected a text, got {}", where, hardware::ShownJson(word)));
    }
    arguments.push_back(word.get<std::string>());
    const std::string& text = arguments.back();
    const bool is_command = arguments.size() == 1;
    if (is_command && text != "predict" && text != "recommend") {
      throw InputError(fmt::format("{}: expected predict or recommend, got {}",
                                   where,
                                   hardware::ShownJson(word)));
    }
    RequireStays(text, where);
    if (text.starts_with("--export")) {
      throw InputError(
          fmt::format("{}: expected a question, got {}, which writes a file",
                      where,
                      hardware::ShownJson(word)));
    }
  }
  return arguments;
}

// `limits`: of --fail-if.
int Replay(const std::string& path,
           const std::vector<std::string>& limits,
           const RunLine& run) {
  const json answer =
      hardware::ParseJson(hardware::ReadTextFile(path, "a JSON answer"), path);
  if (!answer.is_object()) {
    throw InputError(fmt::format(
        "{}: expected an object, got {}", path, hardware::ShownJson(answer)));
  }
  std::vector<std::string> arguments = ArgumentsOf(answer, path);
  const std::string version =
      answer.contains("tool_version") && answer["tool_version"].is_string()
          ? answer["tool_version"].get<std::string>()
          : "";
  if (version != Version()) {
    Fail(fmt::format("warning: {} is of version \"{}\", this is {}",
                     path,
                     version,
                     Version()),
         kOk);
  }
  // An answer before there was a time in it is made again as of now.
  if (const auto time = answer.find("timestamp"); time != answer.end()) {
    if (!time->is_string() ||
        !hardware::TimeFromText(time->get<std::string>())) {
      throw InputError(
          fmt::format("{}: timestamp: expected a time such as "
                      "2026-11-23T18:01:31Z, got {}",
                      path,
                      hardware::ShownJson(*time)));
    }
    arguments.push_back("--now=" + time->get<std::string>());
  }
  arguments.emplace_back("--format=json");
  arguments.emplace_back("--quiet");
  for (const std::string& limit : limits) {
    arguments.push_back("--fail-if=" + limit);
  }
  return run(arguments);
}

}  // namespace

Command AddReplay(CLI::App& sub, CommonOptions& common, RunLine run) {
  auto file = std::make_shared<std::string>();
  AddExamples(sub, {"replay answer.json | cmp - answer.json"});
  sub.add_option("FILE",
                 *file,
                 "What predict or recommend wrote with --format json or "
                 "--export FILE.json")
      ->required();
  common.AddLimitsTo(sub);
  return [file, &common, &sub, run = std::move(run)] {
    return sub ? Replay(*file, common.limit_texts(), run) : -1;
  };
}

}  // namespace trainfare::scenarios
