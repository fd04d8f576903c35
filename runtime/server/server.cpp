#include "runtime/server/server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "runtime/protocol/environment.h"
#include "runtime/server/fatal.h"
#include "runtime/server/log.h"
#include "runtime/server/session.h"

namespace smt::runtime::server {

namespace {

// Where kernels are measured, what was learnt is in the file soon, so that `smt profile` can show how far it is. Else when a tenant leaves.
std::chrono::milliseconds between_writes() {
    const char* measures = std::getenv(environment::kProfile);
    return std::chrono::seconds(measures && *measures ? 1 : 0);
}

}  // namespace

Server::Server(device::Device& device, journal::Writer& journal, DevicePrintf& device_printf,
               std::unique_ptr<schedule::Policy> policy, const dispatch::Settings& settings)
    : device_(device),
      journal_(journal),
      device_printf_(device_printf),
      dispatcher_(device, journal, std::move(policy), settings),
      started_(journal::now_ns()),
      compiler_(jit::read_settings(jit::own_folder()), [this](const std::string& line) { note(line); }),
      profiles_(profiles::store_path(), profiles::read_facts(device), [this](const std::string& line) { note(line); }, between_writes()) {
    device_.attach(journal_);
    measuring_ = Measuring::wanted(device_, journal_.path(), [this](const std::string& line) { note(line); });
}

Server::~Server() = default;

void Server::note(const std::string& line, const Session* of) {
    journal::Entry entry;
    entry.kind = journal::Kind::kNote;
    entry.text = journal_.line(line);
    device_.write(journal_, entry, of);
    log_line(line);
}

void Server::add(Session& session) {
    std::lock_guard lock(mutex_);
    sessions_.push_back(&session);
    served_.fetch_add(1);
    if (fatal() != CUDA_SUCCESS) session.poison(fatal());
}

void Server::remove(Session& session) {
    std::lock_guard lock(mutex_);
    std::erase(sessions_, &session);
}

void Server::stop_sessions(const std::string& why) {
    std::lock_guard lock(mutex_);
    for (Session* session : sessions_) session->stop(why);
}

void Server::keep(std::unique_ptr<Session> session) {
    std::lock_guard lock(mutex_);
    std::erase(sessions_, session.get());
    kept_.push_back(std::move(session));
}

bool Server::keeps() const {
    std::lock_guard lock(mutex_);
    return !kept_.empty();
}

void Server::poison(CUresult status, Session* culprit) {
    int none = CUDA_SUCCESS;
    if (!fatal_.compare_exchange_strong(none, status)) return;
    fatal_since_.store(journal::now_ns());
    {
        std::lock_guard lock(mutex_);
        for (Session* session : sessions_) session->poison(status);
    }
    const char* name = nullptr;
    if (device_.driver().cuGetErrorName) device_.driver().cuGetErrorName(status, &name);
    note(fmt::format("the shared context is lost: {} ({}), seen by {}. Every session gets this error; the next "
                     "program starts a fresh server when this one has left",
                     name ? name : "error", static_cast<int>(status),
                     culprit ? fmt::format("session {}", culprit->id()) : std::string("the server")));
}

void Server::tick() {
    if (fatal() == CUDA_SUCCESS) {
        CUresult status = device_.driver().cuStreamQuery(device_.errands());
        if (is_fatal(status)) poison(status, nullptr);
    }
    std::lock_guard lock(mutex_);
    for (Session* session : sessions_) session->tick();
}

uint32_t Server::stuck() const {
    std::lock_guard lock(mutex_);
    return static_cast<uint32_t>(std::count_if(sessions_.begin(), sessions_.end(),
                                               [](const Session* session) { return session->stuck(); }));
}

protocol::StatusReply Server::status() const {
    protocol::StatusReply reply;
    reply.server_pid = getpid();
    reply.sessions_served = served_.load();
    reply.launches = launches_.load();
    reply.uptime_ms = (journal::now_ns() - started_) / 1'000'000;
    reply.multiprocessors = static_cast<uint32_t>(device_.properties().multiprocessors);
    std::strncpy(reply.policy, dispatcher_.policy(), sizeof reply.policy - 1);
    std::strncpy(reply.device, device_.properties().name.c_str(), sizeof reply.device - 1);
    std::lock_guard lock(mutex_);
    reply.sessions = static_cast<uint32_t>(sessions_.size());
    for (const Session* session : sessions_) {
        reply.lanes += session->lane_count();
        reply.device_bytes += session->device_bytes();
        reply.host_bytes += session->host_bytes();
    }
    return reply;
}

std::vector<protocol::TenantStatus> Server::tenants() const {
    std::lock_guard lock(mutex_);
    std::vector<protocol::TenantStatus> all;
    for (const Session* session : sessions_) all.push_back(session->status());
    return all;
}

std::string Server::set_policy(const std::string& name) {
    std::string problem = schedule::policy_problem(name);
    if (problem.empty()) dispatcher_.set_policy(schedule::make_policy(name));
    return problem;
}

}  // namespace smt::runtime::server
