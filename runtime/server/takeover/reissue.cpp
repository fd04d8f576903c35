// Launches that were under way at a fault, executed again by the process that takes over: where that comes to
// the same (repeatable.h), and where no other process would be lost by it. One of them may be the kernel that
// faulted, so they wait until yet another process is ready to take over, and the sessions' turns come one
// after the other. What was executed again once and is under way at the next fault is not executed again.
#include <fmt/format.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "runtime/protocol/try.h"
#include "runtime/server/code/code_table.h"
#include "runtime/server/fatal.h"
#include "runtime/server/lane.h"
#include "runtime/server/launch_ranges.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "runtime/server/takeover/repeatable.h"
#include "runtime/server/takeover/scratch_lane.h"

namespace smt::runtime::server {

namespace {

using namespace std::chrono_literals;

constexpr uint32_t kReissuedPart = 0x52455353;
constexpr auto kReissueLook = 2ms;
constexpr auto kReissueTurn = 5s;  // then others go on beside launches that are not over

struct SavedReissue {
    uint32_t op, stream;
    uint64_t number;
};

using Log = std::vector<LaunchLog::Entry>;

size_t launches_kept(const Stream& stream) {
    std::set<uint64_t> numbers;  // one that was stopped may be in several pieces
    for (const dispatch::Work& work : stream.kept) numbers.insert(work.number);
    return numbers.size();
}

// Of the log's entries of one stream those that may be under way, by their places. Empty: the reason.
std::string find_left(const Stream& stream, const Log& log, std::set<size_t>* left) {
    const uint64_t count = stream.in_flight.under_way(stream.synchronized).operations;
    if (count == 0) return {};
    if (stream.reference == protocol::kPerThreadStream) return "they are on a thread's default stream";
    std::vector<size_t> own;
    for (size_t i = 0; i < log.size(); ++i)
        if (log[i].stream == stream.reference) own.push_back(i);
    const size_t kept = launches_kept(stream);
    if (own.size() < kept + count) return "there was more than launches";
    own.resize(own.size() - kept);
    own.erase(own.begin(), own.end() - static_cast<ptrdiff_t>(count));
    const uint64_t first = stream.in_flight.first_left(stream.synchronized);
    for (size_t i = 0; i < own.size(); ++i) {
        if (log[own[i]].number != first + i) return "there was more than launches";
        if (log[own[i]].again) return "they were executed again after a fault before";
        left->insert(own[i]);
    }
    return {};
}

// The effects of launches, of images that are read once each.
class EffectsReader {
public:
    explicit EffectsReader(Session& session) : session_(session) {}

    // Empty, or why they are not known.
    std::string read(const LaunchLog::Entry& entry, LaunchEffects* effects) {
        protocol::Launch launch;
        if (entry.record.size() < sizeof launch) return "a record of it is too short";
        std::memcpy(&launch, entry.record.data(), sizeof launch);
        if (launch.attribute_count != 0 || launch.flags != 0) return "a launch has attributes";
        const LoadedKernel* const kernel = session_.code().find(launch.function);
        if (!kernel || !kernel->live.load() || entry.record.size() - sizeof launch < kernel->parameter_bytes)
            return "a kernel is not known";
        effects->kernel = kernel->name;
        const std::string problem = look_up(kernel->image);
        if (!problem.empty()) return problem;
        const image::Effects& all = known_[kernel->image];
        const auto found = all.find(kernel->name);
        if (found == all.end()) return "kernel " + kernel->name + " is not in the PTX";
        if (!found->second.refusal.empty()) return "kernel " + kernel->name + ": " + found->second.refusal;
        const char* const parameters = entry.record.data() + sizeof launch;
        std::optional<LaunchRanges> ranges =
            ranges_of(found->second, parameters, kernel->parameter_bytes, session_.memory());
        if (!ranges)
            return "kernel " + kernel->name +
                   ": a parameter points into no memory of the device, or several do";
        effects->reads = std::move(ranges->reads);
        effects->writes = std::move(ranges->writes);
        return {};
    }

private:
    std::string look_up(uint32_t image) {
        if (known_.contains(image)) return {};
        auto found = session_.code().effects(image);
        if (const auto* problem = std::get_if<image::Problem>(&found)) return problem->text;
        known_[image] = std::move(std::get<image::Effects>(found));
        return {};
    }

