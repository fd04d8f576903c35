// smt rewrite: the source rewriter on one file. It is a program of its own beside this one, because it holds
// a whole compiler's front end; this process becomes it.
#include "tools/smt/become.h"

namespace smt::tools {
namespace {

int run_rewrite(const Arguments& arguments) {
    become("smt-rewrite", arguments, "where CMake finds Clang 22's development files");
}

}  // namespace

const Command rewrite_command = {
    "rewrite",
    "smt rewrite FILE.cu [-o OUT] [--nvrtc] [--name EXPRESSION]... [--symbols] [-- FLAG...]\n"
    "\n"
    "  -o OUT             where to write the text (default: standard output)\n"
    "  --nvrtc            the file is device code only, as NVRTC takes it\n"
    "  --name EXPRESSION  an instantiation that is wanted, like 'blur<float>' (with --nvrtc)\n"
    "  --symbols          also say what each kernel and its managed form are called in the compiled module\n"
    "  FLAG               what nvcc or NVRTC is given: -I, -D, -U, -include, -std, -arch; others are "
    "skipped\n"
    "\n"
    "A line for each kernel goes to standard error: managed, or refused with the reason. To compile the "
    "text,\n"
    "add -I FOLDER, where FOLDER holds smt_worker.h: include/smt beside the folder of this program",
    "turns the kernels of a CUDA file into persistent form", run_rewrite};

}  // namespace smt::tools
