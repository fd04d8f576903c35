#include "rewriter/machine_code/entries.h"

#include <cstddef>
#include <unordered_map>

#include "rewriter/machine_code/code_move.h"
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
    bool twice = false;
    std::string reason;  // why its code cannot move
    void take(uint32_t& place, uint32_t section) {
        twice |= place != 0;
        place = section;
    }
};

class Finder {
public:
    explicit Finder(const ElfEditor& cubin) : cubin_(cubin), file_(cubin.file()) {}

    std::variant<CubinEntries, Problem> find() {
        for (uint32_t i = 1; i < file_.sections().size(); ++i)
            if (!take_section(i)) return Problem{"a cubin with two tables of symbols or two .nv.info"};
        if (!result_.symbols || !result_.common_attributes)
            return Problem{"a cubin without symbols or without .nv.info"};
        read_symbols();
        find_names();
        for (uint32_t i = 1; i < file_.sections().size(); ++i)
            for_relocations(cubin_, i, [&](const CodeReference& each) { look_at(each); });
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
        return true;
    }

    static bool take_once(uint32_t& place, uint32_t number) {
        if (place != 0) return false;
        place = number;
        return true;
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

    // What names the start of an entry's section, or of its code.
    void find_names() {
        const std::string_view table = file_.content(file_.sections()[result_.symbols]);
        Elf64_Sym symbol;
        for (uint32_t i = 0; image::read_at(table, uint64_t{i} * sizeof symbol, &symbol); ++i) {
            auto parts = parts_.find(symbol.st_shndx);
            if (parts == parts_.end() || parts->second.entries == 0 ||
                symbol.st_shndx >= file_.sections().size())
                continue;
            if (is_start(symbol, by_symbol_.contains(i)))
                starts_[i] = symbol.st_shndx;
            else if (symbol.st_value == 0 || symbol.st_value > file_.sections()[symbol.st_shndx].sh_size)
                parts->second.reason = "a symbol names its start, or nothing";
        }
    }

    // Entries whose addresses code or data holds: device code may launch them, with their own parameters
    // alone. An entry refers to places within itself, too.
    void look_at(const CodeReference& relocation) {
        const Elf64_Shdr& target = file_.sections()[relocation.target];
        auto own = parts_.find(relocation.target);
        if (own != parts_.end() && own->second.entries != 0 && relocation.offset >= target.sh_size)
            own->second.reason = "a relocation leads out of its code";
        auto start = starts_.find(relocation.symbol);
        if (start == starts_.end() || !(target.sh_flags & SHF_ALLOC)) return;
        Parts& named = parts_[start->second];
        if (start->second != relocation.target || relocation.addend == 0)
            named.reason = "device code may launch it";
        else if (static_cast<uint64_t>(relocation.addend) > target.sh_size)
            named.reason = "a relocation leads out of its code";
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
        else
            entry.reason = parts.reason;
    }

    const ElfEditor& cubin_;
    const ElfFile& file_;
    CubinEntries result_;
    std::unordered_map<uint32_t, Parts> parts_;
    std::unordered_map<uint32_t, uint32_t> section_symbols_;
    std::unordered_map<uint32_t, size_t> by_symbol_;  // entries
    std::unordered_map<uint32_t, uint32_t> starts_;   // sections, by the symbols that name their starts
};

}  // namespace

std::variant<CubinEntries, Problem> find_entries(const ElfEditor& cubin) { return Finder(cubin).find(); }

}  // namespace smt::machine_code
