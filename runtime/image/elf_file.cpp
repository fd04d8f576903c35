#include "runtime/image/elf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/image/bytes.h"

namespace smt::image {

namespace {

constexpr uint32_t kCudaInfo = 0x70000000;  // .nv.info

bool within(std::string_view bytes, uint64_t offset, uint64_t size) {
    return offset <= bytes.size() && size <= bytes.size() - offset;
}

}  // namespace

bool is_elf(std::string_view bytes) { return bytes.starts_with(std::string_view(ELFMAG, SELFMAG)); }

std::variant<ElfFile, Problem> ElfFile::read(std::string_view bytes) {
    ElfFile file;
    file.bytes_ = bytes;
    Elf64_Ehdr& header = file.header_;
    if (!is_elf(bytes)) return Problem{"no ELF file"};
    if (bytes.size() > EI_DATA && (bytes[EI_CLASS] != ELFCLASS64 || bytes[EI_DATA] != ELFDATA2LSB))
        return Problem{"an ELF file that is not of 64 bits, little-endian"};
    if (!read_at(bytes, 0, &header)) return Problem{"an ELF file without a whole header"};
    if (header.e_shoff == 0) return file;
    // Where 16 bits are too few for the numbers they stand in the first section header.
    Elf64_Shdr first;
    if (header.e_shentsize != sizeof first) return Problem{"an ELF file without proper section headers"};
    if (!read_at(bytes, header.e_shoff, &first))
        return Problem{"an ELF file that is cut: its section headers are not in it"};
    const uint64_t count = header.e_shnum ? header.e_shnum : first.sh_size;
    const uint64_t names = header.e_shstrndx == SHN_XINDEX ? first.sh_link : header.e_shstrndx;
    const uint64_t room = (bytes.size() - header.e_shoff) / sizeof first;
    if (count > room)
        return Problem{fmt::format("an ELF file that is cut: of {} section headers it has {}", count, room)};
    if (names >= count) return Problem{"an ELF file without proper section headers"};
    file.sections_.resize(count);
    std::memcpy(file.sections_.data(), bytes.data() + header.e_shoff, count * sizeof first);
    file.names_ = file.content(file.sections_[names]);
    return file;
}

bool ElfFile::has_content(uint32_t type) {
    return type == SHT_PROGBITS || type == SHT_SYMTAB || type == SHT_STRTAB || type == SHT_RELA ||
           type == SHT_REL || type == SHT_NOTE || type == kCudaInfo;
}

std::string_view ElfFile::content(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS || !within(bytes_, section.sh_offset, section.sh_size)) return {};
    return bytes_.substr(section.sh_offset, section.sh_size);
}

std::string_view ElfFile::content(uint32_t section) const {
    return section < sections_.size() ? content(sections_[section]) : std::string_view();
}

bool ElfFile::name_begins(const Elf64_Shdr& section, std::string_view prefix) const {
    return section.sh_name <= names_.size() && names_.substr(section.sh_name).starts_with(prefix);
}

bool ElfFile::name_is(const Elf64_Shdr& section, std::string_view name) const {
    if (!name_begins(section, name)) return false;
    const uint64_t end = section.sh_name + name.size();
    return end == names_.size() || names_[end] == '\0';
}

std::string_view ElfFile::name(const Elf64_Shdr& section) const { return text_at(names_, section.sh_name); }

const Elf64_Shdr* ElfFile::find(std::string_view name) const {
    for (const Elf64_Shdr& section : sections_)
        if (name_is(section, name)) return &section;
    return nullptr;
}

std::optional<Problem> ElfFile::find_lost_part() const {
    for (size_t i = 0; i < sections_.size(); ++i) {
        const Elf64_Shdr& section = sections_[i];
        if (has_content(section.sh_type) && !within(bytes_, section.sh_offset, section.sh_size))
            return Problem{fmt::format("an ELF file of {} bytes whose section {} ends at {}", bytes_.size(),
                                       i, section.sh_offset + section.sh_size)};
    }
    if (header_.e_phnum == 0) return std::nullopt;
    if (header_.e_phentsize != sizeof(Elf64_Phdr))
        return Problem{"an ELF file without proper program headers"};
    for (uint64_t i = 0; i < header_.e_phnum; ++i) {
        Elf64_Phdr segment;
        if (header_.e_phoff > bytes_.size() ||
            !read_at(bytes_, header_.e_phoff + i * sizeof segment, &segment))
            return Problem{"an ELF file that is cut: its program headers are not in it"};
        if (segment.p_type == PT_LOAD && !within(bytes_, segment.p_offset, segment.p_filesz))
            return Problem{fmt::format("an ELF file of {} bytes whose segment {} ends at {}", bytes_.size(),
                                       i, segment.p_offset + segment.p_filesz)};
    }
    return std::nullopt;
}

std::string_view ElfFile::text_at(std::string_view table, uint64_t at) {
    if (at >= table.size()) return {};
    return table.substr(at, std::min(table.find('\0', at), table.size()) - at);
}

}  // namespace smt::image
