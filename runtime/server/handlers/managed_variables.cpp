// See managed_variables.h. A cubin is an ELF file: variables are symbols of which st_other says that
// they are managed; relocations name them by their symbol. Other relocations are left alone.
#include "runtime/server/handlers/managed_variables.h"

#include <elf.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace smt::runtime::server::handlers {

namespace {

constexpr uint16_t kMachine = 190;        // EM_CUDA
constexpr unsigned char kManaged = 0x04;  // in st_other
constexpr uint64_t kAlignment = 256;      // of each variable, as in the driver's allocations
constexpr uint64_t kMostBytes = 1ull << 34;

// Relocation types: a 64-bit word, and the halves of an address in an instruction's upper word.
constexpr uint32_t kAbsolute64 = 2;
constexpr uint32_t kAbsoluteLow = 0x38;
constexpr uint32_t kAbsoluteHigh = 0x39;
constexpr uint64_t kImmediateAt = 4;

// Containers: a header, then entries, each with a header of its own.
constexpr uint32_t kFatbinMagic = 0xba55ed50;
constexpr uint16_t kEntryCubin = 2;
struct FatbinHeader {
    uint32_t magic;
    uint16_t version;
    uint16_t header_bytes;
    uint64_t payload_bytes;
};
struct EntryHeader {
    uint16_t kind;
    uint16_t version;
    uint32_t header_bytes;
    uint64_t payload_bytes;
    uint32_t unused[3];
    uint32_t architecture;
};
static_assert(sizeof(EntryHeader) == 32);

template <typename T>
bool read(std::string_view from, uint64_t at, T* value) {
    if (at > from.size() || sizeof(T) > from.size() - at) return false;
    std::memcpy(value, from.data() + at, sizeof(T));
    return true;
}

bool is_cubin(std::string_view image) {
    Elf64_Ehdr header;
    return read(image, 0, &header) && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
           header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == kMachine;
}

// Code for sm_XY runs on sm_XZ if Z is not less than Y.
bool runs_on(uint32_t code, int device) {
    return code / 10 == static_cast<uint32_t>(device) / 10 && code <= static_cast<uint32_t>(device);
}

}  // namespace

// One cubin, which begins at `base` in the image. Every step returns false when the cubin is not as it
// should be, or uses its variables in a way that cannot be redirected.
class ManagedVariables::Cubin {
public:
    Cubin(ManagedVariables& all, std::string_view image, uint64_t base)
        : all_(all), image_(image), base_(base) {}

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
        uint64_t offset;   // in the arena's block
        uint64_t bytes;
        uint16_t section;
        uint64_t value;
    };

    bool read_sections() {
        Elf64_Ehdr header;
        if (!read(image_, 0, &header) || header.e_shentsize != sizeof(Elf64_Shdr)) return false;
        headers_at_ = header.e_shoff;
        for (uint64_t i = 0; i < header.e_shnum; ++i) {
            Elf64_Shdr section;
            if (!read(image_, header.e_shoff + i * sizeof section, &section)) return false;
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
            if (!read(image_, table.sh_offset + at, &symbol)) return false;
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
        for (const auto& [other, known] : managed_)
            if (names_[other] == name) return false;   // which of the two would the program mean?
        uint64_t offset = all_.offset_of(name, symbol.st_size);
        if (offset == kMostBytes) return false;
        managed_[index] = {offset, symbol.st_size, symbol.st_shndx, symbol.st_value};
        names_[index] = name;
        if (section.sh_type != SHT_NOBITS)
            all_.initials_.push_back({offset, symbol.st_size, base_ + section.sh_offset + symbol.st_value});
        return true;
    }

    bool read_relocations(size_t index) {
        const Elf64_Shdr& section = sections_[index];
        bool with_addend = section.sh_type == SHT_RELA;
        uint64_t entry_bytes = with_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
        if (section.sh_info >= sections_.size()) return false;
        if (!(sections_[section.sh_info].sh_flags & SHF_ALLOC)) return true;   // for debuggers
        Trimmed trimmed{base_ + headers_at_ + index * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size),
                        base_ + section.sh_offset, entry_bytes, {}};
        bool any = false;
        for (uint64_t at = 0; at + entry_bytes <= section.sh_size; at += entry_bytes) {
            Elf64_Rela entry{};
            if (!read(image_, section.sh_offset + at, reinterpret_cast<Elf64_Rel*>(&entry))) return false;
            if (with_addend) read(image_, section.sh_offset + at, &entry);
            bool ours = managed_.contains(ELF64_R_SYM(entry.r_info));
            bool good = ours ? take_relocation(section.sh_info, entry, with_addend)
                             : harmless(section.sh_info, entry);
            if (!good) return false;
            trimmed.dropped.push_back(ours);
            any |= ours;
        }
        if (any) all_.trimmed_.push_back(std::move(trimmed));
        return true;
    }

    bool take_relocation(uint32_t target, const Elf64_Rela& entry, bool with_addend) {
        const Elf64_Shdr& section = sections_[target];
        uint64_t type = ELF64_R_TYPE(entry.r_info);
        Kind kind = type == kAbsoluteLow ? Kind::kLow : type == kAbsoluteHigh ? Kind::kHigh : Kind::kWhole;
        if (kind == Kind::kWhole && type != kAbsolute64) return false;
        uint64_t at = entry.r_offset + (kind == Kind::kWhole ? 0 : kImmediateAt);
        uint64_t width = kind == Kind::kWhole ? 8 : 4;
        if (section.sh_type == SHT_NOBITS || at < entry.r_offset || at > section.sh_size ||
            width > section.sh_size - at)
            return false;
        uint64_t inside = 0;
        std::memcpy(&inside, image_.data() + section.sh_offset + at, width);
        if (!with_addend && kind != Kind::kWhole && inside != 0) return false;   // half an addend
        uint64_t addend = with_addend ? static_cast<uint64_t>(entry.r_addend) : inside;
        uint64_t offset = managed_[ELF64_R_SYM(entry.r_info)].offset;
        all_.fixups_.push_back({kind, base_ + section.sh_offset + at, offset + addend});
        return true;
    }

    // Not a variable's address by way of its section, and not part of a variable's first value.
    bool harmless(uint32_t target, const Elf64_Rela& entry) const {
        Elf64_Sym symbol{};
        for (const Elf64_Shdr& table : sections_)
            if (table.sh_type == SHT_SYMTAB)
                read(image_, table.sh_offset + ELF64_R_SYM(entry.r_info) * sizeof symbol, &symbol);
        bool section_symbol = ELF64_ST_TYPE(symbol.st_info) == STT_SECTION;
        for (const auto& [index, variable] : managed_) {
            if (section_symbol && symbol.st_shndx == variable.section) return false;
            if (target == variable.section && entry.r_offset + 8 > variable.value &&
                entry.r_offset < variable.value + variable.bytes)
                return false;
        }
        return true;
    }

    ManagedVariables& all_;
    const std::string_view image_;
    const uint64_t base_;
    uint64_t headers_at_ = 0;
    std::vector<Elf64_Shdr> sections_;
    std::map<uint32_t, Symbol> managed_;   // by symbol
    std::map<uint32_t, std::string> names_;
};

