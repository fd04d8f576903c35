// A session: what this process has with the server of one GPU. Its arena, its control socket and the error
// that its calls return are here; other folders keep what is theirs in a PerSession.
//
// Sessions are in the order in which they were opened: the first one is that of the process's first context.
// A call is for the calling thread's session, this_session(), unless an object that it names says another.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "runtime/protocol/layout.h"

namespace smt::interpose {

inline constexpr uint32_t kMostSessions = 32;
inline constexpr uint32_t kLivenessMs = 50;

class alignas(64) Session {
public:
    // Its place in the order of opening.
    uint32_t number() const;
    // The device, by the program's number, of the session or of what is asked before there is one.
    CUdevice device() const { return device_.load(std::memory_order_relaxed); }

    // nullptr before open(), and in the child of a fork.
    protocol::SessionHeader* header() const { return header_.load(std::memory_order_acquire); }
    char* arena_base() const { return reinterpret_cast<char*>(header()); }
    std::atomic<uint64_t>& completion_word(uint32_t index) const {
        return reinterpret_cast<std::atomic<uint64_t>*>(arena_base() + protocol::kWordsOffset)[index];
    }
    // -1 where the program has closed the socket: the number may be another file's by now.
    int control_socket() const;

    // The error that every call returns after the server is lost, could not be reached, or a fault poisoned
    // the shared context; else SUCCESS.
    CUresult sticky_error() const;
    // If a fault lost the context, prints the server's report of it on stderr, once.
    void tell_fault();
    // It was opened, and its server was not found dead since.
    bool open() const { return open_.load(std::memory_order_acquire); }
    // Checks the control socket. false: the server is gone and sticky_error() is set from then on. One line
    // on stderr gives the reason, once in a session.
    bool server_lives();
    // The same, at most once every kLivenessMs; for loops that poll a completion word.
    bool server_lives_sometimes();

    // The next three are for transport/connect.cpp, which holds its lock meanwhile.
    void enter(protocol::SessionHeader* header, int socket, CUdevice device);
    // There is none: sticky_error() returns `error`.
    void fail(CUresult error, CUdevice device) {
        device_.store(device, std::memory_order_relaxed);
        error_.store(error, std::memory_order_relaxed);
    }
    // In the child of a fork: there is no session, and its socket is closed.
    void drop_in_child();

private:
    void lose_server(const char* farewell);

    std::atomic<protocol::SessionHeader*> header_{nullptr};
    std::atomic<uint64_t> inode_{0};  // of the socket, which no other file has
    std::atomic<uint64_t> last_look_{0};
    std::atomic<int> socket_{-1};
    std::atomic<int32_t> error_{CUDA_SUCCESS};
    std::atomic<CUdevice> device_{0};
    std::atomic<bool> open_{false};
    std::atomic<bool> told_{false};
};

extern constinit Session sessions[kMostSessions];
// How many were opened, or tried in vain. Set by transport/connect.cpp.
extern constinit std::atomic<uint32_t> session_count;
// The device's session; null: it has none.
Session* place_of_session(CUdevice device);
inline bool several_sessions() { return session_count.load(std::memory_order_relaxed) > 1; }
inline uint32_t Session::number() const { return static_cast<uint32_t>(this - sessions); }

// The calling thread's: that of its current context, or the first one; in a call, that of the objects which
// it names. Changed by transport/lane.h.
extern constinit thread_local Session* thread_session;
inline Session& this_session() { return *thread_session; }

// What a folder keeps for each session.
template <typename T>
class PerSession {
public:
    T& of(const Session& session) { return each_[session.number()]; }
    T& here() { return of(this_session()); }

private:
    T each_[kMostSessions]{};
};

}  // namespace smt::interpose
