// One client: its arena, its device range, its objects and its lanes.
//
// serve() is the life of a session, on a thread of its own: handshake, lanes and captured sources as they
// come, and, when the control socket ends, however the client went, teardown:
//
//   lanes stop -> host functions released -> work synchronised -> handles, in HandleKind's order
//   -> events, streams -> code -> device memory -> arena
//
// What handlers of any lane may use stands under "for handlers"; each part locks itself.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/dispatch/dispatcher.h"
#include "runtime/journal/journal.h"
#include "runtime/protocol/handshake.h"
#include "runtime/server/address_plan.h"
#include "runtime/server/arena.h"
#include "runtime/server/callbacks.h"
#include "runtime/server/events.h"
#include "runtime/server/handles.h"
#include "runtime/server/streams.h"
#include "runtime/settings/table.h"

namespace smt::runtime::server {

class DevicePrintf;
class Lane;
class Server;

namespace handlers {
// handlers/tenant_memory.h: TenantMemory(device::Device&, const Arena&, uint64_t base, uint64_t bytes,
// uint64_t limit); clear() frees all memory and keeps the ranges; bytes_used(); the destructor
// frees memory, never the range given to it (the session does).
class TenantMemory;
// handlers/code_table.h: CodeTable(dispatch::Dispatcher&, const dispatch::Tenant&, TenantMemory&, journal::Writer&, profiles::ProfileCache&,
// Handles&); clear() unloads everything, so does the destructor; module() as in Call.
class CodeTable;
}  // namespace handlers

class Session final : public device::Guest {
public:
    Session(Server& server, uint32_t id, int socket, const protocol::Hello& hello);
    ~Session() override;
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // The whole life of the session. False: the context is lost and the driver may still use parts
    // of it, so it must live until the process ends.
    bool serve();
    void stop(const std::string& why);         // any thread: ends the session soon
    void end_because(const std::string& why);  // the same, and the log says so: its own fault
    // Any thread: every call of the client returns it, and `why` is told to the person who runs it.
    void poison(CUresult fatal, const std::string& why);
    void say_farewell(const std::string& why); // any thread: what its program tells when it loses the server; the first one counts
    void fault(CUresult fatal);                // a call of its own met it: ends the context, or just this session
    std::string called() const;                // "tenant alice (train, pid 12)"
    bool working() const { return streams_.busy(); }   // not all of its work is known to be over
    std::string kernel_at(const image::FaultSite& site) const;   // its kernel's name; empty: not one of its
    bool stuck() const { return stuck_.load(); }   // its work does not end although its client is gone
    uint32_t lane_count() const { return lane_count_.load(); }
    protocol::TenantStatus status() const;
    uint64_t device_bytes() const;
    uint64_t host_bytes() const { return host_account_->held(); }
    void tick();                               // now and then, from the listener

    // For handlers.
    uint32_t id() const override { return id_; }
    const std::string& tenant() const override { return tenant_; }
    void print(std::string_view text) override { add_output(text.data(), text.size()); }
    void lost(CUresult fault, const std::string& what) override;
    void tell(const std::string& line) override { note(line); }
    void must_end(const std::string& why) override { end_because(why); }
    bool leaves() const override { return closing(); }
    Server& server() { return server_; }
    device::Device& device() { return device_; }
    const DriverApi& driver() const { return device_.driver(); }
    Arena& arena() { return arena_; }
    // Host memory that the server holds for the client: pinned, managed, and images on their way.
    const MemoryAccountPointer& host_account() { return host_account_; }
    Streams& streams() { return streams_; }
    Events& events() { return events_; }
    Handles& handles() { return handles_; }
    const Handles& handles() const { return handles_; }
    Callbacks& callbacks() { return callbacks_; }
    DevicePrintf& device_printf();
    journal::Writer& journal();
    handlers::TenantMemory& memory() { return *memory_; }
    handlers::CodeTable& code() { return *code_; }
    uint32_t journal_name() const { return journal_name_; }   // the tenant's
    uint32_t journal_name_of_graphs() const { return graphs_name_; }
    const dispatch::Tenant& dispatched() const { return *dispatched_; }
    bool closing() const { return closing_.load(); }
    void count_launch();                       // for `smt status`
    void note(const std::string& line);        // to the journal and the log
    void count_unsupported(const char* function);       // one call; for `smt log`
    void note_wide_launch(const std::string& kernel);   // said once
    std::shared_ptr<Lane> lane(uint32_t index) const;   // null: ended, or never opened
    // Waits until that many images of NVRTC were shown (protocol::Captured), for `patience` at most.
    void await_captures(uint32_t count, std::chrono::milliseconds patience);
    // How long loads of images have waited for managed forms, all together.
    std::chrono::nanoseconds waited_for_code() const { return std::chrono::nanoseconds(waited_for_code_.load()); }
    void note_wait_for_code(std::chrono::nanoseconds time) { waited_for_code_.fetch_add(time.count()); }
    void note_quota(const char* what, uint32_t most, settings::Id setting);   // it is used up; said once
    bool lane_known(uint32_t index) const { return index < next_lane_.load(); }
    void lane_ended() { lane_count_.fetch_sub(1); }

