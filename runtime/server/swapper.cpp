// See swapper.h.
#include "runtime/server/swapper.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/dispatch/clock_handoff.h"
#include "runtime/dispatch/quiesce.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/memory/tenant_ranges.h"
#include "runtime/server/moving.h"
#include "runtime/settings/read.h"

namespace smt::runtime::server {

namespace {

using Program = MemoryTurns::Program;
using What = MemoryTurns::Step::What;

constexpr auto kLookOften = std::chrono::milliseconds(2);  // while a program is out, or asks
constexpr auto kLookIdle = std::chrono::milliseconds(50);  // else: whether programs are idle
constexpr auto kAskPoll = std::chrono::milliseconds(5);
// For kernels to stop or to end: a program that asks for room may do with less, one that is out cannot.
constexpr std::chrono::seconds kRestForAllocation{10}, kRestForTurn{60};
constexpr auto kQuiet = std::chrono::seconds(1);  // then host memory for the next turn is made
constexpr auto kStays = std::chrono::seconds(1);  // of what could not be moved

double part_of_turn() { return static_cast<double>(settings::number_of(settings::Id::kSwapPart)) / 100; }

// A program that has ended still has memory, which others get soon. Not one whose work does not end.
bool memory_comes(const Server& server) {
    bool comes = false;
    server.each_session([&](const Session& each) {
        comes = comes || (each.closing() && !each.stuck() && each.device_bytes() != 0);
    });
    return comes;
}

uint64_t in_microseconds(std::chrono::nanoseconds time) {
    return static_cast<uint64_t>(time / std::chrono::microseconds(1));
}

}  // namespace

std::unique_ptr<Swapper> Swapper::wanted(Server& server) {
    if (!settings::flag_of(settings::Id::kOversubscribe)) return nullptr;
    auto swapper = std::make_unique<Swapper>(server);
    const std::string why = swapper->thread_.serve({"swapper", ""}, [it = swapper.get()] { it->run(); });
    if (why.empty()) return swapper;
    server.note("tenants' memory is not moved: " + why);
    return nullptr;
}

Swapper::Swapper(Server& server) : server_(server), turns_(part_of_turn()) {}

Swapper::~Swapper() {
    {
        std::lock_guard lock(mutex_);
        leaves_ = true;
    }
    changed_.notify_all();
    answered_.notify_all();
    thread_.join();
}

Swapper::Answer Swapper::ask(const Session& session, uint64_t bytes,
                             const std::function<bool()>& interrupted) {
    std::unique_lock lock(mutex_);
    const auto asked = asked_.insert(asked_.end(), {session.id(), bytes});
    news_ = true;
    changed_.notify_all();
    const auto over = [&] { return leaves_ || server_.fatal() != CUDA_SUCCESS; };
    while (!asked->answered && !over() && !interrupted()) answered_.wait_for(lock, kAskPoll);
    const Answer without = over() ? Answer::kNone : Answer::kInterrupt;
    const Answer answer = asked->answered ? asked->answer : without;
    asked_.erase(asked);
    return answer;
}

void Swapper::run() {
    server_.device().enter_thread();
    for (;;) {
        {
            std::lock_guard lock(mutex_);
            news_ = false;
        }
        const bool soon = look();
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, soon ? kLookOften : kLookIdle, [this] { return leaves_ || news_; });
        if (leaves_) return;
    }
}

// True: a program asks for room, or is out.
bool Swapper::look() {
    for (bool trimmed = false;;) {
        if (server_.fatal() != CUDA_SUCCESS) return false;
        const std::vector<Program> all = programs();
        const bool watched = std::any_of(all.begin(), all.end(),
                                         [](const Program& each) { return each.out || each.asks != 0; });
        const Step step = turns_.next(all, watched ? free_bytes() : 0, MemoryTurns::Clock::now());
        if (step.what == What::kNothing) {
            prepare(all);
            return watched;
        }
        if (step.what == What::kRefuse && memory_comes(server_)) return true;
        if (!trimmed && (step.what == What::kOut || step.what == What::kRefuse)) {
            TenantRanges::trim_all();  // what is idle goes first
            trimmed = true;
            continue;
        }
        trimmed = false;
        carry_out(step, all);
    }
}

