// Two programs change places: chunks of the one that leaves go to host memory, while chunks of the one that
// comes go to the room that is free already, since the bus carries both directions at once.
//
//     leaves   out 1 | out 2 | out 3 | out 4
//     comes          | in 1  | in 2  | in 3  | in 4
//
// Chunks go in groups, and each group that has moved has moved: what is not done when something fails is done
// later, or the other way round, as a program may be out with any part of its memory. The one that leaves is
// at most one group of the other one's ahead, so that the same host memory serves both.
//
// For Suspension, while both stand still.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "runtime/server/suspension.h"

namespace smt::runtime::server {

class Exchange {
public:
    Exchange(Server& server, Session& leaves, Session& comes)
        : server_(server), leaves_(leaves), comes_(comes) {}
    // Until at least so many bytes of the one are away, and all of the other one is here.
    void run(uint64_t bytes, Suspension::Exchanged& both);

private:
    struct Group {
        std::vector<uint64_t> bases;
        uint64_t bytes = 0;
    };
    struct EndOfOut {  // the other side waits for it, whatever happens
        explicit EndOfOut(Exchange& exchange) : exchange_(exchange) {}
        ~EndOfOut() { exchange_.end_out(0); }
        Exchange& exchange_;
    };
    void find_groups();
    void bring_in(Suspension::Moved& in);
    void fail_in();
    void end_out(uint64_t room);  // there is so much more of it
    bool await_room(size_t group);
    bool goes_on(uint64_t released);

    Server& server_;
    Session& leaves_;
    Session& comes_;
    std::vector<Group> groups_;  // of the one that comes, in this order
    std::mutex mutex_;           // guards what follows
    std::condition_variable changed_;
    uint64_t room_ = 0;    // free on the device, for the one that comes
    uint64_t wanted_ = 0;  // of its next group; 0: the last one has room
    bool out_over_ = false, in_fails_ = false;
};

// Moves chunks of at least so many bytes out, in groups: after each one `goes_on` is told its bytes. The
// calling thread is the session's guest.
void move_groups_out(Session& session, uint64_t bytes, Suspension::Moved& moved,
                     const std::function<bool(uint64_t)>& goes_on);

}  // namespace smt::runtime::server
