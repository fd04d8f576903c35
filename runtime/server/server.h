// The state that the sessions of one server share: the device, the journal, the address plan, the compile
// service, the fault that ended the context, and the figures that `smt server status` prints.
//
// Any thread. mutex_ guards the list of sessions. No blocking function is called under it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/dispatch/dispatcher.h"
#include "runtime/jit/opener.h"
#include "runtime/jit/service.h"
#include "runtime/journal/journal.h"
#include "runtime/profiles/profile_cache.h"
#include "runtime/protocol/handshake.h"
#include "runtime/server/call_trace.h"
#include "runtime/server/code/spare_images.h"
#include "runtime/server/fault_report.h"
#include "runtime/server/measuring.h"
#include "runtime/server/memory/address_plan.h"
#include "runtime/server/memory/tenant_accounts.h"
#include "runtime/server/neighbours.h"
#include "runtime/server/quarantine.h"
#include "runtime/server/quotas.h"
#include "runtime/server/repeats.h"
#include "runtime/server/sharing.h"
#include "runtime/server/standstill.h"
#include "runtime/server/suspension.h"
#include "runtime/server/takeover/offences.h"
#include "runtime/server/watchdog.h"

namespace smt::runtime::server {

class BlockStore;
class DevicePrintf;
class Peer;
class Session;
class Swapper;
class Unpinning;
class Users;

class Server {
public:
    // `opener`: make_opener(), earlier; null: the server makes it.
    Server(device::Device& device, journal::Writer& journal, DevicePrintf& device_printf,
           std::unique_ptr<schedule::Policy> policy, const dispatch::Settings& settings,
           std::unique_ptr<jit::Opener> opener = nullptr);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    device::Device& device() { return device_; }
    journal::Writer& journal() { return journal_; }
    DevicePrintf& device_printf() { return device_printf_; }
    AddressPlan& addresses() { return addresses_; }
    dispatch::Dispatcher& dispatcher() { return dispatcher_; }
    jit::Service& compiler() { return compiler_; }
    jit::Opener& opener() { return *opener_; }
    profiles::ProfileCache& profiles() { return profiles_; }
    Measuring* measuring() { return measuring_.get(); }                // null: no measurement
    const CallTrace* call_trace() const { return call_trace_.get(); }  // null: calls are not timed
    const Quotas& quotas() const { return quotas_; }
    Sharing& sharing() { return sharing_; }
    SpareImages& spare_images() { return spare_images_; }
    Neighbours& neighbours() { return neighbours_; }
    uint32_t next_session() { return next_session_.fetch_add(1); }
    // Writes a line to log and journal. Repeated lines are rate-limited (repeats.h).
    void note(const std::string& line, const Session* of = nullptr);

    // A session is in the list while its arena is mapped.
    void add(Session& session);
    void remove(Session& session);
    void stop_sessions(const std::string& why);
    // Keeps a session that cannot be destroyed until the process exits: the context is poisoned and the
    // driver may still have pointers into the session, or its teardown failed.
    void keep(std::unique_ptr<Session> session);
    bool keeps() const;

    // The open sessions of a tenant, which are not torn down before they are returned. close_gates(): those
    // that come later begin with a closed gate, too, until open_gates(). Any thread.
    std::vector<Session*> borrow(const std::string& tenant);
    std::vector<Session*> borrow(uint32_t session);  // none, or one
    std::vector<Session*> borrow_all();
    void close_gates(const std::string& tenant);
    void open_gates(const std::string& tenant);
    std::vector<Session*> borrow_if(const std::function<bool(const Session&)>& wanted);
    void give_back(const std::vector<Session*>& sessions);
    void await_return(const Session& session);  // on its own thread, when it is closing
    Suspension& suspension() { return suspension_; }
    Unpinning& unpinning() { return *unpinning_; }
    const std::shared_ptr<BlockStore>& block_store() const { return block_store_; }
    Swapper* swapper() const { return swapper_.get(); }  // null: tenants' memory fits the device together

