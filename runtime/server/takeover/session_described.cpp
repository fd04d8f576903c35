// The state of a session that goes on: written between two records, for a process that goes on with it if
// this one crashes.
#include <unistd.h>

#include <chrono>

#include "runtime/server/code/code_table.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::runtime::server {

namespace {

using namespace std::chrono_literals;

constexpr auto kStandWithin = 5ms;  // with lanes that have nothing to do
constexpr useconds_t kStandPoll = 20;

class StandsStill {
public:
    explicit StandsStill(LaneGate& gate) : gate_(gate) { gate_.close(LaneGate::kDescribed); }
    ~StandsStill() { gate_.open(LaneGate::kDescribed); }
    StandsStill(const StandsStill&) = delete;
    StandsStill& operator=(const StandsStill&) = delete;

private:
    LaneGate& gate_;
};

}  // namespace

// The uses are read first: those are over that were made before the streams were asked.
bool Session::rests() {
    const uint64_t uses = marks_->uses();
    if (uses == marks_->resting()) return true;
    if (streams_.captures() || streams_.work()) return false;
    marks_->rests(uses);
    return true;
}

void Session::note_rest() {
    if (marks_) rests();
}

bool Session::would_go_on() const { return marks_ && marks_->why_not(described_at_.load()).empty(); }

std::optional<Session::Described> Session::describe() {
    uint64_t position = 0;
    if (gate_.closed() || held() || poisoned() || has_work(false, &position)) return std::nullopt;
    const StandsStill stop(gate_);
    const auto until = std::chrono::steady_clock::now() + kStandWithin;
    while (!lanes_stand()) {
        if (std::chrono::steady_clock::now() > until) return std::nullopt;
        usleep(kStandPoll);
    }
    Described all;
    all.changes = marks_->changes();
    const uint64_t messages = marks_->control().begun.load();
    if (!marks_->stands() || !rests()) return std::nullopt;
    all.why = why_not_carried();
    if (all.why.empty() && !arena_.all_released()) return std::nullopt;
    if (all.why.empty()) all.state = save();
    // A message that came meanwhile may have opened a lane. Memory may have begun to move. An error that came
    // before the changes were read would not count as one.
    if (marks_->control().begun.load() != messages || gate_.keeps_back() || poisoned()) return std::nullopt;
    return all;
}

}  // namespace smt::runtime::server
