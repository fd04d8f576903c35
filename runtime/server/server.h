// What the sessions of one server share: the device, the journal, the plan of addresses, the compile
// service, the fault that ended the context, and the figures `smt server status` prints.
//
// Any thread. mutex_ guards the list of sessions; nothing that can block is called under it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/dispatch/dispatcher.h"
#include "runtime/jit/service.h"
#include "runtime/journal/journal.h"
#include "runtime/profiles/profile_cache.h"
#include "runtime/protocol/handshake.h"
#include "runtime/server/address_plan.h"
#include "runtime/server/measuring.h"
#include "runtime/server/quotas.h"
#include "runtime/server/repeats.h"

namespace smt::runtime::server {

class DevicePrintf;
class Session;

class Server {
public:
    Server(device::Device& device, journal::Writer& journal, DevicePrintf& device_printf,
           std::unique_ptr<schedule::Policy> policy, const dispatch::Settings& settings);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    device::Device& device() { return device_; }
    journal::Writer& journal() { return journal_; }
    DevicePrintf& device_printf() { return device_printf_; }
    AddressPlan& addresses() { return addresses_; }
    dispatch::Dispatcher& dispatcher() { return dispatcher_; }
    jit::Service& compiler() { return compiler_; }
    profiles::ProfileCache& profiles() { return profiles_; }
    Measuring* measuring() { return measuring_.get(); }   // null: nothing is measured
    const Quotas& quotas() const { return quotas_; }
    uint32_t next_session() { return next_session_.fetch_add(1); }
    void count_launch() { launches_.fetch_add(1, std::memory_order_relaxed); }
    // A line for log and journal, which are not filled by one that comes again and again (repeats.h).
    void note(const std::string& line, const Session* of = nullptr);

    // From the moment its arena is mapped until that is unmapped.
    void add(Session& session);
    void remove(Session& session);
    void stop_sessions(const std::string& why);
    // A session that cannot be taken apart: its context is poisoned, and the driver may still hold pointers into it, or its
    // teardown failed. It goes with the process.
    void keep(std::unique_ptr<Session> session);
    bool keeps() const;

    // The shared context is lost: every session is told, with the kernel and the tenant at fault as far as they are known, and no
    // new one is taken. Returns when that is done, in every thread that has met the error.
    void poison(CUresult status);
    // The error of a fault that is being dumped, once it is there; SUCCESS: there is none. What a call returns meanwhile is not
    // to be believed.
    CUresult fault_to_come() const;
    void keep_faults_in(const std::string& file) { fault_file_ = file; }   // before the first session
    CUresult fatal() const { return static_cast<CUresult>(fatal_.load()); }
    uint64_t fatal_since_ns() const { return fatal_since_.load(); }

    // Now and then, from the listener: looks whether the context still lives. A client that only
    // polls completion words makes no call that would tell.
    void tick();
    uint32_t stuck() const;   // sessions whose work does not end although their client is gone
    protocol::StatusReply status() const;
    std::vector<protocol::TenantStatus> tenants() const;

    // Another policy from now on. Empty, or why not.
    std::string set_policy(const std::string& name);

private:
    std::string describe_fault(CUresult status);
    void write(const std::string& line, const Session* of);
    void note_left_out();

    device::Device& device_;
    journal::Writer& journal_;
    DevicePrintf& device_printf_;
    dispatch::Dispatcher dispatcher_;
    AddressPlan addresses_;
    const Quotas quotas_ = read_quotas();
    const uint64_t started_;
    std::atomic<int> fatal_{CUDA_SUCCESS};
    std::atomic<uint64_t> fatal_since_{0};
    std::once_flag poisoned_;
    std::string fault_;        // what is said of it; set before fatal_
    std::string fault_file_;   // empty: it is not kept
    std::atomic<uint32_t> next_session_{1};
    std::atomic<uint64_t> launches_{0};
    std::atomic<uint64_t> served_{0};

    mutable std::mutex mutex_;
    std::vector<Session*> sessions_;
    std::vector<std::unique_ptr<Session>> kept_;

    std::mutex lines_mutex_;   // guards lines_
    Repeats lines_;

    // These say what they do with note(), so they go first; what is measured goes to the book.
    jit::Service compiler_;
    profiles::ProfileCache profiles_;
    std::unique_ptr<Measuring> measuring_;
};

}  // namespace smt::runtime::server
