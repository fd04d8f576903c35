// Servers of other GPUs in the same folder: memory that a session of theirs shares (protocol/sharing.h).
//
//   importer's server -- FetchShared: token, family --> exporter's server
//                     <-- SharedFetched, the driver's descriptor of the memory --
//
// The driver maps memory of another GPU by such a descriptor, and keeps it as long as any process maps it. A
// server answers a server of its own user only, and only what the token's family may have: both sides take
// the family from what they granted the session, not from the request of a program.
#pragma once

#include <cuda.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/device/device.h"
#include "runtime/protocol/sharing.h"
#include "runtime/server/memory/physical_allocation.h"
#include "runtime/server/sharing.h"

namespace smt::runtime::server {

// Any thread.
class Neighbours {
public:
    explicit Neighbours(device::Device& device) : device_(device) {}

    // Where the servers' sockets are; before the first session. Empty: there are no neighbours.
    void are_in(const std::string& folder) { folder_ = folder; }
    uint64_t own_number() const;

    // For another server. `*file`: the descriptor, which the caller closes; -1 on failure.
    protocol::SharedFetched give(Sharing& sharing, const protocol::FetchShared& request, int* file) const;

    // For a session of this server. The block's memory has a handle here, which it owns, and is of no
    // session's account. INVALID_VALUE: there is no such server, or it gives nothing for the token.
    CUresult fetch(const protocol::OpenShared& wanted, const std::string& family, SharedBlockPointer* block);

private:
    using Key = std::array<unsigned char, protocol::kTokenBytes>;

    int reach(uint64_t server) const;
    CUresult import(int file, const protocol::SharedFetched& facts, SharedBlockPointer* block) const;
    SharedBlockPointer known(const protocol::ShareToken& token, const SharedBlockPointer& fresh);

    device::Device& device_;
    std::string folder_;
    std::mutex mutex_;                                       // guards known_; a leaf lock
    std::map<Key, std::weak_ptr<const SharedBlock>> known_;  // so that a second opening finds the first
};

}  // namespace smt::runtime::server
