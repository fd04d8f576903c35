// smt bench: measurements. Those that measure the bare driver are programs of their own beside this one, so
// that nothing of smt is in their process.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/smt/bench_calls.h"
#include "tools/smt/command.h"
#include "tools/smt/places.h"

namespace smt::tools {
namespace {

int run_bench(const Arguments& arguments) {
    if (arguments.empty()) throw Misuse("which measurement?");
    if (arguments[0] == "calls") return bench_calls({arguments.begin() + 1, arguments.end()});
    if (arguments[0] != "remoting") throw Misuse("unknown measurement '" + arguments[0] + "'");
    std::string program = find_program("bench_" + arguments[0]);
    if (program.empty())
        throw Failure("bench_" + arguments[0] + " is not in " + own_directory() +
                      ": it is built where CMake finds nvcc (SMT_BUILD_GPU_TESTS)");
    std::vector<char*> argv{program.data()};
    Arguments rest(arguments.begin() + 1, arguments.end());
    for (std::string& argument : rest) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(program.c_str(), argv.data());
    throw Failure("cannot run " + program + ": " + std::strerror(errno));
}

}  // namespace

const Command bench_command = {
    "bench",
    "smt bench calls [--native] [--all] [--after SECONDS] [--json FILE] [--device gpu|sim] -- PROGRAM "
    "[ARGUMENT]...\n"
    "       smt bench remoting [ARGUMENT]...",
    "measures where the time of a program's CUDA calls goes; what remoting costs against the bare driver",
    run_bench};

}  // namespace smt::tools
