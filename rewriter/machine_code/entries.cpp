#include "rewriter/machine_code/entries.h"

#include <cstddef>
#include <unordered_map>
#include <unordered_set>

#include "runtime/image/bytes.h"

namespace smt::machine_code {

namespace {

using image::ElfFile;

constexpr unsigned char kEntryPoint = 0x10;  // in st_other
constexpr uint32_t kInfoSection = 0x70000000;
constexpr std::string_view kOwnInfo = ".nv.info.", kCommonInfo = ".nv.info", kConstants = ".nv.constant0.",
                           kCode = ".text.";

// What belongs to a section of code, by its number. A second one of a kind makes it unknown.
struct Parts {
    uint32_t attributes = 0, constants = 0, entries = 0;
    bool first_relocated = false, twice = false;
    void take(uint32_t& place, uint32_t section) {
        twice |= place != 0;
        place = section;
    }
};

class Finder {
public:
    explicit Finder(const ElfEditor& cubin) : file_(cubin.file()) {}

    std::variant<CubinEntries, Problem> find() {
        for (uint32_t i = 1; i < file_.sections().size(); ++i)
            if (!take_section(i)) return Problem{"a cubin with two tables of symbols or two .nv.info"};
        if (!result_.symbols || !result_.common_attributes)
            return Problem{"a cubin without symbols or without .nv.info"};
        read_symbols();
        for (uint32_t i = 1; i < file_.sections().size(); ++i) find_addresses(i);
        for (CubinEntry& entry : result_.entries) judge(entry);
        find_functions();
        return std::move(result_);
    }

private:
    bool take_section(uint32_t number) {
        const Elf64_Shdr& section = file_.sections()[number];
        if (section.sh_type == SHT_SYMTAB) return take_once(result_.symbols, number);
        if (section.sh_type == kInfoSection && file_.name_is(section, kCommonInfo))
            return take_once(result_.common_attributes, number);
        if (section.sh_type == kInfoSection && file_.name_begins(section, kOwnInfo))
            parts_[section.sh_info].take(parts_[section.sh_info].attributes, number);
        else if (section.sh_type == SHT_PROGBITS && file_.name_begins(section, kConstants))
            parts_[section.sh_info].take(parts_[section.sh_info].constants, number);
        else if (section.sh_type == SHT_REL || section.sh_type == SHT_RELA)
            parts_[section.sh_info].first_relocated |= relocates_first(section);
        return true;
    }

    static bool take_once(uint32_t& place, uint32_t number) {
        if (place != 0) return false;
        place = number;
        return true;
    }

    bool relocates_first(const Elf64_Shdr& section) const {
        const std::string_view bytes = file_.content(section);
        const uint64_t step = section.sh_type == SHT_REL ? sizeof(Elf64_Rel) : sizeof(Elf64_Rela);
        uint64_t offset = 0;
        for (uint64_t at = 0; image::read_at(bytes, at, &offset); at += step)
            if (offset < kFirstBytes) return true;
        return false;
    }

    void read_symbols() {
        const Elf64_Shdr& table = file_.sections()[result_.symbols];
        const std::string_view symbols = file_.content(table), names = file_.content(table.sh_link);
        uint64_t left = names.size();  // names could overlap
        Elf64_Sym symbol;
        for (uint32_t i = 0; image::read_at(symbols, uint64_t{i} * sizeof symbol, &symbol); ++i) {
            const unsigned char type = ELF64_ST_TYPE(symbol.st_info);
            if (type == STT_SECTION) section_symbols_.try_emplace(symbol.st_shndx, i);
            if (type != STT_FUNC || !(symbol.st_other & kEntryPoint)) continue;
            CubinEntry entry;
            entry.name = ElfFile::text_at(names, symbol.st_name).substr(0, left);
            left -= entry.name.size();
            entry.symbol = i;
            entry.size_at = uint64_t{i} * sizeof symbol + offsetof(Elf64_Sym, st_size);
            entry.code = symbol.st_shndx;
            const Elf64_Shdr* code =
                entry.code < file_.sections().size() ? &file_.sections()[entry.code] : nullptr;
            if (!code || symbol.st_shndx >= SHN_LORESERVE)
                entry.reason = "its code is nowhere";
            else if (symbol.st_value != 0 || symbol.st_size != code->sh_size)
                entry.reason = "it does not fill its section of code";
            ++parts_[entry.code].entries;
            by_symbol_[i] = result_.entries.size();
            result_.entries.push_back(std::move(entry));
        }
    }

