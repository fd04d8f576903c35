// A session's executable graphs, as far as they can be stopped: the copies with doors that are launched in
// their place while the tenant is preemptible (dispatch/graph_doors.h).
//
//   instantiated   a clone of the graph is kept, where the policy may stop tenants
//   changed        the clone is changed likewise: whole, or one kernel, fill or copy node of it
//   launched       by a tenant that is not preemptible: the program's own. Else the copy with doors, which
//                  the first such launch makes of the clone; or the program's own, if there can be none
//
// So the program's graphs are what it made of them, in every answer about them too, and launches that nothing
// can stop cost what they did.
//
// Any thread. Calls about one executable graph hold its family (handles.h).
#pragma once

#include <cuda.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/dispatch/dispatcher.h"
#include "runtime/server/streams.h"

namespace smt::runtime::server {

class CodeTable;
class TenantMemory;

class GraphCopies {
public:
    using DoorsPointer = std::shared_ptr<dispatch::GraphDoors>;

    GraphCopies(dispatch::Dispatcher& dispatcher, const dispatch::Tenant& tenant)
        : dispatcher_(dispatcher), tenant_(tenant), driver_(dispatcher.driver()) {}
    ~GraphCopies() { clear(); }
    GraphCopies(const GraphCopies&) = delete;
    GraphCopies& operator=(const GraphCopies&) = delete;

    // `exec` was instantiated of the graph, or updated as a whole (without flags: they stay).
    void made(CUgraphExec exec, CUgraph graph, unsigned long long flags);
    void updated(CUgraphExec exec, CUgraph graph);
    // A node of `exec` has got other parameters. `set`: sets them to the clone's node.
    void changed(CUgraphExec exec, CUgraphNode node, const std::function<CUresult(CUgraphNode)>& set);
    void changed_otherwise(CUgraphExec exec, const char* how);  // such that no clone can be like it
    void gone(CUgraphExec exec);
    void clear();  // precondition: the session's work is over

    struct Launch {
        DoorsPointer doors;       // null: the program's own is to be launched
        std::string treatment{};  // of a preemptible tenant's, in the journal's words
    };
    // To be called before every launch on a stream that does not capture. It is ordered behind launches on
    // other streams.
    CUresult launch(CUgraphExec exec, const StreamPointer& stream, const CodeTable& code,
                    const TenantMemory& memory, Launch* launch);

private:
    struct Copied {
        CUgraph clone = nullptr;
        unsigned long long flags = 0;
        std::string why;               // it cannot be stopped; empty: it can, as far as is known
        DoorsPointer doors;            // null: none was made yet, or not of the clone as it is
        unsigned made = 0;             // copies
        std::weak_ptr<Stream> stream;  // that it was last launched on
    };
    using CopiedPointer = std::shared_ptr<Copied>;
    struct Retired {
        DoorsPointer doors;
        std::weak_ptr<Stream> stream;
    };

    CopiedPointer find(CUgraphExec exec) const;
    void take(CUgraphExec exec, CUgraph graph, unsigned long long flags);
    void retire(Copied& copied);  // its copy, which may be under way
    void collect();               // caller holds mutex_
    CUresult order_behind(Copied& copied, const StreamPointer& stream);
    void make_doors(Copied& copied, const CodeTable& code, const TenantMemory& memory);

    dispatch::Dispatcher& dispatcher_;
    const dispatch::Tenant& tenant_;
    const DriverApi& driver_;
    std::atomic<bool> any_{false};

    mutable std::mutex mutex_;  // guards the members below
    std::unordered_map<CUgraphExec, CopiedPointer> copied_;
    std::vector<Retired> retired_;
};

}  // namespace smt::runtime::server
