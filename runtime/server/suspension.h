// `smt suspend` and `smt resume`: the device memory of a tenant leaves the GPU, and comes back at the same
// addresses. Its programs see a pause: their next calls wait.
//
//   suspend   gates closed -> work stopped or over -> all chunks copied to host memory -> device memory freed
//   resume    all chunks on the device again -> copies freed -> gates open -> work goes on
//
// Each arrow is a point where it may turn out to be impossible; then all is as it was before. All sessions of
// a tenant are suspended together. A session that begins under the name of a suspended tenant begins
// suspended. Kernels with doors and managed kernels stop between two blocks, and go on there; others end
// first, within the caller's patience.
//
// Quarantine uses the first two steps of it, with all sessions of some tenants (give_turn()).
//
// Where tenants take turns for want of memory (swapper.h) the same is done with one session, of which only a
// part may leave the device. A tenant that is resumed there comes in with its turn.
//
// What stays on the GPU: code with its variables, arrays and textures, and memory that the program maps by
// itself (cuMemMap). The server's own memory for streams and control blocks stays, too.
//
// Any thread; calls take turns. A session that ends meanwhile is waited for by its own teardown
// (Server::await_return()), and is left out.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/protocol/handshake.h"
#include "runtime/server/lane_gate.h"

namespace smt::runtime::server {

class Server;
class Session;

class Suspension {
public:
    explicit Suspension(Server& server) : server_(server) {}
    Suspension(const Suspension&) = delete;
    Suspension& operator=(const Suspension&) = delete;

    // `patience`: until all lanes stand and the work is at rest.
    protocol::SuspendReply suspend(const std::string& tenant, std::chrono::milliseconds patience);
    protocol::SuspendReply resume(const std::string& tenant);

    // Turns. A session by its number; `problem` is for people, and empty after success. move_out(): its calls
    // wait, and chunks of at least so many bytes are in host memory, or all that can be. move_in(): its
    // memory is on the device, and it goes on.
    struct Moved {
        using Time = std::chrono::nanoseconds;
        uint64_t bytes = 0;
        uint64_t freed = 0;  // of idle memory, which was not copied
        Time rest{};         // until its work was at rest
        Time took{};         // after that
        // Of `took`: host memory, which the next time is there; copies, with that; the device's memory.
        Time pinning{}, copying{}, mapping{};
        std::string problem = {};
        bool no_room = false;  // on the device: that is the problem
    };
    Moved move_out(uint32_t session, uint64_t bytes, std::chrono::milliseconds patience);
    Moved move_in(uint32_t session);
    // Both at the same time: `comes` is out, and has room once so much of `leaves` is in host memory. What it
    // has no room for stays away, and it stays out. in.took is what is left of the time when the last chunk
    // is out.
    struct Exchanged {
        Moved out, in;
        bool came = false;
        bool without_other = false;  // the other program has ended, or was suspended meanwhile
    };
    Exchanged exchange(uint32_t leaves, uint64_t bytes, uint32_t comes, std::chrono::milliseconds patience);

    // Quarantine (quarantine.h): the gates of all sessions close that have no turn, their work comes to rest,
    // that of programs that end meanwhile, too, and then the others' gates open. Empty, or why not: then
    // those that had been held back before stay so, and the others go on.
    using Has = std::function<bool(const Session&)>;
    std::string give_turn(const Has& has_turn, std::chrono::milliseconds patience);
    void open_quarantine();  // all gates

private:
    using Sessions = std::vector<Session*>;
    std::string await_ending(const Has& has_turn, std::chrono::milliseconds patience) const;
    std::string try_suspend(const std::string& tenant, Sessions& sessions, std::chrono::milliseconds patience,
                            protocol::SuspendReply* reply);
    std::string try_resume(const std::string& tenant, const Sessions& sessions,
                           protocol::SuspendReply* reply);
    void leave_out_closing(Sessions& sessions);
    std::string come_to_rest(Sessions& sessions, std::chrono::milliseconds patience);
    std::string move_out(const Sessions& sessions, protocol::SuspendReply* reply);
    std::string move_in(const Sessions& sessions, protocol::SuspendReply* reply);
    std::string missing_on_device(uint64_t needed) const;
    void let_go_on(const std::string& tenant, const Sessions& sessions);
    std::string stop_for_turn(Sessions& sessions, std::chrono::milliseconds patience, bool* was_out);
    void open(Session& session, LaneGate::Reason reason);

    Server& server_;
    std::mutex turn_;
};

}  // namespace smt::runtime::server