uint64_t Swapper::free_bytes() const {
    size_t free = 0, total = 0;
    const CUresult status = server_.device().driver().cuMemGetInfo_v2(&free, &total);
    return status == CUDA_SUCCESS ? free : 0;
}

std::vector<Program> Swapper::programs() {
    const Borrowed borrowed(server_, server_.borrow_all());
    const TimePoint now = MemoryTurns::Clock::now();
    std::vector<Program> all;
    for (Session* session : borrowed.sessions) all.push_back(program_of(*session, now));
    std::lock_guard lock(mutex_);
    std::erase_if(known_, [&](const auto& known) {
        return std::none_of(all.begin(), all.end(),
                            [&](const Program& each) { return each.id == known.first; });
    });
    return all;
}

Program Swapper::program_of(Session& session, TimePoint now) {
    Program program{.id = session.id()};
    const bool suspended = session.gate().closed(LaneGate::kSuspended);
    program.here = session.memory().bytes_movable();
    program.away = session.bytes_away();
    program.out = !suspended && session.gate().closed(LaneGate::kOutOfTurn);
    const std::string why = suspended ? "it is suspended" : session.why_not_suspended();
    program.stays = !program.out && (session.poisoned() || !why.empty());  // it comes in all the same
    uint64_t position = 0;
    const bool works = !suspended && session.has_work(program.out, &position);
    std::lock_guard lock(mutex_);
    Known& known = known_[program.id];
    program.works = works || (!program.out && position != known.position);
    known.position = position;
    if (!why.empty()) known.why = fmt::format("{} cannot be moved: {}", session.called(), why);
    program.stays = program.stays || now < known.stays_until;
    program.later = now < granted_until_;
    if (const Asked* asked = first_of(program.id); asked && !program.out) program.asks = asked->bytes;
    known.figures.turns = turns_.turns(program.id);
    return program;
}

void Swapper::carry_out(const Step& step, const std::vector<Program>& programs) {
    seen_ = programs;
    stepped_ = MemoryTurns::Clock::now();
    switch (step.what) {
        case What::kNothing:
            return;
        case What::kOut:
            return move_out(step);
        case What::kIn:
            return move_in(step);
        case What::kGrant:
            turns_.served(step.requester, stepped_);
            {
                std::lock_guard lock(mutex_);
                granted_until_ = stepped_ + kAskPoll;
            }
            return answer(step.requester, Answer::kTryAgain);
        case What::kRefuse:
            return refuse(step);
    }
}

std::string Swapper::called(uint32_t session) {
    const Borrowed borrowed(server_, server_.borrow(session));
    return borrowed.sessions.empty() ? "a program that has ended" : borrowed.sessions.front()->called();
}

void Swapper::move_out(const Step& step) {
    const bool turn = std::any_of(seen_.begin(), seen_.end(),
                                  [&](const Program& each) { return each.id == step.requester && each.out; });
    const auto patience = turn ? kRestForTurn : kRestForAllocation;
    Suspension::Moved moved = server_.suspension().move_out(step.id, step.bytes, patience);
    if (moved.no_host_memory) {
        free_spare_blocks();
        moved = server_.suspension().move_out(step.id, step.bytes, patience);
    }
    const std::string name = called(step.id);
    if (!moved.problem.empty()) return stays(step.id, name + " is not moved out: " + moved.problem);
    if (moved.bytes == 0) return stays(step.id, name + " is not moved out: the driver keeps its memory");
    turns_.moved(step.requester, moved.bytes, moved.took - moved.making);
    {
        std::lock_guard lock(mutex_);
        protocol::TurnFigures& figures = known_[step.id].figures;
        figures.out_bytes += moved.bytes;
        figures.out_us += in_microseconds(moved.took);
        ++figures.moves;
    }
    server_.note(fmt::format("{} makes room for {}: {} to host memory in {:.1f} ms", name,
                             called(step.requester), in_mebibytes(moved.bytes),
                             static_cast<double>(moved.took.count()) / 1e6));
}

