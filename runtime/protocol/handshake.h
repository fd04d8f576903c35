// Messages on the control socket (SOCK_SEQPACKET, one struct per packet).
//
//   session := Hello, { Welcome, Mapped }, { OpenLane, LaneOpened | Captured } [, Farewell]
//
// The socket stays open while the client exists. Its end of file tells the server that the client has ended,
// and the client that the server has. Welcome carries the arena's file descriptor (SCM_RIGHTS). A client that
// cannot map the proposed addresses replies Mapped{ok = 0}, and the server proposes others, kMappingAttempts
// times.
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
// If the first packet is a query about the server, the socket is closed after the reply:
//
//   query := StatusRequest{kStatus | kStop}, StatusReply
//          | StatusRequest{kTenants}, StatusReply, { TenantStatus }      StatusReply.tenants of them
//          | PolicyRequest, PolicyReply
//          | SettingsRequest, SettingsReply
#pragma once

#include <cstdint>

#include "runtime/protocol/version.h"

namespace smt::protocol {

inline constexpr int kMappingAttempts = 8;
inline constexpr uint32_t kTenantNameBytes = 64;
inline constexpr uint32_t kMessageBytes = 256;
inline constexpr uint32_t kPolicyNameBytes = 32;
inline constexpr uint32_t kWaitBytes = 128;

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
    kSetPolicy = 12,  // from `smt policy set`: reply PolicyReply, then closed
    kPolicyReply = 13,
    kSettings = 14,  // from `smt run`: reply SettingsReply, then closed
    kSettingsReply = 15,
    kFarewell = 16,  // the reason why the session ends, before the socket is closed
};

struct Hello {
    ControlKind kind = ControlKind::kHello;
    uint32_t magic = kMagic;
    uint32_t version = kProtocolVersion;
    uint32_t stress = 0;  // not 0: random interventions in its launches (SMT_STRESS)
    uint64_t table_hash = 0;
    int32_t pid = 0;
    int32_t priority = 0;                 // 0 is normal; higher is more urgent
    uint64_t memory_limit = 0;            // bytes; 0: the device's
    uint32_t multiprocessors = 0;         // at least this number of SMs, and no others; 0: all
    uint32_t weight_thousandths = 0;      // its share, in thousandths; 0: 1000
    uint64_t p99_us = 0;                  // that its requests may take, at the 99th percentile; 0: not set
    uint32_t slowdown_thousandths = 0;    // of that percentile by itself that it may have; 0: not set
    uint32_t kernel_limit = 0;            // seconds that a kernel may run without progress; 0: any time
    char tenant[kTenantNameBytes] = {};   // NUL-terminated
    char program[kTenantNameBytes] = {};  // NUL-terminated, for the log
};
static_assert(sizeof(Hello) == 192);

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
    uint32_t reserved = 0;
    char policy[kPolicyNameBytes] = {};  // empty: no device
    char device[kMessageBytes] = {};
};
static_assert(sizeof(StatusReply) == 360);

// How a tenant's target stands (schedule/decision.h).
enum class TargetState : uint32_t {
    kNone = 0,      // it has none, the policy does not go by targets, or there is no best-effort tenant
    kLearning = 1,  // too few requests were seen yet
    kKept = 2,
    kNotKept = 3,  // it is not even with all best-effort tenants stopped
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
    uint32_t beside = 0;              // multiprocessors that best-effort tenants have beside its requests
    char waits_for[kWaitBytes] = {};  // what that wait is for; empty: it does not wait
    char tenant[kTenantNameBytes] = {};
    char program[kTenantNameBytes] = {};
};
static_assert(sizeof(TenantStatus) == 360);

struct PolicyRequest {
    ControlKind kind = ControlKind::kSetPolicy;
    uint32_t magic = kMagic;
    char policy[kPolicyNameBytes] = {};  // NUL-terminated
};
static_assert(sizeof(PolicyRequest) == 40);

struct PolicyReply {
    ControlKind kind = ControlKind::kPolicyReply;
    uint32_t ok = 0;
    char message[kMessageBytes] = {};  // the reason if ok is 0
};
static_assert(sizeof(PolicyReply) == 264);

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
