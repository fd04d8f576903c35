// One accepted control socket, on a thread of its own: a session, or one question about the server.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "runtime/thread/thread.h"

namespace smt::runtime::server {

class Server;

// What connections ask of their listener. Any thread.
struct ConnectionOwner {
    Server* server = nullptr;             // null: there is no device, and `refusal` says why
    std::string refusal;
    std::function<void()> ended;          // a connection is over
    std::function<void()> stop;           // somebody asked the server to leave
    std::function<void()> stop_if_idle;   // a client of another version came: make room once nobody minds
};

class Connection {
public:
    Connection(ConnectionOwner& owner, int socket) : owner_(owner), socket_(socket) {}
    ~Connection();   // waits for the thread
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    std::string start();   // empty, or why there is no thread for it
    void hang_up();        // the thread ends soon
    void turn_away(const std::string& why);   // instead of start(); does not wait
    bool ended() const { return ended_.load(); }
    bool silent() const { return silent_.load(); }   // no message has come

private:
    void answer();
    void finish();
    void note(const std::string& line);
    void answer_hello(const void* packet, size_t bytes);
    void answer_status(bool stop);
    void answer_tenants();
    void answer_settings(const void* packet, size_t bytes);
    void answer_policy(const void* packet, size_t bytes);
    void refuse(uint32_t status, const std::string& why);

    ConnectionOwner& owner_;
    const int socket_;
    std::atomic<bool> ended_{false};
    std::atomic<bool> silent_{true};
    Thread thread_;
};

}  // namespace smt::runtime::server
