// The registry of waits of one session's threads for another session, which `smt status` and `smt metrics`
// show. Code that makes a session's thread wait for another session creates a HeldUp. docs/design.md lists
// these waits and their bounds.
//
// Any thread; the lock is held for a few instructions.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/protocol/handshake.h"

namespace smt::runtime::device {

class Guest;

// Marks the calling thread as waiting while the object exists.
class HeldUp {
public:
    HeldUp(uint32_t session, std::string by);  // by: "cuStreamWaitValue32 of bob". Session 0: not shown
    ~HeldUp();
    HeldUp(const HeldUp&) = delete;
    HeldUp& operator=(const HeldUp&) = delete;
    void change(std::string by);  // the wait continues for another reason
    std::chrono::nanoseconds lasted() const;

private:
    const uint64_t number_;
    const std::chrono::steady_clock::time_point since_;
};

struct Wait {
    std::chrono::nanoseconds lasted;
    std::string by;
};
// The longest current wait of the session's threads.
std::optional<Wait> longest_wait(uint32_t session);
// Those that are over.
protocol::WaitFigures waits_of(uint32_t session);
void forget_waits(uint32_t session);  // it has ended

// While the object exists, stream waits that the calling thread enqueues are shown by this name instead of
// the call's.
class NamedWaits {
public:
    explicit NamedWaits(const char* name);  // a literal
    ~NamedWaits();
    NamedWaits(const NamedWaits&) = delete;
    NamedWaits& operator=(const NamedWaits&) = delete;
};
const char* name_of_waits();  // null: none

// Whose launches the calling thread makes: for a device that watches them (Device::watch_launches()).
struct LaunchOf {
    uint32_t session = 0;
    uint32_t name = 0;                 // of the kernel, in the journal
    std::chrono::nanoseconds limit{};  // that its tenant has for its kernels; zero: none
    bool limited() const { return limit != std::chrono::nanoseconds::zero(); }
};
class LaunchesOf {  // while it exists
public:
    explicit LaunchesOf(const LaunchOf& launch);
    ~LaunchesOf();
    LaunchesOf(const LaunchesOf&) = delete;
    LaunchesOf& operator=(const LaunchesOf&) = delete;
};
const LaunchOf& launch_of_thread();

// The session that the calling thread makes calls for; null: none.
Guest* guest_of_thread();
void set_guest_of_thread(Guest* guest);  // for Device::enter_thread()

}  // namespace smt::runtime::device
