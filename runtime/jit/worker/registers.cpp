#include "runtime/jit/worker/registers.h"

#include <algorithm>
#include <variant>

#include "rewriter/ptx/register_limit.h"

namespace smt::runtime::jit {

namespace {

constexpr uint32_t kGranularity = 8, kFewest = 32;
constexpr uint32_t kFewSpilled = 32;  // bytes; see registers.h
constexpr uint32_t kMostMore = 2 * kGranularity;
constexpr int kMostRounds = 3;  // the first limit, and twice more

uint32_t step_of(uint32_t registers) {
    return std::max((registers + kGranularity - 1) / kGranularity * kGranularity, kFewest);
}

// What the hardware hands out for the kernel's own form; 0: unknown.
uint32_t allowed(const CompiledKernel& kernel, const Registers& known, const Facts& facts) {
    if (auto own = known.find(kernel.symbol); own != known.end() && own->second) return step_of(own->second);
    auto own = facts.find(kernel.symbol);
    return own == facts.end() ? 0 : step_of(own->second.registers);
}

ptx::RegisterLimits limits_from(const std::vector<CompiledKernel>& kernels, const Registers& known) {
    ptx::RegisterLimits limits;
    for (const CompiledKernel& kernel : kernels)
        if (uint32_t most = allowed(kernel, known, {}); most != 0 && !kernel.managed.empty())
            limits[kernel.managed] = most;
    return limits;
}

// Whether there is something to assemble again for.
bool adjust(const CompiledKernel& kernel, const Facts& facts, const Registers& known,
            ptx::RegisterLimits& limits) {
    auto managed = facts.find(kernel.managed), own = facts.find(kernel.symbol);
    if (kernel.managed.empty() || managed == facts.end()) return false;
    const uint32_t most = allowed(kernel, known, facts);
    if (auto limit = limits.find(kernel.managed); limit != limits.end()) {
        if (limit->second >= most + kMostMore) return false;
        const uint32_t bearable = limit->second == most ? kFewSpilled : 0;
        if (own == facts.end() || managed->second.stack_bytes <= own->second.stack_bytes + bearable)
            return false;
        limit->second += kGranularity;
        return true;
    }
    if (most == 0 || managed->second.registers <= most) return false;
    limits[kernel.managed] = most;
    return true;
}

}  // namespace

Facts facts_of(std::string_view cubin) {
    Facts facts;
    auto read = image::kernel_facts(cubin);
    if (auto* list = std::get_if<std::vector<image::KernelFacts>>(&read))
        for (image::KernelFacts& each : *list)
            if (each.kernel) facts.emplace(each.name, std::move(each));
    return facts;
}

bool exceeds(std::string_view cubin, const std::vector<CompiledKernel>& kernels, const Registers& known) {
    const Facts facts = facts_of(cubin);
    ptx::RegisterLimits limits;
    return std::any_of(kernels.begin(), kernels.end(),
                       [&](const CompiledKernel& kernel) { return adjust(kernel, facts, known, limits); });
}

std::string hold_registers(const std::string& text, const std::vector<CompiledKernel>& kernels,
                           const Registers& known, const std::string& architecture,
                           const Assembler& assembler, std::string& reason) {
    ptx::RegisterLimits limits = limits_from(kernels, known);  // a limit that is not reached does no harm
    std::string held = ptx::limit_registers(text, limits);
    for (int round = 0; round < kMostRounds; ++round) {
        const std::string cubin = assembler.assemble(held, architecture, reason);
        if (cubin.empty()) break;
        const Facts facts = facts_of(cubin);
        bool again = false;
        for (const CompiledKernel& kernel : kernels) again |= adjust(kernel, facts, known, limits);
        if (!again) break;
        held = ptx::limit_registers(text, limits);
    }
    return held;
}

std::string hold_registers(const std::string& text, const std::vector<CompiledKernel>& kernels,
                           const Registers& known) {
    return ptx::limit_registers(text, limits_from(kernels, known));
}

}  // namespace smt::runtime::jit
