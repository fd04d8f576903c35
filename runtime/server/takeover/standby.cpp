#include "runtime/server/takeover/standby.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "runtime/device/device.h"
#include "runtime/keeper/channel.h"
#include "runtime/keeper/client.h"
#include "runtime/protocol/state.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "runtime/server/takeover/laps.h"
#include "runtime/server/takeover/packet.h"

extern char** environ;

namespace smt::runtime::server {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kStandbyDescriptor = 3;
constexpr auto kBetweenStarts = 2s;  // where one fails: what it lacked may come back
constexpr int kMostStarts = 4;       // of standbys that end by themselves: then the server goes on without
constexpr auto kStandStill = 2s;     // for threads that are in a call of the lost driver
constexpr auto kWorkEnds = 5s;       // for what is under way beside a kernel that does not end
constexpr auto kPatience = 60s;      // for sessions to be made again: images are loaded
constexpr useconds_t kNudge = 200;
constexpr const char* kEndsAll = "without one a fault of the GPU, or of this process, ends all programs";

int milliseconds_until(Clock::time_point end) {
    return static_cast<int>(std::max<int64_t>(0, (end - Clock::now()) / 1ms));
}

// With the other end of a socket as its descriptor. stderr is the log. 0, or an error number.
int spawn(const std::string& key, int end, pid_t* pid) {
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    // Through a higher number: dup2 of a descriptor to itself would leave it close-on-exec.
    const int high = fcntl(end, F_DUPFD_CLOEXEC, kStandbyDescriptor + 1);
    posix_spawn_file_actions_adddup2(&files, high, kStandbyDescriptor);
    posix_spawn_file_actions_addclosefrom_np(&files, kStandbyDescriptor + 1);
    std::string program = "smtd", flag_key = "--key", name = key, flag = "--standby";
    std::string descriptor = std::to_string(kStandbyDescriptor);
    char* const arguments[] = {program.data(), flag_key.data(),   name.data(),
                               flag.data(),    descriptor.data(), nullptr};
    const int failed = posix_spawn(pid, "/proc/self/exe", &files, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    close(high);
    return failed;
}

}  // namespace

Standby::Standby(device::Device& device, std::string key, std::function<void(const std::string&)> note)
    : device_(device), key_(std::move(key)), note_(std::move(note)) {}

Standby::~Standby() { drop(); }

void Standby::drop() {
    ready_.store(false);
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
    kept_.forget_all();
}

std::string Standby::start() {
    const int keeper = device_.physical_memory().socket_for_another();
    if (keeper < 0) return "there is no keeper";
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return close(keeper), std::string("no socket: ") + std::strerror(errno);
    pid_t pid = -1;
    const int failed = spawn(key_, ends[1], &pid);
    close(ends[1]);
    socket_ = ends[0];
    const auto of_keeper = static_cast<uint64_t>(device_.physical_memory().keeper_pid());
    const bool told = !failed && put_packet(socket_, make_packet(PacketKind::kBegin, of_keeper), {keeper});
    close(keeper);
    if (failed) return drop(), std::strerror(failed);
    pid_ = pid;
    return told ? "" : "it does not take its first message";
}

void Standby::leaving() {
    if (socket_ >= 0) put_leave(socket_, pid_);
}

void Standby::ends(const std::string& why, const std::string& tenant) const {
    if (!ready()) return;
    protocol::StateWriter state;
    state.text(why);
    state.text(tenant);
    const int file = file_of(state.all());
    const Packet packet = make_packet(PacketKind::kEnds, state.all().size());
    keeper::send_packet(socket_, &packet, sizeof packet, {file}, false);
}

void Standby::tick(Server& server, int listening, int lock) {
    if (socket_ < 0) {
        if (starts_ >= kMostStarts) return given_up_.store(true);
        if (server.sessions_come() || Clock::now() < next_start_) return;
        ++starts_;
        if (const std::string why = start(); !why.empty()) {
            next_start_ = Clock::now() + kBetweenStarts;
            note_(fmt::format("no standby: {}: {}", why, kEndsAll));
        }
        return;
    }
    pollfd watched{socket_, POLLIN, 0};
    if (poll(&watched, 1, 0) <= 0) {
        if (ready()) kept_.tell(server, socket_, listening, lock);
        return;
    }
    Packet said;
    std::vector<int> files;
    if (take_packet(socket_, PacketKind::kReady, 0, &said, &files)) {
        kept_.tell(server, socket_, listening, lock);
        ready_.store(true);
        return note_(
            fmt::format("a standby, process {}, is ready to take over after a fault of the GPU, or if this "
                        "process crashes or is killed",
                        pid_));
    }
    drop();
    const std::string how = keeper::how_it_ended(pid_);
    note_(fmt::format("the standby, process {}, {}: {}", pid_, how.empty() ? "no longer answers" : how,
                      starts_ < kMostStarts ? "another one is started" : kEndsAll));
}

bool Standby::begin(Server& server, int listening, int lock) {
    const std::string state = KeptSessions::state_of(server);
    const int file = file_of(state);
    if (file < 0) return false;
    const bool sent =
        put_packet(socket_, make_packet(PacketKind::kTakeOver, state.size()), {listening, lock, file});
    close(file);
    return sent;
}

// Empty, or why the session stays. It stands still.
std::string Standby::send_session(Session& session, int* line) {
    if (std::string why = session.why_not_carried(); !why.empty()) return why;
    const std::string state = session.save();
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return fmt::format("no socket: {}", std::strerror(errno));
    const int file = file_of(state);
    const bool sent = file >= 0 && put_packet(socket_, make_packet(PacketKind::kSession, state.size()),
                                              {session.socket(), session.arena().file(), file, ends[1]});
    close(ends[1]);
    if (file >= 0) close(file);
    if (!sent) return close(ends[0]), "the other process does not take it";
    *line = ends[0];
    return {};
}

// Empty: the session has left; else why it stays.
std::string Standby::take_answer(const Line& line) {
    Packet said;
    std::vector<int> files;
    if (!take_packet(line.socket, PacketKind::kMade, 0, &said, &files, 0))
        return "the other process has ended";
    if (said.text[0] != 0) return said.text;
    if (!put_packet(line.socket, make_packet(PacketKind::kGo))) return "the other process has ended";
    line.session->leave();
    return {};
}

void Standby::await_answers(Server& server, std::vector<Line> lines, HandedOver* result) {
    const auto until = Clock::now() + kPatience;
    while (!lines.empty()) {
        std::vector<pollfd> watched;
        for (const Line& line : lines) watched.push_back({line.socket, POLLIN, 0});
        const bool late = poll(watched.data(), watched.size(), milliseconds_until(until)) == 0;
        std::vector<Line> left;
        for (size_t i = 0; i < lines.size(); ++i) {
            if (watched[i].revents == 0 && !late) {
                left.push_back(lines[i]);
                continue;
            }
            const std::string why = late ? "the other process does not answer" : take_answer(lines[i]);
            close(lines[i].socket);
            if (why.empty())
                result->sockets.push_back(lines[i].session->socket());
            else
                lines[i].session->give_up(server.fatal(), why);
        }
        lines = std::move(left);
    }
}

// Each when its threads stand still: one whose call does not return holds no other up.
void Standby::send_sessions(Server& server, std::vector<Session*> waiting, bool goes,
                            std::vector<Line>* lines, std::set<std::string>* ended) {
    const auto until = Clock::now() + (server.context_lives() ? kWorkEnds : kStandStill);
    while (!waiting.empty()) {
        const bool late = Clock::now() > until;
        std::vector<Session*> left;
        for (Session* session : waiting) {
            const Standstill::Calls calls(server.standstill(), Standstill::kSlow);
            Line line{session, -1};
            std::string why = goes ? "" : "the standby does not answer";
            if (why.empty() && session->closing()) why = "its program ends";
            if (why.empty() && !session->stands_still()) {
                if (!late) {
                    session->nudge();
                    left.push_back(session);
                    continue;
                }
                why = session->why_not_still();
            }
            if (why.empty() && server.context_lives()) session->streams().note_what_is_over();
            if (why.empty()) why = send_session(*session, &line.socket);
            if (why.empty()) {
                lines->push_back(line);
                continue;
            }
            if (server.suspected(session->tenant())) ended->insert(session->tenant());
            session->give_up(server.fatal(), why);
        }
        waiting = std::move(left);
        if (!waiting.empty()) usleep(kNudge);
    }
}

// Names the tenant whose fault it was, if those that go on can be cleared: it is the only suspect that ends.
Packet Standby::done_packet(const std::vector<Line>& lines, const std::set<std::string>& ended) {
    const auto repeats = [](const Line& line) { return line.session->repeats(); };
    const auto others = static_cast<uint64_t>(std::count_if(lines.begin(), lines.end(), repeats));
    const bool known =
        ended.size() == 1 && others != 0 && std::none_of(lines.begin(), lines.end(), [&](const Line& line) {
            return line.session->repeats() && ended.contains(line.session->tenant());
        });
    return make_packet(PacketKind::kDone, others, known ? *ended.begin() : "");
}

HandedOver Standby::hand_over(Server& server, int listening, int lock) {
    HandedOver result;
    std::vector<Line> lines;
    Laps laps;
    if (!server.context_lives()) server.device().physical_memory().trim();  // else it may not return
    result.server = begin(server, listening, lock);
    laps.end("the standby is told");
    const std::vector<Session*> sessions = server.held_sessions();
    // Before any program ends: the dispatcher would then make launches that it has kept back.
    for (Session* session : sessions) session->nudge();
    std::set<std::string> ended;
    send_sessions(server, sessions, result.server, &lines, &ended);
    laps.end("sessions stand still and are sent");
    if (result.server) put_packet(socket_, done_packet(lines, ended));
    await_answers(server, std::move(lines), &result);
    server.decided();
    laps.end("they are there");
    drop();
    if (result.server)
        note_(fmt::format("process {} serves from now on, {} of {} sessions that were there, too; after {}",
                          pid_, result.sockets.size(), sessions.size(), laps.text()));
    return result;
}

}  // namespace smt::runtime::server
