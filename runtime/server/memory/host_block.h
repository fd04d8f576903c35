// A block of host memory for contents of device memory that are away from the device: pinned if there is
// enough memory for that, else pageable. A large move takes several, so that the first one is copied to while
// the next one is pinned, and that blocks of one size fit the next move, too.
//
// Pages of pinned memory are taken from all other programs of the machine, so it takes a part of what is
// available only. Pageable memory may be swapped out, and its copies are slower. Neither takes so much that
// the system would have to end a process.
//
// Any thread. The owner's copies have ended before the block goes away; its end may wait for the device
// (device/cuda/context_wide.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "driver_api.gen.h"

namespace smt::runtime::server {

class HostBlock {
public:
    // Bytes that a block may have.
    struct Room {
        uint64_t pinned = 0;
        uint64_t pageable = 0;
    };
    static Room room();  // of this machine, and of this process's control group, now
    // The same from the text of /proc/meminfo, the bytes that a control group has left, and those that blocks
    // have already, which are a part of what was available.
    static Room room_of(const std::string& meminfo, uint64_t group_left, uint64_t in_blocks);

    static constexpr uint64_t kLargest = 128ull << 20;

    // Room is looked for for so many bytes, of which the block has kLargest at most; the caller makes another
    // one for the rest. Null: there is no room, and `missing` bytes more would be needed.
    static std::shared_ptr<HostBlock> make(const DriverApi& driver, uint64_t bytes, const Room& room,
                                           uint64_t* missing);
    ~HostBlock();
    HostBlock(const HostBlock&) = delete;
    HostBlock& operator=(const HostBlock&) = delete;

    char* at(uint64_t offset) const { return base_ + offset; }
    uint64_t bytes() const { return bytes_; }
    bool pinned() const { return pinned_; }

private:
    HostBlock(const DriverApi& driver, char* base, uint64_t bytes, bool pinned)
        : driver_(driver), base_(base), bytes_(bytes), pinned_(pinned) {}

    const DriverApi& driver_;
    char* const base_;
    const uint64_t bytes_;
    const bool pinned_;
};

}  // namespace smt::runtime::server
