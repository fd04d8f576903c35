// The other end of a takeover: the process that waits, and goes on after a fault of the first one's GPU
// context (packet.h). Main thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/device.h"

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
    // Waits for a fault. False: the server has ended without one.
    bool await();

    int listening() const { return listening_; }  // the caller's, after await()
    int lock() const { return lock_; }
    void apply(Server& server);  // the policy in force, and what is known of tenants' faults
    // Begins the sessions that come. Their memory is imported first.
    void take_sessions(Server& server, Listener& listener);

private:
    class Chunks;

    const int socket_;
    int listening_ = -1;
    int lock_ = -1;
    std::string state_;
};

}  // namespace smt::runtime::server