    // The stream goes, and with it what it captures: the graph stays until the session frees its objects.
    void drop_capture(CUstream stream, Uses& uses);

    // Frees everything but lanes and the legacy stream: cuDevicePrimaryCtxReset.
    CUresult reset();
    // Device printf that waits for the client.
    void add_output(const char* text, size_t bytes);
    bool take_output(char* to, size_t capacity, size_t* bytes);   // true: more follows

private:
    bool live();
    void journal_unsupported(const std::string& function, uint64_t count);
    bool handshake();
    void confine();                                  // before the first stream
    bool find_place(int first_region);
    bool place(int region, bool exact);              // arena and device range at the next free slot
    void leave_place();
    CUresult open();                                 // after the client mapped both
    bool send_welcome(protocol::WelcomeStatus status, const std::string& why);
    void answer_control();
    void answer_control_guarded();
    bool answer_open_lane();                         // false: the client is gone
    void take_captured(int file, uint64_t bytes);
    protocol::LaneOpened open_lane();
    uint32_t place_for_lane(uint64_t* position);     // an index that no lane has, and where its positions go on
    void teardown();
    void stop_lanes();
    void await_work();
    void end_captures();
    void free_objects();
    void write_journal(journal::Kind kind, const std::string& text);

    Server& server_;
    device::Device& device_;
    const uint32_t id_;
    const int socket_;                         // the connection's, who closes it
    const std::string tenant_;
    const std::string program_;
    const int32_t pid_;
    const uint64_t memory_limit_;
    const uint32_t multiprocessors_;           // that it asked for
    const uint32_t journal_name_;
    const uint32_t graphs_name_;
    const std::shared_ptr<dispatch::Tenant> dispatched_;

    std::atomic<bool> closing_{false};
    std::atomic<bool> said_farewell_{false};
    std::atomic<bool> launched_wide_{false};   // a kernel ran on more multiprocessors than the tenant has
    std::atomic<bool> stuck_{false};
    std::atomic<uint32_t> lane_count_{0};
    std::atomic<uint64_t> launches_{0};
    std::atomic<int64_t> waited_for_code_{0};  // nanoseconds
    std::atomic<uint32_t> next_lane_{0};
    CUresult open_status_ = CUDA_SUCCESS;      // what asks for a lane are answered
    uint64_t device_base_ = 0;                 // 0: no range is reserved
    int region_ = 0;
    int slot_ = -1;                            // of the address plan; -1: none
    int next_slot_[2][AddressPlan::kRegions] = {};   // where to go on when the client could not map

    // In the order of construction; teardown() frees what needs another order before.
    const MemoryAccountPointer host_account_;
    Arena arena_;
    Streams streams_;
    Events events_;
    Handles handles_;
    Callbacks callbacks_;
    std::unique_ptr<handlers::TenantMemory> memory_;
    std::unique_ptr<handlers::CodeTable> code_;

    std::mutex output_mutex_;                  // guards output_; nothing is called under it
    std::string output_;
    mutable std::mutex mutex_;                 // the rest
    std::vector<std::shared_ptr<Lane>> lanes_;   // by index; empty: gone
    std::vector<uint64_t> lane_ends_;            // by index: the position at which the last lane there ended
    std::unordered_map<std::string, uint64_t> unsupported_;
    std::unordered_set<settings::Id> used_up_;    // quotas
    std::string end_;                          // how it ended, for the journal
    bool memory_open_ = false;                 // device_bytes() may ask memory_
    uint32_t captures_ = 0;
    std::condition_variable captured_;         // captures_
};

}  // namespace smt::runtime::server
