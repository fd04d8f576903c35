// See swapper.h.
#include "runtime/server/swapper.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/memory/tenant_ranges.h"
#include "runtime/server/moving.h"
#include "runtime/server/unpinning.h"
#include "runtime/settings/read.h"

namespace smt::runtime::server {

namespace {

using What = MemoryTurns::Step::What;

constexpr auto kLookOften = std::chrono::milliseconds(2);  // while a program is out, or asks
constexpr auto kLookIdle = std::chrono::milliseconds(50);  // else: whether programs are idle
constexpr auto kMovesNow = std::chrono::seconds(1);        // after a step the next one may come soon
constexpr auto kGrows = std::chrono::seconds(10);          // after an allocation, likewise
constexpr uint64_t kForeseen = 16ull << 30;  // of the first moves, while they pin what they need more
constexpr uint64_t kNextMove = 4ull << 30;   // later moves mostly take what others give back meanwhile

double part_of(settings::Id per_cent) { return static_cast<double>(settings::number_of(per_cent)) / 100; }

// A program that has ended still has memory, which others get soon. Not one whose work does not end.
bool memory_comes(const Server& server) {
    bool comes = false;
    server.each_session([&](const Session& each) {
        comes = comes || (each.closing() && !each.stuck() && each.device_bytes() != 0);
    });
    return comes;
}

}  // namespace

std::unique_ptr<Swapper> Swapper::wanted(Server& server) {
    if (!settings::flag_of(settings::Id::kOversubscribe)) return nullptr;
    auto swapper = std::make_unique<Swapper>(server);
    server.unpinning().begin();
    const std::string why = swapper->thread_.serve({"swapper", ""}, [it = swapper.get()] { it->run(); });
    if (why.empty()) return swapper;
    server.note("tenants' memory is not moved: " + why);
    return nullptr;
}

Swapper::Swapper(Server& server)
    : server_(server), turns_(part_of(settings::Id::kSwapPart), part_of(settings::Id::kSwapCalls)) {}

Swapper::~Swapper() {
    {
        std::lock_guard lock(mutex_);
        leaves_ = true;
    }
    changed_.notify_all();
    answered_.notify_all();
    thread_.join();
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
        tell_missing(all);
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
    const CUresult status = server_.device().physical_memory().room(&free, &total);
    return status == CUDA_SUCCESS ? free : 0;
}

std::vector<Swapper::Program> Swapper::programs() {
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

Swapper::Program Swapper::program_of(Session& session, TimePoint now) {
    Program program{.id = session.id()};
    const bool suspended = session.gate().closed(LaneGate::kSuspended);
    program.here = session.memory().bytes_movable();
    program.away = session.bytes_away();
    program.out = !suspended && session.gate().closed(LaneGate::kOutOfTurn);
    const std::string why = suspended ? "it is suspended" : session.why_not_suspended();
    program.stays = !program.out && (session.poisoned() || !why.empty());  // it comes in all the same
    uint64_t position = 0;
    const bool works = !suspended && session.has_work(program.out, &position),
               leaves_gate = session.gate().leaving();
    std::lock_guard lock(mutex_);
    Known& known = known_[program.id];
    program.works = works || (!program.out && position != known.position);
    known.position = position;
    if (!why.empty()) known.why = fmt::format("{} cannot be moved: {}", session.called(), why);
    program.stays = program.stays || now < known.stays_until;
    program.later = now < later_ || takes(0);
    program.held = !program.out && (takes(program.id) || leaves_gate);
    if (const Request* asks = first_of(program.id); asks && !suspended) program.asks = asks->bytes_;
    known.figures.turns = turns_.turns(program.id);
    known.figures.missing_bytes = turns_.missing(program.id);
    return program;
}

void Swapper::carry_out(const Step& step, const std::vector<Program>& programs) {
    seen_ = programs;
    stepped_ = MemoryTurns::Clock::now();
    switch (step.what) {
        case What::kNothing:
            return;
        case What::kOut:
            return step.last ? exchange(step) : move_out(step);
        case What::kIn:
            return move_in(step);
        case What::kGrant:
            turns_.served(step.requester, stepped_);
            return answer(step.requester, Answer::kTryAgain);
        case What::kRefuse:
            return refuse(step);
    }
}

std::string Swapper::called(uint32_t session) {
    const Borrowed borrowed(server_, server_.borrow(session));
    return borrowed.sessions.empty() ? "a program that has ended" : borrowed.sessions.front()->called();
}

// Host memory for the next move, ahead of it, as to pin it takes longer than the copy. While programs take
// more memory, and have more than half of what they may have, the next allocation may push out as much as the
// second largest has; later, what a program on the device has to give back for those that are out.
void Swapper::prepare(const std::vector<Program>& programs) {
    uint64_t away = 0, here = 0, all_here = 0, all = 0, largest = 0, second = 0;
    for (const Program& each : programs) {
        const uint64_t has = each.here + each.away;
        all += has;
        second = std::max(second, std::min(largest, has));
        largest = std::max(largest, has);
        if (each.out) away = std::max(away, each.away);
        if (each.out || each.stays) continue;
        all_here += each.here;
        here = std::max(here, each.here);
    }
    const TimePoint now = MemoryTurns::Clock::now();
    if (all > all_) grown_ = now;
    all_ = all;
    SpareBlocks& blocks = *server_.unpinning().blocks();
    if (away) blocks.use();
    const auto grew = now - grown_;
    const bool foreseen = second && (away ? grew < kMovesNow : grew < kGrows && free_bytes() < all_here);
    blocks.want(foreseen ? std::min(second, kForeseen) : std::min({away, here, kNextMove}),
                now < stepped_ + kMovesNow);
}

protocol::TurnFigures Swapper::figures(uint32_t session) const {
    std::lock_guard lock(mutex_);
    const auto known = known_.find(session);
    return known == known_.end() ? protocol::TurnFigures{} : known->second.figures;
}

}  // namespace smt::runtime::server
