#include "runtime/server/session.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/device/held_up.h"
#include "runtime/journal/printable.h"
#include "runtime/server/code/code_table.h"
#include "runtime/server/control_message.h"
#include "runtime/server/lane.h"
#include "runtime/server/log.h"
#include "runtime/server/memory/fence.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/peer.h"
#include "runtime/server/printf.h"
#include "runtime/server/server.h"
#include "runtime/settings/config.h"
#include "runtime/settings/read.h"
#include "runtime/thread/futex.h"

namespace smt::runtime::server {

namespace {

// Bound of device printf output that the client has not fetched. A kernel that prints endlessly must not fill
// the server's memory. The driver's own buffer of 1 MiB drops lines as well.
constexpr size_t kMostOutput = 64u << 20;

constexpr uint64_t kMostP99 = 3'600'000'000;  // us, as a client sends it at most

// Pinned pages cannot be swapped out, so each tenant's share reduces the memory of all others and of the
// system.
uint64_t most_host_memory() {
    const uint64_t pages = static_cast<uint64_t>(std::max(0l, sysconf(_SC_PHYS_PAGES)));
    const uint64_t machine = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    return settings::number_of(settings::Id::kHostMemory, machine / 2);
}

// Makes the text printable for every terminal and log.
std::string text_of(const char (&field)[protocol::kTenantNameBytes]) {
    return journal::printable(protocol::text_in(field));
}

// Null: the server has one user.
MemoryAccountPointer account_of_user(Server& server, int socket) {
    const std::optional<Peer> peer = server.users() ? Peer::of(socket, server.users()) : std::nullopt;
    return peer ? server.users()->account_of(peer->user(), peer->granted().memory) : nullptr;
}

dispatch::Trial::Measures measures(const Measuring* measuring) {
    using Measures = dispatch::Trial::Measures;
    if (!measuring) return Measures::kNothing;
    switch (measuring->what()) {
        case Measuring::What::kSweep:
            return Measures::kSweep;
        case Measuring::What::kHalves:
            return Measures::kHalves;
        case Measuring::What::kPairs:
            return Measures::kPairs;
        case Measuring::What::kTimes:
        case Measuring::What::kCounters:
            break;
    }
    return Measures::kTimes;
}

std::shared_ptr<dispatch::Tenant> tenant_of(Server& server, uint32_t session, uint32_t journal_name,
                                            const protocol::Hello& hello) {
    auto tenant = std::make_shared<dispatch::Tenant>();
    tenant->session = session;
    tenant->name = text_of(hello.tenant);
    tenant->priority = hello.priority;
    tenant->kernel_limit = kernel_limit(hello);
    if (hello.weight_thousandths) tenant->weight = hello.weight_thousandths / 1000.0;
    tenant->target = {std::chrono::microseconds(std::min(hello.p99_us, kMostP99)),
                      hello.slowdown_thousandths / 1000.0};
    // Its launches go first where the hardware decides, too.
    if (tenant->target.any()) tenant->priority = std::max(tenant->priority.load(), 1);
    tenant->trial = {measures(server.measuring()), hello.stress};
    tenant->journal_name = journal_name;
    return tenant;
}

}  // namespace

Session::Session(Server& server, uint32_t id, int socket, const protocol::Hello& hello)
    : server_(server),
      device_(server.device()),
      id_(id),
      socket_(socket),
      hello_(hello),
      tenant_(text_of(hello.tenant)),
      family_(family_of(hello)),
      program_(text_of(hello.program)),
      pid_(hello.pid),
      user_(user_of(socket)),
      tenant_account_(
          server.tenant_accounts().open(family_, hello.memory_limit, account_of_user(server, socket))),
      multiprocessors_(hello.multiprocessors),
      journal_name_(server.journal().name(tenant_)),
      graphs_name_(server.journal().name("a graph")),
      moves_name_(server.journal().name("a fill or copy in device memory")),
      moves_treatment_(server.journal().name("has a door")),
      dispatched_(tenant_of(server, id, journal_name_, hello)),
      launch_log_(server.expects_takeover() ? std::make_unique<LaunchLog>() : nullptr),
      marks_(server.expects_takeover() ? Marks::make() : nullptr),
      host_account_(std::make_shared<MemoryAccount>(most_host_memory())),
      arena_(device_.driver(), host_account_),
      streams_(device_.driver(), arena_),
      events_(device_.driver()),
      callbacks_(device_.driver(), arena_),
      graph_waits_(device_.driver(), arena_, callbacks_, events_),
      graph_copies_(server.dispatcher(), *dispatched_) {
    streams_.serve(server.dispatcher(), dispatched_);
    gate_.mark(marks_.get());
    if (server.expects_takeover()) held_event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

Session::~Session() {
    if (held_event_ >= 0) close(held_event_);
    device::forget_waits(id_);
}

DevicePrintf& Session::device_printf() { return server_.device_printf(); }
journal::Writer& Session::journal() { return server_.journal(); }

void Session::note(const std::string& line) {
    server_.note(fmt::format("session {} ({}, pid {}): {}", id_, tenant_, pid_, line), this);
}

void Session::write_journal(journal::Kind kind, const std::string& text) {
    journal::Entry entry;
    entry.kind = kind;
    entry.session = id_;
    entry.name = journal_name_;
    entry.text = journal().line(text);
    entry.value = static_cast<uint64_t>(pid_);
    if (kind == journal::Kind::kSessionClosed) {
        entry.end_ns = static_cast<uint64_t>(dispatched_->received.ns.load());
        entry.grid[0] = static_cast<uint32_t>(launches());
        entry.grid[1] = static_cast<uint32_t>(launches() >> 32);
        entry.grid[2] = static_cast<uint32_t>(poisoned_with_.load());
    }
    device_.write(journal(), entry, this);
}

// Counts are written to the journal when they reach a power of two, so that a program that repeats a call
// does not fill it. The count written at the session's end is exact.
void Session::count_unsupported(const char* function) {
    uint64_t count = 0;
    {
        std::lock_guard lock(mutex_);
        count = ++unsupported_[function];
    }
    if (std::has_single_bit(count)) journal_unsupported(function, count);
    if (count == 1) log_line(fmt::format("session {} ({}): {} is not supported", id_, tenant_, function));
}

void Session::journal_unsupported(const std::string& function, uint64_t count) {
    journal::Entry entry;
    entry.kind = journal::Kind::kUnsupported;
    entry.session = id_;
    entry.name = journal().name(function);
    entry.value = count;
    device_.write(journal(), entry, this);
}

void Session::note_wide_launch(const std::string& kernel) {
    if (!launched_wide_.exchange(true))
        note(fmt::format("{} is a cooperative launch too large for its multiprocessors: it runs on all",
                         kernel));
}

void Session::note_quota(const char* what, uint32_t most, settings::Id setting) {
    {
        std::lock_guard lock(mutex_);
        if (!used_up_.insert(setting).second) return;
    }
    note(fmt::format("it has {} {}, the most that a session may have ({})", most, what,
                     settings::name_of(settings::setting(setting))));
}

void Session::stop(const std::string& why) {
    {
        std::lock_guard lock(mutex_);
        if (end_.empty()) end_ = why;
    }
    say_farewell(why);
    shutdown(socket_, SHUT_RDWR);  // ends answer_control()
}

void Session::say_farewell(const std::string& why) {
    if (said_farewell_.exchange(true)) return;
    protocol::Farewell farewell;
    std::strncpy(farewell.message, why.c_str(), sizeof farewell.message - 1);
    // It fails if the client is gone or does not read.
    if (send(socket_, &farewell, sizeof farewell, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
}

void Session::end_because(const std::string& why) {
    note("ended: " + why);
    stop(why);
}

void Session::fault(CUresult fatal) {
    if (ended_with() != CUDA_SUCCESS) return;  // the error is its own
    device_.properties().keeps_faults_apart ? poison(fatal, "its own kernel has faulted")
                                            : server_.poison(fatal);
}

void Session::lost(CUresult fault, const std::string& what) {
    note(what);
    poison(fault, what);
}

void Session::poison(CUresult fatal, const std::string& why) {
    protocol::SessionHeader& header = arena_.header();
    std::lock_guard lock(mutex_);
    int none = CUDA_SUCCESS;
    poisoned_with_.compare_exchange_strong(none, fatal);
    if (header.fatal.load() != CUDA_SUCCESS && header.fault[0] != 0) return;  // a fence's has no text
    std::strncpy(header.fault, why.c_str(), sizeof header.fault - 1);
    header.fatal.store(fatal);
    futex_wake_all(header.callback_tail);  // pending stream callbacks are called with the error
    changed();
    gate_.open_all();  // calls that wait there return the error, too
}

void Session::lose(CUresult fatal, const std::string& why) {
    protocol::SessionHeader& header = arena_.header();
    std::strncpy(header.fault, why.c_str(), sizeof header.fault - 1);
    header.fatal.store(fatal);
    futex_wake_all(header.callback_tail);
}

// A launch of it that is under way may wait for this one, and is not to be over its limit for that.
CUresult Session::stand_back_for_calls() const {
    constexpr schedule::Duration kLongest = std::chrono::seconds(10);
    return device_.stand_back(std::min(dispatched_->kernel_limit / 2, kLongest)) ? CUDA_SUCCESS
                                                                                 : CUDA_ERROR_DEINITIALIZED;
}

std::string Session::called() const { return fmt::format("tenant {} ({}, pid {})", tenant_, program_, pid_); }

std::string Session::kernel_at(const image::FaultSite& site) const {
    std::lock_guard lock(mutex_);
    return code_ ? code_->name_in(reinterpret_cast<CUmodule>(site.module), site.kernel) : std::string();
}

uint64_t Session::device_bytes() const {
    std::lock_guard lock(mutex_);
    return memory_open_ ? memory_->bytes_used() : 0;
}

void Session::tick() {
    callbacks_.drain();
    look_at_fence();
}

std::shared_ptr<Lane> Session::lane(uint32_t index) const {
    std::lock_guard lock(mutex_);
    return index < lanes_.size() ? lanes_[index] : nullptr;
}

bool Session::answer_open_lane() {
    protocol::LaneOpened answer = open_lane();
    return send(socket_, &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer;
}

void Session::take_captured(int file, uint64_t bytes) {
    // The source may include any file by name, which would be read with this server's rights.
    const std::string problem = server_.users() ? "" : submit_captured(server_.compiler(), id_, file, bytes);
    if (!problem.empty()) note("what it compiled cannot be used: " + problem);
    {
        std::lock_guard lock(mutex_);
        ++captures_;
    }
    captured_.notify_all();
}

void Session::await_captures(uint32_t count, std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    captured_.wait_for(lock, patience, [&] { return captures_ >= count || closing(); });
}

protocol::LaneOpened Session::open_lane() {
    protocol::LaneOpened answer;
    uint64_t address = 0;
    answer.status = open_status_;
    const uint32_t most = server_.quotas().lanes;
    if (answer.status == CUDA_SUCCESS && lane_count_.load() >= most) {
        note_quota("threads that use CUDA", most, settings::Id::kSessionLanes);
        answer.status = CUDA_ERROR_OUT_OF_MEMORY;
    }
    const uint64_t bytes = protocol::kLaneBytes + (server_.call_trace() ? sizeof(protocol::LaneTimes) : 0);
    if (answer.status == CUDA_SUCCESS) answer.status = arena_.allocate(bytes, false, &address);
    if (answer.status != CUDA_SUCCESS) return answer;
    uint64_t position = 0;
    const uint32_t index = place_for_lane(&position);
    auto lane = std::make_shared<Lane>(*this, index, address, position);
    lane_count_.fetch_add(1);
    if (const std::string why = lane->start(); !why.empty()) {
        lane_count_.fetch_sub(1);
        arena_.free(address);
        note("a thread of it gets no lane: " + why);
        answer.status = CUDA_ERROR_OUT_OF_MEMORY;
        return answer;
    }
    {
        std::lock_guard lock(mutex_);
        lanes_[index] = std::move(lane);
    }
    answer.lane = index;
    answer.offset = address - arena_.base();
    return answer;
}

// Called on the session's thread. A thread of the program that waits for an ended lane finds its position
// reached.
uint32_t Session::place_for_lane(uint64_t* position) {
    std::lock_guard lock(mutex_);
    size_t place = lanes_.size();
    for (size_t i = lanes_.size(); i-- > 0;) {
        if (lanes_[i] && !lanes_[i]->ended()) continue;
        if (lanes_[i]) {
            lanes_[i]->join();  // its thread has ended
            lane_ends_[i] = lanes_[i]->position();
            lanes_[i].reset();
        }
        place = i;
    }
    if (place == lanes_.size()) {
        lanes_.emplace_back();
        lane_ends_.push_back(0);
        next_lane_.store(static_cast<uint32_t>(lanes_.size()));
    }
    *position = lane_ends_[place];
    return static_cast<uint32_t>(place);
}

void Session::drop_capture(CUstream stream, Uses& uses) {
    if (!handles_.captures(stream)) return;
    uses.hold_captures();
    CUgraph graph = nullptr;
    driver().cuStreamEndCapture(stream, &graph);
    streams_.capture_ended();
    handles_.capture_ended(stream, graph);
}

void Session::end_captures() {
    Uses uses(handles_, driver());
    uses.hold_captures();
    streams_.end_captures([&](CUstream stream, CUgraph graph) { handles_.capture_ended(stream, graph); });
}

CUresult Session::reset() {
    end_captures();
    CUresult status = streams_.synchronize_all();
    device_printf().collect(*this);
    free_objects();
    arena_.free_all_host();
    return status;
}

// Order: handles in HandleKind's order, then events and streams, then their code, then its memory.
void Session::free_objects() {
    handles_.destroy_all(driver());
    graph_copies_.clear();
    graph_waits_.clear();
    events_.clear();
    streams_.clear();
    streams_.forget_code();
    if (code_) code_->clear();
    if (memory_) memory_->clear();
}

void Session::add_output(const char* text, size_t bytes) {
    std::lock_guard lock(output_mutex_);
    output_.append(text, std::min(bytes, kMostOutput - output_.size()));
    arena_.header().printf_pending.store(1, std::memory_order_release);
    changed();
}

bool Session::take_output(char* to, size_t capacity, size_t* bytes) {
    std::lock_guard lock(output_mutex_);
    *bytes = std::min(capacity, output_.size());
    std::copy_n(output_.data(), *bytes, to);
    output_.erase(0, *bytes);
    if (output_.empty()) arena_.header().printf_pending.store(0, std::memory_order_release);
    return !output_.empty();
}

}  // namespace smt::runtime::server
