#include "runtime/server/connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "opcodes.gen.h"
#include "runtime/protocol/handshake.h"
#include "runtime/protocol/packet.h"
#include "runtime/protocol/server_key.h"
#include "runtime/server/log.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "runtime/server/settings_check.h"
#include "runtime/server/users.h"
#include "runtime/settings/config.h"

namespace smt::runtime::server {

using namespace protocol;

namespace {

constexpr long kFirstPacketSeconds = 10;
constexpr int kFirstOfRefusedMs = 5;
constexpr uint32_t kMostPatienceMs = 24 * 3600 * 1000;
constexpr uint32_t kUsersPatienceMs = 60 * 1000;  // of one who does not administer: the others wait meanwhile

}  // namespace

Connection::~Connection() {
    thread_.join();
    close(socket_);
}

std::string Connection::start() {
    const auto body = [this] {
        answer();
        finish();
    };
    return thread_.start({"connection", ""}, body, [this](const std::string&) { finish(); });
}

std::string Connection::start_taken(const Hello& hello, Session::Taken taken) {
    silent_.store(false);
    const auto body = [this, hello, taken = std::move(taken)]() mutable {
        const auto commit = std::move(taken.commit);
        taken.commit = [&](const std::string& problem) {
            const bool ours = commit(problem);
            gone_ = !ours || !problem.empty();
            return ours;
        };
        gone_ = true;  // unless commit() says otherwise
        if (owner_.server->device().enter_thread() == CUDA_SUCCESS) serve_session(hello, &taken);
        finish();
    };
    return thread_.start({"connection", ""}, body, [this](const std::string&) { finish(); });
}

void Connection::finish() {
    if (!gone_)
        shutdown(socket_, SHUT_RDWR);  // the peer sees the end now; the destructor closes the descriptor
    ended_.store(true);
    owner_.ended();
}

// An end with the first message unread would come before the answer.
void Connection::turn_away(const std::string& why) {
    pollfd first{socket_, POLLIN, 0};
    char byte = 0;
    if (poll(&first, 1, kFirstOfRefusedMs) > 0) recv(socket_, &byte, sizeof byte, MSG_DONTWAIT);
    refuse(static_cast<uint32_t>(WelcomeStatus::kRefused), why);
    hang_up();
}

void Connection::note(const std::string& line) {
    if (owner_.server) {
        owner_.server->note(line);
    } else {
        log_line(line);
    }
}

void Connection::hang_up() {
    silent_.store(false);  // no longer counted, whatever its thread does
    shutdown(socket_, SHUT_RDWR);
}

void Connection::answer() {
    peer_ = Peer::of(socket_, owner_.users);
    if (!peer_) return;
    timeval limit{kFirstPacketSeconds, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (owner_.users)  // another user's program may never read
        setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    alignas(8) char packet[std::max(sizeof(Hello), sizeof(SettingsRequest)) + 1];
    ssize_t got = recv(socket_, packet, sizeof packet, 0);
    silent_.store(false);
    if (got < static_cast<ssize_t>(sizeof(StatusRequest))) {
        if (got > 0) refuse(static_cast<uint32_t>(WelcomeStatus::kRefused), "the first message is too short");
        return;
    }
    StatusRequest head;
    std::memcpy(&head, packet, sizeof head);
    if (head.magic != kMagic) {
        return refuse(static_cast<uint32_t>(WelcomeStatus::kRefused), "the first message is not smt's");
    }
    switch (head.kind) {
        case ControlKind::kHello:
            return answer_hello(packet, static_cast<size_t>(got));
        case ControlKind::kStatus:
            return answer_status(false);
        case ControlKind::kStop:
            if (const std::string why = peer_->why_not("stops it"); !why.empty())
                return refuse(static_cast<uint32_t>(WelcomeStatus::kRefused), why);
            return answer_status(true);
        case ControlKind::kTenants:
            return answer_tenants();
        case ControlKind::kDevice:
            return answer_device();
        case ControlKind::kSettings:
            return answer_settings(packet, static_cast<size_t>(got));
        case ControlKind::kSetPolicy:
            return answer_policy(packet, static_cast<size_t>(got));
        case ControlKind::kSetMemoryLimit:
            return answer_memory_limit(packet, static_cast<size_t>(got));
        case ControlKind::kSetTerms:
            return answer_terms(packet, static_cast<size_t>(got));
        case ControlKind::kFetchShared:
            return answer_fetch(packet, static_cast<size_t>(got));
        case ControlKind::kSuspend:
        case ControlKind::kResume:
            return answer_suspend(packet, static_cast<size_t>(got));
        default:
            return refuse(static_cast<uint32_t>(WelcomeStatus::kRefused), "the first message is no greeting");
    }
}

void Connection::refuse(uint32_t status, const std::string& why) {
    Welcome welcome;
    welcome.status = static_cast<WelcomeStatus>(status);
    welcome.table_hash = kTableHash;
    welcome.server_pid = getpid();
    std::strncpy(welcome.message, why.c_str(), sizeof welcome.message - 1);
    if (send(socket_, &welcome, sizeof welcome, MSG_NOSIGNAL) < 0) return;
    note(fmt::format("refused {}: {}", peer_ && owner_.users ? peer_->full_name("a program") : "a program",
                     why));
}

// False: it has another size, and the peer was told.
template <typename Request>
bool Connection::read(const void* packet, size_t bytes, Request* request) {
    if (bytes == sizeof *request)
        std::memcpy(request, packet, sizeof *request);
    else
        refuse(static_cast<uint32_t>(WelcomeStatus::kRefused), "the first message has a wrong size");
    return bytes == sizeof *request;
}

void Connection::answer_hello(const void* packet, size_t bytes) {
    // The version has the same offset in the Hello of every protocol version.
    Hello hello;
    std::memcpy(&hello, packet, std::min(bytes, sizeof hello));
    bool same = bytes == sizeof hello && hello.version == kProtocolVersion && hello.table_hash == kTableHash;
    if (!same) {
        refuse(static_cast<uint32_t>(WelcomeStatus::kVersionMismatch),
               fmt::format(
                   "this server speaks version {} (table {:x}), the program's libsmt.so version {} (table "
                   "{:x}); stop the server with `smt server stop` when its programs have ended",
                   kProtocolVersion, kTableHash, hello.version, hello.table_hash));
        if (!owner_.users) owner_.stop_if_idle();  // a system's server is its administrator's to stop
        return;
    }
    if (!owner_.server) return refuse(static_cast<uint32_t>(WelcomeStatus::kNoDevice), owner_.refusal);
    Server& server = *owner_.server;
    // A fault has ended the context, and the server leaves soon. The connection is closed without a reply, so
    // the client connects again and finds or starts the next server.
    if (server.fatal() != CUDA_SUCCESS) return;
    if (CUresult status = server.device().enter_thread(); status != CUDA_SUCCESS) {
        return refuse(static_cast<uint32_t>(WelcomeStatus::kNoDevice),
                      fmt::format("the context cannot be used: error {}", static_cast<int>(status)));
    }
    if (const std::string why = peer_->admit(hello); !why.empty())
        return refuse(static_cast<uint32_t>(WelcomeStatus::kRefused), why);
    if (refuse_shared(hello) || refuse_offender(hello) || refuse_limit(hello) || refuse_quarantine(hello))
        return;
    std::unique_ptr<Users::Place> place;
    if (owner_.users) {
        const uint32_t most = peer_->granted().sessions;
        place = owner_.users->enter(peer_->user(), most);
        if (!place)
            return refuse(static_cast<uint32_t>(WelcomeStatus::kRefused),
                          fmt::format("the administrator grants this user {} programs at once", most));
    }
    if (const std::string lowered = Peer::lowered(hello); !lowered.empty())
        note(fmt::format("{} (pid {}): {}", text_in(hello.tenant), hello.pid, lowered));
    server.await_standby(std::string(text_in(hello.tenant)));  // after all refusals: they do not wait
    if (refuse_offender(hello)) return;                        // another fault may have come meanwhile
    serve_session(hello, nullptr);
}

bool Connection::refuse_shared(const Hello& hello) {
    const std::string_view full = text_in(hello.tenant), name = without_user(owner_.users, full);
    const bool named = protocol::has_to_be_strict(full) || protocol::has_to_be_strict(name);
    if (owner_.server->serves_one_tenant() || !named) return false;
    refuse(static_cast<uint32_t>(WelcomeStatus::kRefused),
           fmt::format("SMT_STRICT_TENANTS, or strict_tenants in {}, names tenant {}, which may not share a "
                       "context: start the program with `smt run`, or set SMT_ISOLATION=strict",
                       settings::system_file(), name));
    return true;
}

bool Connection::refuse_offender(const Hello& hello) {
    const std::string tenant(text_in(hello.tenant));
    Offences& offences = owner_.server->offences();
    const uint64_t seconds = offences.refused_seconds(tenant, journal::now_ns());
    if (seconds == 0) return false;
    refuse(
        static_cast<uint32_t>(WelcomeStatus::kRefused),
        fmt::format(
            "kernels of tenant {} have lost the GPU's context, or did not end, {} times within an hour: it "
            "is refused for another {} s",
            tenant, offences.count(tenant), seconds));
    return true;
}

bool Connection::refuse_quarantine(const Hello& hello) {
    const bool named = owner_.server->quarantine().names(std::string(text_in(hello.tenant)));
    if (hello.quarantine == 0 && !named) return false;
    const std::string why =
        hello.stress ? "its launches are under SMT_STRESS" : owner_.server->why_no_quarantine();
    if (why.empty()) return false;
    refuse(static_cast<uint32_t>(WelcomeStatus::kRefused), "it cannot be in quarantine: " + why);
    return true;
}

bool Connection::refuse_limit(const Hello& hello) {
    if (kernel_limit(hello) == schedule::Duration::zero()) return false;
    const std::string why = owner_.server->why_no_kernel_limit();
    if (why.empty()) return false;
    refuse(static_cast<uint32_t>(WelcomeStatus::kRefused),
           fmt::format("its kernels cannot have a limit of {} s: {}",
                       kernel_limit(hello) / std::chrono::seconds(1), why));
    return true;
}

// `taken`: another process had it; null: it begins.
void Connection::serve_session(const Hello& hello, Session::Taken* taken) {
    Server& server = *owner_.server;
    uint32_t number = server.device().admit(std::string(text_in(hello.tenant)));
    if (number == 0) number = server.next_session();
    auto session = std::make_unique<Session>(server, number, socket_, hello);
    bool apart = false;
    try {
        apart = taken ? session->serve_taken(*taken) : session->serve();
    } catch (...) {  // its lanes may still run
        server.keep(std::move(session));
        throw;
    }
    if (!apart) server.keep(std::move(session));
}

void Connection::answer_status(bool stop) {
    StatusReply reply;
    if (owner_.server) {
        reply = owner_.server->status(&*peer_);
    } else {
        reply.server_pid = getpid();
        std::strncpy(reply.device, owner_.refusal.c_str(), sizeof reply.device - 1);
    }
    if (send(socket_, &reply, sizeof reply, MSG_NOSIGNAL) < 0) return;
    if (stop) owner_.stop();
}

void Connection::answer_tenants() {
    if (!owner_.server) return answer_status(false);
    const std::vector<TenantStatus> tenants = owner_.server->tenants(*peer_);
    StatusReply reply = owner_.server->status(&*peer_);
    reply.tenants = static_cast<uint32_t>(tenants.size());
    if (send(socket_, &reply, sizeof reply, MSG_NOSIGNAL) < 0) return;
    for (const TenantStatus& each : tenants) {
        if (send(socket_, &each, sizeof each, MSG_NOSIGNAL) < 0) return;
    }
}

void Connection::answer_device() {
    DeviceReply reply;
    if (owner_.server && owner_.server->device().enter_thread() == CUDA_SUCCESS) {
        device::Device& device = owner_.server->device();
        reply.ok = 1;
        size_t free = 0, total = 0;
        device.physical_memory().room(&free, &total);
        reply.free_bytes = free;
        reply.total_bytes = device.properties().total_memory;
        for (uint32_t i = 1; i < kDeviceAttributes; ++i)
            device.driver().cuDeviceGetAttribute(&reply.attributes[i], static_cast<CUdevice_attribute>(i),
                                                 device.device());
        std::strncpy(reply.name, device.properties().name.c_str(), sizeof reply.name - 1);
    }
    if (send(socket_, &reply, sizeof reply, MSG_NOSIGNAL) < 0) return;
}

void Connection::answer_fetch(const void* packet, size_t bytes) {
    FetchShared request;
    if (!read(packet, bytes, &request)) return;
    if (user_ != geteuid() || request.version != kProtocolVersion || !owner_.server)
        return refuse(static_cast<uint32_t>(WelcomeStatus::kRefused),
                      "memory is given to servers of this one's user and version only");
    int file = -1;
    Server& server = *owner_.server;
    if (server.device().enter_thread() != CUDA_SUCCESS) return;
    const SharedFetched reply = server.neighbours().give(server.sharing(), request, &file);
    send_packet(socket_, &reply, sizeof reply, file);
    if (file >= 0) close(file);
}

void Connection::answer_settings(const void* packet, size_t bytes) {
    SettingsRequest request;
    if (!read(packet, bytes, &request)) return;
    SettingsReply reply;
    if (owner_.server && peer_->administers()) {
        const std::string tenant = peer_->full_name(text_in(request.tenant));
        const std::string all = differing_settings(std::string(text_in(request.settings)),
                                                   owner_.server->dispatcher().policy().name);
        std::strncpy(reply.differences, all.c_str(), sizeof reply.differences - 1);
        for (size_t at = 0, end; (end = all.find('\n', at)) != std::string::npos; at = end + 1)
            owner_.server->note(fmt::format("{} starts, and {}", tenant, all.substr(at, end - at)));
    }
    if (send(socket_, &reply, sizeof reply, MSG_NOSIGNAL) < 0) return;
}

void Connection::answer_policy(const void* packet, size_t bytes) {
    PolicyRequest request;
    if (!read(packet, bytes, &request)) return;
    if (const std::string why = peer_->why_not("sets the policy"); !why.empty()) return answer_change(why);
    const std::string name(text_in(request.policy));
    // set_policy() may preempt and resume streams on this thread.
    if (owner_.server) owner_.server->device().enter_thread();
    answer_change(owner_.server ? owner_.server->set_policy(name) : owner_.refusal);
}

void Connection::answer_memory_limit(const void* packet, size_t bytes) {
    MemoryLimitRequest request;
    if (!read(packet, bytes, &request)) return;
    if (const std::string why = peer_->why_no_limit(request.limit); !why.empty()) return answer_change(why);
    const std::string tenant = peer_->full_name(text_in(request.tenant));
    answer_change(owner_.server ? owner_.server->set_memory_limit(tenant, request.limit) : owner_.refusal);
}

void Connection::answer_terms(const void* packet, size_t bytes) {
    TermsRequest request;
    if (!read(packet, bytes, &request)) return;
    if (const std::string why = peer_->why_no_terms(request); !why.empty()) return answer_change(why);
    if (owner_.server) owner_.server->device().enter_thread();  // as for another policy
    const std::string tenant = peer_->full_name(text_in(request.tenant));
    answer_change(owner_.server ? owner_.server->set_terms(tenant, request) : owner_.refusal);
}

void Connection::answer_change(const std::string& problem) {
    ChangeReply reply;
    reply.ok = problem.empty();
    std::strncpy(reply.message, problem.c_str(), sizeof reply.message - 1);
    if (send(socket_, &reply, sizeof reply, MSG_NOSIGNAL) < 0) return;
}

void Connection::answer_suspend(const void* packet, size_t bytes) {
    SuspendRequest request;
    SuspendReply reply;
    if (!read(packet, bytes, &request)) return;
    const std::string name = peer_->full_name(text_in(request.tenant));
    if (!owner_.server) {
        std::strncpy(reply.message, owner_.refusal.c_str(), sizeof reply.message - 1);
    } else if (owner_.server->device().enter_thread() != CUDA_SUCCESS) {
        std::strncpy(reply.message, "the GPU's context is lost", sizeof reply.message - 1);
    } else {
        Suspension& suspension = owner_.server->suspension();
        const uint32_t most = peer_->administers() ? kMostPatienceMs : kUsersPatienceMs;
        const std::chrono::milliseconds patience(std::min(request.patience_ms, most));
        reply = request.kind == ControlKind::kSuspend ? suspension.suspend(name, patience)
                                                      : suspension.resume(name);
    }
    if (send(socket_, &reply, sizeof reply, MSG_NOSIGNAL) < 0) return;
}

}  // namespace smt::runtime::server
