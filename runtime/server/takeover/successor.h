// The other end of a takeover: the process that waits, and goes on after a fault of the first one's GPU
// context, or after its crash (packet.h). Main thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/server/takeover/laps.h"
#include "runtime/server/takeover/packet.h"

namespace smt::runtime::server {

class Listener;
class Server;

class Successor {
public:
    explicit Successor(int socket) : socket_(socket) {}  // owns it
    ~Successor();
    Successor(const Successor&) = delete;
    Successor& operator=(const Successor&) = delete;

    // The keeper's socket comes, and the server learns that this process is ready. False: the server is gone.
    bool begin(device::Device& device);
    // Waits for a fault or a crash. False: the server has ended in order, or there is nothing to go on with.
    bool await();
    bool crashed() const { return crashed_; }  // after await()
    std::string how_it_ended() const;  // for people: "crashed or was killed", or "ended itself: " and why

    int listening() const { return listening_; }  // the caller's, after await()
    int lock() const { return lock_; }
    void apply(Server& server);  // the policy in force, and what is known of tenants' faults
    // Begins the sessions that come. Their memory is imported first.
    void take_sessions(Server& server, Listener& listener);

private:
    class Chunks;
    class Places;
    // What is known of a session, if the server crashes.
    struct Kept {
        Packet said;
        std::vector<int> files;  // control socket, arena, state, marks
    };
    void keep(const Packet& said, std::vector<int> files);
    void forget(uint64_t session);
    bool await_end();
    void take_kept(Listener& listener, const std::shared_ptr<Chunks>& chunks);
    std::string take_kept(Listener& listener, Kept& kept, const std::shared_ptr<Chunks>& chunks,
                          const std::shared_ptr<Places>& places);
    void take_sent(Server& server, Listener& listener, const std::shared_ptr<Chunks>& chunks);

    const int socket_;
    int server_pid_ = -1;  // the first process
    int server_ = -1;      // likewise (process_end.h)
    int listening_ = -1;
    int lock_ = -1;
    std::string state_;
    bool crashed_ = false;
    std::optional<Laps> laps_;       // since the takeover began
    std::string why_it_ended_;       // itself; empty: it did not
    std::string culprit_;            // the tenant whose kernel it was; empty: that is not known
    std::map<uint64_t, Kept> kept_;  // by the session's number
};

}  // namespace smt::runtime::server
