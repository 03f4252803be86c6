#pragma once

// What a model is named by: a preset's name, the path of a config.json, that of
// the folder of one, or, where somebody asks, its text itself.

#include <optional>
#include <string>
#include <string_view>

#include "model/architecture.h"

namespace trainfare::scenarios {

// What may stand in the place of a name that no preset has.
inline constexpr const char* kOrConfig =
    ", or give its config.json or the folder of it";

// The key of what a map of a model changes: `{ of: gpt2, vocabulary: 50304 }`.
inline constexpr std::string_view kModelOf = "of";

struct NamedModel {
  std::string name;                   // as people wrote it
  std::optional<std::string> config;  // the file that was read, if it was one
  model::Architecture architecture;
};

// The config.json that `name` is, or that the folder of this name has; nullopt:
// it is a preset's. What is relative begins in `folder`, from which the answer
// goes on, too.
std::optional<std::string> ConfigNamed(const std::string& name,
                                       const std::string& folder = "");

// The same of somebody at the command line, whose file may also be a pipe.
std::optional<std::string> ConfigAsked(const std::string& name);

// Whether it is the text of a config.json, in its braces.
bool IsConfigText(std::string_view name);

// The model of a map as a scenario has it, { of: NAME, .. }; nullopt: it is none.
std::optional<std::string> ModelOfMap(const std::string& text);

// The config.json that `name` is the text of, or that comes through a pipe of
// that name, which is read: on one line, to stand in its place from then on.
// nullopt: it is neither. Throws InputError where it is no config.json.
std::optional<std::string> ConfigTextOf(const std::string& name);

// What that names; `text` stands in messages for the file of a text. Throws
// InputError where there is no such model.
NamedModel ReadNamedModel(const std::string& name,
                          const std::string& text = "--model");

}  // namespace trainfare::scenarios