    // Marks the shared context as lost: every session gets the error, with the kernel and the tenant at fault
    // if they are known, and no new session is accepted. Returns after that in every calling thread.
    void poison(CUresult status);
    // The same where a kernel of the session does not end (watchdog.h): the context is whole, but this
    // process leaves. `why`: which kernel, for people.
    void give_up_context(uint32_t session, const std::string& why);
    bool context_lives() const { return lives_.load(); }  // once fatal(): it was given up so
    // The server of a strict tenant: the context is this tenant's alone. Before the first session.
    void serve_one_tenant() { one_tenant_ = true; }
    // A system's server. Before the first session. users(): null: it serves one user.
    void serve_users(Users& users) { users_ = &users; }
    Users* users() const { return users_; }
    bool serves_one_tenant() const { return one_tenant_; }
    bool served_any() const { return served_.load() != 0; }
    // Why no tenant can have a limit for its kernels; empty: one can.
    std::string why_no_kernel_limit() const;
    std::string why_no_quarantine() const;  // the same, to be in quarantine
    // Calls it with the list of sessions locked; those that have left are not among them.
    void each_session(const std::function<void(Session&)>& call) const;
    // Waits for the error of a fault while the GPU's state is being dumped; SUCCESS: there is no fault. The
    // results of driver calls during the dump are not valid.
    CUresult fault_to_come() const;
    void keep_faults_in(const std::string& file) { fault_file_ = file; }  // before the first session
    // The same for which tenants' kernels faulted, or may have, where a takeover was expected and none came:
    // what the file has counts from now on.
    void keep_record_in(const std::string& file);
    void save_record(protocol::StateWriter& out) const;  // for another process
    void restore_record(protocol::Reader& in);
    // A program of a tenant that is in quarantine for faults begins when another process can take over, or
    // none comes. Called on its connection's thread.
    void await_standby(const std::string& tenant) const;
    // Another process can take over. `ready`: it could now; `comes`: now or later; any thread. `begin`: a
    // fault has come, and the sessions are held (Session::hold()); any thread, does not block. Before the
    // first session.
    void expect_takeover(std::function<bool()> ready, std::function<bool()> comes,
                         std::function<void()> begin);
    bool expects_takeover() const { return ready_ != nullptr; }
    bool takes_over() const { return ready_ && ready_() && !decided_.load(); }
    // Sessions that come from another process: their number changes by so many. The next standby starts
    // behind them, as its context would keep the driver from them for a while.
    void sessions_come(int change) { coming_.fetch_add(change); }
    bool sessions_come() const { return coming_.load() > 0; }
    bool standby_comes() const { return comes_ && comes_(); }
    bool holds() const { return holds_.load(); }
    // For the thread that hands over, once holds(): those sessions, the most urgent tenant's first. They
    // exist as long as the process, as the context is lost.
    std::vector<Session*> held_sessions();
    void decided() { holds_.store(false), decided_.store(true); }  // each of them has left or was given up
    const std::string& fault_text() const { return fault_; }       // once fatal()
    Offences& offences() { return offences_; }
    Quarantine& quarantine() { return quarantine_; }
    Standstill& standstill() { return standstill_; }
    // Launches that were under way at a fault (takeover/reissue.cpp). reissue(): held while those of a
    // session are executed again. suspected(): kernels of the tenant were under way at the fault.
    std::mutex& reissue() { return reissue_; }
    // knows_culprit(): of no other session.
    bool suspected(const std::string& tenant) const { return suspected_.contains(tenant); }
    bool knows_culprit() const { return knows_culprit_; }
    // In the process that takes over. blame(): the fault was the tenant's if the launches of `others`
    // sessions do not fault again. cleared(): those of one of them have not.
    void blame(const std::string& tenant, uint64_t others);
    void cleared();
    CUresult fatal() const { return static_cast<CUresult>(fatal_.load()); }
    uint64_t fatal_since_ns() const { return fatal_since_.load(); }

    // Called periodically by the listener: checks whether the context is alive. A client that only polls
    // completion words makes no call that would return the error.
    void tick();
    uint32_t stuck() const;  // number of sessions for which Session::stuck()
    // With what of it is other users', if there is a viewer.
    protocol::StatusReply status(const Peer* viewer = nullptr) const;
    // Those that the viewer may see.
    std::vector<protocol::TenantStatus> tenants(const Peer& viewer) const;

