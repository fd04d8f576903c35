#include "runtime/image/printing.h"

#include <algorithm>
#include <utility>

#include "runtime/image/bytes.h"
#include "runtime/image/elf_file.h"
#include "runtime/image/ptx_facts.h"

namespace smt::image {

namespace {

constexpr std::string_view kPrint = "vprintf";
constexpr std::string_view kStart = "LaunchDevice";  // a part of what starts kernels is called

Printing all_of(std::string why) { return {true, std::move(why), {}}; }

// Whether the cubin refers to vprintf anywhere.
bool refers_to_print(const ElfFile& file) {
    for (const Elf64_Shdr& section : file.sections()) {
        if (section.sh_type != SHT_SYMTAB) continue;
        const std::string_view symbols = file.content(section), names = file.content(section.sh_link);
        Elf64_Sym symbol;
        for (uint64_t at = 0; read_at(symbols, at, &symbol); at += sizeof symbol) {
            if (symbol.st_name >= names.size()) continue;
            const std::string_view name = names.substr(symbol.st_name);
            if (name.starts_with(kPrint) && (name.size() == kPrint.size() || name[kPrint.size()] == 0))
                return true;
        }
    }
    return false;
}

bool reaches_print(const KernelFacts& kernel) {
    return std::any_of(kernel.externs.begin(), kernel.externs.end(), [](const std::string& name) {
        return name == kPrint || name.find(kStart) != name.npos;
    });
}

Printing of_cubin(std::string_view cubin) {
    auto file = ElfFile::read(cubin);
    if (auto* problem = std::get_if<Problem>(&file)) return all_of(problem->text);
    if (!refers_to_print(std::get<ElfFile>(file))) return {};
    auto facts = kernel_facts(cubin);
    if (auto* problem = std::get_if<Problem>(&facts)) return all_of(problem->text);
    Printing printing;
    for (const KernelFacts& each : std::get<std::vector<KernelFacts>>(facts))
        if (each.kernel && reaches_print(each)) printing.kernels.insert(each.name);
    // Something refers to it, and no kernel is said to: a compiler that says it in another way than is known
    // here.
    return printing.kernels.empty() ? all_of("no kernel is said to reach vprintf") : printing;
}

// The name stands in the text of every PTX that prints.
Printing of_text(std::string_view text) {
    if (text.find(kPrint) == text.npos) return {};
    auto facts = ptx_facts(text);
    if (auto* problem = std::get_if<Problem>(&facts)) return all_of(problem->text);
    Printing printing;
    for (const PtxKernel& kernel : std::get<PtxFacts>(facts).kernels)
        if (reaches_print(kernel.facts)) printing.kernels.insert(kernel.facts.name);
    return printing;
}

}  // namespace

Printing printing_kernels(std::string_view image, const Device& device) {
    if (!is_fatbin(image)) return is_elf(image) ? of_cubin(image) : of_text(image);
    auto entries = read(image);
    if (auto* problem = std::get_if<Problem>(&entries)) return all_of(problem->text);
    const Entry* entry = choose(std::get<std::vector<Entry>>(entries), device);
    if (!entry) return all_of("it has no code for this device that can be read");
    auto bytes = expand(*entry);
    if (auto* problem = std::get_if<Problem>(&bytes)) return all_of(problem->text);
    const std::string& code = std::get<std::string>(bytes);
    return entry->kind == Kind::kCubin ? of_cubin(code) : of_text(code);
}

}  // namespace smt::image
