// One client: its arena, its device range, its objects and its lanes.
//
// serve() runs the session on a thread of its own: handshake, then lanes and captured sources as messages
// arrive, and, when the control socket ends for any reason, teardown:
//
//   lanes stop -> host functions released -> work synchronised -> handles, in HandleKind's order
//   -> events, streams -> code -> device memory -> arena
//
// Handlers of any lane may use the members under "For handlers". Each part has its own locks.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/device/held_up.h"
#include "runtime/dispatch/dispatcher.h"
#include "runtime/journal/journal.h"
#include "runtime/protocol/handshake.h"
#include "runtime/protocol/state.h"
#include "runtime/server/callbacks.h"
#include "runtime/server/graph_copies.h"
#include "runtime/server/graph_waits.h"
#include "runtime/server/lane_gate.h"
#include "runtime/server/memory/address_plan.h"
#include "runtime/server/memory/arena.h"
#include "runtime/server/memory/memory_account.h"
#include "runtime/server/objects/events.h"
#include "runtime/server/objects/handles.h"
#include "runtime/server/streams.h"
#include "runtime/server/takeover/launch_log.h"
#include "runtime/server/takeover/marks.h"
#include "runtime/server/takeover/packet.h"
#include "runtime/settings/table.h"

namespace smt::runtime::server {

class CodeTable;  // code/code_table.h
class ControlMessage;
class DevicePrintf;
class Fence;  // memory/fence.h
class Lane;
class Laps;
class Server;
class TenantMemory;  // memory/tenant_memory.h; never frees the device range, which the session owns

// How long a kernel of the program may run without progress: the shorter one of what it and this server say;
// zero: any time.
schedule::Duration kernel_limit(const protocol::Hello& hello);

class Session final : public device::Guest {
public:
    Session(Server& server, uint32_t id, int socket, const protocol::Hello& hello);
    ~Session() override;
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // Runs the session to its end. False: the context is lost and the driver may still use parts of the
    // session, so it must not be destroyed before the process exits.
    bool serve();
    void stop(const std::string& why);         // any thread: ends the session soon
    void end_because(const std::string& why);  // the same for a fault of its own, which is logged
    // Any thread: from now on every call of the client returns `fatal`. The program prints `why`.
    void poison(CUresult fatal, const std::string& why);
    // Any thread, and it takes no lock: the same for a process that ends at once (standstill.h).
    void lose(CUresult fatal, const std::string& why);
    // Any thread: as poison(), and no record has an effect any more, while the context goes on. What of its
    // work can be stopped is; works(): the rest is not over yet.
    void end_work(CUresult fatal, const std::string& why);
    bool works();
    CUresult ended_with() const { return static_cast<CUresult>(ended_with_.load(std::memory_order_relaxed)); }
    // Any thread: the text that the program prints when it loses the server. The first call counts.
    void say_farewell(const std::string& why);
    // Takeover (takeover/README.md). hold(): any thread; its lanes stop after their record, its own thread
    // likewise, until give_up() or leave(). `why`: what its program is told if it ends.
    void hold(const std::string& why);
    bool held() const { return fate_.load() == Fate::kHeld; }
    void await_fate();  // for its threads: returns if the session stays here
    // All of them are in await_fate(), and if the context is whole nothing of it is under way.
    // why_not_still(): what keeps it, for people.
    bool stands_still();
    std::string why_not_still() const;
    void nudge();                   // wakes those that wait for something that will not come
    std::string why_not_carried();  // reasons, for people; empty: save() is complete
    std::string save();             // of a session that stands still
    bool repeats() const { return !reissued_.empty(); }       // launches of it are executed again there
    void give_up(CUresult fatal, const std::string& reason);  // it stays here, and its program gets the error
    void leave() { fate_.store(Fate::kLeft); }  // another process has it: its threads stand still for good
    bool left() const { return fate_.load() == Fate::kLeft; }
    int socket() const { return socket_; }
    int priority() const { return dispatched_->priority; }
    // In the process that takes over, in place of serve(). `commit`: told what went wrong (empty: nothing),
    // before the first lane starts; false: the session stays where it was. `placed`: its addresses are its
    // own here, or cannot be.
    struct Taken {
        FileBytes state;
        int arena = -1;
        std::function<CUresult(uint64_t id, uint64_t bytes, CUmemGenericAllocationHandle* handle)> claim;
        std::function<bool(const std::string& problem)> commit;
        std::function<void()> placed{};
        std::shared_ptr<const Marks> marks{};  // of a server that crashed: lanes go on where it was
    };
    bool serve_taken(Taken& taken);
    // For a crash of this process (takeover/kept_sessions.h). marks(): null: no takeover is expected.
    Marks* marks() { return marks_.get(); }
    void changed() {  // something that save() writes, by another way than a lane's record
        if (marks_) marks_->changed();
    }
    void note_rest();  // whether all that was enqueued is over
    struct Described {
        std::string state;  // empty: it cannot be carried
        std::string why;
        uint64_t changes = 0;  // Marks::why_not()
    };
    // Nothing: it is at work. The main thread; its lanes stand meanwhile.
    std::optional<Described> describe();
    // What the standby has of it; kNotDescribed: it could not go on.
    static constexpr uint64_t kNotDescribed = ~0ull;
    void described_at(uint64_t changes) { described_at_.store(changes); }
    bool would_go_on() const;  // if this process crashed now
    // Suspension (suspension.h).
    LaunchLog* launch_log() const { return launch_log_.get(); }  // null: no takeover is expected
    LaneGate& gate() { return gate_; }
    const LaneGate& gate() const { return gate_; }
    const std::shared_ptr<dispatch::Tenant>& dispatched_tenant() const { return dispatched_; }
    std::string why_not_suspended() const;  // for people; empty: it can be
    // All its lanes are in front of the gate, or wait for what the dispatcher holds back.
    bool lanes_stand();
    // What it has under way on the GPU, for people; empty: nothing. As long as its lanes stand.
    std::string runs();
    uint64_t bytes_away() const;
    uint64_t bytes_in_files() const;
    bool has_memory() const;
    // Turns (swapper.h). It has something to do: a record that waits, or work that is under way; if it is
    // `out`, that is held back. `position`: another number than before if a lane has executed a record.
    bool has_work(bool out, uint64_t* position);
    bool poisoned() const { return arena_.header().fatal.load() != CUDA_SUCCESS; }

