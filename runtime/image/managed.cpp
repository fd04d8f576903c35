// See managed.h. A cubin is an ELF file: variables are symbols of which st_other says that
// they are managed; relocations name them by their symbol. Other relocations are left alone.
#include "runtime/image/managed.h"

#include <elf.h>

#include <cstddef>

#include "runtime/image/bytes.h"
#include "runtime/image/redirect.h"

namespace smt::image {

namespace {

constexpr unsigned char kManaged = 0x04;  // in st_other
constexpr uint64_t kAlignment = 256;      // of each variable, as in the driver's allocations

// One cubin. Every step returns false when the cubin is not as it should be, or uses its variables in a way
// that cannot be redirected.
class ManagedScan {
public:
    ManagedScan(ManagedPlan& plan, std::string_view image) : plan_(plan), image_(image) {}

    bool scan() {
        if (!read_sections()) return false;
        for (const Elf64_Shdr& section : sections_)
            if (section.sh_type == SHT_SYMTAB && !read_symbols(section)) return false;
        if (managed_.empty()) return true;
        for (size_t i = 0; i < sections_.size(); ++i)
            if ((sections_[i].sh_type == SHT_RELA || sections_[i].sh_type == SHT_REL) && !read_relocations(i))
                return false;
        return true;
    }

private:
    struct Symbol {
        uint64_t offset;  // in the arena's block
        uint64_t bytes;
        uint16_t section;
        uint64_t value;
    };

    bool read_sections() {
        Elf64_Ehdr header;
        if (!read_at(image_, 0, &header) || header.e_shentsize != sizeof(Elf64_Shdr)) return false;
        headers_at_ = header.e_shoff;
        for (uint64_t i = 0; i < header.e_shnum; ++i) {
            Elf64_Shdr section;
            if (!read_at(image_, header.e_shoff + i * sizeof section, &section)) return false;
            if (section.sh_type != SHT_NOBITS &&
                (section.sh_offset > image_.size() || section.sh_size > image_.size() - section.sh_offset))
                return false;
            sections_.push_back(section);
        }
        return true;
    }

    bool read_symbols(const Elf64_Shdr& table) {
        for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol;
            if (!read_at(image_, table.sh_offset + at, &symbol)) return false;
            bool managed = ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && (symbol.st_other & kManaged) != 0;
            uint32_t index = static_cast<uint32_t>(at / sizeof symbol);
            if (managed && !take_symbol(table, index, symbol)) return false;
        }
        return true;
    }

    bool take_symbol(const Elf64_Shdr& table, uint32_t index, const Elf64_Sym& symbol) {
        if (table.sh_link >= sections_.size() || symbol.st_shndx >= sections_.size()) return false;
        const Elf64_Shdr& names = sections_[table.sh_link];
        if (names.sh_type != SHT_STRTAB || symbol.st_name >= names.sh_size) return false;
        std::string_view text = image_.substr(names.sh_offset, names.sh_size).substr(symbol.st_name);
        std::string name(text.substr(0, text.find('\0')));
        const Elf64_Shdr& section = sections_[symbol.st_shndx];
        if (symbol.st_size == 0 || section.sh_addr != 0 || symbol.st_value > section.sh_size ||
            symbol.st_size > section.sh_size - symbol.st_value)
            return false;
        uint64_t offset = offset_of(name, symbol.st_size);
        if (offset == ManagedPlan::kMostBytes) return false;
        managed_[index] = {offset, symbol.st_size, symbol.st_shndx, symbol.st_value};
        if (section.sh_type != SHT_NOBITS)
            plan_.initials.push_back({offset, symbol.st_size, section.sh_offset + symbol.st_value});
        return true;
    }