    void find_functions() {
        for (uint32_t i = 1; i < file_.sections().size(); ++i) {
            const Elf64_Shdr& section = file_.sections()[i];
            const bool code = section.sh_type == SHT_PROGBITS && section.sh_flags & SHF_EXECINSTR;
            auto parts = parts_.find(i);
            if (code && (parts == parts_.end() || parts->second.entries == 0)) result_.functions.push_back(i);
        }
    }

    // Entries whose addresses code or data holds: device code may launch them, with their own parameters
    // alone. An entry refers to places within itself, too.
    void find_addresses(uint32_t number) {
        const Elf64_Shdr& section = file_.sections()[number];
        const bool addends = section.sh_type == SHT_RELA;
        if ((section.sh_type != SHT_REL && !addends) || section.sh_info >= file_.sections().size() ||
            !(file_.sections()[section.sh_info].sh_flags & SHF_ALLOC))
            return;
        const std::string_view bytes = file_.content(section);
        Elf64_Rela relocation{};
        for (uint64_t at = 0;; at += addends ? sizeof relocation : sizeof(Elf64_Rel)) {
            if (!read_relocation(bytes, at, addends, relocation)) return;
            auto entry = by_symbol_.find(static_cast<uint32_t>(ELF64_R_SYM(relocation.r_info)));
            if (entry == by_symbol_.end()) continue;
            const bool own = result_.entries[entry->second].code == section.sh_info;
            if (!own || relocation.r_addend == 0) taken_.insert(entry->first);
        }
    }

    static bool read_relocation(std::string_view bytes, uint64_t at, bool addend, Elf64_Rela& relocation) {
        if (addend) return image::read_at(bytes, at, &relocation);
        Elf64_Rel without{};
        if (!image::read_at(bytes, at, &without)) return false;
        relocation = {without.r_offset, without.r_info, 0};
        return true;
    }

    void judge(CubinEntry& entry) {
        if (!entry.reason.empty()) return;
        const Parts& parts = parts_[entry.code];
        const Elf64_Shdr& code = file_.sections()[entry.code];
        entry.attributes = parts.attributes;
        entry.constants = parts.constants;
        if (auto symbol = section_symbols_.find(parts.constants); symbol != section_symbols_.end())
            entry.constants_symbol = symbol->second;
        if (code.sh_type != SHT_PROGBITS || !(code.sh_flags & SHF_EXECINSTR) ||
            !file_.name_begins(code, kCode))
            entry.reason = "its code stands in an unknown kind of section";
        else if (parts.entries != 1)
            entry.reason = "its code is that of several entries";
        else if (parts.twice)
            entry.reason = "it has several sections of a kind";
        else if (!parts.attributes)
            entry.reason = "it has no attributes";
        else if (!parts.constants)
            entry.reason = "it has no constant bank";
        else if (parts.first_relocated)
            entry.reason = "its first instruction is relocated";
        else if (taken_.contains(entry.symbol))
            entry.reason = "device code may launch it";
    }

    static constexpr uint64_t kFirstBytes = 16;

    const ElfFile& file_;
    CubinEntries result_;
    std::unordered_map<uint32_t, Parts> parts_;
    std::unordered_map<uint32_t, uint32_t> section_symbols_;
    std::unordered_map<uint32_t, size_t> by_symbol_;  // entries
    std::unordered_set<uint32_t> taken_;              // symbols of entries with their addresses taken
};

}  // namespace

std::variant<CubinEntries, Problem> find_entries(const ElfEditor& cubin) { return Finder(cubin).find(); }

}  // namespace smt::machine_code
