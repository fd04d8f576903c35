// What a subcommand is, and what its command line may say.
//
// A command that cannot make sense of its command line throws Misuse (exit code 2, with its usage);
// one that cannot do its work throws Failure (exit code 1). main() alone prints either.
#pragma once

#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace smt::tools {

using Arguments = std::vector<std::string>;

struct Command {
    const char* name;
    const char* usage;  // after "smt ", one line for each form
    const char* summary;
    int (*run)(const Arguments&);
};

// One for each file of this folder that is named after it.
extern const Command run_command, server_command, coverage_command, doctor_command, log_command,
    bench_command, rewrite_command, index_command, cache_command, cdi_command, inspect_command, trace_command,
    replay_command, status_command, top_command, policy_command, set_command, metrics_command, ui_command,
    suspend_command, resume_command, profile_command, config_command, demo_command;

struct Misuse : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// A parsed command line: `--name` and `--name value` (or `--name=value`), then operands.
struct Options {
    std::map<std::string, std::string> values;  // by name with its dashes; a flag's value is empty
    Arguments operands;

    bool has(const std::string& name) const { return values.count(name) != 0; }
    const std::string* value(const std::string& name) const {
        auto found = values.find(name);
        return found == values.end() ? nullptr : &found->second;
    }
};

// kCommandLine: options end at the first operand or at --. kMixed: only at --, operands may stand before
// options.
enum class Operands { kNone, kCommandLine, kMixed };

Options parse_options(const Arguments& arguments, std::initializer_list<const char*> flags,
                      std::initializer_list<const char*> valued, Operands operands = Operands::kNone);

}  // namespace smt::tools
