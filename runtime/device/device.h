// What a device is to the server: a driver to ask, and the one context everything runs in.
//
// cuda/ is the real driver; a simulated device stands beside it with the same face, because its
// driver is a table of the same functions. A Device outlives every session and is never reopened:
// a context that a fault has poisoned ends with the process.
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

#include "driver_api.gen.h"
#include "runtime/image/core_dump.h"
#include "runtime/journal/journal.h"

namespace smt::runtime::device {

struct Properties {
    std::string name;
    uint64_t total_memory = 0;
    uint64_t granularity = 0;   // of cuMemCreate and cuMemMap
    int multiprocessors = 0;
    int compute_major = 0;
    int compute_minor = 0;
    // A fault, what a kernel prints and the journal's entry of a launch reach the session they belong to
    // by the device's own doing, and a fault ends that session's work only.
    bool keeps_sessions_apart = false;
    // It keeps a clock of its own, which stands while the dispatcher's thread is at work.
    bool keeps_clock = false;
    // To load code waits until everything enqueued on it is over, and keeps others out meanwhile (cuda/context_wide.h).
    bool loads_wait = false;
};

// A session, as its device sees it.
class Guest {
public:
    virtual ~Guest() = default;
    virtual uint32_t id() const = 0;
    virtual const std::string& tenant() const = 0;
    virtual void print(std::string_view text) = 0;                    // what its kernels say
    virtual void lost(CUresult fault, const std::string& what) = 0;   // its kernel has faulted
    virtual void tell(const std::string& line) = 0;                   // something about it, for the log
    virtual void must_end(const std::string& why) = 0;                // its own fault; any thread, returns at once
    virtual bool leaves() const = 0;                                  // its program is gone
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
    const std::string& key() const { return key_; }   // names this device's files in the runtime directory

    // Makes the calling thread ready to serve: the context is current, and a capture of another
    // thread does not forbid this thread's calls. `guest`: its calls are for that session's lane.
    virtual CUresult enter_thread(Guest* guest = nullptr, uint32_t lane = kNoLane) = 0;

    // A stream of the highest priority for the server's own short work, on which nothing waits for a program; made when it
    // is asked for first. One for all, since a context has 32 channels to the GPU for its streams. Any thread; null: there
    // is none.
    CUstream errands() const;

    // Of the fault that lost the context, once a call has returned its error: the kernel, or why it is not known.
    virtual bool dumps_faults() const { return false; }
    virtual std::variant<image::FaultSite, image::Problem> fault() const { return image::Problem{"this device does not tell"}; }
    // Whether a fault is being dumped: its error follows within seconds, although waits still succeed.
    virtual bool fault_begun() const { return false; }

    // The time that the dispatcher goes by, and how its thread rests: until then, until disturb(), or for nothing. Meanwhile
    // `lock` is not held. `due`: something is to be done then, for which a clock of the device's own goes on even if the device is idle.
    using Clock = std::chrono::steady_clock;
    virtual Clock::time_point now() const { return Clock::now(); }
    virtual void rest(std::unique_lock<std::mutex>& lock, Clock::time_point until, bool /*due*/) { disturbed_.wait_until(lock, until); }
    virtual void disturb() { disturbed_.notify_all(); }   // with the lock

    // The guest's program is gone: no stream of it waits for a value any more. Called again and again until they are idle.
    virtual void release_waits(const Guest&) {}
    virtual void left(Guest&) {}

    // The rest is for devices that keep a clock of their own; CUDA needs none of it.

    // Before a session exists: may hold it up until others have come. Its number, or 0: any.
    virtual uint32_t admit(const std::string&) { return 0; }
    virtual void arrived(Guest&) {}
    virtual void leaving(Guest&) {}   // its program is gone: nobody waits for its next call
    // A stream that a thread of no guest made: what it carries is that session's work.
    virtual void made_for(uint32_t /*session*/, CUstream) {}
    // Parts of a guest's memory that its kernels may touch from now on, or no longer. `forgotten`: the
    // addresses are nobody's.
    virtual void allocated(CUdeviceptr, uint64_t) {}
    virtual void freed(CUdeviceptr, uint64_t) {}
    virtual void forgotten(CUdeviceptr, uint64_t) {}
    // True: the device writes this entry when the calling thread's next launch is over.
    virtual bool announce(const journal::Entry&) { return false; }
    // Where the __managed__ variables of images go that the calling thread loads from now on: memory (zeroed; 0:
    // there is none) that the program reaches too. False: the device cannot, and the images are changed instead.
    using ManagedMemory = std::function<uint64_t(uint64_t bytes)>;
    virtual bool place_managed(const ManagedMemory&) { return false; }
    virtual void write(journal::Writer& journal, const journal::Entry& entry, const Guest*) { journal.write(entry); }
    virtual void attach(journal::Writer&) {}   // before the first session
    // The calling thread begins or ceases to wait for something that only other threads' work brings about.
    virtual void waits_for_others(bool) {}
    // That session's threads that wait for others are about to be told to look again.
    virtual void let_go(uint32_t /*session*/) {}

protected:
    Device() = default;

    DriverApi driver_{};
    CUdevice device_ = 0;
    CUcontext context_ = nullptr;
    Properties properties_;
    std::string key_;

private:
    std::condition_variable disturbed_;
    mutable std::once_flag errands_made_;
    mutable CUstream errands_ = nullptr;   // as long as the context
};

// The driver at $SMT_DRIVER, else the system's. Null, and why in `error`, when there is none, or when its GPU cannot be used: `found` then.
// `core_dump`: the file for the GPU's state at a fault; empty: none is written.
std::unique_ptr<Device> open_cuda(const std::string& key, const std::string& core_dump, bool* found, std::string& error);
// What SMT_DEVICE asks for; without it a GPU, or the simulated device when there is none (`notice` says so). A GPU that is there and
// cannot be used, for want of memory, say, is an error: its programs would run a thousand times slower, and could not tell why.
std::unique_ptr<Device> open_device(const std::string& key, const std::string& core_dump, std::string& notice, std::string& error);

}  // namespace smt::runtime::device
