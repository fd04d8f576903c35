#include "rewriter/machine_code/patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "rewriter/device/door.h"
#include "rewriter/machine_code/code_move.h"
#include "rewriter/machine_code/elf_editor.h"
#include "rewriter/machine_code/entries.h"
#include "runtime/image/bytes.h"
#include "runtime/image/kernel_facts.h"

namespace smt::machine_code {

namespace {

using Operation = Instruction::Operation;

// Of ptxas in CUDA 13, and before. The earlier one has the count of barriers in the flags of a section of
// code.
constexpr unsigned char kAbiVersion = 8, kAbiWithBarriersInFlags = 7;
constexpr unsigned kBarriersShift = 20;
constexpr uint64_t kBarriersMask = 0x7full << kBarriersShift;
constexpr uint64_t kCodeAlignment = 128;
// Of a kernel, all together; with records of the large kind, which CUDA 12.1 brought, and without.
constexpr uint32_t kMostParameterBytes = 4352, kMostLargeParameterBytes = 32764;
constexpr unsigned kRegistersShift = 24;  // in sh_info of code, up to sm_89

constexpr uint32_t kDoorBytes = sizeof(DoorLaunch), kDoorAlignment = 16;

// The last word of a parameter's record, of the large kind only the size: in a bank (0x1f), nothing is known
// of what it points to.
constexpr uint32_t kParameterWord = kDoorBytes << 18 | 0x1f000;

struct ParameterRecord {
    uint32_t index;
    uint16_t ordinal, offset;
    uint32_t word;
};
static_assert(sizeof(ParameterRecord) == 12);

struct Bank {
    uint32_t symbol;
    uint16_t at, bytes;
};
static_assert(sizeof(Bank) == 8);

struct SymbolCount {
    uint32_t symbol, count;
};

template <typename T>
std::string bytes_of(const T& value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

// What an entry's attributes say of its parameters.
struct Parameters {
    bool large = false;
    uint32_t count = 0;
    uint32_t bytes = 0;
};

bool loads_from_others(std::string_view code) {
    for (size_t i = 0; i < code.size() / kInstructionBytes; ++i)
        if (Instruction::at(code, i).loads_from_others()) return true;
    return false;
}

// What all entries of a cubin share.
struct Cubin {
    ElfEditor editor;
    CubinEntries parts;
    int architecture;
    bool barriers_in_flags;
    bool functions_wait;            // some function that an entry may call may wait for another CTA
    std::vector<Attribute> common;  // attributes
    std::unordered_map<uint32_t, size_t> registers;  // number in `common`, by symbol
    std::unordered_map<uint32_t, uint32_t> moved;    // symbols of patched entries, by sections of code
};

bool describes_parameter(const Attribute& attribute) {
    return attribute.kind == kParameter || attribute.kind == kLargeParameter;
}

class EntryPatch {
public:
    EntryPatch(Cubin& cubin, const CubinEntry& entry, Prologues& prologues)
        : all_(cubin), cubin_(cubin.editor), entry_(entry), prologues_(prologues) {}

    // Nothing is changed where there is a reason.
    PatchedEntry apply() {
        result_.name = entry_.name;
        result_.reason = entry_.reason.empty() ? look() : entry_.reason;
        if (!result_.reason.empty()) return result_;
        result_.waits = all_.functions_wait || loads_from_others(cubin_.content(entry_.code));
        change_code();
        all_.moved.emplace(entry_.code, entry_.symbol);
        change_attributes();
        change_registers();
        cubin_.change(entry_.constants).append(result_.door_offset + kDoorBytes - parameters_.bytes, '\0');
        return result_;
    }

private:
    std::string look() {
        auto read = read_attributes(cubin_.content(entry_.attributes));
        if (auto* problem = std::get_if<Problem>(&read)) return problem->text;
        attributes_ = std::move(std::get<0>(read));
        for (Attribute& each : attributes_) {
            if (!is_known(each.kind)) return fmt::format("attribute {:#x} is unknown", each.kind);
            if (!move_offsets(each, cubin_.content(entry_.code).size(), kHeadBytes))
                return fmt::format("attribute {:#x} leads out of its code", each.kind);
        }
        if (std::string reason = look_at_parameters(); !reason.empty()) return reason;
        if (!all_.registers.contains(entry_.symbol)) return "its registers are unknown";
        const auto& prologue = prologues_.get(all_.architecture, result_.door_offset);
        if (auto* problem = std::get_if<Problem>(&prologue)) return problem->text;
        prologue_ = &std::get<Prologue>(prologue);
        if (std::string reason = look_at_code(); !reason.empty()) return reason;
        return look_at_bank();
    }

    std::string look_at_code() {
        const std::string_view code = cubin_.content(entry_.code);
        if (code.empty() || code.size() % kCodeAlignment != 0)
            return "its code is not a multiple of 128 bytes";
        return has_head(code) ? "it has a door" : "";
    }

    // Whether it begins as a head does, for whatever place of the parameter.
    bool has_head(std::string_view code) const {
        for (size_t i = 0; i < kHeadInstructions; ++i)
            if (!Instruction::at(code, i).is(prologue_->head[i].operation())) return false;
        return true;
    }

    std::string look_at_parameters() {
        parameters_.large = find(attributes_, kLargeParameter) != nullptr;
        for (const Attribute& each : attributes_) parameters_.count += describes_parameter(each);
        const Attribute* size = find(attributes_, kParameterBytes);
        const Attribute* bank = find(attributes_, kParameterBank);
        if (!size != !bank || (!size && parameters_.count != 0))
            return "its parameters are described in part";
        if (size) parameters_.bytes = size->value;
        result_.door_offset = (parameters_.bytes + kDoorAlignment - 1) / kDoorAlignment * kDoorAlignment;
        if (result_.door_offset + kDoorBytes >
            (parameters_.large ? kMostLargeParameterBytes : kMostParameterBytes))
            return "it has no room for a parameter";
        result_.parameters = parameters_.count + 1;
        return "";
    }

    std::string look_at_bank() const {
        Bank bank{0, prologue_->parameter_bank_at, 0};
        const Attribute* described = find(attributes_, kParameterBank);
        if (described && !image::read_at(described->bytes, 0, &bank))
            return "its constant bank is described in part";
        if (bank.at != prologue_->parameter_bank_at || bank.bytes != parameters_.bytes ||
            cubin_.content(entry_.constants).size() != uint64_t{bank.at} + bank.bytes)
            return "its parameters do not fill its constant bank";
        if (!described && entry_.constants_symbol == 0) return "its constant bank has no symbol";
        return "";
    }

    void change_code() {
        std::string& code = cubin_.change(entry_.code);
        begin_ = static_cast<uint32_t>(kHeadBytes + code.size());
        const auto to_prologue = static_cast<int64_t>(begin_ + kInstructionBytes - kHeadBytes);
        std::string head;
        for (const Instruction& each : prologue_->head) each.append_to(head);
        head.resize(head.size() - kInstructionBytes);
        prologue_->head.back().with_jump(to_prologue, prologue_->form).append_to(head);
        code.insert(0, head);
        for (const Instruction& each : prologue_->code) each.append_to(code);
        const auto to_kernel = static_cast<int64_t>(kHeadBytes) - static_cast<int64_t>(code.size());
        prologue_->branch.that_waits_for_all().with_jump(to_kernel, prologue_->form).append_to(code);
        while (code.size() % kCodeAlignment != 0)
            prologue_->branch.with_jump(0, prologue_->form).append_to(code);
        const uint64_t size = code.size();
        std::memcpy(cubin_.change(all_.parts.symbols).data() + entry_.size_at, &size, sizeof size);
        if (const uint32_t info = cubin_.sections()[entry_.code].sh_info; info >> kRegistersShift != 0)
            cubin_.set_info(entry_.code, (info & ((1u << kRegistersShift) - 1)) |
                                             std::max(info >> kRegistersShift, prologue_->registers)
                                                 << kRegistersShift);
    }

    void add_offsets(Kind kind, const std::vector<uint32_t>& offsets, bool where_missing) {
        Attribute* list = find(attributes_, kind);
        if (offsets.empty() || (!list && !where_missing)) return;
        if (!list) list = &attributes_.emplace_back(Attribute{Form::kBytes, kind, 0, {}});
        for (uint32_t offset : offsets) list->append(begin_ + offset);
    }

    void change_attributes() {
        add_offsets(kWarpWideOffsets, prologue_->warp_wide, true);
        add_offsets(kExitOffsets, prologue_->exits, false);
        if (prologue_->uses_cta_z && !find(attributes_, kCtaIdZUsed))
            attributes_.push_back({Form::kNone, kCtaIdZUsed, 0, {}});
        change_barriers();
        change_parameters();
        cubin_.change(entry_.attributes) = write_attributes(attributes_);
    }

    void change_barriers() {
        if (all_.barriers_in_flags) {
            const uint64_t flags = cubin_.sections()[entry_.code].sh_flags;
            const uint64_t count =
                std::max<uint64_t>((flags & kBarriersMask) >> kBarriersShift, prologue_->barriers);
            cubin_.set_flags(entry_.code, (flags & ~kBarriersMask) | count << kBarriersShift);
        } else if (Attribute* barriers = find(attributes_, kBarriers)) {
            barriers->value = std::max(barriers->value, static_cast<uint16_t>(prologue_->barriers));
        } else {
            attributes_.push_back({Form::kByte, kBarriers, static_cast<uint16_t>(prologue_->barriers), {}});
        }
    }

    void change_parameters() {
        const auto offset = static_cast<uint16_t>(result_.door_offset);
        const auto all = static_cast<uint16_t>(result_.door_offset + kDoorBytes);
        Bank bank{entry_.constants_symbol, prologue_->parameter_bank_at, all};
        if (Attribute* described = find(attributes_, kParameterBank)) {
            image::read_at(described->bytes, 0, &bank);
            bank.bytes = all;
            described->bytes.replace(0, sizeof bank, bytes_of(bank));
            find(attributes_, kParameterBytes)->value = all;
        } else {
            attributes_.insert(attributes_.begin(), {{Form::kBytes, kParameterBank, 0, bytes_of(bank)},
                                                     {Form::kHalf, kParameterBytes, all, {}}});
        }
        // The last parameter comes first.
        const auto before = std::find_if(attributes_.begin(), attributes_.end(), describes_parameter);
        const auto kind = static_cast<uint8_t>(parameters_.large ? kLargeParameter : kParameter);
        const ParameterRecord record{0, static_cast<uint16_t>(parameters_.count), offset,
                                     parameters_.large ? kDoorBytes : kParameterWord};
        attributes_.insert(before == attributes_.end() ? attributes_.begin() : before,
                           Attribute{Form::kBytes, kind, 0, bytes_of(record)});
    }

    void change_registers() {
        std::string& bytes = all_.common[all_.registers.at(entry_.symbol)].bytes;
        SymbolCount count;
        image::read_at(bytes, 0, &count);
        result_.own_registers = count.count;
        count.count = std::max(count.count, prologue_->registers);
        bytes.replace(0, sizeof count, bytes_of(count));
        result_.registers = count.count;
    }

    Cubin& all_;
    ElfEditor& cubin_;
    const CubinEntry& entry_;
    Prologues& prologues_;
    const Prologue* prologue_ = nullptr;
    std::vector<Attribute> attributes_;
    Parameters parameters_;
    uint32_t begin_ = 0;  // of the prologue
    PatchedEntry result_;
};

// Why the cubin as a whole is left alone; empty: it is not.
std::string look_at_file(const Elf64_Ehdr& header) {
    if (header.e_type == ET_REL) return "the linker still has to lay it out";
    const unsigned char version = header.e_ident[EI_ABIVERSION];
    if (version != kAbiVersion && version != kAbiWithBarriersInFlags)
        return fmt::format("its layout is that of ABI version {}", version);
    return "";
}

std::variant<Cubin, Problem> open(std::string_view bytes) {
    const int architecture = image::cubin_architecture(bytes);
    if (architecture == 0) return Problem{"no cubin"};
    auto editor = ElfEditor::read(bytes);
    if (auto* problem = std::get_if<Problem>(&editor)) return *problem;
    auto& elf = std::get<ElfEditor>(editor);
    if (std::string reason = look_at_file(elf.file().header()); !reason.empty()) return Problem{reason};
    auto parts = find_entries(elf);
    if (auto* problem = std::get_if<Problem>(&parts)) return *problem;
    auto common = read_attributes(elf.content(std::get<CubinEntries>(parts).common_attributes));
    if (auto* problem = std::get_if<Problem>(&common)) return *problem;
    const bool in_flags = elf.file().header().e_ident[EI_ABIVERSION] == kAbiWithBarriersInFlags;
    Cubin cubin{std::move(elf), std::move(std::get<CubinEntries>(parts)), architecture, in_flags,
                false,          std::move(std::get<0>(common)),           {},           {}};
    for (const uint32_t function : cubin.parts.functions)
        cubin.functions_wait |= loads_from_others(cubin.editor.content(function));
    for (size_t i = 0; i < cubin.common.size(); ++i) {
        SymbolCount count;
        if (cubin.common[i].kind == kRegisterCount && image::read_at(cubin.common[i].bytes, 0, &count))
            cubin.registers.emplace(count.symbol, i);
    }
    return cubin;
}

}  // namespace

std::variant<Patched, Problem> patch(std::string_view bytes, Prologues& prologues, LeaveAlone leave_alone) {
    auto opened = open(bytes);
    if (auto* problem = std::get_if<Problem>(&opened)) return *problem;
    auto& cubin = std::get<Cubin>(opened);
    Patched patched;
    bool any = false;
    for (CubinEntry& entry : cubin.parts.entries) {
        if (leave_alone && entry.reason.empty()) entry.reason = leave_alone(entry.name);
        patched.entries.push_back(EntryPatch(cubin, entry, prologues).apply());
        any |= patched.entries.back().reason.empty();
    }
    if (!any) return patched;
    move_code(cubin.editor, cubin.parts.symbols, cubin.moved, kHeadBytes);
    cubin.editor.change(cubin.parts.common_attributes) = write_attributes(cubin.common);
    auto written = cubin.editor.write();
    if (auto* problem = std::get_if<Problem>(&written)) return *problem;
    patched.cubin = std::move(std::get<std::string>(written));
    return patched;
}

}  // namespace smt::machine_code
