// smt demo: two programs side by side. A script beside this program (tools/demo.sh).
#include "tools/smt/become.h"

namespace smt::tools {
namespace {

int run_demo(const Arguments& arguments) {
    if (!arguments.empty()) throw Misuse("takes no arguments");
    become("demo.sh", arguments, "by the build of smt, and installed with it");
}

}  // namespace

const Command demo_command = {
    "demo",
    "smt demo\n"
    "\n"
    "On the GPU, or where there is none on the simulated device, by a server of the demo's own. Its\n"
    "programs must have been built with smt, by nvcc",
    "two programs side by side, and what the server saw of them", run_demo};

}  // namespace smt::tools
