// What the standby needs if this process crashes or is killed: the server's listening socket and lock, and of
// each session its sockets, its arena, its marks (marks.h) and its state, as a takeover after a fault sends
// it (session_state.cpp). A state is written and sent again when the session has changed and is at rest for a
// moment. Each is a memfd of its own, so the one of before counts until the next one is whole.
//
// Main thread only. It does not wait for the standby: what does not fit into the socket is sent later.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace smt::runtime::server {

class Server;
class Session;

class KeptSessions {
public:
    // Called periodically: sends what has changed on the standby's socket.
    void tell(Server& server, int socket, int listening, int lock);
    void forget_all();  // the standby is gone: the next one knows nothing

    static std::string state_of(Server& server);  // the policy in force, and tenants' offences

private:
    struct Known {
        bool described = false;
        std::string why;  // not `described`
        uint64_t changes = 0;
        std::chrono::steady_clock::time_point next{};  // it is not written again before
    };
    bool tell_server(Server& server, int socket, int listening, int lock);
    void tell_session(Session& session, int socket);
    void forget_ended(Server& server, int socket);

    std::map<uint32_t, Known> known_;
    std::string server_state_;  // as the standby has it; empty: it has none
};

}  // namespace smt::runtime::server
