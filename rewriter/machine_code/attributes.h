// The attributes in sections .nv.info and .nv.info.NAME of a cubin: reading, changing, writing.
//
//   form (8 bits), kind (8 bits), then by form: nothing, 8 or 16 bits, or a length (16 bits) and bytes
//
// The numbers have the names of cuobjdump -elf (EIATTR_...).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/image/image.h"

namespace smt::machine_code {

using image::Problem;

enum class Form : uint8_t { kNone = 1, kByte = 2, kHalf = 3, kBytes = 4 };

enum Kind : uint8_t {
    kCtaIdZUsed = 0x04,
    kParameterBank = 0x0a,  // symbol of the constant bank's section, offset and size (16 bits each)
    kParameter = 0x17,
    kParameterBytes = 0x19,
    kExitOffsets = 0x1c,
    kCooperativeOffsets = 0x28,
    kRegisterCount = 0x2f,  // symbol, count
    kWarpWideOffsets = 0x31,
    kIndirectBranches = 0x34,  // offset, 0, count of targets, targets
    kMbarrierOffsets = 0x39,   // 16 bytes each, the offset first
    kUnusedBytesOffsets = 0x44,
    kLargeParameter = 0x45,
    kSyscallOffsets = 0x46,
    kBarriers = 0x4c,
};

struct Attribute {
    Form form = Form::kNone;
    uint8_t kind = 0;
    uint16_t value = 0;  // of kByte and kHalf
    std::string bytes;   // of kBytes

    bool operator==(const Attribute&) const = default;
    std::vector<uint32_t> words() const;  // of kBytes; a rest is left out
    void append(uint32_t word);
};

[[nodiscard]] std::variant<std::vector<Attribute>, Problem> read_attributes(std::string_view info);
std::string write_attributes(const std::vector<Attribute>& attributes);

const Attribute* find(const std::vector<Attribute>& attributes, uint8_t kind);
Attribute* find(std::vector<Attribute>& attributes, uint8_t kind);

// Whether an attribute of an entry is one whose bytes are understood: what is unknown could hold an offset.
bool is_known(uint8_t kind);
// The code that it is about stands so many bytes further on: its offsets of instructions grow by that. False,
// and nothing is changed: one of them is no instruction of code of `code_bytes` bytes, or it is cut.
[[nodiscard]] bool move_offsets(Attribute& attribute, uint64_t code_bytes, uint32_t by);

}  // namespace smt::machine_code
