// The nodes of a session's graphs that wait, and the words that tell whether they do (dispatch/wait_list.h).
//
//   a wait for a value   A word of the arena. The node itself writes it when the wait begins and when it is
//                        over: the wait is captured as one batch of three operations, so it is still one
//                        node. The word's address is in the node's parameters, so copies of the node
//                        (clones, child graphs, executable graphs) share the word.
//   a host function      Callbacks counts its calls.
//   an event             What the event's last record is behind, at the launch.
//
// A node that no word is known of counts as work. The driver reports the end of a graph and of everything
// made of it through a user object; then the node's word goes back to the arena.
//
// Any thread. Calls about one graph or one executable graph hold its family (handles.h). The user object's
// destructor takes no lock.
#pragma once

#include <cuda.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/dispatch/wait_list.h"
#include "runtime/server/memory/arena.h"

namespace smt::runtime::server {

class Callbacks;
class Events;

class GraphWaits {
public:
    GraphWaits(const DriverApi& driver, Arena& arena, const Callbacks& callbacks, const Events& events)
        : driver_(driver), arena_(arena), callbacks_(callbacks), events_(events) {}
    GraphWaits(const GraphWaits&) = delete;
    GraphWaits& operator=(const GraphWaits&) = delete;

    // A batch that waits, on a capturing stream. `plain` captures it without a word, where there is none.
    CUresult capture(CUstream stream, const CUstreamBatchMemOpParams* operations, unsigned count,
                     unsigned flags, const std::function<CUresult()>& plain);
    // Host functions or events become nodes. Until then, and without captured waits, graphs are not looked
    // at.
    void expect_nodes() { any_.store(true, std::memory_order_relaxed); }

    void made(CUgraphExec exec, CUgraph graph);  // instantiated, or updated as a whole
    // A node has got another child graph, host function or event.
    void changed(CUgraphExec exec, CUgraphNode node, CUgraph child);
    void changed(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS& host);
    void changed(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type, CUevent event);
    void gone(CUgraphExec exec);
    void clear();  // after the graphs are destroyed

    struct Launch {
        dispatch::WaitWords nodes;     // empty: none waits
        std::vector<CUevent> records;  // that the graph records
    };
    Launch launch(CUgraphExec exec);
    size_t words() const;  // of the arena that are in use

private:
    // A captured wait for a value. Its word rests at `resting` and waits at one less.
    struct Wait {
        uint32_t index = 0;
        uint64_t resting = 0;
        std::atomic<bool> gone{false};
    };
    using WaitPointer = std::shared_ptr<Wait>;
    // What a node does, with the nodes of its child graph.
    struct Part {
        std::vector<WaitPointer> waits;
        dispatch::WaitWords functions;
        std::vector<CUevent> waits_for, records;
        bool empty() const {
            return waits.empty() && functions.empty() && waits_for.empty() && records.empty();
        }
    };
    // By the nodes of the graph that it was made of. After a change of a child graph the nodes of the former
    // one stay: those that are gone do not count.
    using Exec = std::unordered_map<CUgraphNode, Part>;

    static void graph_is_gone(void* wait);
    WaitPointer take_wait(CUstream stream);  // null: no word, or the driver cannot tell of its end
    void give(const Wait& wait);
    void collect();  // caller holds mutex_
    void read(CUgraph graph, Exec* exec) const;
    void read(CUgraphNode node, CUgraphNodeType type, Part* part) const;
    WaitPointer wait_of(CUgraphNode node) const;  // null: not captured with a word
    void change(CUgraphExec exec, CUgraphNode node, Part part);

    const DriverApi& driver_;
    Arena& arena_;
    const Callbacks& callbacks_;
    const Events& events_;
    std::atomic<bool> any_{false};

    mutable std::mutex mutex_;                         // guards the members below
    std::unordered_map<uint32_t, WaitPointer> waits_;  // by the word's index
    std::unordered_map<CUgraphExec, Exec> execs_;      // those with nodes that wait or record events
};

}  // namespace smt::runtime::server
