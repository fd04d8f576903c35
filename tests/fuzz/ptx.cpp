// The PTX parser on broken text: it refuses with a place, or it makes a tree that survives being printed.
#include <cstdlib>
#include <string_view>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
    using namespace smt::ptx;
    auto parsed = parse(std::string_view(reinterpret_cast<const char*>(data), size));
    if (auto* problem = std::get_if<Diagnostic>(&parsed)) {
        if (problem->line < 1 || problem->column < 1 || problem->message.empty()) std::abort();
        return 0;
    }
    auto again = parse(print(std::get<Module>(parsed)));
    if (!std::holds_alternative<Module>(again) || !(std::get<Module>(again) == std::get<Module>(parsed)))
        std::abort();
    return 0;
}
