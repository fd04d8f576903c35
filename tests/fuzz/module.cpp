// Images on the simulated device, which is in the server: from the bytes of a tenant to decoded kernels.
#include <cstdlib>
#include <string>

#include "rewriter/ptx/parser.h"
#include "runtime/device/simulated/driver/code.h"

using namespace smt;
using namespace smt::runtime::device::simulated;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
    auto found = find_ptx(data, size);
    auto* texts = std::get_if<PtxTexts>(&found);
    if (!texts) return std::get<Refusal>(found).why.empty() ? std::abort(), 0 : 0;
    std::vector<ptx::Module> parts;
    for (const std::string& text : texts->parts) {
        auto parsed = ptx::parse(text);
        if (std::holds_alternative<ptx::Diagnostic>(parsed)) return 0;
        parts.push_back(std::move(std::get<ptx::Module>(parsed)));
    }
    static Memory memory;
    auto loaded = Module::load(std::move(parts), memory, nullptr);
    if (!std::holds_alternative<std::unique_ptr<Module>>(loaded)) return 0;
    const auto& module = std::get<std::unique_ptr<Module>>(loaded);
    for (const std::string& name : module->kernel_names()) (void)module->kernel(name);
    return 0;
}
