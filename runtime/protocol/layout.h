// The session arena: one memfd, mapped at the SAME address by the client and the server.
//
//   arena := SessionHeader, words, free space
//   free space, allocated by the server only:
//     lanes    (LaneHeader, ring, reply area): one per client thread
//     staging  (kStagingSlots slots of kStagingSlotBytes), pinned: for pageable copies
//     pinned and managed host memory of the application
//
// The server creates the file, seals its size, and proposes the address. The client accepts it or requests
// another. The tenant's device range follows the arena in both address spaces. In the server it is reserved
// with the driver. In the client it is reserved only (PROT_NONE), so that no host pointer of the application
// can equal a device pointer.
//
// Sizes are in bytes, offsets count from the arena's start. The server trusts nothing that it reads here: it
// copies a record, checks the copy, and uses the copy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace smt::protocol {

#ifdef __SANITIZE_THREAD__  // leaves a process little address space; both ends are built alike
inline constexpr uint64_t kArenaBytes = 16ull << 30;
inline constexpr uint64_t kDeviceRangeBytes = 16ull << 30;
#else
inline constexpr uint64_t kArenaBytes = 256ull << 30;
inline constexpr uint64_t kDeviceRangeBytes = 256ull << 30;
#endif
inline constexpr uint64_t kRangeAlignment = 2ull << 20;

inline constexpr uint64_t kRingBytes = 1ull << 20;  // a power of two
inline constexpr uint64_t kReplyBytes = 256ull << 10;
inline constexpr uint32_t kMaxRecordBytes = 96u
                                            << 10;  // without a stamp; CUDA's 32,764 bytes of parameters fit
inline constexpr uint32_t kStagingSlots = 8;
inline constexpr uint64_t kStagingSlotBytes = 512ull << 10;

// Completion words: 64-bit values that the GPU writes (cuStreamWriteValue64) and a client polls. The client
// allocates words [0, kEventWords) for events, the server allocates the rest.
inline constexpr uint32_t kEventWords = 96u << 10;
inline constexpr uint32_t kServerWords = 32u << 10;

inline constexpr uint32_t kCallbackSlots = 1024;
inline constexpr uint32_t kFaultBytes = 496;

// One call of a host function, for the application's callback thread.
struct CallbackSlot {
    uint64_t function;    // address in the client
    uint64_t user_data;   // address in the client
    uint64_t stream;      // client's CUstream value; cuStreamAddCallback passes it on
    uint32_t kind;        // CallbackKind
    int32_t status;       // CUresult passed to a stream callback
    uint64_t done_word;   // index of the word to set after the function returns
    uint64_t done_value;  // value to set it to
};
static_assert(sizeof(CallbackSlot) == 48);

enum class CallbackKind : uint32_t { kHostFunction = 0, kStreamCallback = 1 };

struct SessionHeader {
    alignas(64) std::atomic<int32_t> fatal;           // CUresult; non-zero: every call returns it
    std::atomic<uint32_t> printf_pending;             // device output is ready to be fetched
    std::atomic<uint32_t> printing;                   // printing kernel launched: queries go to the server
    std::atomic<uint32_t> cores_scarce;               // recent state: waiting threads nap instead of polling
    char fault[kFaultBytes];                          // one line about `fatal`, with NUL; written before it
    alignas(64) std::atomic<uint32_t> callback_tail;  // written by the server; futex word
    alignas(64) std::atomic<uint32_t> callback_head;  // written by the client
    std::atomic<uint32_t> callback_thread;            // 1 once the client's callback thread runs
    alignas(64) CallbackSlot callbacks[kCallbackSlots];
};
static_assert(sizeof(SessionHeader) <= (64u << 10));

// What the server writes to all of its words when a session ends, so that streams which wait for one go on.
// Streams compare the signed difference, so it is not the maximum of the type. No use of a word reaches it.
inline constexpr uint64_t kReleasedWord = 1ull << 62;
inline constexpr uint64_t kWordsOffset = 64ull << 10;
inline constexpr uint64_t kWordsBytes = (kEventWords + kServerWords) * sizeof(uint64_t);
inline constexpr uint64_t kArenaHeapOffset = 2ull << 20;
static_assert(kWordsOffset + kWordsBytes <= kArenaHeapOffset);

// One lane: a single-producer single-consumer ring of records from one client thread to its thread in the
// server, and the reply to the one synchronous call that the client thread can have under way.
//
//   client: writes records, then tail (release); if server_asleep, clears it and wakes the futex
//   server: reads tail (acquire), executes each record IN ORDER, then advances head (release)
//   reply:  server fills reply area, reply_status, reply_bytes, then reply_seq (release), and
//           wakes the futex if client_asleep
//
// head and tail count bytes and never wrap; position p is at ring[p % kRingBytes]. If an index is reused,
// both start at the position where the previous lane ended, so that a position of an index (WaitLane) is
// unique.
struct LaneHeader {
    alignas(64) std::atomic<uint64_t> tail;
    alignas(64) std::atomic<uint64_t> head;
    // Read at every call and rarely written: on another cache line than head, which changes with every
    // record.
    alignas(64) std::atomic<uint32_t> server_asleep;  // futex word
    std::atomic<int32_t> async_error;  // first error of a record without reply; the client takes it
    alignas(64) std::atomic<uint32_t> reply_seq;  // futex word
    std::atomic<uint32_t> client_asleep;          // waits for reply_seq
    std::atomic<uint32_t> space_wanted;           // futex word: the client waits for ring space
    int32_t reply_status;
    uint32_t reply_bytes;
    // Offset of the lane's LaneTimes from this header; 0: its calls are not timed. Written by the server
    // before the client has the lane.
    uint32_t times;
};

inline constexpr uint64_t kLaneRingOffset = 4096;
inline constexpr uint64_t kLaneReplyOffset = kLaneRingOffset + kRingBytes;
inline constexpr uint64_t kLaneBytes = kLaneReplyOffset + kReplyBytes;
static_assert(sizeof(LaneHeader) <= kLaneRingOffset);
static_assert((kRingBytes & (kRingBytes - 1)) == 0);
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

}  // namespace smt::protocol
