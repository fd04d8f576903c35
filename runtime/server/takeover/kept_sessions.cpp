#include "runtime/server/takeover/kept_sessions.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "runtime/keeper/channel.h"
#include "runtime/protocol/state.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "runtime/server/takeover/packet.h"

namespace smt::runtime::server {

namespace {

using Clock = std::chrono::steady_clock;

// A state of gigabytes of images is written seldom: its session stands meanwhile.
constexpr int kRestBetween = 20;                           // times as long as it took
constexpr auto kNotCarriedRest = std::chrono::seconds(1);  // for one that cannot be carried

std::string logged_name(const Session& session) {
    return fmt::format("{}, pid {}", session.tenant(), session.pid());
}

// False: the socket is full, or there is no file; it is tried again.
bool send_now(int socket, Packet packet, const std::string& state, std::vector<int> files, size_t place) {
    const int file = file_of(state);
    if (file < 0) return false;
    files.insert(files.begin() + static_cast<ptrdiff_t>(place), file);
    packet.value = state.size();
    const bool sent = keeper::send_packet(socket, &packet, sizeof packet, files, false);
    close(file);
    return sent;
}

}  // namespace

std::string KeptSessions::state_of(Server& server) {
    protocol::StateWriter state;
    state.text(server.status().policy);
    server.save_record(state);
    return state.all();
}

void KeptSessions::forget_all() {
    known_.clear();
    server_state_.clear();
}

void KeptSessions::tell(Server& server, int socket, int listening, int lock) {
    if (server.fatal() != CUDA_SUCCESS || !tell_server(server, socket, listening, lock)) return;
    // Sessions that are borrowed are not torn down meanwhile.
    const std::vector<Session*> sessions = server.borrow_all();
    try {
        for (Session* session : sessions)
            if (session->marks()) tell_session(*session, socket);
    } catch (...) {
        server.give_back(sessions);
        throw;
    }
    server.give_back(sessions);
    forget_ended(server, socket);
}

bool KeptSessions::tell_server(Server& server, int socket, int listening, int lock) {
    const std::string state = state_of(server);
    if (state == server_state_) return true;
    if (!send_now(socket, make_packet(PacketKind::kServe), state, {listening, lock}, 2)) return false;
    server_state_ = state;
    return true;
}

void KeptSessions::tell_session(Session& session, int socket) {
    const auto found = known_.find(session.id());
    const bool is_new = found == known_.end();
    Known known = is_new ? Known{} : found->second;
    if (!is_new && known.changes == session.marks()->changes()) return;
    Session::Described now;
    const Clock::time_point begun = Clock::now();
    if (begun >= known.next) {
        if (std::optional<Session::Described> described = session.describe()) now = std::move(*described);
        known.next = Clock::now() + kRestBetween * (Clock::now() - begun);
    }
    const bool written = !now.state.empty() || !now.why.empty();
    if (!written && !is_new) return;  // it is at work
    if (!written) now.why = "its state was not written yet, as it was at work";
    known.changes = now.state.empty() ? Session::kNotDescribed : now.changes;  // the reason may go by itself
    if (now.state.empty()) known.next = std::max(known.next, Clock::now() + kNotCarriedRest);
    if (is_new || !now.state.empty() || known.described || known.why != now.why) {
        Packet packet = make_packet(PacketKind::kKept, 0, now.why);
        packet.number = session.id();
        packet.changes = known.changes;
        if (!send_now(socket, packet, now.state.empty() ? logged_name(session) : now.state,
                      {session.socket(), session.arena().file(), session.marks()->file()}, 2))
            return;
    }
    session.described_at(known.changes);
    known.described = !now.state.empty();
    known.why = now.why;
    known_[session.id()] = known;
}

// The standby has their sockets: until it closes them a program that is there does not see their end, but
// the server shuts them down when it ends a session.
void KeptSessions::forget_ended(Server& server, int socket) {
    std::set<uint32_t> there;
    server.each_session([&](Session& session) {
        if (!session.closing()) there.insert(session.id());
    });
    std::erase_if(known_, [&](const auto& each) {
        if (there.contains(each.first)) return false;
        Packet packet = make_packet(PacketKind::kForget);
        packet.number = each.first;
        return keeper::send_packet(socket, &packet, sizeof packet, {}, false);
    });
}

}  // namespace smt::runtime::server
