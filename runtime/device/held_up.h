// What programs' threads wait for that other programs bring about: `smt status` shows it. Whatever makes one session's
// thread wait for another session says so with a HeldUp; docs/design.md lists these waits and their bounds.
//
// Any thread; a lock is held for the length of a few instructions.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace smt::runtime::device {

class Guest;

// The calling thread waits, while this lives.
class HeldUp {
public:
    HeldUp(uint32_t session, std::string by);   // by: "cuStreamWaitValue32 of bob". Session 0: none, and nothing is shown
    ~HeldUp();
    HeldUp(const HeldUp&) = delete;
    HeldUp& operator=(const HeldUp&) = delete;
    void change(std::string by);   // it waits on, for something else
    std::chrono::nanoseconds lasted() const;

private:
    const uint64_t number_;
    const std::chrono::steady_clock::time_point since_;
};

struct Wait {
    std::chrono::nanoseconds lasted;
    std::string by;
};
// The longest that a thread of the session is in.
std::optional<Wait> longest_wait(uint32_t session);

// Waits of streams that the calling thread enqueues meanwhile are shown by this name, not by that of the call.
class NamedWaits {
public:
    explicit NamedWaits(const char* name);   // a literal
    ~NamedWaits();
    NamedWaits(const NamedWaits&) = delete;
    NamedWaits& operator=(const NamedWaits&) = delete;
};
const char* name_of_waits();   // null: none

// Whose calls the calling thread makes; null: no session's.
Guest* guest_of_thread();
void set_guest_of_thread(Guest* guest);   // for Device::enter_thread()

}  // namespace smt::runtime::device
