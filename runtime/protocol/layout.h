// The session arena: one memfd, mapped at the SAME address by the client and the server.
//
//   arena := SessionHeader, words, free space
//   free space holds, handed out by the server only:
//     lanes    (LaneHeader, ring, reply area): one for each client thread
//     staging  (kStagingSlots slots of kStagingSlotBytes): for pageable copies, pinned
//     pinned and managed host memory of the application
//
// The server creates the file, seals its size, and proposes the address; the client accepts it or
// asks for another. Behind the arena, in both address spaces, stands the tenant's device range: in
// the server it is reserved with the driver, in the client it is only reserved (PROT_NONE), so
// that no host pointer of the application can ever equal a device pointer.
//
// Sizes are bytes, offsets count from the arena's start. The server trusts nothing it reads here:
// it copies a record out, checks the copy, and uses the copy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace smt::protocol {

#ifdef __SANITIZE_THREAD__   // it leaves a process little address space; both ends are built alike
inline constexpr uint64_t kArenaBytes = 16ull << 30;
inline constexpr uint64_t kDeviceRangeBytes = 16ull << 30;
#else
inline constexpr uint64_t kArenaBytes = 256ull << 30;
inline constexpr uint64_t kDeviceRangeBytes = 256ull << 30;
#endif
inline constexpr uint64_t kRangeAlignment = 2ull << 20;

inline constexpr uint64_t kRingBytes = 1ull << 20;        // a power of two
inline constexpr uint64_t kReplyBytes = 256ull << 10;
inline constexpr uint32_t kMaxRecordBytes = 96u << 10;    // 32,764 bytes of parameters fit well
inline constexpr uint32_t kStagingSlots = 8;
inline constexpr uint64_t kStagingSlotBytes = 512ull << 10;

// Completion words: 64-bit values that the GPU writes (cuStreamWriteValue64) and a client waits on.
// Words [0, kEventWords) belong to events, the client hands them out; the rest is the server's.
inline constexpr uint32_t kEventWords = 96u << 10;
inline constexpr uint32_t kServerWords = 32u << 10;

inline constexpr uint32_t kCallbackSlots = 1024;
inline constexpr uint32_t kFaultBytes = 496;

// One host function that the application's callback thread has to run.
struct CallbackSlot {
    uint64_t function;    // address in the client
    uint64_t user_data;   // address in the client
    uint64_t stream;      // client's CUstream value; cuStreamAddCallback passes it on
    uint32_t kind;        // CallbackKind
    int32_t status;       // CUresult handed to a stream callback
    uint64_t done_word;   // index of the word to set when it returned
    uint64_t done_value;  // value to set it to
};
static_assert(sizeof(CallbackSlot) == 48);

enum class CallbackKind : uint32_t { kHostFunction = 0, kStreamCallback = 1 };

struct SessionHeader {
    alignas(64) std::atomic<int32_t> fatal;            // CUresult; non-zero: every call returns it
    std::atomic<uint32_t> printf_pending;              // device output waits to be fetched
    std::atomic<uint32_t> printing;                    // a kernel that prints was launched: ask, do not only look at words
    std::atomic<uint32_t> cores_scarce;                // as of a moment ago: who waits naps instead of looking on
    char fault[kFaultBytes];                           // what is known of it, a line with its NUL; written before `fatal`
    alignas(64) std::atomic<uint32_t> callback_tail;   // written by the server; futex word
    alignas(64) std::atomic<uint32_t> callback_head;   // written by the client
    std::atomic<uint32_t> callback_thread;             // 1 once the client's callback thread runs
    alignas(64) CallbackSlot callbacks[kCallbackSlots];
};
static_assert(sizeof(SessionHeader) <= (64u << 10));

inline constexpr uint64_t kWordsOffset = 64ull << 10;
inline constexpr uint64_t kWordsBytes = (kEventWords + kServerWords) * sizeof(uint64_t);
inline constexpr uint64_t kArenaHeapOffset = 2ull << 20;
static_assert(kWordsOffset + kWordsBytes <= kArenaHeapOffset);

// One lane: a single-producer single-consumer ring of records from one client thread to its twin
// thread in the server, and the reply to the one synchronous call that thread can have under way.
//
//   client: writes records, then tail (release); if server_asleep, clears it and wakes the futex
//   server: reads tail (acquire), executes each record IN ORDER, then advances head (release)
//   reply:  server fills reply area, reply_status, reply_bytes, then reply_seq (release), and
//           wakes the futex if client_asleep
//
// head and tail count bytes and never wrap; position p lives at ring[p % kRingBytes]. Where an index is used again, both
// begin with the position at which the lane before ended, so that a position of a lane (WaitLane) means one moment.
struct LaneHeader {
    alignas(64) std::atomic<uint64_t> tail;
    alignas(64) std::atomic<uint64_t> head;
    // Read at every call and seldom written: kept away from head, which changes with every record.
    alignas(64) std::atomic<uint32_t> server_asleep;   // futex word
    std::atomic<int32_t> async_error;        // first CUresult of a record without a reply; taken by exchange
    alignas(64) std::atomic<uint32_t> reply_seq;       // futex word
    std::atomic<uint32_t> client_asleep;               // waits for reply_seq
    std::atomic<uint32_t> space_wanted;                // futex word: client waits for ring space
    int32_t reply_status;
    uint32_t reply_bytes;
};

inline constexpr uint64_t kLaneRingOffset = 4096;
inline constexpr uint64_t kLaneReplyOffset = kLaneRingOffset + kRingBytes;
inline constexpr uint64_t kLaneBytes = kLaneReplyOffset + kReplyBytes;
static_assert(sizeof(LaneHeader) <= kLaneRingOffset);
static_assert((kRingBytes & (kRingBytes - 1)) == 0);
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

}  // namespace smt::protocol