uint64_t ManagedVariables::offset_of(const std::string& name, uint64_t bytes) {
    auto known = variables_.find(name);
    if (known != variables_.end()) return known->second.bytes == bytes ? known->second.offset : kMostBytes;
    if (bytes > kMostBytes / 2 || bytes_ > kMostBytes / 2) return kMostBytes;
    uint64_t offset = bytes_;
    variables_[name] = {offset, bytes};
    bytes_ += (bytes + kAlignment - 1) & ~(kAlignment - 1);
    return offset;
}

// `found`: a cubin that the driver prefers to all PTX.
bool ManagedVariables::find_cubins(const std::vector<char>& image, int architecture, bool* found) {
    std::string_view bytes(image.data(), image.size());
    if (is_cubin(bytes)) {
        *found = true;
        return Cubin(*this, bytes, 0).scan();
    }
    FatbinHeader header;
    for (uint64_t at = 0; read(bytes, at, &header) && header.magic == kFatbinMagic;) {
        uint64_t entry_at = at + header.header_bytes;
        uint64_t end = entry_at + header.payload_bytes;
        if (end < entry_at || end > bytes.size()) return false;
        while (entry_at < end) {
            EntryHeader entry;
            if (!read(bytes, entry_at, &entry) || entry.header_bytes < sizeof entry) return false;
            uint64_t payload = entry_at + entry.header_bytes;
            if (payload > end || entry.payload_bytes > end - payload) return false;
            if (entry.kind == kEntryCubin) {
                std::string_view cubin = bytes.substr(payload, entry.payload_bytes);
                if (!is_cubin(cubin) || !Cubin(*this, cubin, payload).scan()) return false;
                *found |= runs_on(entry.architecture, architecture);
            }
            entry_at = payload + entry.payload_bytes;
        }
        at = end;
    }
    return true;
}

bool ManagedVariables::find(const std::vector<char>& image, int architecture) {
    bool found = false;
    bool good = find_cubins(image, architecture, &found) && found && !std::getenv("CUDA_FORCE_PTX_JIT");
    if (good && !variables_.empty()) return true;
    *this = {};
    return false;
}

void ManagedVariables::place(std::vector<char>& image, uint64_t address) {
    memory_ = address;
    for (const Fixup& fixup : fixups_) {
        uint64_t value = address + fixup.value;
        uint32_t half = static_cast<uint32_t>(fixup.kind == Kind::kLow ? value : value >> 32);
        if (fixup.kind == Kind::kWhole)
            std::memcpy(image.data() + fixup.at, &value, sizeof value);
        else
            std::memcpy(image.data() + fixup.at, &half, sizeof half);
    }
    for (const Initial& initial : initials_)
        std::memcpy(reinterpret_cast<char*>(address + initial.offset), image.data() + initial.at,
                    initial.bytes);
    for (const Trimmed& section : trimmed_) {
        uint64_t kept = 0;
        char* entries = image.data() + section.at;
        for (uint64_t i = 0; i < section.dropped.size(); ++i) {
            if (section.dropped[i]) continue;
            std::memmove(entries + kept, entries + i * section.entry_bytes, section.entry_bytes);
            kept += section.entry_bytes;
        }
        std::memcpy(image.data() + section.size_at, &kept, sizeof kept);
    }
    initials_.clear();
    fixups_.clear();
    trimmed_.clear();
}

bool ManagedVariables::look_up(const char* name, uint64_t* address, uint64_t* bytes) const {
    auto found = variables_.find(name);
    if (memory_ == 0 || found == variables_.end()) return false;
    *address = memory_ + found->second.offset;
    *bytes = found->second.bytes;
    return true;
}

}  // namespace smt::runtime::server::handlers
