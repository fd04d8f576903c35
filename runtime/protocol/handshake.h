// Messages on the control socket (SOCK_SEQPACKET, one struct a packet).
//
//   session := Hello, { Welcome, Mapped }, { OpenLane, LaneOpened | Captured } [, Farewell]
//
// The socket stays open for as long as the client lives: its end of file is how the server learns
// that a client died, and how a client learns that the server did. Welcome carries the arena's
// file descriptor (SCM_RIGHTS). If the client cannot map the proposed addresses it answers
// Mapped{ok = 0} and the server proposes others, kMappingAttempts times.
//
// Captured says that the program took an image out of NVRTC, and is not answered. It carries a file
// descriptor too, of a memory file with what the image was made of:
//
//   captured := string directory, string name, string text, list headers (name, text, name, text ...),
//               list options, list name_expressions, array image
//   list     := u64 count, { string }
//
// Strings and arrays are those of codec.h; `directory` is the one that relative paths in the options
// are meant from. The server may be slower to read these than the program is to load the image, so
// ModuleLoad says how many were sent.
//
// Or the first packet is a question about the server, and the socket ends with the answer:
//
//   question := StatusRequest{kStatus | kStop}, StatusReply
//             | StatusRequest{kTenants}, StatusReply, { TenantStatus }      StatusReply.tenants of them
//             | PolicyRequest, PolicyReply
//             | SettingsRequest, SettingsReply
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
    kStatus = 6,       // from `smt server status`: answered with StatusReply, then closed
    kStop = 7,         // from `smt server stop`: answered with StatusReply, then the server leaves
    kStatusReply = 8,
    kCaptured = 9,
    kTenants = 10,     // from `smt status`: answered with StatusReply, then who there is, then closed
    kTenantStatus = 11,
    kSetPolicy = 12,   // from `smt policy set`: answered with PolicyReply, then closed
    kPolicyReply = 13,
    kSettings = 14,    // from `smt run`: answered with SettingsReply, then closed
    kSettingsReply = 15,
    kFarewell = 16,    // the session is over: why, before the socket ends
};

struct Hello {
    ControlKind kind = ControlKind::kHello;
    uint32_t magic = kMagic;
    uint32_t version = kProtocolVersion;
    uint32_t stress = 0;                   // not 0: what is done to its launches at random (SMT_STRESS)
    uint64_t table_hash = 0;
    int32_t pid = 0;
    int32_t priority = 0;                  // 0 is normal, more is more urgent
    uint64_t memory_limit = 0;             // bytes; 0: the device's
    uint32_t multiprocessors = 0;          // that it is confined to, at least so many; 0: all
    uint32_t weight_thousandths = 0;       // its share, in thousandths; 0: 1000
    char tenant[kTenantNameBytes] = {};    // NUL-terminated
    char program[kTenantNameBytes] = {};   // NUL-terminated, for the log
};
static_assert(sizeof(Hello) == 176);

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
    char message[kMessageBytes] = {};      // why not, when status is not kOk
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
    int32_t status = 0;                    // CUresult
    uint32_t lane = 0;                     // index: no other lane of the session has it now
    uint32_t reserved = 0;
    uint64_t offset = 0;                   // of the LaneHeader in the arena
};
static_assert(sizeof(LaneOpened) == 24);

struct Captured {
    ControlKind kind = ControlKind::kCaptured;
    uint32_t reserved = 0;
    uint64_t bytes = 0;                    // of the file; more than kMostCapturedBytes is not read
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
    uint32_t multiprocessors = 0;          // of the device
    uint64_t sessions_served = 0;
    uint64_t launches = 0;
    uint64_t device_bytes = 0;             // held for tenants now
    uint64_t host_bytes = 0;               // pinned and managed, held for tenants now
    uint64_t uptime_ms = 0;
    uint32_t tenants = 0;                  // so many TenantStatus follow; 0 where nobody asked for them
    uint32_t reserved = 0;
    char policy[kPolicyNameBytes] = {};    // empty: there is no device
    char device[kMessageBytes] = {};
};
static_assert(sizeof(StatusReply) == 360);

// A session.
struct TenantStatus {
    ControlKind kind = ControlKind::kTenantStatus;
    uint32_t session = 0;
    int32_t pid = 0;
    int32_t priority = 0;
    double weight = 1;
    uint64_t device_bytes = 0;             // that it holds now
    uint64_t host_bytes = 0;               // pinned and managed
    uint64_t memory_limit = 0;             // 0: the device's
    uint64_t launches = 0;
    uint32_t multiprocessors = 0;          // that it asked to be confined to; 0: all
    uint32_t lanes = 0;
    uint32_t gone = 0;                     // 1: its program has ended, and its work has not
    uint32_t waited_ms = 0;                // how long it has waited,
    char waits_for[kWaitBytes] = {};       // for what of another program; empty: it does not wait
    char tenant[kTenantNameBytes] = {};
    char program[kTenantNameBytes] = {};
};
static_assert(sizeof(TenantStatus) == 328);

struct PolicyRequest {
    ControlKind kind = ControlKind::kSetPolicy;
    uint32_t magic = kMagic;
    char policy[kPolicyNameBytes] = {};    // NUL-terminated
};
static_assert(sizeof(PolicyRequest) == 40);

struct PolicyReply {
    ControlKind kind = ControlKind::kPolicyReply;
    uint32_t ok = 0;
    char message[kMessageBytes] = {};      // why not, when it is not
};
static_assert(sizeof(PolicyReply) == 264);

// From the server, when it ends a session that its program has not ended: a program that is told nothing has lost a server that crashed.
struct Farewell {
    ControlKind kind = ControlKind::kFarewell;
    uint32_t reserved = 0;
    char message[kMessageBytes] = {};      // NUL-terminated
};
static_assert(sizeof(Farewell) == 264);

// What a program's settings say to a server (is_servers() in runtime/settings/config.h), in lines KEY=VALUE. The server logs and answers what
// differs from its own.
inline constexpr uint32_t kSettingsBytes = 4096;
struct SettingsRequest {
    ControlKind kind = ControlKind::kSettings;
    uint32_t magic = kMagic;
    char tenant[kTenantNameBytes] = {};
    char settings[kSettingsBytes] = {};    // NUL-terminated; what does not fit is not asked
};
static_assert(sizeof(SettingsRequest) == 4168);

struct SettingsReply {
    ControlKind kind = ControlKind::kSettingsReply;
    uint32_t reserved = 0;
    char differences[kSettingsBytes] = {}; // a line each, NUL-terminated; empty: none
};
static_assert(sizeof(SettingsReply) == 4104);

}  // namespace smt::protocol
