// What `smt status` shows of a server and its tenants.
#include <unistd.h>

#include <cstring>

#include "runtime/server/peer.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "runtime/server/unpinning.h"

namespace smt::runtime::server {

protocol::StatusReply Server::status(const Peer* viewer) const {
    protocol::StatusReply reply;
    reply.server_pid = getpid();
    reply.sessions_served = served_.load();
    reply.uptime_ms = (journal::now_ns() - started_) / 1'000'000;
    reply.multiprocessors = static_cast<uint32_t>(device_.properties().multiprocessors);
    std::strncpy(reply.policy, dispatcher_.policy().name, sizeof reply.policy - 1);
    std::strncpy(reply.device, device_.properties().name.c_str(), sizeof reply.device - 1);
    const SpareBlocks::Figures host = unpinning_->blocks()->figures();
    reply.pinned_bytes = host.pinned_bytes;
    reply.made_bytes = host.made_bytes;
    reply.making_us = static_cast<uint64_t>(host.making / std::chrono::microseconds(1));
    std::lock_guard lock(mutex_);
    reply.sessions = static_cast<uint32_t>(sessions_.size());
    reply.launches = launches_;
    reply.takes_over = takes_over();
    for (const Session* session : sessions_) {
        reply.lanes += session->lane_count();
        reply.launches += session->launches();
        reply.device_bytes += session->device_bytes();
        reply.host_bytes += session->host_bytes();
        reply.carried += takes_over() && session->would_go_on();
        if (!viewer || viewer->sees(session->user())) continue;
        reply.others += 1;
        reply.other_bytes += session->device_bytes();
    }
    return reply;
}

std::vector<protocol::TenantStatus> Server::tenants(const Peer& viewer) const {
    std::lock_guard lock(mutex_);
    std::vector<protocol::TenantStatus> all;
    for (const Session* session : sessions_) {
        if (!viewer.sees(session->user())) continue;
        protocol::TenantStatus status = session->status();
        if (status.waits_for[0] && !viewer.administers()) {  // it may name another user's tenant
            std::memset(status.waits_for, 0, sizeof status.waits_for);
            std::strcpy(status.waits_for, "other work on the GPU");
        }
        all.push_back(status);
    }
    return all;
}

}  // namespace smt::runtime::server
