// smt bench: measurements. Those that measure the bare driver are programs of their own beside this one, so
// that nothing of smt is in their process.
#include "tools/smt/become.h"
#include "tools/smt/bench_calls.h"

namespace smt::tools {
namespace {

int run_bench(const Arguments& arguments) {
    if (arguments.empty()) throw Misuse("which measurement?");
    if (arguments[0] == "calls") return bench_calls({arguments.begin() + 1, arguments.end()});
    if (arguments[0] != "remoting") throw Misuse("unknown measurement '" + arguments[0] + "'");
    become("bench_" + arguments[0], {arguments.begin() + 1, arguments.end()},
           "where CMake finds nvcc (SMT_BUILD_GPU_TESTS)");
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