    Session& session_;
    std::map<uint32_t, image::Effects> known_;
};

// Empty: `plan` is to be executed again; else why not.
std::string plan_reissue(Session& session, Log* plan) {
    const Log log = session.launch_log()->all();
    std::set<size_t> left;
    for (const StreamPointer& stream : session.streams().every())
        if (std::string why = find_left(*stream, log, &left); !why.empty()) return why;
    if (left.empty()) return "it is not known which they were";
    EffectsReader reader(session);
    std::vector<LaunchEffects> launches;
    for (size_t i = *left.begin(); i < log.size(); ++i) {
        const bool again = left.contains(i);
        if (again && !log[i].record.empty()) plan->push_back(log[i]);
        if (log[i].op != protocol::Op::kLaunch) continue;
        LaunchEffects effects{log[i].stream, again, {}, {}, {}};
        if (std::string why = reader.read(log[i], &effects); !why.empty()) return why;
        launches.push_back(std::move(effects));
    }
    return why_not_repeatable(launches);
}

}  // namespace

std::string Session::why_work_stays() {
    std::string reason = streams_.why_not_carried();
    if (server_.fatal() == CUDA_SUCCESS) return reason;  // it may go on here
    if (!reissued_.empty()) return taken_launches_.empty() ? reason : "launches of it wait for others";
    if (reason.empty() || !launch_log_ || server_.context_lives()) return reason;
    if (server_.knows_culprit()) return reason;  // it is this one
    if (streams_.captures() || !streams_.under_way().operations) return reason;
    for (const StreamPointer& stream : streams_.every())
        if (stream->function_runs()) return reason;
    Log plan;
    const std::string why = plan_reissue(*this, &plan);
    if (!why.empty()) return reason + ", and cannot be executed again: " + why;
    reissued_ = std::move(plan);
    ended_at_ = server_.fatal();
    return {};
}

void Session::save_reissued(protocol::StateWriter& out) const {
    out.part(kReissuedPart);
    out.scalar<uint32_t>(ended_at_);
    out.scalar<uint64_t>(reissued_.size());
    for (const LaunchLog::Entry& each : reissued_) {
        out.scalar(SavedReissue{static_cast<uint32_t>(each.op), each.stream, each.number});
        out.text(each.record);
    }
}

CUresult Session::restore_reissued(protocol::Reader& in) {
    if (!protocol::take_part(in, kReissuedPart)) return CUDA_ERROR_INVALID_VALUE;
    ended_at_ = static_cast<CUresult>(in.scalar<uint32_t>());
    for (uint64_t left = in.scalar<uint64_t>(); left > 0 && in.good(); --left) {
        const auto saved = in.scalar<SavedReissue>();
        const auto op = static_cast<protocol::Op>(saved.op);
        if (op != protocol::Op::kLaunch && op != protocol::Op::kEventRecord) return CUDA_ERROR_INVALID_VALUE;
        reissued_.push_back({op, saved.stream, saved.number, false, protocol::take_text(in)});
    }
    return in.good() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// On the session's own thread, while its lanes stand at the gate. After another fault what was not begun is
// in the state again.
void Session::reissue() {
    const size_t count = reissued_.size();
    note(fmt::format("{} launches and events of it that were under way wait to be executed again", count));
    {
        std::unique_lock turn(server_.reissue(), std::defer_lock);
        while (!turn.owns_lock() && await_reissue()) {
            if (!turn.try_lock()) std::this_thread::sleep_for(kReissueLook);
        }
        if (turn.owns_lock()) {
            server_.dispatcher().resume(dispatched_);  // it may have begun suspended
            bool over = false;
            const CUresult status = execute_reissued(&over);
            if (is_fatal(status)) fault(status);
            if (status == CUDA_SUCCESS)
                note(fmt::format("{} launches and events were executed again{}", count,
                                 over ? "" : "; they are not over yet"));
            if (over) server_.cleared();
            if (status != CUDA_SUCCESS && !held())
                end_work(ended_at_,
                         fmt::format("a launch that was under way at a fault fails again: error {}",
                                     static_cast<int>(status)));
        }
    }
    if (!held()) gate_.open(LaneGate::kReissued);
    follow_gate();
}

bool Session::client_left() const {
    char byte;
    return recv(socket_, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) == 0;
}

// Also until its tenant is resumed. False: not here, or not any more.
bool Session::await_reissue() {
    while (!server_.takes_over() || gate_.closed(LaneGate::kSuspended)) {
        if (held() || client_left()) return false;
        if (!server_.standby_comes()) {
            reissued_.clear();
            taken_launches_.clear();
            end_work(ended_at_,
                     "launches of it were under way at a fault, and no process could take over from "
                     "another one");
            return false;
        }
        std::this_thread::sleep_for(kReissueLook);
    }
    return !held() && !client_left();
}

// And waits for their end, for a time.
CUresult Session::execute_reissued(bool* over) {
    const ScratchLane memory;
    if (memory.address() == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    Lane scratch(*this, 0, memory.address(), 0);  // of the journal's entries
    launch_log_->mark(true);
    CUresult status = CUDA_SUCCESS;
    auto next = reissued_.begin();
    while (next != reissued_.end() && (status = scratch.replay(next->op, next->record, {})) == CUDA_SUCCESS)
        ++next;
    reissued_.erase(reissued_.begin(), next);
    launch_log_->mark(false);
    SMT_TRY(status);
    const auto until = std::chrono::steady_clock::now() + kReissueTurn;
    while ((status = streams_.query_all()) == CUDA_ERROR_NOT_READY && !held() && !client_left() &&
           std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(kReissueLook);
    *over = status == CUDA_SUCCESS;
    if (*over) streams_.note_what_is_over();  // before another session's launch faults
    if (status != CUDA_ERROR_NOT_READY) SMT_TRY(status);
    if (held()) return CUDA_ERROR_NOT_READY;
    return launch_kept();
}

}  // namespace smt::runtime::server
