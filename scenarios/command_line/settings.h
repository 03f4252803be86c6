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

// The folder's file.
inline constexpr const char* kProjectFile = "trainfare.yaml";

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

// Whether a setting of any command may be there: a variable, or a file, of which
// the line may name another one.
bool MayHaveSettings(const std::vector<std::string>& arguments);
// A line for each variable of the environment that looks like a setting, is
// none, and means nothing to the set-up or the tests either.
std::vector<std::string> UnknownVariables(const CLI::App& app);

// Not where settings come from, and no files to write: whoever runs a command
// in a folder that others made does not expect them.
bool IsSettable(const CLI::Option& option);
// What one source says of an option of the command; nullptr: nothing.
const Setting* FindSetting(const std::vector<Setting>& source,
                           const CLI::App& command,
                           const CLI::Option& option);
// "predict" or "prices import", and whether settings are for it.
std::string NameOf(const CLI::App& command);
bool TakesSettings(const CLI::App& command);
// The command that a line was read to be.
CLI::App& AskedCommand(CLI::App& app);

}  // namespace trainfare::scenarios