    void fault(CUresult fatal);  // a call returned it: ends the context or the session
    std::string called() const;  // "tenant alice (train, pid 12)"
    UnderWay begun() const { return streams_.begun(); }
    // The name of its kernel at the site; empty: the kernel is not of this session.
    std::string kernel_at(const image::FaultSite& site) const;
    bool stuck() const { return stuck_.load(); }  // its client is gone, but its work or a call does not end
    uint32_t lane_count() const { return lane_count_.load(); }
    protocol::TenantStatus status() const;
    uint64_t device_bytes() const;
    uint64_t host_bytes() const { return host_account_->held(); }
    void tick();  // called periodically by the listener
    // Whether a kernel has left a record in the fence: then the session has ended (end_work()). Any thread.
    bool look_at_fence();

    // For handlers.
    uint32_t id() const override { return id_; }
    const std::string& tenant() const override { return tenant_; }
    const std::string& family() const { return family_; }  // sharing.h
    uid_t user() const { return user_; }                   // of its program (peer.h)
    void print(std::string_view text) override { add_output(text.data(), text.size()); }
    void lost(CUresult fault, const std::string& what) override;
    void tell(const std::string& line) override { note(line); }
    void must_end(const std::string& why) override { end_because(why); }
    bool leaves() const override { return closing() || held(); }
    Server& server() { return server_; }
    device::Device& device() { return device_; }
    const DriverApi& driver() const { return device_.driver(); }
    Arena& arena() { return arena_; }
    bool wants_quarantine() const;
    Fence* fence() { return fence_.get(); }  // null: its kernels are not fenced
    // Host memory that the server holds for the client: pinned, managed, and images in transfer.
    const MemoryAccountPointer& host_account() { return host_account_; }
    const MemoryAccountPointer& tenant_memory_account() const { return tenant_account_; }
    // How long an allocation may wait for room; 0: it does not.
    std::chrono::milliseconds memory_wait() const { return std::chrono::milliseconds(hello_.memory_wait_ms); }
    Streams& streams() { return streams_; }
    Events& events() { return events_; }
    Handles& handles() { return handles_; }
    const Handles& handles() const { return handles_; }
    Callbacks& callbacks() { return callbacks_; }
    GraphWaits& graph_waits() { return graph_waits_; }
    GraphCopies& graph_copies() { return graph_copies_; }
    DevicePrintf& device_printf();
    journal::Writer& journal();
    TenantMemory& memory() { return *memory_; }
    CodeTable& code() { return *code_; }
    uint32_t journal_name() const { return journal_name_; }  // the tenant's
    uint32_t journal_name_of_graphs() const { return graphs_name_; }
    uint32_t journal_name_of_moves() const { return moves_name_; }
    uint32_t journal_treatment_of_moves() const { return moves_treatment_; }
    const dispatch::Tenant& dispatched() const { return *dispatched_; }
    // For a tenant with a limit for its kernels. launch_of(): as the device is told. stand_back(): ahead of
    // each launch (Device::stand_back()).
    device::LaunchOf launch_of(uint32_t kernel) const { return {id_, kernel, dispatched_->kernel_limit}; }
    CUresult stand_back() const { return dispatched_->limited() ? stand_back_for_calls() : CUDA_SUCCESS; }
    bool closing() const { return closing_.load(); }
    int32_t pid() const { return pid_; }
    // For `smt status`. Each session has a counter of its own: lanes of all sessions would contend for one.
    void count_launch() { launches_.fetch_add(1, std::memory_order_relaxed); }
    uint64_t launches() const { return launches_.load(std::memory_order_relaxed); }
    void note(const std::string& line);                // to the journal and the log
    void count_unsupported(const char* function);      // counts one call, for `smt log`
    void note_wide_launch(const std::string& kernel);  // reported once
    std::shared_ptr<Lane> lane(uint32_t index) const;  // null: ended, or never opened
    // Waits until `count` Captured messages have arrived (protocol::Captured), for `patience` at most.
    void await_captures(uint32_t count, std::chrono::milliseconds patience);
    void note_quota(const char* what, uint32_t most, settings::Id setting);  // quota exceeded; logged once
    bool lane_known(uint32_t index) const { return index < next_lane_.load(); }
    void lane_ended() { lane_count_.fetch_sub(1); }

