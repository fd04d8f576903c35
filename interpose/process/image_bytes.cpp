// The length of an image, computed from its own headers.
//
// The headers are read at the application's pointer, as in the driver. They are followed up to
// protocol::kMostImageBytes; a header that leads further is no image.
#include "interpose/process/image_bytes.h"

#include <elf.h>

#include <cstring>

#include "runtime/protocol/record.h"

namespace smt::interpose {

namespace {

constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kFatbinMagic = 0xba55ed50;

struct FatbinWrapper {
    uint32_t magic;
    uint32_t version;
    const void* data;
    const void* more;  // of relocatable device code; the runtime links before it loads
};

struct FatbinHeader {
    uint32_t magic;
    uint16_t version;
    uint16_t header_bytes;
    uint64_t payload_bytes;
};

template <typename T>
T read_at(const void* data, uint64_t offset = 0) {
    T value;
    std::memcpy(&value, static_cast<const char*>(data) + offset, sizeof(T));
    return value;
}

// Moves `end` past the part of the image; false: the image would be too long.
bool reaches(uint64_t& end, uint64_t offset, uint64_t count, uint64_t each = 1) {
    if (offset > protocol::kMostImageBytes || count > (protocol::kMostImageBytes - offset) / each)
        return false;
    if (offset + count * each > end) end = offset + count * each;
    return true;
}

// A cubin ends at the last end of its headers, sections and segments. 0: not a cubin.
uint64_t elf_bytes(const void* image) {
    auto header = read_at<Elf64_Ehdr>(image);
    if (header.e_ident[EI_CLASS] != ELFCLASS64) return 0;
    uint64_t end = sizeof(header);
    uint64_t sections = header.e_shnum;
    if (header.e_shoff && header.e_shentsize >= sizeof(Elf64_Shdr)) {
        if (!reaches(end, header.e_shoff, 1, header.e_shentsize)) return 0;
        if (sections == 0) sections = read_at<Elf64_Shdr>(image, header.e_shoff).sh_size;
        if (!reaches(end, header.e_shoff, sections, header.e_shentsize)) return 0;
        for (uint64_t i = 0; i < sections; ++i) {
            auto section = read_at<Elf64_Shdr>(image, header.e_shoff + i * header.e_shentsize);
            if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) continue;
            if (!reaches(end, section.sh_offset, section.sh_size)) return 0;
        }
    }
    if (header.e_phoff && header.e_phentsize >= sizeof(Elf64_Phdr)) {
        if (!reaches(end, header.e_phoff, header.e_phnum, header.e_phentsize)) return 0;
        for (uint64_t i = 0; i < header.e_phnum; ++i) {
            auto segment = read_at<Elf64_Phdr>(image, header.e_phoff + i * header.e_phentsize);
            if (!reaches(end, segment.p_offset, segment.p_filesz)) return 0;
        }
    }
    return end;
}

// Byte by byte, because a text may be shorter than a magic number.
bool has_whole_word(const char* text) { return text[0] && text[1] && text[2] && text[3]; }

}  // namespace

ImageBytes image_bytes(const void* image) {
    if (!image) return {nullptr, 0};
    if (has_whole_word(static_cast<const char*>(image)) && read_at<uint32_t>(image) == kWrapperMagic) {
        image = read_at<FatbinWrapper>(image).data;  // a wrapper in a wrapper is no image
        if (!image) return {nullptr, 0};
    }
    const char* text = static_cast<const char*>(image);
    bool whole_word = has_whole_word(text);
    uint32_t magic = whole_word ? read_at<uint32_t>(image) : 0;
    uint64_t bytes = 0;
    if (magic == kWrapperMagic) return {nullptr, 0};
    if (magic == kFatbinMagic) {
        auto header = read_at<FatbinHeader>(image);
        if (!reaches(bytes, header.header_bytes, header.payload_bytes)) return {nullptr, 0};
    } else if (whole_word && std::memcmp(text, ELFMAG, SELFMAG) == 0) {
        bytes = elf_bytes(image);
    } else {
        bytes = std::strlen(text) + 1;
    }
    if (bytes == 0 || bytes > protocol::kMostImageBytes) return {nullptr, 0};
    return {image, bytes};
}

}  // namespace smt::interpose
