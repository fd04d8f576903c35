// Where the PTX is in what a program loads.
#include <fmt/format.h>

#include <cstring>

#include "runtime/device/simulated/driver/code.h"
#include "runtime/image/choice.h"
#include "runtime/image/kernel_facts.h"

namespace smt::runtime::device::simulated {

namespace {

constexpr int kArchitecture = 90;
constexpr uint32_t kFatbinMagic = 0xba55ed50;
constexpr std::string_view kElfMagic = "\177ELF";
constexpr std::string_view kVersion = ".version";

struct FatbinHeader {
    uint32_t magic;
    uint16_t version;
    uint16_t header_bytes;
    uint64_t bytes;  // behind the header
};

bool begins_line(std::string_view text, size_t at) {
    while (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '\t')) --at;
    return at == 0 || text[at - 1] == '\n';
}

// The linker's image is one text after the other, each with its own .version.
std::vector<std::string> split(std::string_view text) {
    std::vector<size_t> begins;
    for (size_t at = text.find(kVersion); at != std::string_view::npos; at = text.find(kVersion, at + 1)) {
        if (begins_line(text, at)) begins.push_back(at);
    }
    std::vector<std::string> parts;
    if (begins.size() < 2) {
        parts.emplace_back(text);
        return parts;
    }
    begins.front() = 0;
    for (size_t i = 0; i < begins.size(); ++i) {
        parts.emplace_back(text.substr(
            begins[i], i + 1 < begins.size() ? begins[i + 1] - begins[i] : std::string_view::npos));
    }
    return parts;
}

Refusal no_ptx() {
    return {CUDA_ERROR_NO_BINARY_FOR_GPU,
            "the image holds no PTX that an sm_90 device can take, and the simulated device runs PTX only: "
            "build with PTX "
            "in the image (nvcc -gencode arch=compute_90,code=compute_90, or nvcc's default)"};
}

// What ptxas found that the kernels need, where it was asked for this architecture.
std::map<std::string, uint32_t> registers_of(const std::vector<image::Entry>& entries) {
    std::map<std::string, uint32_t> registers;
    const image::Entry* cubin = image::best_cubin(entries, kArchitecture);
    if (!cubin) return registers;
    auto bytes = image::expand(*cubin);
    if (!std::holds_alternative<std::string>(bytes)) return registers;
    auto facts = image::kernel_facts(std::get<std::string>(bytes));
    if (auto* all = std::get_if<std::vector<image::KernelFacts>>(&facts)) {
        for (const image::KernelFacts& each : *all) registers[each.name] = each.registers;
    }
    return registers;
}

}  // namespace

// The caller does not say how large it is: each kind says so itself. A cubin needs no more than its magic.
std::variant<PtxTexts, Refusal> find_ptx(const void* image) {
    const char* text = static_cast<const char*>(image);
    if (std::strncmp(text, kElfMagic.data(), kElfMagic.size()) == 0) return no_ptx();
    uint32_t magic = 0;
    if (strnlen(text, sizeof magic) == sizeof magic) std::memcpy(&magic, image, sizeof magic);
    if (magic != kFatbinMagic) return find_ptx(image, std::strlen(text));
    FatbinHeader header;
    std::memcpy(&header, image, sizeof header);
    return find_ptx(image, header.header_bytes + header.bytes);
}

std::variant<PtxTexts, Refusal> find_ptx(const void* input, size_t bytes) {
    auto read = image::read({static_cast<const char*>(input), bytes});
    if (auto* problem = std::get_if<image::Problem>(&read))
        return Refusal{CUDA_ERROR_INVALID_IMAGE, problem->text};
    const auto& entries = std::get<std::vector<image::Entry>>(read);
    const image::Entry* best = image::best_ptx(entries, kArchitecture);
    if (!best) return no_ptx();
    auto text = image::expand(*best);
    if (auto* problem = std::get_if<image::Problem>(&text))
        return Refusal{CUDA_ERROR_INVALID_IMAGE, problem->text};
    PtxTexts texts;
    texts.parts = split(std::get<std::string>(text));
    texts.registers = registers_of(entries);
    return texts;
}

}  // namespace smt::runtime::device::simulated
