// Memory and events that several processes of one tenant use.
//
//   exporter: Share -> Shared            importer: OpenShared -> MemAllocated ... Address (kCloseShared)
//
// A token is the only name of a shared object between processes. The server makes it of random bytes, and
// accepts it from sessions of the tenant that shared the object (Hello::family). With the number of the
// server that gave it, a token of memory is good in servers of other GPUs, too (FetchShared).
//
//   CUipcMemHandle, CUipcEventHandle    a SharedHandle, padded with zeros to their 64 bytes
//   descriptor of cuMemExportToShareableHandle
//                                       a sealed memory file with a SharedHandle. It carries a shared
//                                       flock(2) until its last copy is closed; the server looks at that.
#pragma once

#include <cstdint>

#include "runtime/protocol/version.h"

namespace smt::protocol {

enum class SharedKind : uint32_t {
    kMemory = 1,    // an allocation; `object` is an address in it
    kEvent = 2,     // `object` is the event's index
    kPhysical = 3,  // memory of cuMemCreate; `object` is its handle
    // For other devices of the same program:
    kPeer = 4,          // memory at `object`, which is opened at the same address
    kPeerPhysical = 5,  // memory of cuMemCreate, as long as the program has it; `object` is its handle
};

inline constexpr uint32_t kTokenBytes = 32;
struct ShareToken {
    unsigned char bytes[kTokenBytes];
};
static_assert(sizeof(ShareToken) == 32);

struct Share {
    SharedKind kind;
    uint32_t reserved;
    uint64_t object;
};
static_assert(sizeof(Share) == 16);

struct Shared {
    ShareToken token;
    uint64_t server;  // server_number() of the one that gave the token
    uint64_t base;    // kPeer: of the allocation or mapping
    uint64_t bytes;
};
static_assert(sizeof(Shared) == 56);

struct OpenShared {
    SharedKind kind;
    uint32_t event;  // kEvent: the index that the event gets in this session; else 0
    ShareToken token;
    uint64_t server = 0;  // Shared::server; 0: the one that is asked
};
static_assert(sizeof(OpenShared) == 48);

struct SharedHandle {
    uint32_t magic = kMagic;
    SharedKind kind;
    ShareToken token;
    uint64_t server;
};
static_assert(sizeof(SharedHandle) == 48);

// From one server to another one, as the first packet to its socket: a session that may be of the same tenant
// asks for what the token names. Reply SharedFetched with the driver's descriptor of the memory, or with an
// error and none. Both servers are the same user's.
inline constexpr uint32_t kFetchedFamilyBytes = 160;
struct FetchShared {
    uint32_t control;  // ControlKind::kFetchShared
    uint32_t magic = kMagic;
    uint32_t version = kProtocolVersion;
    SharedKind kind = SharedKind::kMemory;
    ShareToken token = {};
    char family[kFetchedFamilyBytes] = {};  // the server's text (runtime/server/sharing.h), NUL-terminated
};
static_assert(sizeof(FetchShared) == 208);

struct SharedFetched {
    uint32_t control;  // ControlKind::kSharedFetched
    int32_t status = 0;
    uint64_t base = 0;         // where its session has the memory
    uint64_t bytes = 0;        // of the memory
    uint64_t offset = 0;       // of the allocation in it
    uint64_t block_bytes = 0;  // of the allocation
    uint64_t memory = 0;       // a number: the same one for the same memory
    uint64_t exportable = 0;   // 1: its program asked for descriptors
};
static_assert(sizeof(SharedFetched) == 56);

}  // namespace smt::protocol
