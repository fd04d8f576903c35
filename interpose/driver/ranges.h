// What the client knows of addresses: every allocation, every piece of registered host memory and
// every reserved range of this process, so that a pointer is classified and its attributes are
// answered without a message.
//
//   kDevice      cuMemAlloc and cuMemAllocPitch             device range
//   kPool        cuMemAllocAsync, cuMemAllocFromPoolAsync   device range
//   kVirtual     cuMemAddressReserve                        device range; mapped or not
//   kGlobal      a module's variable                        wherever the driver put it
//   kPinned      cuMemHostAlloc, cuMemAllocHost             arena, same address on the device
//   kManaged     cuMemAllocManaged, __managed__ variables   arena, same address on the device
//   kRegistered  cuMemHostRegister: the application's own addresses; `target` is where the same
//                pages lie in the arena, which is their device pointer
//   kAlias       those arena addresses; `target` is the application's address
//   kNoted       registered, but its pages could not move to the arena: copies go through staging
//
// Ranges never overlap: a new one replaces what is left of old ones (freed by a graph, say). Any
// thread may call anything here; nothing waits for the server. The map takes no heap memory.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace smt::interpose::driver {

enum class Memory : uint8_t {
    kDevice,
    kPool,
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
    uint64_t target = 0;  // kRegistered, kAlias: the other address of `base`
    uint64_t handle = 0;  // kPool: the CUmemoryPool; a module's variable: the image's address
    uint64_t id = 0;      // CU_POINTER_ATTRIBUTE_BUFFER_ID; given by add_range
    uint32_t flags = 0;   // as the application passed them
    Memory memory = Memory::kDevice;
    bool kept = false;      // kRegistered: its pages must stay the arena's, a graph has some (remapped_pages.h)
    bool borrowed = false;  // kRegistered: its pages were the arena's already
    bool sync_memops = false;
    bool read_mostly = false;  // kManaged, and the rest too: advice, which is only remembered
    bool accessed_by = false;
    CUmemLocation preferred = {};
    CUmemLocation prefetched = {};

    bool holds(uint64_t address, uint64_t count = 1) const {
        return address >= base && address - base < bytes && count <= bytes - (address - base);
    }
    uint64_t translated(uint64_t address) const { return target ? target + (address - base) : address; }
};

inline bool on_device(Memory memory) { return memory <= Memory::kGlobal; }
// The device reaches it, and so does the processor, at an address in the arena.
inline bool in_arena(Memory memory) {
    return memory == Memory::kPinned || memory == Memory::kManaged || memory == Memory::kAlias;
}

// OUT_OF_MEMORY when there are too many ranges.
CUresult add_range(const Range& range);
// The range that `address` lies in. Any value may be asked.
bool find_range(uint64_t address, Range& range);
// The first range that shares a byte with [base, base + bytes).
bool find_overlap(uint64_t base, uint64_t bytes, Range& range);
// The range that begins at `base`, taken out of the map.
bool take_range(uint64_t base, Range& range);
// Every range of one kind whose handle is `handle` (an image that is unloaded).
void drop_ranges(Memory memory, uint64_t handle);
// Changes the range that `address` lies in, all but its place. Called with the map locked.
bool change_range(uint64_t address, void (*change)(Range& range, const void* state), const void* state);

// All ranges, one after another: start with *at = 0.
bool next_range(uint64_t* at, Range& range);
void forget_ranges();

// Whether an address that no range holds belongs to the device (memory of a graph, a module's
// variable): the process cannot read there.
bool looks_like_device(uint64_t address);

// Before the primary context is reset or the session's memory goes: registered memory gets its own
// pages back and the map is emptied. Defined in host_memory.cpp.
void release_memory();

}  // namespace smt::interpose::driver
