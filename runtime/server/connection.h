// One accepted control socket, on a thread of its own: a session, or one query about the server.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/protocol/handshake.h"
#include "runtime/server/peer.h"
#include "runtime/server/session.h"
#include "runtime/thread/thread.h"

namespace smt::runtime::server {

class Server;

// The listener's interface to its connections. Any thread.
struct ConnectionOwner {
    Server* server = nullptr;  // null: no device; `refusal` is the reason
    Users* users = nullptr;    // of a system's server; null: it serves one user
    std::string refusal;
    std::function<void()> ended;         // a connection has ended
    std::function<void()> stop;          // a stop request came
    std::function<void()> stop_if_idle;  // a client of another version came: leave once idle
};

class Connection {
public:
    Connection(ConnectionOwner& owner, int socket) : owner_(owner), socket_(socket), user_(user_of(socket)) {}
    ~Connection();  // waits for the thread
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // A session that another process had (Session::serve_taken()), in place of start().
    std::string start_taken(const protocol::Hello& hello, Session::Taken taken);
    int socket() const { return socket_; }
    uid_t user() const { return user_; }     // of the peer
    std::string start();                     // empty, or why no thread could be started
    void hang_up();                          // the thread ends soon
    void turn_away(const std::string& why);  // instead of start(); 5 ms at most
    bool ended() const { return ended_.load(); }
    bool silent() const { return silent_.load(); }  // no message has arrived yet

private:
    void answer();
    void finish();
    void note(const std::string& line);
    void answer_hello(const void* packet, size_t bytes);
    void serve_session(const protocol::Hello& hello, Session::Taken* taken);
    bool refuse_shared(const protocol::Hello& hello);
    bool refuse_offender(const protocol::Hello& hello);
    bool refuse_quarantine(const protocol::Hello& hello);
    bool refuse_limit(const protocol::Hello& hello);
    void answer_status(bool stop);
    void answer_tenants();
    void answer_device();
    void answer_fetch(const void* packet, size_t bytes);  // from another GPU's server
    void answer_settings(const void* packet, size_t bytes);
    void answer_policy(const void* packet, size_t bytes);
    void answer_memory_limit(const void* packet, size_t bytes);
    void answer_terms(const void* packet, size_t bytes);
    void answer_change(const std::string& problem);
    template <typename Request>
    bool read(const void* packet, size_t bytes, Request* request);
    void answer_suspend(const void* packet, size_t bytes);
    void refuse(uint32_t status, const std::string& why);

    ConnectionOwner& owner_;
    const int socket_;
    const uid_t user_;
    std::optional<Peer> peer_;  // from the start of answer()
    std::atomic<bool> ended_{false};
    std::atomic<bool> silent_{true};
    bool gone_ = false;  // the session has stayed where it was, with the socket. Its thread only
    Thread thread_;
};

}  // namespace smt::runtime::server
