// Memory and events that several processes of one tenant use.
//
//   exporter: Share -> ShareToken        importer: OpenShared -> MemAllocated ... Address (kCloseShared)
//
// A token is the only name of a shared object between processes. The server makes it of random bytes, and
// accepts it from sessions of the tenant that shared the object (Hello::family).
//
//   CUipcMemHandle, CUipcEventHandle    a SharedHandle, padded with zeros to their 64 bytes
//   descriptor of cuMemExportToShareableHandle    a sealed memory file with a SharedHandle. It carries a
//   shared
//                                       flock(2) until its last copy is closed; the server looks at that.
#pragma once

#include <cstdint>

#include "runtime/protocol/version.h"

namespace smt::protocol {

enum class SharedKind : uint32_t {
    kMemory = 1,    // an allocation; `object` is an address in it
    kEvent = 2,     // `object` is the event's index
    kPhysical = 3,  // memory of cuMemCreate; `object` is its handle
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

struct OpenShared {
    SharedKind kind;
    uint32_t event;  // kEvent: the index that the event gets in this session; else 0
    ShareToken token;
};
static_assert(sizeof(OpenShared) == 40);

struct SharedHandle {
    uint32_t magic = kMagic;
    SharedKind kind;
    ShareToken token;
};
static_assert(sizeof(SharedHandle) == 40);

}  // namespace smt::protocol
