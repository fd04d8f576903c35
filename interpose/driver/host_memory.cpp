// Pinned host memory: allocated in the arena, or the application's own memory registered later.
//
// Registering moves the pages behind the application's addresses to the arena (host_pages.h), which the
// server has registered with the driver. The memory is then shared, but the device reaches it at its arena
// address. Unlike in the driver, the device pointer of registered memory is not the host pointer, so
// CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM is 0.
//
// Pages that are the arena's already, because of a registered neighbour or a graph, are shared with those
// (remapped_pages.h). Pages that cannot move (shared mappings, read-only ones, the stack) are only recorded
// (kNoted): copies go through staging; device pointers are refused.
#include "driver.gen.h"
#include "interpose/driver/carried.h"
#include "interpose/driver/context.h"
#include "interpose/driver/host_pages.h"
#include "interpose/driver/memory.h"
#include "interpose/driver/peers.h"
#include "interpose/driver/ranges.h"
#include "interpose/driver/remapped_pages.h"
#include "interpose/transport/remote_call.h"
#include "runtime/protocol/try.h"

namespace smt::interpose::driver {

using protocol::Op;

namespace {

constexpr unsigned kAllocFlags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned kRegisterFlags =
    CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;

struct Span {
    uint64_t from, to;  // whole pages
    explicit Span(const Range& range)
        : from(page_floor(range.base)), to(page_ceiling(range.base + range.bytes)) {}
    bool cut_at_start(const Range& range) const { return from != range.base; }
    bool cut_at_end(const Range& range) const { return to != range.base + range.bytes; }
};

void note_edges(const Range& range, void (*note)(uint64_t page)) {
    Span pages(range);
    if (pages.cut_at_start(range)) note(pages.from);
    if (pages.cut_at_end(range)) note(pages.to - kPage);
}

bool move_out(const Range& range);

CUresult note_registered(const Range& range) {
    Range alias = range;
    alias.memory = Memory::kAlias;
    alias.base = range.target;
    alias.target = range.base;
    CUresult status = add_range(alias);
    return status == CUDA_SUCCESS ? add_range(range) : status;
}

CUresult move_in(Range& range) {
    Span pages(range);
    uint64_t arena = 0;
    CUresult status = arena_pages(pages.to - pages.from, arena);
    if (status != CUDA_SUCCESS) return status;
    Moved moved = move_to_arena(pages.from, pages.to, reinterpret_cast<char*>(arena));
    if (moved == Moved::kStuck) return CUDA_ERROR_OUT_OF_MEMORY;
    if (moved == Moved::kNothing) {
        give_back(Op::kHostFree, arena);
        return add_range(range);
    }
    forbid_growth(pages.from);
    range.memory = Memory::kRegistered;
    range.target = arena + (range.base - pages.from);
    note_edges(range, keep_edge_from_children);
    status = note_registered(range);
    if (status != CUDA_SUCCESS && move_out(range)) give_back(Op::kHostFree, arena);
    return status;
}

// Another registration or a graph uses some of the pages: they stay at their arena address.
CUresult share(Range& range) {
    if (remap(range.base, range.bytes, range.target) != CUDA_SUCCESS) return add_range(range);
    range.memory = Memory::kRegistered;
    range.borrowed = true;
    return note_registered(range);
}

// The arena memory is freed only if no mapping shows it any more.
bool move_out(const Range& range) {
    Span pages(range);
    uint64_t arena = range.target - (range.base - pages.from);
    note_edges(range, forget_edge);
    return take_block_back(arena, pages.to - pages.from);
}

}  // namespace

CUresult arena_pages(uint64_t bytes, uint64_t& address) {
    protocol::MemAllocated allocated{};
    {
        RemoteCall call(Op::kHostAlloc, sizeof(protocol::MemAlloc));
        if (!call.open()) return call.status();
        call.in(protocol::MemAlloc{bytes, CU_MEMHOSTALLOC_PORTABLE, 0});
        SMT_TRY(call.wait());
        call.out(&allocated);
    }
    address = allocated.address;
    if (address != 0 && address % kPage == 0) return CUDA_SUCCESS;
    give_back(Op::kHostFree, address);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemHostAlloc(void** pp, size_t bytesize, unsigned int Flags) {
    if (!pp || (Flags & ~kAllocFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(require_context());
    uint64_t address = 0;
    CUresult status = allocate(Op::kHostAlloc, Memory::kPinned, bytesize, Flags, address);
    if (status == CUDA_SUCCESS) *pp = reinterpret_cast<void*>(address);
    return status;
}

CUresult cuMemAllocHost_v2(void** pp, size_t bytesize) {
    return driver::cuMemHostAlloc(pp, bytesize, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
}

CUresult cuMemFreeHost(void* p) {
    uint64_t address = reinterpret_cast<uint64_t>(p);
    Range range;
    if (!find_range(address, range) || range.base != address || range.memory != Memory::kPinned)
        return CUDA_ERROR_INVALID_VALUE;
    if (!take_range(address, range)) return CUDA_ERROR_INVALID_VALUE;
    return give_back(Op::kHostFree, address);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned int Flags) {
    if (!pdptr || Flags != 0) return CUDA_ERROR_INVALID_VALUE;
    uint64_t address = reinterpret_cast<uint64_t>(p);
    Range range;
    if (!find_range(address, range) || on_device(range.memory)) return CUDA_ERROR_INVALID_VALUE;
    if (range.memory == Memory::kNoted) return CUDA_ERROR_NOT_SUPPORTED;
    *pdptr = range.memory == Memory::kRegistered ? range.translated(address) : address;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int* pFlags, void* p) {
    Range range;
    if (!pFlags || !find_range(reinterpret_cast<uint64_t>(p), range) || on_device(range.memory) ||
        range.memory == Memory::kManaged)
        return CUDA_ERROR_INVALID_VALUE;
    // Under unified addressing all host memory is mapped, requested or not.
    *pFlags = range.flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void* p, size_t bytesize, unsigned int Flags) {
    uint64_t address = reinterpret_cast<uint64_t>(p);
    if (Flags & CU_MEMHOSTREGISTER_IOMEMORY) return CUDA_ERROR_NOT_SUPPORTED;
    if (!p || bytesize == 0 || (Flags & ~kRegisterFlags) != 0 || address + bytesize + kPage < address)
        return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(require_context());
    Range other;
    if (find_overlap(address, bytesize, other))
        return on_device(other.memory) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    Range range{.base = address, .bytes = bytesize, .flags = Flags, .memory = Memory::kNoted};
    Span pages(range);
    switch (inspect_pages(pages.from, pages.to)) {
        case Pages::kUnmapped:
            return CUDA_ERROR_INVALID_VALUE;
        case Pages::kOwnStack:
            return add_range(range);
        case Pages::kFixed:
            return share(range);
        case Pages::kMovable:
            break;
    }
    return move_in(range);
}

CUresult cuMemHostUnregister(void* p) {
    uint64_t address = reinterpret_cast<uint64_t>(p);
    Range range;
    if (!find_range(address, range)) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    bool registered = range.memory == Memory::kRegistered || range.memory == Memory::kNoted;
    if (!registered) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    if (range.base != address) return CUDA_ERROR_INVALID_VALUE;
    if (range.memory == Memory::kNoted)
        return take_range(address, range) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    CUresult status = finish_all_work();
    if (!take_range(address, range)) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    Range alias;
    take_range(range.target, alias);
    if (range.borrowed) return status;
    if (range.kept) {
        Span pages(range);
        keep_remapped(pages.from, pages.to, page_floor(range.target));
        return status;
    }
    if (!move_out(range)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult freed = give_back(Op::kHostFree, page_floor(range.target));
    return status == CUDA_SUCCESS ? freed : status;
}

void release_memory() {
    finish_all_work();
    if (several_sessions()) forget_peers();
    take_pages_back();
    forget_carried();
    forget_ranges();
}

}  // namespace smt::interpose::driver
