// The server's interface to a device: a table of driver functions and the one context of all tenants.
//
// cuda/ is the real driver. A simulated device has the same interface, because its driver is a table of the
// same functions. A Device outlives every session and is never reopened: a context that a fault has poisoned
// ends with the process.
#pragma once

#include <cuda.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/device/held_up.h"
#include "runtime/device/physical_memory.h"
#include "runtime/image/core_dump.h"
#include "runtime/journal/journal.h"

namespace smt::runtime::device {

struct Properties {
    std::string name;
    uint64_t total_memory = 0;
    uint64_t granularity = 0;  // of cuMemCreate and cuMemMap
    int multiprocessors = 0;
    int compute_major = 0;
    int compute_minor = 0;
    // The device itself assigns printed text and journal entries of launches to their sessions.
    bool keeps_sessions_apart = false;
    // A fault ends the work of its session only (Guest::lost). Else it loses the context of all sessions.
    bool keeps_faults_apart = false;
    // The device has its own clock, which stops while the dispatcher's thread runs.
    bool keeps_clock = false;
    // Loading code blocks until all enqueued work is complete, and blocks other calls (cuda/context_wide.h).
    bool loads_wait = false;
    // Kernels of the PTX that it executes get the door (rewriter/ptx/door.h).
    bool puts_doors = false;
};

// Of a stream, while launches are watched (Device::watch_launches()).
struct WatchedLaunch {
    LaunchOf launch;                                // the last one
    std::chrono::steady_clock::time_point since{};  // of all that time one may have been under way
};

// A session, as its device uses it.
class Guest {
public:
    virtual ~Guest() = default;
    virtual uint32_t id() const = 0;
    virtual const std::string& tenant() const = 0;
    virtual void print(std::string_view text) = 0;                   // output of its kernels
    virtual void lost(CUresult fault, const std::string& what) = 0;  // one of its kernels has faulted
    virtual void tell(const std::string& line) = 0;                  // a line about it for the log
    virtual void must_end(const std::string& why) = 0;               // ends it; any thread, does not block
    // Its calls have no effect any more: its program is gone, or they are executed again in another process.
    virtual bool leaves() const = 0;
};
inline constexpr uint32_t kNoLane = ~0u;

class Device {
public:
    virtual ~Device() = default;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    const DriverApi& driver() const { return driver_; }
    CUdevice device() const { return device_; }
    CUcontext context() const { return context_; }
    const Properties& properties() const { return properties_; }
    const std::string& key() const { return key_; }  // base name of the files in the runtime directory

    // Prepares the calling thread: makes the context current, and sets the capture mode so that another
    // thread's capture does not make its calls fail. `guest`, `lane`: the session and lane that it serves.
    virtual CUresult enter_thread(Guest* guest = nullptr, uint32_t lane = kNoLane) = 0;

    // A stream of the highest priority for the server's own short work. It never waits for a program. Made by
    // the first call. There is one only, since a context has 32 channels to the GPU for its streams. Any
    // thread; null: it could not be made.
    CUstream errands() const;

    // The memory of tenants' ranges. memory_source(): the library whose driver makes memory that this device
    // can import; empty: any memfd is.
    PhysicalMemory& physical_memory() { return physical_memory_; }
    virtual std::string memory_source() const { return {}; }

    // From now on the driver's functions tell the calling thread's CallClock (call_clock.h). Before any other
    // thread uses the table.
    void time_driver();

    // fault(): after a call has returned the error of the fault that lost the context: the faulting kernel,
    // or why it is not known.
    virtual bool dumps_faults() const { return false; }
    virtual std::variant<image::FaultSite, image::Problem> fault() const {
        return image::Problem{"this device does not tell"};
    }
    // Whether a fault is being dumped. Its error follows within seconds; until then waits still return
    // success.
    virtual bool fault_begun() const { return false; }

    // The dispatcher's clock and its thread's wait: until `until`, until disturb(), or spuriously shorter.
    // `lock` is released during the wait. `due`: the dispatcher has to act at `until`, so a device clock
    // advances to it even if the device is idle.
    using Clock = std::chrono::steady_clock;
    virtual Clock::time_point now() const { return Clock::now(); }
    virtual void rest(std::unique_lock<std::mutex>& lock, Clock::time_point until, bool /*due*/) {
        disturbed_.wait_until(lock, until);
    }
    virtual void disturb() { disturbed_.notify_all(); }  // caller holds the lock

