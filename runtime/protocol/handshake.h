// Messages on the control socket (SOCK_SEQPACKET, one struct per packet).
//
//   session := Hello, { Welcome, Mapped }, Opened, { message } [, Farewell]
//   message := OpenLane, LaneOpened | Captured | Descriptor
//
// The socket stays open while the client exists. Its end of file tells the server that the client has ended,
// and the client that the server has. Welcome carries the arena's file descriptor (SCM_RIGHTS). A client that
// cannot map the proposed addresses replies Mapped{ok = 0}, and the server proposes others, kMappingAttempts
// times. Opened says that the session is one of the server's: where the GPU's context is lost before that,
// the socket is closed in its place, and the client greets the next server.
//
// Captured reports that the program took an image out of NVRTC. It has no reply. It carries the descriptor of
// a memory file with the image and the inputs that it was made of:
//
//   captured := string directory, string name, string text, list headers (name, text, name, text ...),
//               list options, list name_expressions, array image
//   list     := u64 count, { string }
//
// Strings and arrays are those of codec.h. Relative paths in the options refer to `directory`. The server may
// read these messages later than the program loads the image, so ModuleLoad contains the number sent.
//
// Descriptor reports the descriptor that stands for memory of the session (sharing.h), which it carries. It
// has no reply.
//
// If the first packet is a query about the server, the socket is closed after the reply:
//
//   query := StatusRequest{kStatus | kStop}, StatusReply
//          | StatusRequest{kTenants}, StatusReply, { TenantStatus }      StatusReply.tenants of them
//          | StatusRequest{kDevice}, DeviceReply
//          | PolicyRequest, ChangeReply
//          | MemoryLimitRequest, ChangeReply
//          | TermsRequest, ChangeReply
//          | SuspendRequest{kSuspend | kResume}, SuspendReply
//          | SettingsRequest, SettingsReply
//          | FetchShared, SharedFetched                                  between servers (sharing.h)
#pragma once

#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>

#include "runtime/protocol/sharing.h"
#include "runtime/protocol/version.h"

