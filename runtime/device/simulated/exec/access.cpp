// One access to memory: from an address in a state space to bytes of the host, or a fault.
#include <fmt/format.h>

#include "runtime/device/simulated/exec/spaces.h"
#include "runtime/device/simulated/exec/warp.h"

namespace smt::runtime::device::simulated {

const Memory::Range& Cta::State::range_of(uint64_t address) {
    const uint64_t now = memory.generation();
    if (now != ranges_generation_) {
        ranges_ = {};
        ranges_generation_ = now;
    }
    for (const Memory::Range& range : ranges_)
        if (address >= range.begin && address < range.end) return range;
    Memory::Range& slot = ranges_[next_range_++ % ranges_.size()];
    slot = memory.find(address);
    return slot;
}

std::byte* Cta::State::global(Execution& x, int lane, uint64_t address, uint32_t bytes, Space space) {
    if (address % bytes != 0) {
        fail(x, Fault::Kind::kMisaligned, lane, space, address, bytes, "misaligned access");
        return nullptr;
    }
    const Memory::Range& range = range_of(address);
    if (range.state == Memory::State::kLive && range.holds(address, bytes))
        return reinterpret_cast<std::byte*>(address);
    const bool freed = range.state == Memory::State::kFreed;
    // What begins in one live range may end in the next: tenants' memory is cut into many.
    if (range.state == Memory::State::kLive) {
        uint64_t end = range.end;
        while (end < address + bytes) {
            const Memory::Range next = range_of(end);
            if (next.state != Memory::State::kLive || next.begin != end) break;
            end = next.end;
        }
        if (end >= address + bytes) return reinterpret_cast<std::byte*>(address);
    }
    fail(x, freed ? Fault::Kind::kFreed : Fault::Kind::kOutOfBounds, lane, space, address, bytes,
         freed ? "access to freed memory" : "access out of bounds");
    return nullptr;
}

std::byte* Cta::State::shared_at(Execution& x, int lane, uint64_t address, uint32_t bytes) {
    if (address % bytes != 0) {
        fail(x, Fault::Kind::kMisaligned, lane, Space::kShared, address, bytes, "misaligned access");
        return nullptr;
    }
    if (address < shared_begin || address > shared.size() || bytes > shared.size() - address) {
        fail(x, Fault::Kind::kOutOfBounds, lane, Space::kShared, address, bytes,
             fmt::format("access out of bounds ({} bytes of shared memory, from {:#x} on)",
                         shared.size() - kReservedBytes, kReservedBytes));
        return nullptr;
    }
    return shared.data() + address;
}

std::byte* Cta::State::local_at(Execution& x, int lane, uint64_t address, uint32_t bytes) {
    if (address % bytes != 0) {
        fail(x, Fault::Kind::kMisaligned, lane, Space::kLocal, address, bytes, "misaligned access");
        return nullptr;
    }
    const uint32_t top = x.group->frame->top;
    if (address > top || bytes > top - address) {
        fail(x, Fault::Kind::kOutOfBounds, lane, Space::kLocal, address, bytes,
             fmt::format("access out of bounds ({} bytes of local memory)", top));
        return nullptr;
    }
    return x.warp->local.at(lane, address);
}

// Kernel parameters; they are read-only.
std::byte* Cta::State::parameter_at(Execution& x, int lane, uint64_t address, uint32_t bytes) {
    if (address % bytes != 0) {
        fail(x, Fault::Kind::kMisaligned, lane, Space::kParameter, address, bytes, "misaligned access");
        return nullptr;
    }
    const auto& parameters = launch.parameters;
    if (address > parameters.size() || bytes > parameters.size() - address) {
        fail(x, Fault::Kind::kOutOfBounds, lane, Space::kParameter, address, bytes,
             fmt::format("access out of bounds ({} bytes of parameters)", parameters.size()));
        return nullptr;
    }
    return const_cast<std::byte*>(parameters.data() + address);
}

std::byte* Cta::State::generic_at(Execution& x, int lane, uint64_t address, uint32_t bytes, Space* space) {
    Space ignored;
    Space& found = space != nullptr ? *space : ignored;
    if (in_window(address, kSharedWindow)) {
        found = Space::kShared;
        return shared_at(x, lane, address - kSharedWindow, bytes);
    }
    if (in_window(address, kLocalWindow)) {
        found = Space::kLocal;
        return local_at(x, lane, address - kLocalWindow, bytes);
    }
    if (in_window(address, kParameterWindow)) {
        found = Space::kParameter;
        return parameter_at(x, lane, address - kParameterWindow, bytes);
    }
    found = Space::kGlobal;
    return global(x, lane, address, bytes, Space::kGlobal);
}

}  // namespace smt::runtime::device::simulated
