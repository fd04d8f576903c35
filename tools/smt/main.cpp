// smt: the command. Picks a subcommand, and is the one place that reports what went wrong with it.
#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "runtime/settings/config.h"
#include "tools/smt/command.h"

namespace smt::tools {
namespace {

const Command* const kCommands[] = {
    &run_command,      &status_command,  &top_command,    &policy_command,  &set_command,    &suspend_command,
    &resume_command,   &metrics_command, &ui_command,     &server_command,  &log_command,    &trace_command,
    &coverage_command, &doctor_command,  &bench_command,  &rewrite_command, &index_command,  &cache_command,
    &cdi_command,      &inspect_command, &replay_command, &profile_command, &config_command, &demo_command};

constexpr int kMisuseExit = 2;

void print_usage(std::FILE* to) {
    fmt::print(to, "usage: smt COMMAND ...   (smt COMMAND --help tells more)\n\n");
    for (const Command* command : kCommands) fmt::print(to, "  {:<10}{}\n", command->name, command->summary);
}

void print_usage(std::FILE* to, const Command& command) {
    fmt::print(to, "{}\n\nusage: {}\n", command.summary, command.usage);
}

int run(const Command& command, const Arguments& arguments) {
    if (!arguments.empty() && (arguments[0] == "--help" || arguments[0] == "-h")) {
        print_usage(stdout, command);
        return 0;
    }
    // smt config tells the files' values from the environment's.
    if (&command != &config_command) settings::Config::read().apply();
    try {
        const int code = command.run(arguments);
        if (std::fflush(stdout) != 0)
            throw Failure(std::string("cannot write what it has to say: ") + std::strerror(errno));
        return code;
    } catch (const Misuse& misuse) {
        fmt::print(stderr, "smt {}: {}\nusage: {}\n", command.name, misuse.what(), command.usage);
        return kMisuseExit;
    } catch (const std::exception& failure) {
        fmt::print(stderr, "smt {}: {}\n", command.name, failure.what());
        return 1;
    }
}

int main(const Arguments& arguments) {
    if (arguments.empty()) {
        print_usage(stderr);
        return kMisuseExit;
    }
    if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
        print_usage(stdout);
        return 0;
    }
    for (const Command* command : kCommands)
        if (arguments[0] == command->name) return run(*command, {arguments.begin() + 1, arguments.end()});
    fmt::print(stderr, "smt: unknown command '{}'\n", arguments[0]);
    print_usage(stderr);
    return kMisuseExit;
}

}  // namespace
}  // namespace smt::tools

int main(int argc, char** argv) { return smt::tools::main({argv + (argc > 0), argv + argc}); }
