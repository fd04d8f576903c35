// Host functions of the application. The driver calls the server's host function, which passes the
// address to the client's callback thread through SessionHeader. The client stores a completion word
// when the application's function has returned. No code of the application runs in the server.
//
//   on a stream:  the driver's host function pushes the slot and returns. Later work of the stream waits
//                 for the word, so the driver's callback thread, which all tenants share, never blocks
//   in a graph:   the driver's host function itself waits for the word, or for the session's end
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "driver_api.gen.h"
#include "runtime/dispatch/wait_list.h"
#include "runtime/protocol/layout.h"
#include "runtime/server/memory/arena.h"

namespace smt::runtime::server {

struct Stream;

class Callbacks {
public:
    Callbacks(const DriverApi& driver, Arena& arena);
    ~Callbacks();  // the session's GPU work must be over

    // Enqueues the application's function on a stream that is not capturing. Caller holds
    // stream.host_function_mutex.
    CUresult enqueue(Stream& stream, uint64_t function, uint64_t user_data, uint64_t client_stream,
                     protocol::CallbackKind kind);
    // Enqueues it on a capturing stream: a host node.
    CUresult capture(CUstream stream, uint64_t function, uint64_t user_data, uint64_t client_stream,
                     protocol::CallbackKind kind);

    // The parameters that a graph's host node gets in place of the application's. They are valid as long
    // as the session and may be used in any number of graphs. fn is null when no word is left.
    CUDA_HOST_NODE_PARAMS node(uint64_t function, uint64_t user_data);
    // The application's function of such parameters; false: they are not from node().
    bool application_function(const CUDA_HOST_NODE_PARAMS& node, uint64_t* function,
                              uint64_t* user_data) const;

    // Waits while a graph waits for the application's function of such parameters. Null: as above.
    dispatch::WaitWord calls(const CUDA_HOST_NODE_PARAMS& node) const;

    // Takeover: the client's ring goes on where it is.
    bool waits() const;  // slots did not fit into the client's ring
    uint32_t tail() const;
    void go_on_at(uint32_t tail);

    void drain();    // pushes slots that did not fit into the client's ring
    void release();  // the client is gone: ends all waits for it. May be repeated

private:
    struct Ticket;
    using Key = std::tuple<uint64_t, uint64_t, uint64_t, uint32_t>;  // function, data, stream, kind
    static void push_and_return(void* ticket);
    static void push_and_wait(void* ticket);
    Ticket* node_ticket(uint64_t function, uint64_t user_data, uint64_t client_stream,
                        protocol::CallbackKind kind);
    void push_locked(const protocol::CallbackSlot& slot);
    void drain_locked();

    const DriverApi& driver_;
    Arena& arena_;
    std::atomic<bool> released_{false};

    mutable std::mutex mutex_;
    std::deque<protocol::CallbackSlot> waiting_;
    uint32_t tail_ = 0;  // private; the client's copy is not trusted
    std::unordered_map<Ticket*, std::unique_ptr<Ticket>> tickets_;
    std::map<Key, Ticket*> node_tickets_;  // of graphs; live as long as the session
    Arena::Word node_word_;                // of all of them, with the last value that was pushed
};

}  // namespace smt::runtime::server
