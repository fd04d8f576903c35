// Prints fenced PTX, with a comment on each function:   ptx_fence [--show] FILE
//
// --show: without the fence's own functions, which are the same in all texts.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "rewriter/ptx/fence/fence.h"
#include "rewriter/ptx/printer.h"
#include "tests/ptx/files.h"

namespace {

int fail(const char* path, const std::string& problem) {
    fmt::print(stderr, "{}: {}\n", path, problem);
    return 1;
}

std::string without_own(const std::string& text) {
    using namespace smt::ptx;
    auto parsed = parse(text);
    auto& module = std::get<Module>(parsed);
    std::erase_if(module.declarations, [](const Declaration& each) {
        const auto* function = std::get_if<Function>(&each);
        return function && fence::is_fence_function(function->name);
    });
    return print(module);
}

}  // namespace

int main(int count, char** arguments) {
    using namespace smt::ptx;
    const bool shows = count == 3 && std::strcmp(arguments[1], "--show") == 0;
    if (count != 2 && !shows) return fail(arguments[0], "usage: ptx_fence [--show] FILE");
    const char* const path = arguments[count - 1];
    auto result = fence::fence(read_text(path));
    if (auto* problem = std::get_if<Diagnostic>(&result)) return fail(path, to_string(*problem));
    const auto& fenced = std::get<fence::Fenced>(result);
    if (!fenced.reason.empty()) {
        fmt::print("// not fenced: {}\n", fenced.reason);
        return 0;
    }
    for (const fence::FencedFunction& each : fenced.functions)
        fmt::print("// {}: {}\n", each.name, each.reason.empty() ? "fenced" : "refused: it " + each.reason);
    fmt::print("// {} accesses, {} checks\n", fenced.accesses, fenced.checks);
    auto again = parse(fenced.text);
    if (auto* problem = std::get_if<Diagnostic>(&again)) return fail(path, to_string(*problem));
    fmt::print("{}", shows ? without_own(fenced.text) : fenced.text);
    return 0;
}
