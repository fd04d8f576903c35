// Memory of one device for kernels, fills and copies of another one: peer access, and access that
// cuMemSetAccess gives. Each device's server has only its own memory, so memory that a peer may access is
// opened in the peer's session, at the same address (protocol/sharing.h, SharedKind::kPeer). Range::peers
// says in which sessions.
#pragma once

#include <cuda.h>

#include "interpose/driver/ranges.h"
#include "runtime/protocol/record.h"
#include "runtime/protocol/sharing.h"

namespace smt::interpose::driver {

// In this_session(): a token for an object of it, and what a token stands for. Defined in sharing.cpp.
CUresult share_object(protocol::SharedKind kind, uint64_t object, protocol::Shared& shared);
CUresult open_shared(const protocol::OpenShared& wanted, protocol::MemAllocated& opened);

// New memory of this_session(), a range of its own: for the devices that were given access to all of it.
CUresult open_to_peers(uint64_t address);
// Its memory is about to be freed.
void close_to_peers(const Range& range);
// Part of a mapping of this_session() is unmapped.
void close_part_to_peers(uint64_t address, uint64_t bytes);
// This_session() is about to be reset: nothing of it is open elsewhere, and nothing of others in it.
void forget_peers();

}  // namespace smt::interpose::driver