    // Replaces the policy. Empty, or the error.
    std::string set_policy(const std::string& name);
    // Changes a tenant's limit of device memory, in bytes; 0: the device's. Empty, or the error.
    std::string set_memory_limit(const std::string& tenant, uint64_t limit);
    // Changes priority and weight of a tenant's programs. Empty, or the error.
    std::string set_terms(const std::string& tenant, const protocol::TermsRequest& request);
    TenantAccounts& tenant_accounts() { return tenant_accounts_; }

private:
    void judge();  // caller holds blame_mutex_
    // Of each session, in order. The caller of this and the next one holds mutex_.
    std::vector<Suspect> suspects() const;
    std::string describe_fault(CUresult status, const std::variant<image::FaultSite, image::Problem>& report,
                               std::vector<Suspect>& suspects) const;
    void write(const std::string& line, const Session* of);
    void note_left_out();
    void write_record() const;
    void note_fault(const std::vector<Suspect>& at_fault, bool held);
    void end_sessions(CUresult status, const std::vector<Suspect>& at_fault, bool hold);
    // What the programs of a user are told of the fault. `own`: it was no program of another user.
    std::string fault_told(CUresult status, bool own) const;

    device::Device& device_;
    journal::Writer& journal_;
    DevicePrintf& device_printf_;
    dispatch::Dispatcher dispatcher_;
    AddressPlan addresses_;
    Sharing sharing_;
    SpareImages spare_images_;
    Neighbours neighbours_{device_};
    const std::unique_ptr<CallTrace> call_trace_ = CallTrace::wanted();
    const Quotas quotas_ = read_quotas();
    TenantAccounts tenant_accounts_;
    const uint64_t started_;
    std::atomic<int> fatal_{CUDA_SUCCESS};
    std::atomic<int> coming_{0};
    std::atomic<uint64_t> fatal_since_{0};
    std::atomic<bool> lives_{false};
    bool one_tenant_ = false;
    Users* users_ = nullptr;
    std::once_flag poisoned_;
    std::function<bool()> ready_, comes_;
    std::function<void()> begin_takeover_;
    std::atomic<bool> holds_{false};
    std::atomic<bool> decided_{false};
    std::mutex reissue_;
    std::set<std::string> suspected_;  // tenants; set before holds_, as the next one
    bool knows_culprit_ = false;
    std::mutex blame_mutex_;  // guards what follows
    std::string blamed_;
    uint64_t others_ = 0, cleared_ = 0;
    Offences offences_;
    Watchdog watchdog_{*this};
    Standstill standstill_{device_,
                           [this](uint32_t name) { return journal::Reader(journal_.path()).name(name); }};
    std::string fault_;                     // description of the fault; set before fatal_
    std::string fault_file_, record_file_;  // empty: there is no such file
    std::atomic<uint32_t> next_session_{1};
    std::atomic<uint64_t> served_{0};

    mutable std::mutex mutex_;
    uint64_t launches_ = 0;  // of sessions that are not in the list any more
    std::vector<Session*> sessions_;
    std::vector<const Session*> borrowed_;  // a session as often as it is
    std::condition_variable returned_;
    Suspension suspension_{*this};
    std::vector<std::unique_ptr<Session>> kept_;

    std::mutex lines_mutex_;  // guards lines_
    Repeats lines_;

    // Destroyed first because they call note(); measuring_ before profiles_, to which it reports.
    jit::Service compiler_;
    const std::unique_ptr<jit::Opener> opener_;
    profiles::ProfileCache profiles_;
    std::unique_ptr<Measuring> measuring_;
    std::unique_ptr<Unpinning> unpinning_;
    std::shared_ptr<BlockStore> block_store_;
    std::unique_ptr<Swapper> swapper_;  // its thread uses the rest
    Quarantine quarantine_{*this};      // likewise
};

}  // namespace smt::runtime::server