    // For a stream that is destroyed: ends its capture. The graph stays until the session frees its objects.
    void drop_capture(CUstream stream, Uses& uses);

    // Frees everything except lanes and the legacy stream: cuDevicePrimaryCtxReset.
    CUresult reset();
    // Device printf output that the client has not fetched yet.
    void add_output(const char* text, size_t bytes);
    bool take_output(char* to, size_t capacity, size_t* bytes);  // true: more is left

private:
    CUresult stand_back_for_calls() const;
    bool live();
    enum class Begins { kHere, kElsewhere };  // kElsewhere: another process had it
    bool live_on(Begins where);
    bool tell_opened();
    void follow_gate();
    void note_suspended(protocol::TenantStatus& status) const;
    bool live_again(Taken& taken);
    CUresult restore(protocol::Reader& in, const Taken& taken, Laps& laps);
    CUresult restore_place(protocol::Reader& in, int arena_file);
    CUresult restore_code(protocol::Reader& in, Laps& laps);
    CUresult restore_lanes(protocol::Reader& in, const Marks* marks);
    bool rests();
    // Launches that the dispatcher kept back at the fault: they are kept back anew.
    struct KeptLaunch {
        uint32_t stream, lane, kernel, form;  // by their numbers
        uint32_t move, unused;                // dispatch::Moves' number, from 1; 0: a kernel of the program's
        uint32_t grid[3], block[3];
        uint32_t shared_bytes, unit;
        uint64_t number, total, done;
    };
    std::string why_kept_launches_stay() const;
    void save_kept_launches(protocol::StateWriter& out) const;
    CUresult restore_kept_launches(protocol::Reader& in);
    struct TakenLaunch {
        KeptLaunch launch;
        std::vector<char> parameters;
        std::vector<CUlaunchAttribute> attributes;
    };
    CUresult check_kept_move(const TakenLaunch& taken);
    journal::Entry entry_of_kept(const KeptLaunch& launch) const;
    CUresult launch_kept();
    // Launches that were under way at the fault, and may be executed again (reissue.cpp).
    std::string why_work_stays();
    void save_reissued(protocol::StateWriter& out) const;
    CUresult restore_reissued(protocol::Reader& in);
    void reissue();
    bool await_reissue();
    bool client_left() const;
    CUresult execute_reissued(bool* over);
    std::string start_lanes();
    bool next_message(ControlMessage& message);
    void journal_unsupported(const std::string& function, uint64_t count);
    bool handshake();
    void confine();  // takes SMs; before the first stream is made
    bool find_place(int first_region);
    bool place(int region, bool exact);  // maps arena and device range at the next free slot
    void leave_place();
    CUresult open();  // after the client mapped both
    bool wants_fence() const;
    CUresult open_fence();
    void open_memory();
    bool send_welcome(protocol::WelcomeStatus status, const std::string& why);
    void answer_control();
    void answer_control_guarded();
    bool answer_open_lane();  // false: the client is gone
    void take_captured(int file, uint64_t bytes);
    protocol::LaneOpened open_lane();
    uint32_t place_for_lane(uint64_t* position);  // a free index and its first ring position
    void teardown();
    void stop_lanes();
    void await_work();
    void end_captures();
    void free_objects();
    void write_journal(journal::Kind kind, const std::string& text);

