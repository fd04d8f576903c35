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
// What stays on the GPU: code with its variables, arrays and textures, and memory that the program maps by
// itself (cuMemMap). The server's own memory for streams and control blocks stays, too.
//
// Any thread; calls take turns. A session that ends meanwhile is waited for by its own teardown
// (Server::await_return()), and is left out.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/protocol/handshake.h"

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

private:
    using Sessions = std::vector<Session*>;
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

    Server& server_;
    std::mutex turn_;
};

}  // namespace smt::runtime::server
