#pragma once

// Settings put where a command line leaves an option out.

#include <string>
#include <vector>

#include "scenarios/command_line/settings.h"

namespace trainfare::scenarios {

// The options of a command that was read, where the line leaves them out, as
// `settings` say; returns those that do. One that has no use beside what the
// line, a stronger source or, in its own, the command's own setting says is
// passed over. Throws InputError for a value that the option does not take, and
// for two of one source that have no use together.
std::vector<Setting> Apply(const Settings& settings, CLI::App& command);
// The same for the command that `app` was read to be, from `files` and the
// environment; what they add to the line is added to `arguments`.
std::vector<Setting> Apply(const SettingFiles& files,
                           CLI::App& app,
                           std::vector<std::string>& arguments);

// `message` behind the origin of the setting that it is about, if of any.
std::string WithOrigin(const std::vector<Setting>& applied,
                       const std::string& message);

}  // namespace trainfare::scenarios
