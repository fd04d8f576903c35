// Where settings come from: the environment, the user's config file, the administrator's, or the default, in
// this order. Of SMT_STRICT_TENANTS and SMT_FENCE_TENANTS the administrator's file comes first.
//
// A config file is TOML. A setting that is a variable is a key, SMT_IDLE_SECONDS: idle_seconds = 60. An item
// of a variable's list is a key of a table, SMT_COMPILE: [compile] workers = 4. Values are strings, whole
// numbers, decimals for a weight, and booleans for flags.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/settings/table.h"

namespace smt::settings {

// The user's: $XDG_CONFIG_HOME/smt.toml, else $HOME/.config/smt.toml; "" without either. The administrator's:
// /etc/smt.toml.
std::string user_file();
std::string system_file();

// "idle_seconds", "compile.workers".
std::string key_of(const Setting& setting);
// As messages name it: "SMT_IDLE_SECONDS", "workers in SMT_COMPILE".
std::string name_of(const Setting& setting);
// Null: there is none of that key.
const Setting* find_setting(std::string_view key);
std::string takes_of(const Setting& setting);  // describe() as a string
// How a server works: the value counts only in the environment that starts it, and `smt run` names what
// differs in the running one.
bool is_servers(const Setting& setting);

struct File {
    std::string path;
    std::map<Id, std::string> values;   // that their settings take; as the environment would have them
    std::vector<std::string> problems;  // "PATH:LINE: ...": no TOML, unknown keys, values that are not taken
};

// A file that does not exist is one without values. One that cannot be read or is not TOML has one problem
// and no values.
File read_file(const std::string& path);

struct Source {
    std::string value;  // "": neither set nor a default that is a value
    std::string from;   // "environment", a file's path, or "default"
};

// What holds for this process, read once. Not changed later; may be shared by threads.
class Config {
public:
    // The environment and the two files of this process.
    static Config read();
    // For tests: files from the most to the least important.
    explicit Config(std::vector<File> files) : files_(std::move(files)) {}

    Source source_of(const Setting& setting) const;
    // Puts the files' values into the environment where it does not have the setting. Before the first thread
    // starts.
    void apply() const;
    // A line for each value that is wrong, in the environment and in files. A server uses the default in its
    // place, a program is refused.
    std::vector<std::string> problems() const;
    // A line for each variable SMT_* that is no setting: its new name, or one that it may be a typo of.
    // Programs run all the same: other software may have such variables.
    std::vector<std::string> unknown_variables() const;

private:
    bool administrator_decides(const Setting& setting) const;

    std::vector<File> files_;
};

// Puts a value into this process's environment, in a list behind what the list has. Before the first thread
// starts.
void set(Id id, const std::string& value);
void unset(Id id);

}  // namespace smt::settings
