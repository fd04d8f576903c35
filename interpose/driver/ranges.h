// The client's map of addresses: every allocation, every piece of registered host memory and every reserved
// range of this process. It classifies pointers and supplies their attributes without a message.
//
//   kDevice      cuMemAlloc and cuMemAllocPitch             device range
//   kPool        cuMemAllocAsync, cuMemAllocFromPoolAsync   device range
//   kOpened      cuIpcOpenMemHandle                         device range; `flags` is how often it is open
//   kVirtual     cuMemAddressReserve                        device range; mapped or not
//   kGlobal      a module's variable                        at the driver's address
//   kPinned      cuMemHostAlloc, cuMemAllocHost             arena, same address on the device
//   kManaged     cuMemAllocManaged, __managed__ variables   arena, same address on the device
//   kRegistered  cuMemHostRegister: the application's own addresses; `target` is the address of the
//                same pages in the arena, which is their device pointer
//   kAlias       those arena addresses; `target` is the application's address
//   kNoted       registered, but its pages could not move to the arena: copies go through staging
//
// Each session has a map. Addresses of memory differ over the sessions, except those of a module's variables:
// an address that two devices have one at is this_session()'s. Ranges of a map never overlap: a new one
// replaces the remains of old ones (for example freed by a graph). Every function is callable from any thread
// and does not wait for the server. The map takes no heap memory.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "interpose/process/session.h"

namespace smt::interpose::driver {

enum class Memory : uint8_t {
    kDevice,
    kPool,
    kOpened,
    kVirtual,
    kGlobal,
    kPinned,
    kManaged,
    kRegistered,
    kAlias,
    kNoted
};

struct Range {
    uint64_t base = 0;
    uint64_t bytes = 0;
    uint64_t target = 0;         // kRegistered, kAlias: the other address of `base`
    uint64_t handle = 0;         // kPool: the CUmemoryPool; a module's variable: the image's address
    uint64_t id = 0;             // CU_POINTER_ATTRIBUTE_BUFFER_ID; assigned by add_range
    Session* session = nullptr;  // whose memory it is; assigned by add_range
    uint32_t flags = 0;          // as the application passed them
    uint32_t peers = 0;          // other sessions that it, or a part, is open in (peers.h): bits by number
    Memory memory = Memory::kDevice;
    bool kept = false;  // kRegistered: a graph uses its pages, so they stay the arena's (remapped_pages.h)
    bool borrowed = false;  // kRegistered: its pages were the arena's already
    bool sync_memops = false;
    bool read_mostly = false;  // kManaged, and the following too: advice, which is only stored
    bool accessed_by = false;
    CUmemLocation preferred = {};
    CUmemLocation prefetched = {};

    bool holds(uint64_t address, uint64_t count = 1) const {
        return address >= base && address - base < bytes && count <= bytes - (address - base);
    }
    // Of device memory: kernels and copies of the session reach it.
    bool reached_from(const Session& other) const {
        return session == &other || (peers >> other.number() & 1) != 0;
    }
    uint64_t translated(uint64_t address) const { return target ? target + (address - base) : address; }
};

inline bool on_device(Memory memory) { return memory <= Memory::kGlobal; }
// The device and the processor reach it at one address in the arena.
inline bool in_arena(Memory memory) {
    return memory == Memory::kPinned || memory == Memory::kManaged || memory == Memory::kAlias;
}

// OUT_OF_MEMORY when there are too many ranges.
CUresult add_range(const Range& range);
// The range that contains `address`, which may be any value.
bool find_range(uint64_t address, Range& range);
// The first range that shares a byte with [base, base + bytes).
bool find_overlap(uint64_t base, uint64_t bytes, Range& range);
// Removes the range that begins at `base` from the map and returns it.
bool take_range(uint64_t base, Range& range);
// Memory that was opened: adds its range, or counts once more one that is there. uncount_range() removes the
// range with its last count; false: no opened memory begins at `base`.
CUresult count_range(const Range& range);
bool uncount_range(uint64_t base);
// Removes every range of one kind with the handle `handle` (an unloaded image).
void drop_ranges(Memory memory, uint64_t handle);
// Changes the range that contains `address`, except its place. `change` runs with the map locked.
bool change_range(uint64_t address, void (*change)(Range& range, const void* state), const void* state);

// Iterates over the ranges of this_session(), starting with *at = 0.
bool next_range(uint64_t* at, Range& range);
void forget_ranges();  // of this_session()

// Whether an address in no range belongs to the device (memory of a graph, a module's variable), which the
// process cannot read.
bool looks_like_device(uint64_t address);

// Returns registered memory's own pages and forgets the ranges of this_session(). Called before the primary
// context is reset or the session's memory is released. Defined in host_memory.cpp.
void release_memory();

}  // namespace smt::interpose::driver