    Server& server_;
    device::Device& device_;
    const uint32_t id_;
    const int socket_;  // owned and closed by the connection
    const protocol::Hello hello_;
    const std::string tenant_;
    const std::string family_;
    const std::string program_;
    const int32_t pid_;
    const uid_t user_;
    const MemoryAccountPointer tenant_account_;  // device memory of all the tenant's programs
    const uint32_t multiprocessors_;             // requested number; 0: all
    const uint32_t journal_name_;
    const uint32_t graphs_name_, moves_name_, moves_treatment_;
    const std::shared_ptr<dispatch::Tenant> dispatched_;

    enum class Fate { kHere, kHeld, kLeft };
    std::atomic<Fate> fate_{Fate::kHere};
    int held_event_ = -1;    // eventfd: wakes the session's own thread; -1: no takeover is expected
    std::mutex fate_mutex_;  // guards what follows; a leaf lock
    std::condition_variable fate_decided_;
    uint32_t standing_ = 0;  // threads in await_fate()
    std::string told_if_ended_;

    std::vector<TakenLaunch> taken_launches_;  // until launch_kept()
    const std::unique_ptr<LaunchLog> launch_log_;
    const std::unique_ptr<Marks> marks_;
    std::atomic<uint64_t> described_at_{kNotDescribed};
    std::vector<LaunchLog::Entry> reissued_;  // to be executed again: until then, and in the state
    CUresult ended_at_ = CUDA_SUCCESS;        // reissued_: the error of the fault

    LaneGate gate_;
    std::atomic<int> ended_with_{CUDA_SUCCESS};  // by end_work()
    std::atomic<int> poisoned_with_{CUDA_SUCCESS};
    bool quiet_ = false;  // nudge(): nothing of it is under way

    std::atomic<bool> closing_{false};
    std::atomic<bool> said_farewell_{false};
    std::atomic<bool> fence_told_{false};
    std::atomic<bool> launched_wide_{false};  // a kernel ran on more SMs than the tenant has
    std::atomic<bool> stuck_{false};
    std::atomic<uint32_t> lane_count_{0};
    std::atomic<uint64_t> launches_{0};
    std::atomic<uint32_t> next_lane_{0};
    CUresult open_status_ = CUDA_SUCCESS;  // the reply to requests for a lane
    uint64_t device_base_ = 0;             // 0: no range is reserved
    int region_ = 0;
    int slot_ = -1;                                 // of the address plan; -1: none
    int next_slot_[2][AddressPlan::kRegions] = {};  // first slot of the next attempt; [0]: exact

    // Destroyed in reverse order, after teardown() has freed what needs another order.
    const MemoryAccountPointer host_account_;
    std::unique_ptr<Fence> fence_;
    Arena arena_;
    Streams streams_;
    Events events_;
    Handles handles_;
    Callbacks callbacks_;
    GraphWaits graph_waits_;
    GraphCopies graph_copies_;
    std::unique_ptr<TenantMemory> memory_;
    std::unique_ptr<CodeTable> code_;

    std::mutex output_mutex_;  // guards output_; a leaf lock
    std::string output_;
    mutable std::mutex mutex_;                               // guards the members below
    std::vector<std::shared_ptr<Lane>> lanes_;               // by index; null: ended
    std::vector<uint64_t> lane_ends_;                        // by index: end position of the last lane there
    std::unordered_map<std::string, uint64_t> unsupported_;  // function -> calls
    std::unordered_set<settings::Id> used_up_;               // exceeded quotas
    std::string end_;                                        // why the session ended, for the journal
    bool memory_open_ = false;                               // device_bytes() may use memory_
    uint32_t captures_ = 0;                                  // Captured messages so far
    std::condition_variable captured_;                       // captures_ changed, or the session closes
};

}  // namespace smt::runtime::server
