// What is said on a keeper's socket (SOCK_SEQPACKET), one packet each:
//
//   client: Request                                 a client has one request under way
//   keeper: Reply                                   without chunks
//         | Reply, Chunk x count, descriptor x count    kCreate: one; kList: kMostListed at most, by id
//   kAddClient: the Request comes with a descriptor, a socket, on which another client is served from now on
//
// The keeper ends, and its memory with it, when its last client has closed its socket.
#pragma once

#include <cstdint>

namespace smt::runtime::keeper {

inline constexpr uint32_t kMagic = 0x4b54'4d53;  // "SMTK"
inline constexpr uint32_t kVersion = 2;
inline constexpr uint32_t kMostListed = 64;                    // SCM_RIGHTS takes 253
inline constexpr uint64_t kGranularity = 2ull << 20;           // of chunks
inline constexpr uint64_t kMostBytes = 1ull << 40;             // of one
inline constexpr int kNoMemory = 2, kInvalid = 1, kLost = 46;  // results besides the driver's: CUresults

enum class Kind : uint32_t { kCreate = 1, kRelease = 2, kList = 3, kAddClient = 4 };

struct Request {
    uint32_t magic = kMagic;
    uint32_t version = kVersion;
    Kind kind = Kind::kCreate;
    uint32_t reserved = 0;
    uint64_t id = 0;     // kRelease: the chunk; kList: chunks with a greater one
    uint64_t bytes = 0;  // kCreate
};
static_assert(sizeof(Request) == 32);

struct Reply {
    uint32_t magic = kMagic;
    int32_t status = 0;  // a CUresult
    uint32_t count = 0;  // chunks that follow
    uint32_t reserved = 0;
};
static_assert(sizeof(Reply) == 16);

struct Chunk {
    uint64_t id = 0;  // from 1; never given twice
    uint64_t bytes = 0;
};
static_assert(sizeof(Chunk) == 16);

struct Answer {
    Reply reply;
    Chunk chunks[kMostListed];
};
static_assert(sizeof(Answer) == sizeof(Reply) + kMostListed * sizeof(Chunk));

}  // namespace smt::runtime::keeper
