// Memory for a lane without a client, which only replays records.
#pragma once

#include <sys/mman.h>

#include <cstdint>

#include "runtime/protocol/layout.h"

namespace smt::runtime::server {

class ScratchLane {
public:
    ScratchLane()
        : address_(mmap(nullptr, protocol::kLaneBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
    ~ScratchLane() {
        if (address_ != MAP_FAILED) munmap(address_, protocol::kLaneBytes);
    }
    ScratchLane(const ScratchLane&) = delete;
    ScratchLane& operator=(const ScratchLane&) = delete;
    uint64_t address() const { return address_ == MAP_FAILED ? 0 : reinterpret_cast<uint64_t>(address_); }

private:
    void* const address_;
};

}  // namespace smt::runtime::server
