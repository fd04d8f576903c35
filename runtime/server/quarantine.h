// Tenants in quarantine: nothing of theirs is under way together with anything of another tenant. So a fault
// of their kernels finds the others at rest, and a fault of the others' finds them at rest; both go on in the
// process that takes over.
//
// In quarantine are those that ask for it (smt run --isolation quarantine), and where a takeover is possible
// those that faulted, or may have (takeover/quarantine_list.h). They take turns with the others
// (quarantine_turns.h): gates close, work stops between two blocks or comes to its end, copies too, and then
// other gates open. Where something does not come to its end all go on together for a while, and the log says
// what it is.
//
// A thread of its own sleeps while no program of a tenant in quarantine is there. Any thread may call all
// functions.
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>
#include <string>

#include "runtime/server/quarantine_turns.h"
#include "runtime/server/takeover/quarantine_list.h"
#include "runtime/thread/thread.h"

namespace smt::runtime::server {

class Server;
class Session;

class Quarantine {
public:
    explicit Quarantine(Server& server) : server_(server) {}
    ~Quarantine();
    Quarantine(const Quarantine&) = delete;
    Quarantine& operator=(const Quarantine&) = delete;

    // Kernels of those tenants were under way at a fault; it is known whose it was.
    void fault(const std::set<std::string>& suspects);
    void blame(const std::string& tenant);
    // Before a lane of the session runs: closes its gate where tenants are kept apart, until it is its turn.
    void arrives(Session& session);
    bool holds(const Session& session) const;     // the tenant is in quarantine
    bool names(const std::string& tenant) const;  // for faults

    void save(protocol::StateWriter& out) const;
    void restore(protocol::Reader& in);

private:
    using Clock = QuarantineTurns::Clock;
    struct Look {
        bool any = false;       // sessions in quarantine
        bool together = false;  // nothing is kept apart
        bool closed = false;    // gates
        size_t groups = 0, at_work = 0;
        std::set<std::string> open_groups;    // with sessions whose gates are open and can be closed
        std::set<std::string> closed_groups;  // with sessions whose gates are closed
        std::string turn;
        bool changed = false;  // the turn
    };

    bool contains(const Session& session) const;  // caller holds mutex_
    std::string group_of(const Session& session) const;
    bool wake();
    void run();
    Look look_at_sessions();
    void take_turns(const Look& look);

    Server& server_;
    mutable std::mutex mutex_;  // guards what follows; behind the server's
    std::condition_variable changed_;
    bool leaves_ = false, active_ = false;
    bool news_ = false;  // since the last look
    QuarantineList list_;
    QuarantineTurns turns_;
    Clock::time_point together_until_{};
    Thread thread_;
};

}  // namespace smt::runtime::server
