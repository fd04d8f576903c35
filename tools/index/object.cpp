#include "tools/index/object.h"

#include <elf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

namespace smt::tools::index {

namespace {

constexpr uint32_t kFatbinMagic = 0xba55ed50;

struct FatbinHeader {
    uint32_t magic;
    uint16_t version;
    uint16_t header_bytes;
    uint64_t payload_bytes;
};

template <typename T>
bool read_at(std::string_view bytes, uint64_t at, T* value) {
    if (at > bytes.size() || sizeof(T) > bytes.size() - at) return false;
    std::memcpy(value, bytes.data() + at, sizeof(T));
    return true;
}

// By name; false: it is no object file.
template <typename Use>
bool each_section(std::string_view file, Use use) {
    Elf64_Ehdr header;
    if (!read_at(file, 0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64)
        return false;
    auto section_at = [&](uint64_t number, Elf64_Shdr* section) {
        return header.e_shoff <= file.size() &&
               read_at(file, header.e_shoff + number * sizeof *section, section);
    };
    auto content = [&](const Elf64_Shdr& section) {
        const bool within = section.sh_type != SHT_NOBITS && section.sh_offset <= file.size() &&
                            section.sh_size <= file.size() - section.sh_offset;
        return within ? file.substr(section.sh_offset, section.sh_size) : std::string_view();
    };
    Elf64_Shdr first, names, section;
    if (!section_at(0, &first)) return false;
    const uint64_t count = header.e_shnum ? header.e_shnum : first.sh_size;  // C++ makes many sections
    if (!section_at(header.e_shstrndx == SHN_XINDEX ? first.sh_link : header.e_shstrndx, &names))
        return false;
    const std::string_view table = content(names);
    for (uint64_t i = 0; i < count && section_at(i, &section); ++i) {
        if (section.sh_name >= table.size()) continue;
        const std::string_view rest = table.substr(section.sh_name);
        use(rest.substr(0, rest.find('\0')), content(section));
    }
    return true;
}

void add_strings(std::string_view bytes, std::vector<std::string>& strings) {
    for (size_t at = 0; at < bytes.size();) {
        const size_t end = std::min(bytes.find('\0', at), bytes.size());
        if (end > at) strings.emplace_back(bytes.substr(at, end - at));
        at = end + 1;
    }
}

std::vector<std::string> images_in(std::string_view section) {
    std::vector<std::string> images;
    FatbinHeader header;
    for (uint64_t at = 0; read_at(section, at, &header);) {
        const uint64_t bytes = header.header_bytes + header.payload_bytes;
        if (header.magic != kFatbinMagic || bytes > section.size() - at || bytes < sizeof header) {
            at += 8;  // padding
            continue;
        }
        images.emplace_back(section.substr(at, bytes));
        at += (bytes + 7) / 8 * 8;
    }
    return images;
}

}  // namespace

Object read_object(const std::string& path) {
    Object object;
    std::ifstream stream(path, std::ios::binary);
    if (!stream)
        return object.problem = "its object " + path + ": " + std::strerror(errno) + "; build first", object;
    const std::string file{std::istreambuf_iterator<char>(stream), {}};
    std::vector<std::string> images;
    bool relocatable = false;
    const bool good = each_section(file, [&](std::string_view name, std::string_view content) {
        if (name == ".nv_fatbin") images = images_in(content);
        if (name == "__nv_relfatbin") relocatable = true;
        if (name.starts_with(".rodata")) add_strings(content, object.strings);
    });
    if (!good)
        object.problem = path + " is no object file";
    else if (relocatable)
        object.problem = "it is compiled to be linked with other device code (-rdc=true)";
    else if (images.empty())
        object.problem = path + " has no device code";
    else if (images.size() > 1)
        object.problem = path + " has several images, as if it were linked already";
    else
        object.image = std::move(images.front());
    std::sort(object.strings.begin(), object.strings.end());
    return object;
}

}  // namespace smt::tools::index
