// The last way out where a kernel with a limit does not end: the driver is behind it with a call that waits
// for all work, and no other call returns (device/cuda/context_wide.h). Then neither the main thread nor the
// watchdog on it comes to do anything, and all programs would wait for ever. This process ends itself as if
// it had crashed, and the standby goes on with the programs that have nothing under way.
//
// A thread of its own looks several times a second. It makes no call of the driver, and takes no lock that a
// thread may hold in one. The main thread says where it makes calls that are soon over, or not for ever.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "runtime/device/device.h"
#include "runtime/server/standstill_rule.h"
#include "runtime/thread/thread.h"

namespace smt::runtime::server {

class Session;

class Standstill {
public:
    // Told that the process ends. `tenant`: whose fault it is; empty: that is not known.
    using End = std::function<void(const std::string& why, const std::string& tenant)>;
    Standstill(device::Device& device, std::function<std::string(uint32_t name)> name_of);
    ~Standstill();
    Standstill(const Standstill&) = delete;
    Standstill& operator=(const Standstill&) = delete;

    // While it exists the main thread makes calls of the driver that are soon over, or (kSlow) after seconds.
    enum Kind { kSoon, kSlow };
    class Calls {
    public:
        explicit Calls(Standstill& standstill, Kind kind = kSoon);
        ~Calls();
        Calls(const Calls&) = delete;
        Calls& operator=(const Calls&) = delete;

    private:
        Standstill& standstill_;
    };
    // A session with a limit, while its arena is mapped. The first one starts the thread.
    void add(Session& session);
    void remove(const Session& session);
    void ends_by(End end);  // before the first session

private:
    void run();
    void tell(const StandstillRule::Verdict& verdict);

    device::Device& device_;
    const std::function<std::string(uint32_t name)> name_of_;
    End end_;
    std::atomic<uint64_t> place_{0};  // StandstillRule::place(); 0: in no such call
    uint64_t places_ = 0;             // the main thread's
    std::mutex mutex_;                // guards what follows; a leaf lock, not held over a call of the driver
    std::condition_variable stopped_;
    bool stops_ = false, runs_ = false;
    std::map<uint32_t, Session*> sessions_;
    Thread thread_;
};

}  // namespace smt::runtime::server