    bool read_relocations(size_t index) {
        const Elf64_Shdr& section = sections_[index];
        bool with_addend = section.sh_type == SHT_RELA;
        uint64_t entry_bytes = with_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
        if (section.sh_info >= sections_.size()) return false;
        if (!(sections_[section.sh_info].sh_flags & SHF_ALLOC)) return true;  // for debuggers
        ManagedPlan::Trimmed trimmed{headers_at_ + index * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size),
                                     section.sh_offset,
                                     entry_bytes,
                                     {}};
        bool any = false;
        for (uint64_t at = 0; at + entry_bytes <= section.sh_size; at += entry_bytes) {
            Elf64_Rela entry{};
            if (!read_at(image_, section.sh_offset + at, reinterpret_cast<Elf64_Rel*>(&entry))) return false;
            if (with_addend) read_at(image_, section.sh_offset + at, &entry);
            bool ours = managed_.contains(ELF64_R_SYM(entry.r_info));
            bool good = ours ? take_relocation(section.sh_info, entry, with_addend)
                             : harmless(section.sh_info, entry);
            if (!good) return false;
            trimmed.dropped.push_back(ours);
            any |= ours;
        }
        if (any) plan_.trimmed.push_back(std::move(trimmed));
        return true;
    }

    bool take_relocation(uint32_t target, const Elf64_Rela& entry, bool with_addend) {
        const auto fixup = redirect_to(image_, sections_[target], entry, with_addend,
                                       managed_[ELF64_R_SYM(entry.r_info)].offset);
        if (fixup) plan_.fixups.push_back(*fixup);
        return fixup.has_value();
    }

    // Not a variable's address by way of its section, and not part of a variable's first value.
    bool harmless(uint32_t target, const Elf64_Rela& entry) const {
        Elf64_Sym symbol{};
        for (const Elf64_Shdr& table : sections_)
            if (table.sh_type == SHT_SYMTAB)
                read_at(image_, table.sh_offset + ELF64_R_SYM(entry.r_info) * sizeof symbol, &symbol);
        bool section_symbol = ELF64_ST_TYPE(symbol.st_info) == STT_SECTION;
        for (const auto& [index, variable] : managed_) {
            if (section_symbol && symbol.st_shndx == variable.section) return false;
            if (target == variable.section && entry.r_offset + 8 > variable.value &&
                entry.r_offset < variable.value + variable.bytes)
                return false;
        }
        return true;
    }

    uint64_t offset_of(const std::string& name, uint64_t bytes) {
        if (plan_.variables.contains(name) || bytes > ManagedPlan::kMostBytes / 2 ||
            plan_.bytes > ManagedPlan::kMostBytes / 2)
            return ManagedPlan::kMostBytes;
        const uint64_t offset = plan_.bytes;
        plan_.variables[name] = {offset, bytes};
        plan_.bytes += (bytes + kAlignment - 1) & ~(kAlignment - 1);
        return offset;
    }

    ManagedPlan& plan_;
    const std::string_view image_;
    uint64_t headers_at_ = 0;
    std::vector<Elf64_Shdr> sections_;
    std::map<uint32_t, Symbol> managed_;  // by symbol
};

}  // namespace

bool ManagedPlan::fits(uint64_t image_bytes) const {
    const auto inside = [](uint64_t at, uint64_t size, uint64_t all) {
        return at <= all && size <= all - at;
    };
    if (bytes > kMostBytes) return false;
    for (const auto& [name, variable] : variables)
        if (!inside(variable.offset, variable.bytes, bytes)) return false;
    for (const Initial& initial : initials)
        if (!inside(initial.offset, initial.bytes, bytes) || !inside(initial.at, initial.bytes, image_bytes))
            return false;
    for (const Fixup& fixup : fixups)
        if (fixup.kind > Kind::kHigh || !inside(fixup.at, fixup.kind == Kind::kWhole ? 8 : 4, image_bytes))
            return false;
    for (const Trimmed& section : trimmed)
        if (!inside(section.size_at, sizeof(uint64_t), image_bytes) ||
            section.entry_bytes > sizeof(Elf64_Rela) ||
            !inside(section.at, section.dropped.size() * section.entry_bytes, image_bytes))
            return false;
    return true;
}

ManagedPlan managed_plan(std::string_view cubin) {
    ManagedPlan plan;
    if (cubin_architecture(cubin) == 0 || !ManagedScan(plan, cubin).scan()) return {};
    return plan;
}

}  // namespace smt::image
