// Memory operands: which space, which addresses, and where their bytes are.
#pragma once

#include "runtime/device/simulated/exec/families/lanes.h"
#include "runtime/device/simulated/exec/spaces.h"
#include "runtime/device/simulated/exec/transactions.h"
#include "runtime/device/simulated/exec/warp.h"

namespace smt::runtime::device::simulated {

// What Instruction::target says of an access; the low byte is the register's width in bytes.
inline constexpr uint32_t kNarrowBase = 1 << 8;  // the base register has 32 bits
inline constexpr uint32_t kNoBase = 1 << 9;
inline constexpr uint32_t kInFrame = 1 << 10;  // the offset counts from the frame's variables
inline constexpr uint32_t kGeneric = 1 << 11;

// Reads the address operand: base into in.a, offset into in.value, what else into in.target, and the
// space (kNone for generic addresses) into in.space.
void decode_address(Decoder& d, const ptx::Instruction& s, const ptx::Operand& operand, Instruction& in);

// Addresses of all lanes; those of inactive lanes are that of an active one.
inline void find_addresses(const Execution& x, const Instruction& in, uint64_t* to) {
    uint64_t offset = in.value;
    if ((in.target & kInFrame) != 0) offset += x.group->frame->variables;
    if ((in.target & kNoBase) != 0) {
        for (int i = 0; i < kLanes; ++i) to[i] = offset;
        return;
    }
    if ((in.target & kNarrowBase) != 0) {
        const uint32_t* base = x.at<uint32_t>(in.a);
        for (int i = 0; i < kLanes; ++i) to[i] = static_cast<uint32_t>(base[i] + offset);
    } else {
        const uint64_t* base = x.at<uint64_t>(in.a);
        for (int i = 0; i < kLanes; ++i) to[i] = base[i] + offset;
    }
    if (x.mask == kAll) return;
    const uint64_t any = to[std::countr_zero(x.mask)];
    for (int i = 0; i < kLanes; ++i) to[i] = (x.mask >> i & 1) != 0 ? to[i] : any;
}

// The bytes of each active lane's access. When all lie in one live range (or in shared memory) they
// are at base + address; otherwise `pointers` has them one by one. ok is false after a fault.
struct Located {
    bool ok = false;
    bool together = false;
    uint64_t base = 0;
    std::byte* pointers[kLanes];
    std::byte* at(int lane, const uint64_t* addresses) const {
        return together ? reinterpret_cast<std::byte*>(base + addresses[lane]) : pointers[lane];
    }
};
void locate(Execution& x, const Instruction& in, uint64_t* addresses, uint32_t bytes, Located& where);

}  // namespace smt::runtime::device::simulated
