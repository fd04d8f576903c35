// Prints PTX as the printer does:   ptx_print IN OUT     Fails if the print does not parse to the same tree.
#include <fmt/format.h>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"
#include "tests/ptx/files.h"

namespace {

int fail(const char* path, const std::string& problem) {
    fmt::print(stderr, "{}: {}\n", path, problem);
    return 1;
}

}  // namespace

int main(int count, char** arguments) {
    using namespace smt::ptx;
    if (count != 3) return fail(arguments[0], "usage: ptx_print IN OUT");
    auto parsed = parse(read_text(arguments[1]));
    if (auto* problem = std::get_if<Diagnostic>(&parsed)) return fail(arguments[1], to_string(*problem));
    std::string text = print(std::get<Module>(parsed));
    std::ofstream(arguments[2]) << text;
    auto again = parse(text);
    if (auto* problem = std::get_if<Diagnostic>(&again)) return fail(arguments[2], to_string(*problem));
    return std::get<Module>(again) == std::get<Module>(parsed) ? 0 : fail(arguments[2], "is another tree");
}
