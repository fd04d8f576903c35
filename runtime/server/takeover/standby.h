// The server's end of a takeover: a second process of this program that has its context and its socket to the
// keeper, and waits. After a fault it gets the sessions that have nothing under way, or only
// launches that may be executed again. After a crash it has what kept_sessions.h told it.
//
// ready() and comes() are for any thread, ends() for the standstill's, the rest for the main one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "runtime/server/takeover/kept_sessions.h"

namespace smt::runtime::device {
class Device;
}

namespace smt::runtime::server {

struct Packet;
class Server;
class Session;

struct HandedOver {
    bool server = false;       // the other process has the listening socket and the lock
    std::vector<int> sockets;  // of the sessions that it has
};

class Standby {
public:
    // `key`: the server's. `note`: a line for the log.
    Standby(device::Device& device, std::string key, std::function<void(const std::string&)> note);
    ~Standby();  // the standby ends
    Standby(const Standby&) = delete;
    Standby& operator=(const Standby&) = delete;

    // Called periodically: starts the process if there is none, and sees when it is ready or has ended.
    void tick(Server& server, int listening, int lock);
    bool ready() const { return ready_.load(); }
    bool comes() const { return !given_up_.load(); }  // it is ready, or may be later
    // All sessions are decided when it returns: they have left, or were given up. Takes kPatience at most,
    // and the time to write their states.
    HandedOver hand_over(Server& server, int listening, int lock);
    void leaving();  // the server ends in order: nothing is to be taken over
    // This process is about to end (standstill.h): on the standstill's thread, while the main one stands.
    void ends(const std::string& why, const std::string& tenant) const;

private:
    struct Line {
        Session* session;
        int socket;
    };
    std::string start();
    bool begin(Server& server, int listening, int lock);
    // `ended`: gets the tenants that stay, and of which kernels were under way.
    void send_sessions(Server& server, std::vector<Session*> waiting, bool goes, std::vector<Line>* lines,
                       std::set<std::string>* ended);
    static Packet done_packet(const std::vector<Line>& lines, const std::set<std::string>& ended);
    std::string send_session(Session& session, int* line);
    std::string take_answer(const Line& line);
    void await_answers(Server& server, std::vector<Line> lines, HandedOver* result);
    void drop();

    device::Device& device_;
    const std::string key_;
    const std::function<void(const std::string&)> note_;
    int socket_ = -1;
    int pid_ = -1;
    int starts_ = 0;
    std::chrono::steady_clock::time_point next_start_{};  // after one that failed
    KeptSessions kept_;
    std::atomic<bool> ready_{false};
    std::atomic<bool> given_up_{false};
};

}  // namespace smt::runtime::server
