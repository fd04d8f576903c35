// See program_file.h. The file is mapped and every offset in it is checked before it is followed.
#include "tools/smt/program_file.h"

#include <elf.h>

#include <cstring>
#include <string_view>

#include "tools/smt/mapped_file.h"

namespace smt::tools {
namespace {

// Both are in every program that holds NVIDIA's runtime, stripped or not: an error's text and the name of
// the runtime's own shared memory. A program may say the first by itself, hardly the second.
constexpr std::string_view kRuntimeText = "CUDA driver version is insufficient for CUDA runtime version";
constexpr std::string_view kRuntimeMemory = "/cudart.shm.";
constexpr std::string_view kSharedName = "libcudart.so.";

template <typename T>
bool read_at(std::string_view file, uint64_t offset, T& value) {
    if (offset > file.size() || sizeof(T) > file.size() - offset) return false;
    std::memcpy(&value, file.data() + offset, sizeof(T));
    return true;
}

// Where an address of the program lies in the file; the file's size: nowhere.
uint64_t offset_of(std::string_view file, const Elf64_Ehdr& header, uint64_t address) {
    Elf64_Phdr segment;
    for (uint64_t i = 0; i < header.e_phnum && read_at(file, header.e_phoff + i * sizeof segment, segment);
         ++i) {
        if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
            address - segment.p_vaddr < segment.p_filesz)
            return segment.p_offset + (address - segment.p_vaddr);
    }
    return file.size();
}

std::string text_at(std::string_view file, uint64_t offset) {
    if (offset >= file.size()) return "";
    return std::string(file.substr(offset, file.substr(offset).find('\0')));
}

void read_dynamic(std::string_view file, const Elf64_Ehdr& header, const Elf64_Phdr& dynamic,
                  ProgramFile& found) {
    uint64_t strings = file.size();
    Elf64_Dyn entry;
    auto each = [&](auto&& visit) {
        for (uint64_t at = 0; at < dynamic.p_filesz && read_at(file, dynamic.p_offset + at, entry);
             at += sizeof entry) {
            if (entry.d_tag == DT_NULL) return;
            visit();
        }
    };
    each([&] {
        if (entry.d_tag == DT_STRTAB) strings = offset_of(file, header, entry.d_un.d_ptr);
        if (entry.d_tag == DT_RPATH) found.has_rpath = true;
    });
    each([&] {
        if (entry.d_tag != DT_NEEDED || entry.d_un.d_val > file.size()) return;
        std::string name = text_at(file, strings + entry.d_un.d_val);
        if (name.starts_with(kSharedName)) found.shared_runtime = name;
    });
}

bool read_header(std::string_view file, Elf64_Ehdr& header) {
    return read_at(file, 0, header) && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
           header.e_ident[EI_CLASS] == ELFCLASS64;
}

}  // namespace

std::optional<std::string> loader_of(const std::string& path) {
    MappedFile mapped(path);
    std::string_view file = mapped.bytes();
    Elf64_Ehdr header;
    if (!read_header(file, header)) return {};
    Elf64_Phdr segment;
    for (uint64_t i = 0; i < header.e_phnum && read_at(file, header.e_phoff + i * sizeof segment, segment);
         ++i) {
        if (segment.p_type == PT_INTERP) return text_at(file, segment.p_offset);
    }
    return "";
}

ProgramFile examine_program(const std::string& path) {
    ProgramFile found;
    MappedFile mapped(path);
    std::string_view file = mapped.bytes();
    Elf64_Ehdr header;
    if (!read_header(file, header)) return found;
    found.is_elf = true;
    Elf64_Phdr segment;
    for (uint64_t i = 0; i < header.e_phnum && read_at(file, header.e_phoff + i * sizeof segment, segment);
         ++i) {
        if (segment.p_type == PT_DYNAMIC) read_dynamic(file, header, segment, found);
    }
    found.static_runtime = found.shared_runtime.empty() && file.find(kRuntimeMemory) != file.npos &&
                           file.find(kRuntimeText) != file.npos;
    return found;
}

}  // namespace smt::tools
