// The sections of an ELF64 file: of cubins, and of the programs, libraries and objects that hold fatbins.
//
// A view of untrusted bytes: no offset, size, number or name in them is trusted. Sections may overlap or
// hold each other; code that sums over them bounds the sum.
#pragma once

#include <elf.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/image/image.h"

namespace smt::image {

class ElfFile {
public:
    // Its section headers must lie in the file as a whole, what they lead to need not.
    // A file that says it has no sections is one without. Problem: not of the form, in words.
    [[nodiscard]] static std::variant<ElfFile, Problem> read(std::string_view bytes);

    const Elf64_Ehdr& header() const { return header_; }
    const std::vector<Elf64_Shdr>& sections() const { return sections_; }

    // Of these types the bytes are in the file. NVIDIA has several beside NOBITS of which they are not.
    static bool has_content(uint32_t type);
    // Nothing for sections that have none in the file, and for those that lead out of it.
    std::string_view content(const Elf64_Shdr& section) const;
    std::string_view content(uint32_t section) const;  // of that number; nothing: there is none
    // Does not look for the name's end, whose place is unknown.
    bool name_begins(const Elf64_Shdr& section, std::string_view prefix) const;
    bool name_is(const Elf64_Shdr& section, std::string_view name) const;
    std::string_view name(const Elf64_Shdr& section) const;
    // The first section of that name.
    const Elf64_Shdr* find(std::string_view name) const;
    // That something of the file's own lies beyond its end; a cut file. Null: nothing does.
    std::optional<Problem> find_lost_part() const;

    // Up to a NUL, or to the table's end.
    static std::string_view text_at(std::string_view table, uint64_t at);

private:
    std::string_view bytes_, names_;
    Elf64_Ehdr header_{};
    std::vector<Elf64_Shdr> sections_;
};

// An ELF file of any kind, by its first bytes.
bool is_elf(std::string_view bytes);

}  // namespace smt::image
