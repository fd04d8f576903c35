// A session that is suspended or out of turn: its lanes stand, its work is at rest, its memory is in host
// memory.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/server/lane.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "runtime/server/swapper.h"

namespace smt::runtime::server {

bool Session::wants_quarantine() const { return hello_.quarantine != 0 && !server_.serves_one_tenant(); }

std::string Session::why_not_suspended() const {
    if (dispatched_->tried() || server_.measuring())
        return "its kernels are measured, or under an experiment";
    if (gate_.closed(LaneGate::kReissued)) return "launches of it wait to be executed again";
    return {};
}

bool Session::lanes_stand() {
    uint32_t lanes = 0;
    {
        std::lock_guard lock(mutex_);
        for (const std::shared_ptr<Lane>& lane : lanes_) {
            if (!lane || lane->ended()) continue;
            ++lanes;
            lane->wake();  // from its sleep, or its wait for another lane
        }
    }
    return gate_.standing() + dispatched_->parking.threads() >= lanes;
}

std::string Session::runs() {
    UnderWay left;
    uint32_t known = 0;
    const bool stand = lanes_stand();
    if (server_.dispatcher().at_rest(*dispatched_, &known) && stand && streams_.driver_is_done(&left))
        return {};
    if (!stand) left = streams_.under_way();
    const journal::Reader names(journal().path());
    if (known) return "kernel " + names.name(known);
    std::string kernels;
    for (const uint32_t kernel : left.kernels) kernels += (kernels.empty() ? "" : ", ") + names.name(kernel);
    if (!kernels.empty()) return (left.kernels.size() == 1 ? "kernel " : "one of the kernels ") + kernels;
    return stand ? "a copy or a wait on one of its streams" : "a call of it";
}

bool Session::has_work(bool out, uint64_t* position) {
    bool pending = false;
    {
        std::lock_guard lock(mutex_);
        for (const std::shared_ptr<Lane>& lane : lanes_) {
            if (!lane || lane->ended()) continue;
            *position += lane->reached();
            pending = pending || lane->pending();
        }
    }
    return pending || (out ? server_.dispatcher().holds_back(*dispatched_) : streams_.work());
}

// Its launches wait as its lanes do, but for those that are executed again. The gate may open or close at
// this moment.
void Session::follow_gate() {
    const auto holds = [this] {
        return gate_.closed(LaneGate::kSuspended) || gate_.closed(LaneGate::kOutOfTurn) ||
               (gate_.closed(LaneGate::kQuarantine) && !gate_.closed(LaneGate::kReissued));
    };
    bool held = false;
    do {
        held = holds();
        if (held)
            server_.dispatcher().suspend(dispatched_);
        else
            server_.dispatcher().resume(dispatched_);
    } while (held != holds());
}

void Session::note_suspended(protocol::TenantStatus& status) const {
    status.suspended = gate_.closed(LaneGate::kSuspended);
    status.away_bytes = bytes_away();
    status.file_bytes = std::min(status.away_bytes, bytes_in_files());
    status.out_of_turn = gate_.closed(LaneGate::kOutOfTurn);
    if (const Swapper* swapper = server_.swapper()) status.turns = swapper->figures(id_);
}

bool Session::has_memory() const {
    std::lock_guard lock(mutex_);
    return memory_open_;
}

uint64_t Session::bytes_in_files() const {
    std::lock_guard lock(mutex_);
    return memory_open_ ? memory_->bytes_in_files() : 0;
}

uint64_t Session::bytes_away() const {
    std::lock_guard lock(mutex_);
    return memory_open_ ? memory_->bytes_away() : 0;
}

}  // namespace smt::runtime::server
