// The listening socket, the signals and the decision to leave, on the main thread.
//
// The server leaves on SIGTERM, SIGINT or a stop request (it ends and cleans up all sessions first), after
// SMT_IDLE_SECONDS without a connection, and soon after a fault has ended the context. A strict tenant's
// server leaves after its last session. A client that connects while the server leaves sees its connection
// end before a Welcome, and tries again.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/server/connection.h"
#include "runtime/server/files.h"

namespace smt::runtime::server {

class Standby;  // takeover/standby.h

class Listener {
public:
    // `server` null: every program gets `refusal`. The handled signals must be blocked already.
    Listener(const Files& files, Server* server, std::string refusal);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    // A system's server. Before open().
    void serve_users(Users& users) { owner_.users = &users; }
    bool open(std::string& error);
    // In place of open(): the socket of a process that this one takes over from. take() then begins a session
    // that it had.
    bool go_on(int listening, std::string& error);
    void take(const protocol::Hello& hello, int socket, Session::Taken taken);
    // Another process can take over from this one. `lock`: the descriptor that holds the server's lock.
    // Before run().
    void stand_in(Standby* standby, int lock) { standby_ = standby, lock_ = lock; }
    void wake();
    // Returns when the server has to leave. False: threads are still inside the driver, so the process must
    // exit without joining them.
    bool run();

private:
    bool watch(std::string& error);
    void hand_over(Standby& standby);
    void tick_standby();
    void wait(int milliseconds);
    void accept_all();
    void take(int socket);
    void refuse_one();  // out of descriptors
    std::string why_not_taken(const Connection& connection) const;
    void reap();
    bool time_to_leave();
    void close_door();
    bool wind_up();

    const Files& files_;
    ConnectionOwner owner_;
    int poll_ = -1;
    int listen_ = -1;
    int signals_ = -1;
    int event_ = -1;
    int spare_ = -1;  // closed to refuse a program where no descriptor is left
    Standby* standby_ = nullptr;
    int lock_ = -1;
    bool handed_over_ = false;  // the socket is another process's
    std::vector<std::unique_ptr<Connection>>
        left_;  // with their sessions; their threads stand still for good
    std::atomic<bool> stop_{false};
    std::atomic<bool> stop_if_idle_{false};
    uint64_t idle_since_ns_ = 0;
    uint64_t idle_limit_ns_ = 0;  // 0: never
    std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace smt::runtime::server
