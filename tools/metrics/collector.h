// The figures of all servers of this user, by tenant, from their answers and journals.
//
// Counters go on when programs and servers end: what a session had is kept, and a later session's is added.
// They begin with what a journal still has when it is read first.
//
// Any thread; one at a time is let in.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/journal/journal.h"
#include "tools/metrics/exposition.h"
#include "tools/metrics/sm_time.h"
#include "tools/smt/control.h"

namespace smt::tools::metrics {

// The last value of each session, of figures that grow while a session lives.
class BySession {
public:
    void set(uint32_t session, uint64_t value) { last_[session] = value; }
    uint64_t sum() const;
    void restart();  // another server numbers its sessions anew

private:
    std::map<uint32_t, uint64_t> last_;  // 0 is no session's: all before
};

// What a journal says of a tenant.
struct Tally {
    std::map<std::string, uint64_t> launches;      // by how they were run
    std::map<std::string, BySession> unsupported;  // calls, by function
    uint64_t sessions = 0, decisions = 0;
    uint64_t begun_anew = 0;              // blocks, after stops
    std::map<uint32_t, uint64_t> faults;  // sessions that ended with one, by CUDA's error
    SmTime sm_time;
    Histogram stops;
};

// Adds the entries of one journal to the tallies of a server's tenants. Not thread-safe.
class JournalCount {
public:
    void add(const runtime::journal::Reader& reader, const runtime::journal::Entry& entry);
    // Those of another server of the same key begin: sessions are numbered anew.
    void restart();
    const std::map<std::string, Tally>& tenants() const { return tenants_; }  // by name
    uint64_t lost() const { return lost_; }  // entries that were overwritten before they were read

private:
    std::map<std::string, Tally> tenants_;
    std::map<uint32_t, std::string> tenant_by_session_;
    std::optional<uint64_t> next_;  // sequence
    uint64_t lost_ = 0;
};

class Collector {
public:
    // Reads what is new in the journals, and asks the servers. What a program had between the last call and
    // its end counts if the journal says it.
    void follow();
    std::string collect();  // the same; OpenMetrics text

private:
    // By session, whose values grow while it lives.
    struct Totals {
        BySession gpu_time_ns, zeroed_bytes, refused, waited_ns;
        std::array<BySession, std::size(protocol::WaitFigures{}.counts)> waits;  // by how long they were
        void restart();
    };
    struct Server {
        ino_t journal = 0;                                 // the file, which each server makes anew
        std::unique_ptr<runtime::journal::Reader> reader;  // of it
        uint64_t next = 0;
        JournalCount count;
        void read();
        pid_t process = 0;
        std::map<std::string, Totals> totals;  // by tenant
        std::optional<ServerStatus> status;    // nothing: it does not answer
    };

    void read(const std::string& key, Server& server);
    void ask(const std::string& key, Server& server);
    void expose_servers(Exposition& out) const;
    void expose_tenants(Exposition& out) const;
    void expose_totals(Exposition& out) const;
    void expose_waits(Exposition& out) const;
    void expose_journals(Exposition& out) const;

    std::mutex mutex_;
    std::map<std::string, Server> servers_;  // by key
};

}  // namespace smt::tools::metrics
