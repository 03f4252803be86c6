#pragma once

// What people say once for all commands: of options that the command line
// leaves out the environment decides, then the project's file, then the user's.

#include <string>
#include <string_view>
#include <vector>

// NOLINTNEXTLINE(readability-identifier-naming): the name is the library's.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace trainfare::scenarios {

struct Setting {
  std::string
      command;         // that it is of; empty: of every one that has the option
  std::string option;  // "cloud"
  std::vector<std::string> values;
  std::string origin;  // "TRAINFARE_CLOUD", "trainfare.yaml:3:8"
  // Of the folder's trainfare.yaml, which others may have put there.
  bool of_folder = false;

  // "recommend.cloud".
  std::string Key() const;
};

// Which files there are to read.
struct SettingFiles {
  std::string
      config;  // in place of trainfare.yaml of this folder; may be empty
  bool none = false;
};

class Settings {
 public:
  // Reads the environment and the files. Throws InputError "file:line:col: .."
  // for a key that no command has.
  Settings(const CLI::App& app, const SettingFiles& files);

  // Who decides about an option of the command; nullptr: nobody.
  const Setting* Of(const CLI::App& command, const CLI::Option& option) const;
  // What each source says: environment, folder's file, user's; the strongest
  // first.
  const std::vector<std::vector<Setting>>& sources() const { return sources_; }
  // All that decide about anything, as (command, option) comes first.
  std::vector<const Setting*> InForce(const CLI::App& app) const;

  struct File {
    std::string path;
    bool read = false;  // else it is not there
  };
  const std::vector<File>& files() const { return files_; }

 private:
  void ReadEnvironment(const CLI::App& app);
  void ReadFile(const CLI::App& app, const std::string& path, bool of_folder);

  std::vector<std::vector<Setting>> sources_;
  std::vector<File> files_;
};

// A line for each variable of the environment that looks like a setting, is
// none, and means nothing to the set-up or the tests either.
std::vector<std::string> UnknownVariables(const CLI::App& app);

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
// "predict" or "prices import", and whether settings are for it.
std::string NameOf(const CLI::App& command);
bool TakesSettings(const CLI::App& command);
// The command that a line was read to be.
CLI::App& AskedCommand(CLI::App& app);

// `message` behind the origin of the setting that it is about, if of any.
std::string WithOrigin(const std::vector<Setting>& applied,
                       const std::string& message);

}  // namespace trainfare::scenarios
