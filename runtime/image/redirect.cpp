#include "runtime/image/redirect.h"

#include <cstring>

namespace smt::image {

namespace {

// Relocation types: a 64-bit word, and the halves of an address in an instruction's upper word.
constexpr uint32_t kAbsolute64 = 2;
constexpr uint32_t kAbsoluteLow = 0x38;
constexpr uint32_t kAbsoluteHigh = 0x39;
constexpr uint64_t kImmediateAt = 4;

}  // namespace

std::optional<ManagedPlan::Fixup> redirect_to(std::string_view image, const Elf64_Shdr& target,
                                              const Elf64_Rela& entry, bool with_addend, uint64_t offset) {
    using Kind = ManagedPlan::Kind;
    const uint64_t type = ELF64_R_TYPE(entry.r_info);
    const Kind kind = type == kAbsoluteLow ? Kind::kLow : type == kAbsoluteHigh ? Kind::kHigh : Kind::kWhole;
    if (kind == Kind::kWhole && type != kAbsolute64) return std::nullopt;
    const uint64_t at = entry.r_offset + (kind == Kind::kWhole ? 0 : kImmediateAt);
    const uint64_t width = kind == Kind::kWhole ? 8 : 4;
    if (target.sh_type == SHT_NOBITS || at < entry.r_offset || at > target.sh_size ||
        width > target.sh_size - at || target.sh_offset > image.size() ||
        target.sh_size > image.size() - target.sh_offset)
        return std::nullopt;
    uint64_t inside = 0;
    std::memcpy(&inside, image.data() + target.sh_offset + at, width);
    if (!with_addend && kind != Kind::kWhole && inside != 0) return std::nullopt;  // half an addend
    const uint64_t addend = with_addend ? static_cast<uint64_t>(entry.r_addend) : inside;
    return ManagedPlan::Fixup{target.sh_offset + at, offset + addend, kind};
}

}  // namespace smt::image
