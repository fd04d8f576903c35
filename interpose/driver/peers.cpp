#include "interpose/driver/peers.h"

#include "driver.gen.h"
#include "interpose/driver/call_despite_error.h"
#include "interpose/driver/context.h"
#include "interpose/driver/device.h"
#include "interpose/driver/lock.h"
#include "interpose/driver/order.h"
#include "interpose/driver/place.h"
#include "interpose/driver/queries.h"
#include "interpose/driver/refuse.h"
#include "interpose/transport/output.h"
#include "interpose/transport/remote_call.h"
#include "runtime/protocol/try.h"

namespace smt::interpose::driver {

using protocol::MemAllocated;
using protocol::Op;
using protocol::Shared;
using protocol::SharedKind;

namespace {

// The sessions whose kernels may access all of a session's memory. Changed with the session's lock held, but
// by forget_peers(). The lock is held while memory is opened, which may wait for the peer's work, so a server
// that hangs, or a kernel there that does not end, holds up calls that open that session's memory, and no
// other session's. Disabling closes without it.
constinit PerSession<std::atomic<uint32_t>> accessors;
constinit PerSession<pthread_mutex_t> peers_locks;  // zeros are PTHREAD_MUTEX_INITIALIZER

uint32_t bit_of(const Session& session) { return 1u << session.number(); }

template <typename Each>
void for_each_session(uint32_t mask, Each each) {
    for (uint32_t i = 0; i < kMostSessions; ++i)
        if (mask >> i & 1) each(sessions[i]);
}

// Opens what contains the address, of this_session(), in the peer. `*end`: behind it.
CUresult open_in(Session& peer, uint64_t address, uint64_t* end) {
    Shared shared{};
    SMT_TRY(share_object(SharedKind::kPeer, address, shared));
    *end = shared.base + shared.bytes;
    const InSession in(&peer);
    MemAllocated opened{};
    return open_shared({SharedKind::kPeer, 0, shared.token, shared.server}, opened);
}

// What begins in the range. What is not open is no error. It reaches the server whatever failed before.
void close_in(Session& peer, uint64_t address, uint64_t bytes) {
    const InSession in(&peer);
    CUresult earlier = order_after_all();
    call_despite_error(Op::kClosePeer, protocol::AddressRange{address, bytes}, earlier);
    after_sync();
}

bool mark(uint64_t address, uint32_t bits) {
    return change_range(
        address, [](Range& range, const void* state) { range.peers |= *static_cast<const uint32_t*>(state); },
        &bits);
}

bool unmark(uint64_t address, uint32_t bits) {
    return change_range(
        address,
        [](Range& range, const void* state) { range.peers &= ~*static_cast<const uint32_t*>(state); }, &bits);
}

// One allocation of this_session(). A thread that frees it meanwhile is no error.
CUresult open_range(Session& peer, uint64_t base) {
    uint64_t end = 0;
    Range range;
    const CUresult status = open_in(peer, base, &end);
    if (status != CUDA_SUCCESS) return find_range(base, range) ? status : CUDA_SUCCESS;
    if (!mark(base, bit_of(peer))) close_in(peer, base, 1);
    return CUDA_SUCCESS;
}

void close_all_in(Session& peer) {
    Range range;
    for (uint64_t at = 0; next_range(&at, range);) {
        if (range.memory != Memory::kDevice || !(range.peers & bit_of(peer))) continue;
        unmark(range.base, bit_of(peer));
        close_in(peer, range.base, 1);
    }
}

CUresult open_all_in(Session& peer) {
    Range range;
    CUresult status = CUDA_SUCCESS;
    for (uint64_t at = 0; status == CUDA_SUCCESS && next_range(&at, range);)
        if (range.memory == Memory::kDevice) status = open_range(peer, range.base);
    return status;
}

// What a call about peer access names: `here` is the current device's session, `there` the peer's.
struct Pair {
    Session* here;
    Session* there;
};
CUresult find_pair(CUcontext peer, Pair& pair) {
    CUdevice device = 0, other = 0;
    SMT_TRY(require_context());
    if (!peer) return CUDA_ERROR_INVALID_CONTEXT;
    SMT_TRY(driver::cuCtxGetDevice_v2(&device, nullptr));
    SMT_TRY(driver::cuCtxGetDevice_v2(&other, peer));
    if (device == other) return CUDA_ERROR_INVALID_DEVICE;
    pair = {place_of_device(device), place_of_device(other)};
    return pair.here && pair.there ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

CUresult cuCtxEnablePeerAccess(CUcontext context, unsigned int flags) {
    Pair pair{};
    int can = 0;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(find_pair(context, pair));
    SMT_TRY(::cuDeviceCanAccessPeer(&can, pair.here->device(), pair.there->device()));
    if (!can) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    const InSession in(pair.there);
    Lock lock(peers_locks.here());
    std::atomic<uint32_t>& having = accessors.here();
    if (having.load() & bit_of(*pair.here)) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    having.fetch_or(bit_of(*pair.here));  // first: what is allocated from now on is opened by open_to_peers()
    const CUresult status = open_all_in(*pair.here);
    if (status != CUDA_SUCCESS) {
        having.fetch_and(~bit_of(*pair.here));
        close_all_in(*pair.here);
    }
    // A server that cannot give or take memory: a fenced tenant's, or one of a system without descriptors.
    return status == CUDA_ERROR_NOT_SUPPORTED ? CUDA_ERROR_PEER_ACCESS_UNSUPPORTED : status;
}

CUresult cuCtxDisablePeerAccess(CUcontext context) {
    Pair pair{};
    SMT_TRY(find_pair(context, pair));
    const InSession in(pair.there);
    {
        Lock lock(peers_locks.here());
        if (!(accessors.here().fetch_and(~bit_of(*pair.here)) & bit_of(*pair.here)))
            return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    }
    close_all_in(*pair.here);
    return CUDA_SUCCESS;
}

CUresult open_to_peers(uint64_t address) {
    if (accessors.here().load() == 0) return CUDA_SUCCESS;
    Lock lock(peers_locks.here());
    CUresult status = CUDA_SUCCESS;
    for_each_session(accessors.here().load(), [&](Session& peer) {
        if (status != CUDA_SUCCESS) return;
        status = open_range(peer, address);
        if (peer.sticky_error() != CUDA_SUCCESS) status = CUDA_SUCCESS;  // it is gone, and has no kernels
    });
    return status;
}

void close_to_peers(const Range& range) {
    unmark(range.base, range.peers);
    for_each_session(range.peers, [&](Session& peer) { close_in(peer, range.base, 1); });
}

void close_part_to_peers(uint64_t address, uint64_t bytes) {
    Range range;
    if (!find_range(address, range) || range.peers == 0) return;
    const uint32_t peers = range.peers;
    for_each_session(peers, [&](Session& peer) { close_in(peer, address, bytes); });
    if (address == range.base && bytes == range.bytes) unmark(address, peers);
}

void forget_peers() {
    Session& here = this_session();
    Range range;
    for (uint64_t at = 0; next_range(&at, range);)
        if (range.memory == Memory::kDevice) close_to_peers(range);
    for (uint64_t at = 0; next_range(&at, range);)
        if (range.memory == Memory::kVirtual && range.peers) close_part_to_peers(range.base, range.bytes);
    accessors.here().store(0);
    const uint32_t count = session_count.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < count; ++i) {
        accessors.of(sessions[i]).fetch_and(~bit_of(here));
        const InSession in(&sessions[i]);
        for (uint64_t at = 0; next_range(&at, range);)
            if (range.peers & bit_of(here)) unmark(range.base, bit_of(here));
    }
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
    Range range;
    if (!find_range(ptr, range) || range.memory != Memory::kVirtual) return CUDA_ERROR_INVALID_VALUE;
    Session* const owner = place_of_object(handle);
    uint64_t here = handle;  // its name in the session of the addresses
    if (owner && owner != range.session) {
        Shared shared{};
        MemAllocated opened{};
        {
            const InSession in(owner);
            SMT_TRY(share_object(SharedKind::kPeerPhysical, handle, shared));
        }
        const InSession in(range.session);
        SMT_TRY(open_shared({SharedKind::kPeerPhysical, 0, shared.token, shared.server}, opened));
        here = opened.address;
    }
    const InSession in(range.session);
    CUresult status;
    {
        RemoteCall call(Op::kMemMap, sizeof(protocol::MemMap));
        if (!call.open()) return call.status();
        call.in(protocol::MemMap{ptr, size, offset, here, flags});
        status = call.wait();
    }
    if (here != handle) ::cuMemRelease(here);  // the mapping holds the memory
    return status;
}

namespace {

CUresult set_own_access(CUdeviceptr ptr, size_t size, CUmemAccess_flags flags) {
    RemoteCall call(Op::kSetAccess, sizeof(protocol::SetAccess));
    if (!call.open()) return call.status();
    call.in(protocol::SetAccess{ptr, size, static_cast<uint32_t>(flags), 0});
    return call.wait();
}

// Of whole mappings. A device that may only read may write, too.
CUresult set_peers_access(const Range& range, Session& peer, CUdeviceptr ptr, size_t size,
                          CUmemAccess_flags flags) {
    if (flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
        if (range.peers & bit_of(peer)) close_in(peer, ptr, size);
        return CUDA_SUCCESS;
    }
    mark(range.base, bit_of(peer));  // first: what is open is closed in the end, whatever fails
    for (uint64_t at = ptr, end = 0; at - ptr < size; at = end) SMT_TRY(open_in(peer, at, &end));
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc, size_t count) {
    Range range;
    if (!desc || count == 0 || size == 0 || !find_range(ptr, range) || range.memory != Memory::kVirtual ||
        !range.holds(ptr, size))
        return CUDA_ERROR_INVALID_VALUE;
    const InSession in(range.session);
    for (size_t i = 0; i < count; ++i) {
        if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return refuse("cuMemSetAccess");
        Session* const place = place_of_device(desc[i].location.id);
        if (!place) return CUDA_ERROR_INVALID_DEVICE;
        SMT_TRY(place == range.session ? set_own_access(ptr, size, desc[i].flags)
                                       : set_peers_access(range, *place, ptr, size, desc[i].flags));
    }
    return CUDA_SUCCESS;
}

}  // namespace smt::interpose::driver

namespace smt::interpose::adjust {

CUresult cuMemGetAllocationPropertiesFromHandle(CUresult status, CUmemAllocationProp* prop,
                                                CUmemGenericAllocationHandle) {
    const bool known = status == CUDA_SUCCESS && prop && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    if (known) prop->location.id = this_session().device();
    return status;
}

CUresult cuMemGetAccess(CUresult status, unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr ptr) {
    driver::Range range;
    if (status != CUDA_SUCCESS || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
        !driver::find_range(ptr, range) || location->id == range.session->device())
        return status;
    if (!device_exists(location->id)) return CUDA_ERROR_INVALID_DEVICE;
    Session* const peer = place_of_session(location->id);
    *flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    if (!peer || !(range.peers & driver::bit_of(*peer))) return CUDA_SUCCESS;
    const InSession in(peer);
    RemoteCall call(protocol::Op::kPeerAccess, sizeof(protocol::Address));
    if (!call.open()) return call.status();
    call.in(protocol::Address{ptr});
    SMT_TRY(call.wait());
    uint64_t open = 0;
    call.out(&open);
    *flags = open;
    return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUresult status, CUdeviceptr ptr, size_t size) {
    if (status == CUDA_SUCCESS && several_sessions()) driver::close_part_to_peers(ptr, size);
    return status;
}

}  // namespace smt::interpose::adjust
