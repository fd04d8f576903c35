// Where the PTX is in what a program loads.
#include <cstring>

#include "runtime/device/simulated/driver/code.h"

namespace smt::runtime::device::simulated {

namespace {

constexpr uint32_t kFatbinMagic = 0xba55ed50;
constexpr char kElfMagic[] = "\177ELF";

struct FatbinHeader {
    uint32_t magic;
    uint16_t version;
    uint16_t header_bytes;
    uint64_t bytes;   // behind the header
};

// The linker's image is one text after the other, each with its own .version.
PtxTexts split(std::string_view text) {
    PtxTexts texts;
    size_t begin = 0;
    for (size_t at = text.find(".version"); at != std::string_view::npos; at = text.find(".version", at + 1)) {
        const bool starts_line = at == 0 || text[at - 1] == '\n';
        if (!starts_line || at == begin) continue;
        if (text.substr(begin, at - begin).find(".version") != std::string_view::npos) {
            texts.parts.emplace_back(text.substr(begin, at - begin));
            begin = at;
        }
    }
    texts.parts.emplace_back(text.substr(begin));
    return texts;
}

}  // namespace

// The caller does not say how large it is: each kind says so itself.
std::variant<PtxTexts, Refusal> find_ptx(const void* image) {
    const char* text = static_cast<const char*>(image);
    if (std::strncmp(text, kElfMagic, sizeof kElfMagic - 1) == 0) return find_ptx(image, sizeof kElfMagic - 1);
    const size_t length = strnlen(text, sizeof(FatbinHeader));
    FatbinHeader header{};
    std::memcpy(&header, image, length < sizeof header ? length : sizeof header);
    if (header.magic == kFatbinMagic) {
        std::memcpy(&header, image, sizeof header);
        return find_ptx(image, header.header_bytes + header.bytes);
    }
    return find_ptx(image, std::strlen(text));
}

std::variant<PtxTexts, Refusal> find_ptx(const void* input, size_t bytes) {
    std::string_view text(static_cast<const char*>(input), bytes);
    if (text.starts_with(kElfMagic)) {
        return Refusal{CUDA_ERROR_NO_BINARY_FOR_GPU,
                       "the image holds machine code only, and the simulated device runs PTX: build with PTX in it "
                       "(nvcc -gencode arch=compute_90,code=compute_90)"};
    }
    text = text.substr(0, text.find('\0'));
    if (text.find(".version") == std::string_view::npos) return Refusal{CUDA_ERROR_INVALID_IMAGE, "the image is neither PTX nor a fat binary"};
    return split(text);
}

}  // namespace smt::runtime::device::simulated
