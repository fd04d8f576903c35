// What `smt status` shows of a session.
#include <chrono>
#include <cstring>

#include "runtime/device/held_up.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/session.h"

namespace smt::runtime::server {

namespace {

void note_target(protocol::TenantStatus& status, const dispatch::Tenant& tenant) {
    using State = schedule::Attained::State;
    const dispatch::Attainment& said = tenant.attainment;
    status.p99_us = static_cast<uint64_t>(tenant.target.p99 / std::chrono::microseconds(1));
    status.slowdown_thousandths = static_cast<uint32_t>(tenant.target.slowdown * 1000 + 0.5);
    status.seen_p99_us = static_cast<uint64_t>(said.seen_p99_ns.load() / 1000);
    status.headroom_thousandths = said.headroom_thousandths.load();
    status.beside = static_cast<uint32_t>(said.multiprocessors.load());
    switch (said.state.load()) {
        case static_cast<int>(State::kLearning):
            status.target_state = protocol::TargetState::kLearning;
            break;
        case static_cast<int>(State::kKept):
            status.target_state = protocol::TargetState::kKept;
            break;
        case static_cast<int>(State::kNotKept):
            status.target_state = protocol::TargetState::kNotKept;
            break;
    }
}

}  // namespace

protocol::TenantStatus Session::status() const {
    protocol::TenantStatus status;
    status.session = id_;
    status.pid = pid_;
    status.priority = dispatched_->priority;
    status.weight = dispatched_->weight;
    status.limited = hello_.limited;
    status.fenced = wants_fence();
    status.quarantine = server_.quarantine().holds(*this);
    note_target(status, *dispatched_);
    {
        std::lock_guard lock(mutex_);
        if (memory_open_) status.memory = memory_->figures();
    }
    status.device_bytes = device_bytes();
    status.host_bytes = host_bytes();
    status.memory_limit = tenant_account_->limit();
    status.gpu_time_ns = static_cast<uint64_t>(dispatched_->received.ns.load(std::memory_order_relaxed));
    status.launches = launches_.load(std::memory_order_relaxed);
    status.multiprocessors = multiprocessors_;
    status.lanes = lane_count_.load();
    status.gone = closing();
    note_suspended(status);
    if (const std::optional<device::Wait> wait = device::longest_wait(id_)) {
        status.waited_ms = static_cast<uint32_t>(wait->lasted / std::chrono::milliseconds(1));
        std::strncpy(status.waits_for, wait->by.c_str(), sizeof status.waits_for - 1);
    }
    status.waits = device::waits_of(id_);
    std::strncpy(status.tenant, tenant_.c_str(), sizeof status.tenant - 1);
    std::strncpy(status.program, program_.c_str(), sizeof status.program - 1);
    return status;
}

}  // namespace smt::runtime::server
