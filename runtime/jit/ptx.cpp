#include "runtime/jit/ptx.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "runtime/image/choice.h"
#include "runtime/image/kernel_facts.h"

namespace smt::runtime::jit {

namespace {

PtxChoice none(std::string reason) { return {"", {}, std::move(reason)}; }

constexpr size_t kMostKernels = 1u << 14;

std::map<std::string, uint32_t> registers_of(const image::Entry* cubin) {
    std::map<std::string, uint32_t> registers;
    if (!cubin) return registers;
    auto bytes = image::expand(*cubin);
    if (!std::holds_alternative<std::string>(bytes)) return registers;
    auto facts = image::kernel_facts(std::get<std::string>(bytes));
    if (!std::holds_alternative<std::vector<image::KernelFacts>>(facts)) return registers;
    for (const image::KernelFacts& fact : std::get<std::vector<image::KernelFacts>>(facts))
        if (fact.kernel && registers.size() < kMostKernels) registers[fact.name] = fact.registers;
    return registers;
}

std::string without_ptx(const std::vector<image::Entry>& entries, int architecture) {
    const bool any = std::any_of(entries.begin(), entries.end(),
                                 [](const image::Entry& entry) { return entry.kind == image::Kind::kPtx; });
    if (!any) return "it holds machine code only";
    return fmt::format("none of its PTX is for sm_{} or an earlier architecture", architecture);
}

}  // namespace

std::string machine_code_for(int device, int architecture, char variant) {
    std::string code = fmt::format("sm_{}", device);
    if (variant && (variant != 'a' || architecture == device)) code += variant;
    return code;
}

std::map<std::string, uint32_t> own_registers(std::string_view bytes, int architecture) {
    auto read = image::read(bytes);
    auto* entries = std::get_if<std::vector<image::Entry>>(&read);
    if (!entries || entries->empty()) return {};
    return registers_of(
        image::best_cubin(*entries, architecture ? architecture : entries->front().architecture));
}

PtxChoice choose_ptx(std::string_view bytes, int architecture, uint64_t most_bytes) {
    auto read = image::read(bytes);
    if (auto* problem = std::get_if<image::Problem>(&read))
        return none("it cannot be read: " + problem->text);
    const auto& entries = std::get<std::vector<image::Entry>>(read);
    const image::Entry* ptx = image::best_ptx(entries, architecture);
    if (!ptx) return none(without_ptx(entries, architecture));
    // The driver takes machine code where there is some. Older PTX may be other code (__CUDA_ARCH__), and so
    // may PTX for less of the architecture (__CUDA_ARCH_FEAT_SM90_ALL).
    const image::Entry* cubin = image::best_cubin(entries, architecture);
    if (cubin && image::is_better(*cubin, *ptx))
        return none(fmt::format("its PTX is for {}, its machine code for {}", image::target_of(*ptx),
                                image::target_of(*cubin)));
    if (ptx->bytes > most_bytes)
        return none(fmt::format("its PTX has {} bytes, more than ptx_size in SMT_COMPILE ({})", ptx->bytes,
                                most_bytes));
    auto text = image::expand(*ptx);
    if (auto* problem = std::get_if<image::Problem>(&text))
        return none("its PTX cannot be unpacked: " + problem->text);
    return {std::move(std::get<std::string>(text)), registers_of(cubin), "",
            machine_code_for(architecture, ptx->architecture, ptx->variant)};
}

Choices choices_of(std::string_view bytes, const Target& target, uint64_t most_ptx_bytes) {
    Choices choices;
    auto read = image::read(bytes);
    if (auto* entries = std::get_if<std::vector<image::Entry>>(&read)) {
        const image::Entry* entry = image::choose(*entries, {target.architecture, !target.text_only, true});
        if (entry)
            choices.code = fmt::format("{}_{}", entry->kind == image::Kind::kCubin ? "sm" : "compute",
                                       entry->architecture);
        if (entry && entry->variant) choices.code += entry->variant;
    }
    choices.ptx = choose_ptx(bytes, target.architecture, most_ptx_bytes);
    return choices;
}

}  // namespace smt::runtime::jit