void Swapper::move_in(const Step& step) {
    const Suspension::Moved moved = server_.suspension().move_in(step.id);
    const std::string name = called(step.id);
    if (!moved.problem.empty() && free_bytes() < moved.bytes) {  // an allocation was faster
        std::lock_guard lock(mutex_);
        granted_until_ = MemoryTurns::Clock::now() + kAskPoll;
        return;
    }
    if (!moved.problem.empty()) return stays(step.id, name + " is not moved in: " + moved.problem);
    turns_.moved(step.id, moved.bytes, moved.took);
    turns_.served(step.id, MemoryTurns::Clock::now());
    {
        std::lock_guard lock(mutex_);
        protocol::TurnFigures& figures = known_[step.id].figures;
        figures.in_bytes += moved.bytes;
        figures.in_us += in_microseconds(moved.took);
        ++figures.moves;
    }
    server_.note(fmt::format("{} has its memory again: {} in {:.1f} ms", name, in_mebibytes(moved.bytes),
                             static_cast<double>(moved.took.count()) / 1e6));
}

void Swapper::stays(uint32_t session, const std::string& why) {
    server_.note(why);
    std::lock_guard lock(mutex_);
    Known& known = known_[session];
    known.stays_until = MemoryTurns::Clock::now() + kStays;
    known.why = why;
}

// What could have made room, and why it does not.
void Swapper::refuse(const Step& step) {
    std::string reasons;
    for (const Program& each : seen_) {
        if (!each.stays || each.id == step.requester || each.here == 0) continue;
        std::lock_guard lock(mutex_);
        reasons += "; " + known_[each.id].why;
    }
    server_.note(fmt::format("{} gets CUDA's out of memory: {} are missing even with all others out{}",
                             called(step.requester), in_mebibytes(step.bytes), reasons));
    answer(step.requester, Answer::kNone);
}

void Swapper::answer(uint32_t session, Answer answer) {
    {
        std::lock_guard lock(mutex_);
        Asked* const asked = first_of(session);
        if (!asked) return;
        asked->answer = answer;
        asked->answered = true;
    }
    answered_.notify_all();
}

// Null: none of its lanes asks. The caller holds mutex_.
Swapper::Asked* Swapper::first_of(uint32_t session) {
    const auto found = std::find_if(asked_.begin(), asked_.end(), [&](const Asked& each) {
        return each.session == session && !each.answered;
    });
    return found == asked_.end() ? nullptr : &*found;
}

void Swapper::free_spare_blocks() {
    const Borrowed borrowed(server_, server_.borrow_all());
    for (Session* session : borrowed.sessions) {
        SpareBlocks* spare = session->memory().spare();
        if (!spare || spare->spare_bytes() == 0) continue;
        const AsGuest guest(*session);
        const dispatch::Quiesce others(server_.dispatcher(), session->dispatched(),
                                       dispatch::Quiesce::For::kFree);
        spare->drop();
    }
}

// Host memory for what a program on the device has to give back for those that are out, ahead of that: to pin
// it takes longer than the copy. One program at a time, and when nothing has moved for a while.
void Swapper::prepare(const std::vector<Program>& programs) {
    uint64_t away = 0;
    for (const Program& each : programs) away += each.away;
    if (away == 0 || MemoryTurns::Clock::now() < stepped_ + kQuiet) return;
    for (const Program& each : programs) {
        const uint64_t bytes = std::min(away, each.here);
        if (each.out || each.stays || bytes == 0) continue;
        {
            std::lock_guard lock(mutex_);
            uint64_t& prepared = known_[each.id].prepared;
            if (bytes <= prepared + prepared / 4) continue;
            prepared = bytes;
        }
        const Borrowed borrowed(server_, server_.borrow(each.id));
        for (Session* session : borrowed.sessions) {
            const AsGuest guest(*session);
            uint64_t missing = 0;
            session->memory().spare()->take(bytes, &missing);  // which is spare then
        }
        return;
    }
}

protocol::TurnFigures Swapper::figures(uint32_t session) const {
    std::lock_guard lock(mutex_);
    const auto known = known_.find(session);
    return known == known_.end() ? protocol::TurnFigures{} : known->second.figures;
}

}  // namespace smt::runtime::server
