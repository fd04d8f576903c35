// See constant_bank.h.
#include "runtime/image/constant_bank.h"

#include <cstdint>

#include "runtime/image/bytes.h"

namespace smt::image {

namespace {

constexpr uint64_t kInstructionBytes = 16, kAddressBytes = 8;
// Of an instruction's first 64 bits: 0..8 are the operation, 9..11 say which of its operands are what, 54..58
// are the bank and 38..53 the place in bytes, which LDCU of sm_100 and later has one bit lower.
constexpr unsigned kFormBit = 9, kFormMask = 0x7, kBankBit = 54, kBankMask = 0x1f;
constexpr unsigned kThirdInBank = 3, kSecondInBank = 5;
constexpr uint64_t kPlaceMask = 0xffff, kOperationMask = 0x1ff, kLoadUniform = 0x1ac;

// In bank 0: where the address of bank 3 is. Aligned to what the widest load reads, so none begins before it.
std::optional<uint64_t> bank_place(int architecture) {
    if (architecture < 70 || architecture > 121) return std::nullopt;
    return architecture < 90 ? 0x50 : architecture < 100 ? 0xd0 : 0x120;
}

bool reads(uint64_t instruction, uint64_t place) {
    const uint64_t form = instruction >> kFormBit & kFormMask;
    if (form != kThirdInBank && form != kSecondInBank) return false;
    if ((instruction >> kBankBit & kBankMask) != 0) return false;
    const unsigned place_bit = (instruction & kOperationMask) == kLoadUniform ? 37 : 38;
    return (instruction >> place_bit & kPlaceMask) - place < kAddressBytes;
}

}  // namespace

std::optional<bool> takes_constant_address(const ElfFile& cubin, int architecture) {
    const auto place = bank_place(architecture);
    if (!place) return std::nullopt;
    uint64_t looked_at = 0;  // sections may share bytes
    for (const Elf64_Shdr& section : cubin.sections()) {
        if ((section.sh_flags & SHF_EXECINSTR) == 0) continue;
        const std::string_view code = cubin.content(section);
        looked_at += code.size();
        if (looked_at > kMostBytes) return true;
        uint64_t instruction = 0;
        for (uint64_t at = 0; read_at(code, at, &instruction); at += kInstructionBytes)
            if (reads(instruction, *place)) return true;
    }
    return false;
}

}  // namespace smt::image
