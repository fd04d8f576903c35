// The PTX rewriter on broken text: it leaves it alone with a reason, or makes a text that parses, and to what
// it prints.
#include "rewriter/ptx/persistent/persist.h"

#include <cstdlib>
#include <string_view>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/printer.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
    using namespace smt::ptx;
    for (const bool inside : {false, true}) {
        const persistent::Output output =
            persistent::persist(std::string_view(reinterpret_cast<const char*>(data), size), inside);
        if (output.text.empty() == output.reason.empty()) std::abort();
        if (output.text.empty()) return 0;
        auto parsed = parse(output.text);
        if (!std::holds_alternative<Module>(parsed) || print(std::get<Module>(parsed)) != output.text)
            std::abort();
    }
    return 0;
}