    // The guest's program is gone: ends its streams' waits for values. Called repeatedly until they are idle.
    virtual void release_waits(const Guest&) {}
    virtual void left(Guest&) {}
    // Ends the guest's work that does not end by itself, with this error; soon. False: it cannot be ended
    // alone.
    virtual bool end_work(const Guest&, CUresult) { return false; }
    // Whether calls that wait for all work on the device, and keep others out meanwhile, are held back from
    // now on: something may not end.
    virtual void hold_wide_calls(bool) {}
    // Whether such calls wait ahead of the driver, from now on, for the launches that were there before them
    // and for all of tenants with a limit (LaunchOf): one of these may not end.
    virtual void watch_launches(bool) {}
    // Those that are not known to be over, by stream. Any thread; no call of the driver, and no lock that is
    // held over one. make_deferred_calls() looks which are over.
    virtual std::vector<WatchedLaunch> watched_launches() const { return {}; }
    // For the thread of a guest whose kernels may not end, ahead of a launch: waits while such calls are kept
    // from their moment by launches like this one alone, for `longest` at most. False: the guest leaves.
    virtual bool stand_back(Clock::duration /*longest*/) { return true; }
    // Those of such calls that were put off, if they need not wait now. To be called from time to time while
    // launches are watched.
    virtual void make_deferred_calls() {}
    // Begins a moment in which no stream waits for a program's action, as calls that load code need one; no
    // stream begins to wait until the same thread calls end_quiet(), and that thread's calls do not wait for
    // such a moment. The thread enqueues nothing meanwhile. False: a stream waits, and nothing has begun.
    virtual bool begin_quiet() { return true; }
    virtual void end_quiet() {}

    // The remaining functions are for devices with their own clock. CUDA does not use them.

    // Called before a session exists; may block until other programs have come. Returns its number; 0: any.
    virtual uint32_t admit(const std::string&) { return 0; }
    virtual void arrived(Guest&) {}
    virtual void leaving(Guest&) {}  // its program is gone: it makes no further call
    // A stream that a thread without a guest made carries work of that session.
    virtual void made_for(uint32_t /*session*/, CUstream) {}
    // Memory that the guest's kernels may access from now on, or no longer. `forgotten`: the addresses belong
    // to no session.
    virtual void allocated(CUdeviceptr, uint64_t) {}
    virtual void freed(CUdeviceptr, uint64_t) {}
    virtual void forgotten(CUdeviceptr, uint64_t) {}
    // True: the device writes this entry when the calling thread's next launch has completed.
    virtual bool announce(const journal::Entry&) { return false; }
    // Sets the allocator for the __managed__ variables of images that the calling thread loads from now on.
    // It returns zeroed memory that the program can access too; 0: out of memory. False: the device does not
    // support this, and the images are changed instead.
    using ManagedMemory = std::function<uint64_t(uint64_t bytes)>;
    virtual bool place_managed(const ManagedMemory&) { return false; }
    // The same for their other variables in global memory, where the session's own memory can hold them:
    // called once in each load, with 0 bytes if it can hold none. `layout` says what stands where. `all`: no
    // other variable in global memory is left. It returns zeroed memory, or sets `filled` if the variables'
    // values are there; 0: none, and they stay with the image.
    using VariableMemory =
        std::function<uint64_t(uint64_t bytes, const std::string& layout, bool all, bool* filled)>;
    virtual bool place_variables(const VariableMemory&) { return false; }
    virtual void write(journal::Writer& journal, const journal::Entry& entry, const Guest*) {
        journal.write(entry);
    }
    virtual void attach(journal::Writer&) {}  // before the first session
    // The calling thread begins or ends a wait that only other threads' work can end.
    virtual void waits_for_others(bool) {}
    // That session's threads in waits_for_others() are about to be woken.
    virtual void let_go(uint32_t /*session*/) {}

protected:
    Device() = default;

    DriverApi driver_{};
    CUdevice device_ = 0;
    CUcontext context_ = nullptr;
    Properties properties_;
    std::string key_;

private:
    PhysicalMemory physical_memory_{driver_, device_};
    std::condition_variable disturbed_;
    mutable std::once_flag errands_made_;
    mutable CUstream errands_ = nullptr;  // as long as the context
};

// The driver at $SMT_DRIVER, else the system's. Null with `error` set: there is no driver, or its GPU cannot
// be used, in which case `found` is true. `core_dump`: the file for the GPU's state at a fault; empty: no
// dump.
std::unique_ptr<Device> open_cuda(const std::string& key, const std::string& core_dump, bool* found,
                                  std::string& error);
// The device that SMT_DEVICE selects; if it is unset a GPU, or the simulated device if there is no GPU
// (`notice` says so). A GPU that exists but cannot be used, for example for lack of memory, is an error: on
// the simulated device programs would run a thousand times slower without an apparent reason.
std::unique_ptr<Device> open_device(const std::string& key, const std::string& core_dump, std::string& notice,
                                    std::string& error);

}  // namespace smt::runtime::device
