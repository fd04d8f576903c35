// Local memory of the threads of a warp: each has its own, from address 0, in pieces of 256 bytes so
// that it can grow while pointers into it stay offsets. An aligned access never crosses a piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace smt::runtime::device::simulated {

class LocalMemory {
public:
    static constexpr uint32_t kMost = 512 << 10;  // per thread, as on hardware

    bool grow(uint32_t bytes) {
        if (bytes > kMost) return false;
        const size_t pieces = (static_cast<size_t>(bytes) + kPiece - 1) / kPiece;
        if (pieces * kPiece * 32 > bytes_.size()) bytes_.resize(pieces * kPiece * 32);
        return true;
    }
    std::byte* at(int lane, uint64_t address) {
        return &bytes_[(address / kPiece * 32 + static_cast<uint64_t>(lane)) * kPiece + address % kPiece];
    }

private:
    static constexpr size_t kPiece = 256;
    std::vector<std::byte> bytes_;
};

}  // namespace smt::runtime::device::simulated
