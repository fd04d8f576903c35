#include "runtime/jit/opened.h"

#include <fmt/format.h>

#include "rewriter/ptx/fence/fence.h"
#include "runtime/image/bytes.h"
#include "runtime/image/container.h"
#include "runtime/image/elf_file.h"
#include "runtime/image/movable.h"
#include "runtime/image/ptx_facts.h"
#include "runtime/image/variable_uses.h"
#include "runtime/image/variables.h"

namespace smt::runtime::jit {

namespace {

constexpr std::string_view kPrint = "vprintf";

bool is_wrapper(std::string_view image) {
    uint32_t magic = 0;
    return image::read_at(image, 0, &magic) && magic == image::kWrapperMagic;
}

// The driver would follow a wrapper's pointer, and read an ELF file of another machine as a cubin. The linker
// takes objects.
Opened other(std::string_view image, const OpenOrder& asked, const image::Problem& problem) {
    Opened opened;
    if (is_wrapper(image) || (image::is_elf(image) && !asked.links)) opened.problem = problem.text;
    opened.bytes = image.size();
    if (asked.prints && image.find(kPrint) != image.npos) opened.printing = {true, problem.text, {}};
    opened.choices.ptx.reason = "it cannot be read: " + problem.text;
    return opened;
}

// Of a text or a cubin alone the compiler, or the driver, says what is wrong with its target.
const image::Entry* chosen_of(const std::vector<image::Entry>& entries, const OpenOrder& asked,
                              std::string_view image) {
    const image::Entry& first = entries.front();
    if (asked.links) return &first;
    if (image::is_fatbin(image)) return image::choose(entries, asked.device);
    return first.kind == image::Kind::kPtx && !asked.device.takes_ptx ? nullptr : &first;
}

// Why the code is not loaded; empty: it may be.
std::string take_code(const image::Entry& entry, std::string_view image, Opened& opened) {
    if (entry.compression == image::Compression::kNone) {
        opened.at = static_cast<uint64_t>(entry.stored.data() - image.data());
        opened.bytes = entry.stored.size();
        if (opened.code == Code::kPtx) opened.bytes = entry.stored.find_last_not_of('\0') + 1;
    } else {
        auto unpacked = image::expand(entry);
        if (auto* problem = std::get_if<image::Problem>(&unpacked)) return problem->text;
        opened.unpacked = std::move(std::get<std::string>(unpacked));
        opened.bytes = opened.unpacked.size();
    }
    if (opened.code != Code::kCubin) return "";
    const std::string_view code = code_of(opened, image);
    if (image::cubin_architecture(code) == 0) return "its machine code is no cubin";
    auto problem = image::check(code);
    return problem ? problem->text : "";
}

// The image's PTX with fences takes the place of the code that the device would load, and of the PTX that a
// managed form is made from. Its registers are not those of the program's machine code, which are kept apart.
std::string take_fences(const OpenOrder& asked, Opened& opened) {
    constexpr const char* kRefused =
        "the tenant is fenced, and the image cannot be ({}); SMT_ISOLATION=strict "
        "takes it";
    PtxChoice& choice = opened.choices.ptx;
    if (!choice.reason.empty()) return fmt::format(kRefused, choice.reason);
    auto result = ptx::fence::fence(choice.text);
    if (auto* problem = std::get_if<ptx::Diagnostic>(&result))
        return fmt::format(kRefused, ptx::to_string(*problem));
    auto& fenced = std::get<ptx::fence::Fenced>(result);
    if (!fenced.reason.empty()) return fmt::format(kRefused, fenced.reason);
    opened.own.registers = std::move(choice.registers);
    const bool assembled = !asked.target.text_only;
    for (ptx::fence::FencedFunction& each : fenced.functions) {
        const bool runs = each.kernel && each.reason.empty();
        if (runs && assembled && opened.own.ptx.empty() && !opened.own.registers.contains(each.name))
            opened.own.ptx = std::move(choice.text);
        opened.fenced.push_back({std::move(each.name), std::move(each.reason)});
    }
    choice = {fenced.text, {}, ""};
    opened.code = Code::kPtx;
    opened.unpacked = std::move(fenced.text);
    opened.at = 0;
    opened.bytes = opened.unpacked.size();
    return "";
}

bool may_have_doors(const OpenOrder& asked, Code code) {
    return asked.doors && code == (asked.target.text_only ? Code::kPtx : Code::kCubin);
}

void take_doors(std::string code, Opened& opened) {
    if (code.empty() || code.size() > image::kMostBytes) {
        std::erase_if(opened.doors, [](const Door& door) { return door.reason.empty(); });
        return;
    }
    opened.unpacked = std::move(code);
    opened.at = 0;
    opened.bytes = opened.unpacked.size();
    // Of PTX the machine code beside it tells.
    for (Door& door : opened.doors) {
        const auto known = opened.choices.ptx.registers.find(door.kernel);
        if (!door.registers && known != opened.choices.ptx.registers.end()) door.registers = known->second;
    }
}

}  // namespace

bool is_no_image(std::string_view bytes) {
    if (image::is_fatbin(bytes) || image::is_elf(bytes) || is_wrapper(bytes)) return false;
    const size_t first = bytes.find_first_not_of(" \t\r\n\v\f");
    return first == bytes.npos || (bytes[first] != '.' && bytes[first] != '/');  // a directive, a comment
}

std::string_view code_of(const Opened& opened, std::string_view image) {
    return opened.unpacked.empty() ? image.substr(opened.at, opened.bytes)
                                   : std::string_view(opened.unpacked);
}

namespace {

// Managed variables are moved elsewhere (`managed`), by a change of the same relocations.
void look_for_variables(std::string_view code, bool tables, Opened& opened) {
    if (!opened.uses_variables) return;
    if (opened.code == Code::kCubin) {
        image::MovablePlan found = image::movable_plan(code, tables);
        opened.stays = std::move(found.stays);
        opened.constants = std::move(found.constants);
        if (opened.managed.bytes == 0) opened.moved = std::move(found.plan);
        return;
    }
    image::TextUses uses = image::uses_of_ptx(code, tables);
    opened.constants = std::move(uses.constants);
    opened.unplaced = uses.variables;
    if (uses.constant_addresses) opened.stays = image::kConstantTaken;
    if (uses.within && opened.stays.empty()) opened.stays = "variables of single functions";
}

}  // namespace

Opened open_image(const OpenOrder& asked, std::string_view image, PutDoors put_doors) {
    if (auto problem = image::check(image)) {
        Opened opened;
        opened.problem = problem->text;
        return opened;
    }
    const auto read = image::read(image);
    if (auto* problem = std::get_if<image::Problem>(&read)) return other(image, asked, *problem);
    const auto& entries = std::get<std::vector<image::Entry>>(read);
    Opened opened;
    opened.bytes = image.size();
    if (!asked.links) opened.choices = choices_of(image, asked.target, asked.most_ptx_bytes);
    const image::Entry* chosen = chosen_of(entries, asked, image);
    opened.code = !chosen ? Code::kNone : chosen->kind == image::Kind::kCubin ? Code::kCubin : Code::kPtx;
    if (!chosen) return opened;
    opened.architecture = chosen->architecture;
    opened.variant = chosen->variant;
    if (asked.links) return opened;
    const std::string own = asked.fences ? opened.choices.ptx.text : "";
    opened.problem = asked.fences ? take_fences(asked, opened) : take_code(*chosen, image, opened);
    if (!opened.problem.empty()) return opened;
    if (put_doors && may_have_doors(asked, opened.code))
        take_doors(put_doors(code_of(opened, image), opened.doors), opened);
    const std::string_view code = code_of(opened, image);
    if (asked.prints) opened.printing = image::printing_kernels(code, asked.device);
    if (opened.code == Code::kCubin) opened.managed = image::managed_plan(code);
    opened.variable_bytes = opened.code == Code::kCubin ? image::variable_bytes_of_cubin(code)
                                                        : image::variable_bytes_of_ptx(code);
    // A fence's own constant is none of the image's variables, and the host sets it in each copy.
    const std::string_view text = asked.fences                ? std::string_view(own)
                                  : opened.code == Code::kPtx ? code
                                                              : std::string_view(opened.choices.ptx.text);
    opened.uses_variables = text.empty() ? image::uses_variables_of_cubin(code, asked.tables)
                                         : image::uses_variables_of_ptx(text, asked.tables);
    opened.system_atomics = image::kernels_with_system_atomics(text);
    if (asked.moves) look_for_variables(code, asked.tables, opened);
    return opened;
}

}  // namespace smt::runtime::jit
