#include "runtime/jit/worker/block_sizes.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rewriter/device/reuse.h"
#include "rewriter/ptx/register_limit.h"
#include "runtime/image/image.h"
#include "runtime/image/kernel_facts.h"
#include "runtime/jit/worker/ptx_compiler.h"
#include "runtime/jit/worker/registers.h"

namespace smt::runtime::jit {

namespace {

// Of all GPUs from sm_70 on, before which nothing is fenced.
constexpr uint32_t kMostThreads = 1024, kMostRegisters = 255;
constexpr uint32_t kWarp = 32, kUnit = 256;  // registers, in which a warp gets its own
// A warp's are in one of the SM's four files, and warps take turns among these.
constexpr uint32_t kFiles = 4, kFileRegisters = 16384;

// What the kernel itself says of the threads of its blocks.
uint32_t bound_of(const image::KernelFacts& kernel) {
    uint64_t bound = kMostThreads;
    for (const image::Shape& shape : {kernel.most_threads, kernel.required_block}) {
        const uint64_t plane = uint64_t{shape[0]} * shape[1];
        if (plane != 0 && shape[2] != 0 && plane <= kMostThreads) bound = std::min(bound, plane * shape[2]);
    }
    return static_cast<uint32_t>(bound);
}

Order with_text(const Order& order, std::string text) {
    Order other = order;
    Input& input = other.inputs.front();
    input.bytes = text.size();
    input.data = std::move(text);
    return other;
}

// Of the program's own kernels.
Registers own_registers_of(const Order& order, const std::vector<std::string>& kernels) {
    Registers own = order.registers;
    std::erase_if(own, [](const auto& each) { return each.second == 0; });
    const bool known = std::all_of(kernels.begin(), kernels.end(),
                                   [&](const std::string& kernel) { return own.contains(kernel); });
    if (known || order.ptx.empty()) return own;
    const Result plain = compile_ptx(with_text(order, order.ptx));
    for (const auto& [name, kernel] : facts_of(plain.image)) own.emplace(name, kernel.registers);
    return own;
}

// A form by PTX of a kernel (rewriter/ptx/persistent): it is launched in the kernel's place.
bool is_managed_form(const std::string& name, const Facts& facts) {
    return std::any_of(kReuses.begin(), kReuses.end(), [&](Reuse reuse) {
        const std::string_view prefix = prefix_of(reuse);
        return name.starts_with(prefix) && facts.contains(name.substr(prefix.size()));
    });
}

ptx::RegisterLimits limits_of(const Order& order, const Facts& facts) {
    ptx::RegisterLimits limits;
    std::vector<std::string> bounded;  // by their registers, and not by what they say of their blocks
    for (const auto& [name, kernel] : facts)
        if (threads_with(kernel.registers) < bound_of(kernel) && !is_managed_form(name, facts))
            bounded.push_back(name);
    if (bounded.empty()) return limits;
    const Registers registers = own_registers_of(order, bounded);
    for (const std::string& name : bounded) {
        const auto own = registers.find(name);
        if (own == registers.end()) continue;
        const image::KernelFacts& kernel = facts.at(name);
        const uint32_t threads = std::min(bound_of(kernel), threads_with(own->second));
        if (threads_with(kernel.registers) >= threads) continue;
        limits[name] = registers_for(threads);
        for (const Reuse reuse : kReuses) {
            const auto managed = facts.find(std::string(prefix_of(reuse)) + name);
            if (managed != facts.end() && threads_with(managed->second.registers) < threads)
                limits[managed->first] = limits[name];
        }
    }
    return limits;
}

}  // namespace

uint32_t threads_with(uint32_t registers) {
    if (registers == 0) return kMostThreads;
    const uint32_t of_warp = (std::min(registers, kMostRegisters) * kWarp + kUnit - 1) / kUnit * kUnit;
    return std::min(kMostThreads, kFileRegisters / of_warp * kFiles * kWarp);
}

uint32_t registers_for(uint32_t threads) {
    const uint32_t warps = std::max((threads + kWarp * kFiles - 1) / (kWarp * kFiles), 1u);  // in one file
    return std::min(kMostRegisters, kFileRegisters / warps / kUnit * kUnit / kWarp);
}

Result compile_for_blocks(const Order& order) {
    Result made = compile_ptx(order);
    if (made.image.empty() || (order.registers.empty() && order.ptx.empty())) return made;
    if (order.inputs.front().packed != static_cast<uint32_t>(image::Compression::kNone)) return made;
    const ptx::RegisterLimits limits = limits_of(order, facts_of(made.image));
    if (limits.empty()) return made;
    Result held = compile_ptx(with_text(order, ptx::limit_registers(order.inputs.front().data, limits)));
    return held.image.empty() ? made : held;
}

}  // namespace smt::runtime::jit