namespace smt::protocol {

inline constexpr int kMappingAttempts = 8;
inline constexpr uint32_t kTenantNameBytes = 64;
inline constexpr uint32_t kMessageBytes = 256;
inline constexpr uint32_t kPolicyNameBytes = 32;
inline constexpr uint32_t kWaitBytes = 128;

// The text of a field, which may lack its NUL.
template <size_t kBytes>
std::string_view text_in(const char (&field)[kBytes]) {
    return {field, strnlen(field, kBytes)};
}

enum class ControlKind : uint32_t {
    kHello = 1,
    kWelcome = 2,
    kMapped = 3,
    kOpenLane = 4,
    kLaneOpened = 5,
    kStatus = 6,  // from `smt server status`: reply StatusReply, then closed
    kStop = 7,    // from `smt server stop`: reply StatusReply, then the server leaves
    kStatusReply = 8,
    kCaptured = 9,
    kTenants = 10,  // from `smt status`: reply StatusReply, then a TenantStatus per session, then closed
    kTenantStatus = 11,
    kSetPolicy = 12,  // from `smt policy set`: reply ChangeReply, then closed
    kChangeReply = 13,
    kSettings = 14,  // from `smt run`: reply SettingsReply, then closed
    kSettingsReply = 15,
    kFarewell = 16,  // the reason why the session ends, before the socket is closed
    kSuspend = 17,   // from `smt suspend`: reply SuspendReply, when it is done or given up, then closed
    kResume = 18,    // from `smt resume`: likewise
    kSuspendReply = 19,
    kSetMemoryLimit = 20,  // from `smt set`: reply ChangeReply, then closed
    kDescriptor = 21,
    kSetTerms = 22,  // from `smt set`: reply ChangeReply, then closed
    kOpened = 23,
    kDevice = 24,  // from a program that sees several simulated GPUs, and from `smt run --gpu any`: reply
                   // DeviceReply, then closed
    kDeviceReply = 25,
    kFetchShared = 26,  // from another GPU's server: reply SharedFetched, then closed (sharing.h)
    kSharedFetched = 27,
};

struct Hello {
    ControlKind kind = ControlKind::kHello;
    uint32_t magic = kMagic;
    uint32_t version = kProtocolVersion;
    uint32_t stress = 0;  // not 0: random interventions in its launches (SMT_STRESS)
    uint64_t table_hash = 0;
    int32_t pid = 0;
    int32_t priority = 0;                // 0 is normal; higher is more urgent
    uint64_t memory_limit = 0;           // bytes; 0: the device's
    uint32_t multiprocessors = 0;        // at least this number of SMs, and no others; 0: all
    uint32_t weight_thousandths = 0;     // its share, in thousandths; 0: 1000
    uint64_t p99_us = 0;                 // that its requests may take, at the 99th percentile; 0: not set
    uint32_t slowdown_thousandths = 0;   // of that percentile by itself that it may have; 0: not set
    uint32_t memory_wait_ms = 0;         // that an allocation may wait for room; 0: it does not
    uint32_t kernel_limit = 0;           // seconds that a kernel may run without progress; 0: any time
    uint32_t fenced = 0;                 // not 0: its kernels are to be fenced (SMT_ISOLATION=fence)
    uint32_t limited = 0;                // 0; a system's server puts kLimited* here (runtime/server/peer.h)
    uint32_t quarantine = 0;             // not 0: nothing of it is to be under way with another tenant's work
    char tenant[kTenantNameBytes] = {};  // NUL-terminated
    char program[kTenantNameBytes] = {};  // NUL-terminated, for the log
    // NUL-terminated. Sessions may share memory if it is the same; empty: if the tenant's name is.
    char family[kTenantNameBytes] = {};
};
static_assert(sizeof(Hello) == 272);

// What a program asked for and a system's server did not grant in full (Hello::limited).
inline constexpr uint32_t kLimitedPriority = 1, kLimitedWeight = 2, kLimitedMemory = 4, kLimitedTarget = 8;

enum class WelcomeStatus : uint32_t { kOk = 0, kVersionMismatch = 1, kRefused = 2, kNoDevice = 3 };

struct Welcome {
    ControlKind kind = ControlKind::kWelcome;
    WelcomeStatus status = WelcomeStatus::kOk;
    uint32_t version = kProtocolVersion;
    uint32_t session = 0;
    uint64_t table_hash = 0;
    uint64_t arena_base = 0;
    uint64_t device_base = 0;
    int32_t server_pid = 0;
    int32_t reserved = 0;
    char message[kMessageBytes] = {};  // the reason if status is not kOk
};
static_assert(sizeof(Welcome) == 304);

struct Mapped {
    ControlKind kind = ControlKind::kMapped;
    uint32_t ok = 0;
};
static_assert(sizeof(Mapped) == 8);

struct Opened {
    ControlKind kind = ControlKind::kOpened;
    uint32_t reserved = 0;
};
static_assert(sizeof(Opened) == 8);

struct OpenLane {
    ControlKind kind = ControlKind::kOpenLane;
    int32_t thread = 0;
};
static_assert(sizeof(OpenLane) == 8);

struct LaneOpened {
    ControlKind kind = ControlKind::kLaneOpened;
    int32_t status = 0;  // CUresult
    uint32_t lane = 0;   // index; unique among the session's open lanes
    uint32_t reserved = 0;
    uint64_t offset = 0;  // of the LaneHeader in the arena
};
static_assert(sizeof(LaneOpened) == 24);

struct Captured {
    ControlKind kind = ControlKind::kCaptured;
    uint32_t reserved = 0;
    uint64_t bytes = 0;  // size of the file; not read if larger than kMostCapturedBytes
};
static_assert(sizeof(Captured) == 16);
inline constexpr uint64_t kMostCapturedBytes = 64ull << 20;

struct Descriptor {
    ControlKind kind = ControlKind::kDescriptor;
    uint32_t reserved = 0;
    ShareToken token = {};
};
static_assert(sizeof(Descriptor) == 40);

struct StatusRequest {
    ControlKind kind = ControlKind::kStatus;
    uint32_t magic = kMagic;
};
static_assert(sizeof(StatusRequest) == 8);

struct StatusReply {
    ControlKind kind = ControlKind::kStatusReply;
    uint32_t version = kProtocolVersion;
    int32_t server_pid = 0;
    uint32_t sessions = 0;
    uint32_t lanes = 0;
    uint32_t multiprocessors = 0;  // of the device
    uint64_t sessions_served = 0;
    uint64_t launches = 0;
    uint64_t device_bytes = 0;  // held for tenants now
    uint64_t host_bytes = 0;    // pinned and managed, held for tenants now
    uint64_t uptime_ms = 0;
    uint32_t tenants = 0;  // number of TenantStatus that follow; 0 unless requested (kTenants)
    // Of a system's server, for one who is no administrator: sessions of other users. None of their
    // TenantStatus follows.
    uint32_t others = 0;
    uint64_t other_bytes = 0;            // device memory that they hold
    char policy[kPolicyNameBytes] = {};  // empty: no device
    char device[kMessageBytes] = {};
    uint32_t takes_over = 0;  // 1: another process is ready to take over
    uint32_t carried = 0;     // sessions that would go on there if this server crashed now
    // Host memory for device memory that moves: pinned now; pinned so far, and what that took.
    uint64_t pinned_bytes = 0, made_bytes = 0, making_us = 0;
};
static_assert(sizeof(StatusReply) == 400);

// What a device says about itself, for those that have no session on it.
inline constexpr uint32_t kDeviceAttributes = 160;  // those of CUdevice_attribute, and room for more
struct DeviceReply {
    ControlKind kind = ControlKind::kDeviceReply;
    uint32_t ok = 0;  // 0: the server has no device
    uint64_t total_bytes = 0;
    uint64_t free_bytes = 0;                     // so what other processes hold counts; with what is spare
    int32_t attributes[kDeviceAttributes] = {};  // by CUdevice_attribute; 0: it has none of that number
    char name[kMessageBytes] = {};
};
static_assert(sizeof(DeviceReply) == 920);

// How a tenant's target stands (schedule/decision.h).
enum class TargetState : uint32_t {
    kNone = 0,      // it has none, the policy does not go by targets, or there is no best-effort tenant
    kLearning = 1,  // too few requests were seen yet
    kKept = 2,
    kNotKept = 3,  // it is not even with all best-effort tenants stopped
};

// What a session's device memory is used for. Bytes, except where said.
//
//     held  =  asked + lost + idle + other, also while it is away (TenantStatus::away_bytes)
struct MemoryFigures {
    uint64_t asked = 0;  // by the program, in allocations that it has not freed
    uint64_t lost = 0;   // to rounding, and to gaps between small allocations
    uint64_t idle = 0;   // freed, and kept for the next allocation; returned if any tenant needs it
    uint64_t other =
        0;  // what the driver made for the program: arrays, variables, memory of its own mappings
    uint64_t zeroed = 0;       // so far, since another tenant might have had it
    uint64_t zeroing_us = 0;   // time that allocations have waited for that
    uint64_t tenant_held = 0;  // by all programs of the tenant
    uint64_t refused = 0;      // so many times the program was refused memory, at a limit
};

// How a session's memory has moved, where tenants may hold more together than the device has.
struct TurnFigures {
    uint64_t out_bytes = 0;  // to host memory, so far
    uint64_t in_bytes = 0;   // and back
    uint64_t out_us = 0;     // what these moves took
    uint64_t in_us = 0;
    uint64_t moves = 0;  // out and in
    uint64_t turns = 0;  // times that others made room for it
    // Parts of its moves: until its work was at rest, which is not in out_us; host memory pinned; copies,
    // with that; the device's memory mapped and unmapped. Of two programs that move at the same time each
    // has its own, so the sum may exceed out_us and in_us.
    uint64_t rest_us = 0, pin_us = 0, copy_us = 0, map_us = 0;
    uint64_t missing_bytes = 0;  // it is out, and what has its room cannot be moved
};

// Waits of a session's threads for other programs that are over, so far, by how long they were: counts[i] is
// of those that took no longer than kWaitBoundsUs[i], and longer than the bound before; the last is of the
// rest.
inline constexpr uint64_t kWaitBoundsUs[] = {10, 100, 1000, 10'000, 100'000, 1'000'000, 10'000'000};
struct WaitFigures {
    uint64_t ns = 0;  // all together
    uint64_t counts[std::size(kWaitBoundsUs) + 1] = {};
};

// One per session.
struct TenantStatus {
    ControlKind kind = ControlKind::kTenantStatus;
    uint32_t session = 0;
    int32_t pid = 0;
    int32_t priority = 0;
    double weight = 1;
    uint64_t device_bytes = 0;  // held now
    uint64_t host_bytes = 0;    // pinned and managed
    uint64_t memory_limit = 0;  // 0: the device's
    uint64_t launches = 0;
    uint64_t p99_us = 0;           // its target, as in Hello
    uint64_t seen_p99_us = 0;      // of its last requests; 0: none was seen yet
    uint32_t multiprocessors = 0;  // requested number of SMs; 0: all
    uint32_t lanes = 0;
    uint32_t gone = 0;                  // 1: its program has ended, but its work has not
    uint32_t waited_ms = 0;             // duration of its longest current wait for another program
    uint32_t slowdown_thousandths = 0;  // its target, as in Hello
    TargetState target_state = TargetState::kNone;  // if it is kNone, the rest of it means nothing
    int32_t headroom_thousandths = 0;               // of what is allowed; below 0: it is exceeded
    uint32_t beside = 0;       // multiprocessors that best-effort tenants have beside its requests
    uint64_t gpu_time_ns = 0;  // that its completed work takes alone (docs/design.md#gpu-time-received)
    MemoryFigures memory = {};
    uint32_t suspended = 0;    // 1: its calls wait until it is resumed
    uint32_t out_of_turn = 0;  // 1: its calls wait for its turn, as memory of it made room for others
    uint64_t away_bytes = 0;   // of its device memory in host memory or files; not in device_bytes
    uint64_t file_bytes = 0;   // of these in files
    TurnFigures turns = {};
    WaitFigures waits = {};
    uint32_t limited = 0;     // kLimited*
    uint32_t fenced = 0;      // 1: its kernels are (smt run --isolation fence)
    uint32_t quarantine = 0;  // 1: nothing of it is under way with another tenant's work
    uint32_t reserved = 0;
    char waits_for[kWaitBytes] = {};  // what that wait is for; empty: it does not wait
    char tenant[kTenantNameBytes] = {};
    char program[kTenantNameBytes] = {};
};
static_assert(sizeof(TenantStatus) == 632);

struct PolicyRequest {
    ControlKind kind = ControlKind::kSetPolicy;
    uint32_t magic = kMagic;
    char policy[kPolicyNameBytes] = {};  // NUL-terminated
};
static_assert(sizeof(PolicyRequest) == 40);

struct MemoryLimitRequest {
    ControlKind kind = ControlKind::kSetMemoryLimit;
    uint32_t magic = kMagic;
    uint64_t limit = 0;                  // bytes; 0: the device's
    char tenant[kTenantNameBytes] = {};  // NUL-terminated
};
static_assert(sizeof(MemoryLimitRequest) == 80);

// Of the tenant's programs that are there.
struct TermsRequest {
    ControlKind kind = ControlKind::kSetTerms;
    uint32_t magic = kMagic;
    uint32_t sets_priority = 0;  // 0: it stays as it is
    int32_t priority = 0;
    uint32_t weight_thousandths = 0;  // 0: it stays as it is
    uint32_t reserved = 0;
    char tenant[kTenantNameBytes] = {};  // NUL-terminated
};
static_assert(sizeof(TermsRequest) == 88);

struct ChangeReply {
    ControlKind kind = ControlKind::kChangeReply;
    uint32_t ok = 0;
    char message[kMessageBytes] = {};  // the reason if ok is 0
};
static_assert(sizeof(ChangeReply) == 264);

struct SuspendRequest {
    ControlKind kind = ControlKind::kSuspend;
    uint32_t magic = kMagic;
    uint32_t patience_ms = 0;  // kSuspend: how long its work on the GPU may take to stop or to end
    uint32_t reserved = 0;
    char tenant[kTenantNameBytes] = {};  // NUL-terminated
};
static_assert(sizeof(SuspendRequest) == 80);

struct SuspendReply {
    ControlKind kind = ControlKind::kSuspendReply;
    uint32_t ok = 0;        // 0: nothing has changed
    uint32_t sessions = 0;  // of the tenant
    uint32_t pinned = 0;    // kSuspend: 1: the host memory is pinned
    uint64_t moved_bytes = 0;
    uint64_t file_bytes = 0;           // kSuspend: of these in files, so far
    uint64_t stay_bytes = 0;           // kSuspend: device memory that cannot be moved
    uint64_t copied_ns = 0;            // of the time that it took: copies, with the memory for them
    uint64_t took_ns = 0;              // all of it
    char message[kMessageBytes] = {};  // the reason if ok is 0
};
static_assert(sizeof(SuspendReply) == 312);

// From the server before it ends a session that the program has not ended. If the socket is closed without
// it, the server has crashed.
struct Farewell {
    ControlKind kind = ControlKind::kFarewell;
    uint32_t reserved = 0;
    char message[kMessageBytes] = {};  // NUL-terminated
};
static_assert(sizeof(Farewell) == 264);

// A program's settings for a server (is_servers() in runtime/settings/config.h), in lines KEY=VALUE. The
// server logs and returns the differences from its own.
inline constexpr uint32_t kSettingsBytes = 4096;
struct SettingsRequest {
    ControlKind kind = ControlKind::kSettings;
    uint32_t magic = kMagic;
    char tenant[kTenantNameBytes] = {};
    char settings[kSettingsBytes] = {};  // NUL-terminated; lines that do not fit are left out
};
static_assert(sizeof(SettingsRequest) == 4168);

struct SettingsReply {
    ControlKind kind = ControlKind::kSettingsReply;
    uint32_t reserved = 0;
    char differences[kSettingsBytes] = {};  // one line each, NUL-terminated; empty: none
};
static_assert(sizeof(SettingsReply) == 4104);

}  // namespace smt::protocol
