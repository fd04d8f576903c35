// The journal: what the server did, for people and programs to read while it runs and after.
//
// One file per server (journal_path()), memory-mapped: a fixed header, a table of names that only
// grows, a ring of lines that are written once, and a ring of fixed-size entries; the newest overwrite the oldest. Writing an entry takes one
// atomic increment and a copy; no lock, no system call, any thread. A reader (tools/smt, tests)
// maps the same file read-only and skips entries whose sequence word says they are being written.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace smt::runtime::journal {

inline constexpr int kPlaceWords = 4;   // 256 multiprocessors

enum class Kind : uint32_t {
    kLaunch = 1,         // every field; value's low half = a name: how it was run, and why ("unmanaged: it holds machine code only"); 0: not
                         // known. Its high half: the launch's number where the server measures, else 0
    kSessionOpened = 2,  // name = tenant, text = program, value = pid
    kSessionClosed = 3,  // name = tenant, text = how it ended, value = pid
    kUnsupported = 4,    // name = driver function, value = how often so far in this session
    kNote = 5,           // text: one clear line (a refused handshake, a fault, ...)
    kDecision = 6,       // name = tenant, text = what was decided about its kernels, and why
    kMapping = 7,        // name = tenant, text = kernel, value = blocks that its workers ran, multiprocessors,
                         // blocks_together = workers; start_ns and end_ns by the GPU's global timer
    kStopped = 8,        // name = tenant, text = kernel, value = ns from the decision to the last worker gone; with
                         // SMT_JOURNAL=mapping start_ns and end_ns of the longest ticket that it waited for, by the GPU's global
                         // timer, and blocks_together = blocks that a ticket stood for
    kIntoGraph = 9,      // a kernel became part of a graph: every field of a launch but times
};

// POD, fixed size. Times are nanoseconds of CLOCK_MONOTONIC, or of a simulated device's clock (`virtual_time`);
// names and texts are what name() and line() returned. Where a launch ran only a simulated device knows; of one that was confined
// it says where it may have run.
struct Entry {
    uint64_t sequence = 0;  // set by the writer
    uint64_t time_ns = 0;   // when the server handed it to the driver
    uint64_t start_ns = 0;  // when it ran on the GPU, if timed (SMT_JOURNAL=times); else 0
    uint64_t end_ns = 0;
    Kind kind = Kind::kNote;
    uint32_t session = 0;
    uint32_t lane = 0;
    uint32_t stream = 0;  // protocol stream reference
    uint32_t name = 0;
    uint32_t text = 0;
    uint64_t value = 0;
    uint32_t grid[3] = {};
    uint32_t block[3] = {};
    uint32_t registers = 0;     // per thread
    uint32_t shared_bytes = 0;  // static and dynamic, per block
    uint64_t multiprocessors[kPlaceWords] = {};  // a bit for each that ran a block of it, or may have; all 0: not known
    uint32_t blocks_together = 0;                // most blocks of it at one time on one of them
    uint32_t virtual_time = 0;                   // 1: the times are virtual
};
static_assert(sizeof(Entry) == 136);

inline constexpr uint32_t kEntries = 1u << 18;
inline constexpr uint32_t kNameBytes = 4u << 20;
inline constexpr uint32_t kLineBytes = 4u << 20;
inline constexpr uint32_t kLongestLine = 4000;   // bytes; the rest is cut off

// How the server that wrote a journal ended.
enum class Ending : uint32_t {
    kNone = 0,    // it runs, or it ended without leaving: it crashed, or was killed
    kLeft = 1,
    kFault = 2,   // it left because a fault had ended the shared context
};

class Writer {
public:
    // Creates or truncates the file. On failure the writer is mute: every call is a no-op, and
    // error() says why.
    explicit Writer(const std::string& path);
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    // Index of a name, the same one for the same text, for as long as the server lives; 0 when the table is full ("?"). For
    // what there are few of: tenants, kernels, functions.
    // Takes a lock: call it when a thing is created, not for each entry.
    uint32_t name(std::string_view text);
    // Index of a line, for the next entry: a server that lives for long writes any number of them, and the oldest are forgotten ("?"). Takes
    // a lock.
    uint32_t line(std::string_view text);
    // Fills sequence, and time_ns if it is 0. Returns the entry's sequence.
    uint64_t write(Entry entry);
    // Adds the GPU times to an entry that is still in the ring.
    void set_times(uint64_t sequence, uint64_t start_ns, uint64_t end_ns);
    void end(Ending how);
    const std::string& error() const { return error_; }
    const std::string& path() const { return path_; }

private:
    struct Impl;
    const std::string path_;
    Impl* impl_ = nullptr;
    std::string error_;
};

class Reader {
public:
    explicit Reader(const std::string& path);  // error() is not empty when it cannot be read
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    // Every complete entry with sequence >= from, oldest first. Returns the sequence to go on with.
    uint64_t read(uint64_t from, const std::function<void(const Entry&)>& visit) const;
    std::string name(uint32_t index) const;   // or line; as a terminal may show it (printable.h)
    Ending ending() const;
    const std::string& error() const { return error_; }

private:
    struct Impl;
    Impl* impl_ = nullptr;
    std::string error_;
};

// Gives back what a finished journal has reserved and not used.
void release_unused(const std::string& path);

uint64_t now_ns();  // CLOCK_MONOTONIC

}  // namespace smt::runtime::journal
