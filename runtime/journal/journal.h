// The journal: the record of a server's actions, readable while it runs and after.
//
// One memory-mapped file per server (journal_path()): a fixed header, a table of names that only grows, a
// ring of lines that are written once, and a ring of fixed-size entries. The newest lines and entries
// overwrite the oldest. Writing an entry takes one atomic increment and a copy: no lock, no system call, any
// thread. A reader (tools/smt, tests) maps the same file read-only and skips entries that are being written,
// by their sequence word.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace smt::runtime::journal {

inline constexpr int kPlaceWords = 4;  // a bit for each of 256 multiprocessors

enum class Kind : uint32_t {
    kLaunch = 1,         // every field; value's low half = a name: how it was run, and why
                         // ("unmanaged: it holds machine code only"), 0: not known; high half = the
                         // launch's number where the server measures, else 0
    kSessionOpened = 2,  // name = tenant, text = program, value = pid
    kSessionClosed = 3,  // name = tenant, text = how it ended, value = pid; end_ns = ns of the GPU that its
                         // completed work takes alone; grid[0] + 2^32 * grid[1] = launches; grid[2] = the
                         // CUDA error of the fault that it ended with, its own or another's, 0: none
    kUnsupported = 4,    // name = driver function, value = its calls so far in this session
    kNote = 5,           // text: one clear line (a refused handshake, a fault, ...)
    kDecision = 6,       // name = tenant, text = what was decided about its kernels, and why
    kMapping = 7,        // name = tenant, text = kernel, value = blocks that its workers ran,
                         // multiprocessors, blocks_together = workers; start_ns and end_ns by the GPU's
                         // global timer
    kStopped = 8,        // name = tenant, text = kernel, value = ns from the decision to the end of the last
                   // worker; with SMT_JOURNAL=mapping start_ns and end_ns of the longest ticket that the
                   // stop waited for, by the GPU's global timer, and blocks_together = blocks of a
                   // ticket; grid[0] = blocks that it ended or that were over, and are begun anew
    kIntoGraph = 9,  // a kernel became part of a graph: every field of a launch except times
    kGpuTime = 10,   // of a kernel so far, estimated (dispatch/kernel_times.h): session, name, text and value
                     // as of a launch; end_ns = ns of all its launches in dispatcher's stream `stream`,
                     // start_ns = of those whose blocks all run at once; grid[0] + 2^32 * grid[1] = launches
};

// POD, fixed size. Times are nanoseconds of CLOCK_MONOTONIC, or of a simulated device's clock
// (`virtual_time`). `name` and `text` are indices from Writer::name() and Writer::line(). Only a simulated
// device knows where a launch ran; for a confined launch, `multiprocessors` says where it may have run.
struct Entry {
    uint64_t sequence = 0;  // set by the writer
    uint64_t time_ns = 0;   // when the server passed it to the driver
    uint64_t start_ns = 0;  // start on the GPU, if timed (SMT_JOURNAL=times); else 0
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
    uint32_t registers = 0;                      // per thread
    uint32_t shared_bytes = 0;                   // static and dynamic, per block
    uint64_t multiprocessors[kPlaceWords] = {};  // that ran a block, or may have; all 0: not known
    uint32_t blocks_together = 0;                // maximum of its blocks at a time on one multiprocessor
    uint32_t virtual_time = 0;                   // 1: the times are virtual
};
static_assert(sizeof(Entry) == 136);

inline constexpr uint32_t kEntries = 1u << 18;
inline constexpr uint32_t kNameBytes = 4u << 20;
inline constexpr uint32_t kLineBytes = 4u << 20;
inline constexpr uint32_t kLongestLine = 4000;  // bytes; longer lines are cut off

// How the server of a journal ended.
enum class Ending : uint32_t {
    kNone = 0,  // it runs, crashed, or was killed
    kLeft = 1,
    kFault = 2,  // a fault had ended the shared context
};

class Writer {
public:
    // Creates or truncates the file. After a failure every call is a no-op, and error() has the reason.
    explicit Writer(const std::string& path);
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    // Index of a name, constant for equal texts while the server lives; 0 when the table is full ("?"). For
    // things of which there are few: tenants, kernels, functions. Takes a lock: call it when a thing is
    // created, not for each entry.
    uint32_t name(std::string_view text);
    // Index of a line, for the next entry. The number of lines is unlimited; the oldest are overwritten
    // ("?"). Takes a lock.
    uint32_t line(std::string_view text);
    // Sets sequence, and time_ns if it is 0. Returns the entry's sequence.
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
    explicit Reader(const std::string& path);  // on failure error() is not empty
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    // Visits every complete entry with sequence >= from, oldest first. Returns the sequence to continue with.
    uint64_t read(uint64_t from, const std::function<void(const Entry&)>& visit) const;
    // False: it is not there, not yet or not any more.
    bool read_one(uint64_t sequence, Entry* entry) const;
    std::string name(uint32_t index) const;  // also of a line; printable (printable.h)
    Ending ending() const;
    const std::string& error() const { return error_; }

private:
    struct Impl;
    Impl* impl_ = nullptr;
    std::string error_;
};

// Frees the reserved, unused part of a finished journal's file.
void release_unused(const std::string& path);

uint64_t now_ns();  // CLOCK_MONOTONIC

}  // namespace smt::runtime::journal
