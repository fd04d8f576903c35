// smt rewrite: the source rewriter on one file. It is a program of its own beside this one, because it holds
// a whole compiler's front end; this process becomes it.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/smt/command.h"
#include "tools/smt/places.h"

namespace smt::tools {
namespace {

int run_rewrite(const Arguments& arguments) {
    std::string program = find_program("smt-rewrite");
    if (program.empty())
        throw Failure("smt-rewrite is not in " + own_directory() +
                      ": it is built where CMake finds Clang 22's development files");
    std::vector<char*> argv{program.data()};
    Arguments rest = arguments;
    for (std::string& argument : rest) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(program.c_str(), argv.data());
    throw Failure("cannot run " + program + ": " + std::strerror(errno));
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
