// smt index: the sources of a build, kept for the server. A program of its own beside this one, as smt
// rewrite.
#include "tools/smt/become.h"

namespace smt::tools {
namespace {

int run_index(const Arguments& arguments) {
    if (arguments.empty()) throw Misuse("which folder?");
    become("smt-index", arguments, "where CMake finds Clang 22's development files");
}

}  // namespace

const Command index_command = {
    "index",
    "smt index BUILD_DIR\n"
    "       smt index --list | --forget\n"
    "       smt index --show FILE.cu [-- FLAG...]\n"
    "\n"
    "  BUILD_DIR  has compile_commands.json (CMake: -DCMAKE_EXPORT_COMPILE_COMMANDS=ON) and is built. Each "
    "CUDA\n"
    "             file's kernels are kept with all that they depend on, and compiled in persistent form: "
    "the\n"
    "             programs of this build are managed from now on, until they are built anew\n"
    "  --list     the files whose images are known\n"
    "  --forget   removes all of it\n"
    "  --show     prints what would be kept of one file",
    "finds the sources of a build, so that its programs become managed", run_index};

}  // namespace smt::tools
